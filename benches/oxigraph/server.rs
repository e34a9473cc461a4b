//! Starts, observes and stops a server under test.
use crate::client::Client;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The start timeout. Oxigraph replays its log at the start, which took minutes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(15);

/// The kernel's clock ticks per second in `/proc` (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Seconds until the first successful response.
    pub(crate) open: f64,
}

impl Server {
    /// Starts the server with a free port in place of `PORT`, and waits until a GET of `path` succeeds.
    pub(crate) fn start(binary: &str, arguments: &[&str], path: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let port = address.port().to_string();
        let begun = Instant::now();
        let child = Command::new(binary)
            .args(arguments.iter().map(|argument| argument.replace("PORT", &port)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, address, open: 0.0 };
        loop {
            assert!(server.child.try_wait().unwrap().is_none(), "{binary} has ended");
            assert!(begun.elapsed() < START_TIMEOUT, "{binary} does not answer");
            let answered =
                Client::connect(address).is_some_and(|mut client| client.is_path_ready(path));
            if answered {
                server.open = begun.elapsed().as_secs_f64();
                return server;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn connect_client(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// Returns `VmRSS` or `VmHWM` in MiB.
    pub(crate) fn memory_mb(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(self.proc_path("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kb: f64 = line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").parse().unwrap();
        kb / 1024.0
    }

    /// Returns the bytes that the server has caused to be written to the device, pending ones included.
    pub(crate) fn written_bytes(&self) -> u64 {
        let io = std::fs::read_to_string(self.proc_path("io")).unwrap();
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
    }

    /// Returns the CPU time of the server's threads in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(self.proc_path("stat")).unwrap();
        // The name in parentheses may contain any character; the times are the 12th and 13th fields after it.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
        ticks / TICKS_PER_SECOND
    }

    fn proc_path(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.child.id())
    }

    /// Stops the server, and waits until it has ended. SIGINT is ignored in what a shell starts in the background.
    pub(crate) fn stop(mut self) {
        Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the total size of all files below a folder, in bytes.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let data = entry.metadata().unwrap();
        bytes += if data.is_dir() { folder_bytes(&entry.path()) } else { data.len() };
    }
    bytes
}

/// Starts a minimal server: a thread for each connection answers every request with the same `bytes`. The time of a
/// request to it is the overhead of the machine and the client.
pub(crate) fn start_minimal_server(bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let mut length = 0;
                while let Ok(read @ 1..) = stream.read(&mut request[length..]) {
                    length += read;
                    if request[..length].ends_with(b"\r\n\r\n") {
                        length = 0;
                        if stream.write_all(answer.as_bytes()).is_err() {
                            break;
                        }
                    }
                }
            });
        }
    });
    address
}
