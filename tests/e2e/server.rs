//! Runs the binary as a child process in its own folder.
use crate::client::Client;
use penstock_store::{Pattern, Read, Store};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// The timeout after which a test fails. It is no requirement. The only time that is one is the limit for shutting
/// down ([`Server::end_by`]).
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(5);

/// A running server, which is killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) client: Client,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts `penstock serve` with `dir` as its working directory, and waits until it is ready.
    pub(crate) fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_with(dir, arguments, &[])
    }

    /// Starts the server as [`Self::start`] does, with these variables in its environment.
    pub(crate) fn start_with(dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = penstock(dir)
            .args(["serve", "--server.port=0"])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (found, address) = mpsc::channel();
        let out = child.stdout.take().expect("stdout is piped");
        let err = child.stderr.take().expect("stderr is piped");
        follow(out, Arc::clone(&log), found.clone());
        follow(err, Arc::clone(&log), found);
        let Ok(address) = address.recv_timeout(TEST_TIMEOUT) else {
            let _ = child.kill();
            panic!("the server did not print its address:\n{}", log.lock().unwrap());
        };
        let mut server = Self { child, client: Client::new(address), log };
        wait_for("the server is ready", || {
            let headers = [];
            server
                .client
                .send(hyper::Method::GET, "/health/ready", &headers, "")
                .is_ok_and(|answer| answer.status == 200)
        });
        let data = arguments.iter().find(|argument| argument.starts_with("--service.data-dir="));
        if let Some(data) = data {
            server.client = server.client.with_key(admin_key(dir, data));
        }
        server
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal and returns the exit status. Fails if the process does not exit within 10 s.
    pub(crate) fn stop_with_signal(mut self, name: &str) -> ExitStatus {
        signal(self.child.id(), name);
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < end, "still running 10 s after SIG{name}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends SIGTERM; the process must exit with 0.
    #[track_caller]
    pub(crate) fn stop(self) {
        let log = Arc::clone(&self.log);
        let status = self.stop_with_signal("TERM");
        assert_eq!(status.code(), Some(0), "{}", log.lock().unwrap());
    }

    /// Sends SIGKILL, and reaps the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the child can be killed");
        self.child.wait().expect("the child can be waited for");
    }

    /// Returns a value in kB from `/proc/<pid>/status`, such as `VmRSS` or `VmHWM`.
    pub(crate) fn memory_kb(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .expect("/proc has the child");
        status
            .lines()
            .find_map(|l| l.strip_prefix(line)?.strip_prefix(':')?.trim().strip_suffix(" kB"))
            .and_then(|kb| kb.parse().ok())
            .unwrap_or_else(|| panic!("no {line} in\n{status}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
    }
}

/// Returns a command that runs the binary in `dir`, without the caller's configuration.
pub(crate) fn penstock(dir: &Path) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Returns an API key with the role Admin for the server with this data argument. If an earlier server in this
/// directory has created one, it is returned again.
pub(crate) fn admin_key(dir: &Path, data: &str) -> String {
    let known = dir.join("key-of-the-tests");
    std::fs::read_to_string(&known).unwrap_or_else(|_| {
        let key = create_key(dir, data, "tests", "Admin");
        std::fs::write(&known, &key).expect("the key can be kept");
        key
    })
}

/// Creates an API key as an operator does.
pub(crate) fn create_key(dir: &Path, data: &str, name: &str, role: &str) -> String {
    let arguments = ["api-key", "create", "--name", name, "--role", role, data];
    let made = penstock(dir).args(arguments).output().expect("the binary starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).expect("a key is text").trim().to_owned()
}

/// Returns the path of the binary under test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("PENSTOCK_TEST_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_penstock").into(), PathBuf::from)
}

/// Returns every quad in the store of a stopped server, and the sequence of its newest frame.
pub(crate) fn quads(data_dir: &Path) -> (BTreeSet<String>, u64) {
    let store = open_store(data_dir);
    let reader = store.read();
    let mut quads = BTreeSet::new();
    reader
        .for_each(&Pattern::default(), &mut |quad| {
            quads.insert(quad.to_string());
            ControlFlow::Continue(())
        })
        .expect("the store can be read");
    let sequence = reader.sequence();
    (quads, sequence)
}

fn open_store(data_dir: &Path) -> Store {
    let dir = data_dir.join("store");
    assert!(dir.is_dir(), "{} contains no store", data_dir.display());
    Store::open(&dir, penstock_store::Options::default(), &mut |_| ())
        .expect("the store of a stopped server opens")
}

/// Sends a signal by its name. The standard library can only send SIGKILL.
pub(crate) fn signal(pid: u32, name: &str) {
    let status =
        Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().expect("sh runs");
    assert!(status.success(), "kill -{name} {pid}");
}

/// Waits until `done` returns true. Fails after [`PATIENCE`].
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + TEST_TIMEOUT;
    while !done() {
        assert!(Instant::now() < end, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Pushes, waits until the only target has the export, and returns the delivered entry.
#[track_caller]
pub(crate) fn push_and_wait(client: Client, business_object: &str) -> Value {
    let push = client.post(&format!("/api/v1/business-objects/{business_object}/push"), "");
    let push = push.expect(202).json();
    let id = push["exports"][0]["id"].as_str().unwrap_or_else(|| panic!("{push}")).to_owned();
    let mut entry = Value::Null;
    wait_for("the export is delivered", || {
        entry = client.get(&format!("/api/v1/exports/{id}")).expect(200).json();
        entry["status"] == "delivered"
    });
    entry
}

fn follow(
    pipe: impl std::io::Read + Send + 'static,
    log: Arc<Mutex<String>>,
    found: mpsc::Sender<std::net::SocketAddr>,
) {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some((_, rest)) = line.split_once("listens on http://") {
                let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
                if let Ok(address) = rest[..end.unwrap_or(rest.len())].trim_end_matches('.').parse()
                {
                    let _ = found.send(address);
                }
            }
            log.lock().unwrap().push_str(&line);
            line.clear();
        }
        let _ = pipe.read_to_string(&mut line);
    });
}
