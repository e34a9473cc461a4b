//! A server under test: started, looked at, stopped.
use crate::client::Client;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Oxigraph replays its log at a start, which took it minutes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(15);

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Seconds until it answered.
    pub(crate) open: f64,
}

impl Server {
    /// Starts it with a free port in place of `PORT`, and waits until it answers to `path`.
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
            assert!(begun.elapsed() < PATIENCE, "{binary} does not answer");
            let answered = Client::connect(address).is_some_and(|mut client| client.answers(path));
            if answered {
                server.open = begun.elapsed().as_secs_f64();
                return server;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address).unwrap()
    }

    /// `VmRSS` or `VmHWM` in MB.
    pub(crate) fn memory_mb(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(self.proc("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kb: f64 = line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").parse().unwrap();
        kb / 1024.0
    }

    /// Bytes that it has caused to be written to the device, those not yet written included.
    pub(crate) fn written_bytes(&self) -> u64 {
        let io = std::fs::read_to_string(self.proc("io")).unwrap();
        io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
    }

    fn proc(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.child.id())
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) {
        Command::new("kill").arg("-INT").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of all files below.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let data = entry.metadata().unwrap();
        bytes += if data.is_dir() { bytes_in(&entry.path()) } else { data.len() };
    }
    bytes
}
