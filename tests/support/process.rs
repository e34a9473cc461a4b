//! Runs the binary as a child process in its own folder.
use crate::{Client, TEST_TIMEOUT, wait_for};
use penstock_model::testing::list_quads;
use penstock_store::{Options, Store};
use serde_json::Value;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running server, which is killed when dropped.
#[derive(Debug)]
pub struct TestProcess {
    child: Child,
    /// The scheme and address, as in `http://127.0.0.1:8080`.
    pub url: String,
    pub client: Client,
    log: Arc<Mutex<String>>,
    /// The threads that read its output.
    readers: Vec<JoinHandle<()>>,
}

impl TestProcess {
    /// Starts `penstock serve` with `dir` as its working directory, and waits until it is ready. Its client has an Admin's
    /// key if the arguments name the data directory.
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_with(dir, arguments, &[])
    }

    /// Starts the server as [`Self::start`] does, with these variables in its environment.
    pub fn start_with(dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = penstock(dir);
        command.args(["serve", "--server.port=0"]).args(arguments);
        let mut server = Self::spawn(command.envs(environment.iter().copied()));
        let data = arguments.iter().find(|argument| argument.starts_with("--service.data-dir="));
        if let Some(data) = data {
            server.client = server.client.with_key(admin_key(dir, data));
        }
        server
    }

    /// Runs a command that serves, and waits until it is ready. It prints its address only then.
    pub fn spawn(command: &mut Command) -> Self {
        let (mut server, address) = Self::launch(command, SocketAddr::from(([127, 0, 0, 1], 0)));
        let found = address.recv_timeout(TEST_TIMEOUT);
        let (url, address) = found.expect("the server prints its address");
        server.url = url;
        server.client = Client::new(address);
        if server.url.starts_with("http://") {
            let is_ready = || server.client.send("GET", "/health/ready", &[], "");
            wait_for("the server is ready", || is_ready().is_ok_and(|answer| answer.status == 200));
        }
        server
    }

    /// Starts `penstock serve` as [`Self::start`] does, but waits for nothing.
    pub fn start_without_waiting(dir: &Path, arguments: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let port = format!("--server.port={}", address.port());
        Self::launch(penstock(dir).args(["serve", &port]).args(arguments), address).0
    }

    /// Runs a command. The receiver gets the URL that it prints.
    fn launch(
        command: &mut Command,
        address: SocketAddr,
    ) -> (Self, mpsc::Receiver<(String, SocketAddr)>) {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (found, receiver) = mpsc::channel();
        let out = child.stdout.take().expect("stdout is piped");
        let err = child.stderr.take().expect("stderr is piped");
        let readers = vec![
            read_output(out, Arc::clone(&log), found.clone()),
            read_output(err, Arc::clone(&log), found),
        ];
        let client = Client::new(address);
        (Self { child, url: format!("http://{address}"), client, log, readers }, receiver)
    }

    /// Returns its log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until its log contains `text`: a line is read some time after it is written.
    #[track_caller]
    pub fn wait_for_log(&self, text: &str) {
        wait_for(&format!("the log contains {text:?}"), || self.log().contains(text));
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal and returns the exit status. Fails if the process does not exit within 60 s.
    pub fn stop_with_signal(mut self, name: &str) -> ExitStatus {
        signal(self.child.id(), name);
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < end, "still running 60 s after SIG{name}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends SIGTERM; the process must exit with 0.
    #[track_caller]
    pub fn stop(self) {
        let log = Arc::clone(&self.log);
        let status = self.stop_with_signal("TERM");
        assert_eq!(status.code(), Some(0), "{}", log.lock().unwrap());
    }

    /// Sends SIGKILL, reaps the process, and returns its complete log.
    pub fn kill(mut self) -> String {
        self.child.kill().expect("the child can be killed");
        self.child.wait().expect("the child can be waited for");
        for reader in self.readers.drain(..) {
            reader.join().expect("the output can be read");
        }
        self.log()
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child can be waited for").is_some()
    }

    /// Returns a value in kB from `/proc/<pid>/status`, such as `VmRSS` or `VmHWM`.
    pub fn memory_kb(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .expect("/proc has the child");
        status
            .lines()
            .find_map(|l| l.strip_prefix(line)?.strip_prefix(':')?.trim().strip_suffix(" kB"))
            .and_then(|kb| kb.parse().ok())
            .unwrap_or_else(|| panic!("no {line} in\n{status}"))
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
    }
}

/// Returns a command that runs the binary in `dir`, without the caller's configuration.
pub fn penstock(dir: &Path) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Returns a port of 127.0.0.1 that no one listens on, for a server that cannot choose one itself. It is below the ports
/// that the system gives to connections and to such servers, so that none of them takes it before the server does.
pub fn free_port() -> u16 {
    let random = RandomState::new();
    let port = |attempt: u64| 20_000 + u16::try_from(random.hash_one(attempt) % 12_000).unwrap();
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..1_000).map(port).find(is_free).expect("a port is free")
}

/// Returns an API key with the role Admin for the server with this data argument. If an earlier server in this
/// directory has created one, it is returned again.
pub fn admin_key(dir: &Path, data: &str) -> String {
    let known = dir.join("key-of-the-tests");
    std::fs::read_to_string(&known).unwrap_or_else(|_| {
        let key = create_key(dir, data, "tests", "Admin");
        std::fs::write(&known, &key).expect("the key can be kept");
        key
    })
}

/// Creates an API key as an operator does.
pub fn create_key(dir: &Path, data: &str, name: &str, role: &str) -> String {
    let arguments = ["api-key", "create", "--name", name, "--role", role, data];
    let made = penstock(dir).args(arguments).output().expect("the binary starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).expect("a key is text").trim().to_owned()
}

/// Returns the path of the binary under test: the one that `PENSTOCK_TEST_BINARY` names, or that Cargo built.
pub fn binary() -> PathBuf {
    std::env::var_os("PENSTOCK_TEST_BINARY").map_or_else(
        || {
            // Tests are in the folder `deps` beside it.
            let test = std::env::current_exe().unwrap();
            test.parent().unwrap().with_file_name("penstock")
        },
        PathBuf::from,
    )
}

/// Returns every quad in the store of a stopped server, and the sequence of its newest frame.
pub fn quads(data_dir: &Path) -> (BTreeSet<String>, u64) {
    let dir = data_dir.join("store");
    assert!(dir.is_dir(), "{} contains no store", data_dir.display());
    let store = Store::open(&dir, Options::default(), &mut |_| ());
    let store = store.expect("the store of a stopped server opens");
    let reader = store.read();
    (list_quads(&reader).into_iter().collect(), reader.sequence())
}

/// Sends a signal by its name. The standard library can only send SIGKILL.
pub fn signal(pid: u32, name: &str) {
    let status =
        Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status().expect("sh runs");
    assert!(status.success(), "kill -{name} {pid}");
}

/// Pushes, waits until the only target has the export, and returns the delivered entry.
#[track_caller]
pub fn push_and_wait(client: Client, business_object: &str) -> Value {
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

/// Reads the output on a thread of its own, and sends the URLs that the server prints.
fn read_output(
    pipe: impl Read + Send + 'static,
    log: Arc<Mutex<String>>,
    found: mpsc::Sender<(String, SocketAddr)>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = String::new();
        while pipe.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let Some(url) = find_url(&line) {
                let _ = found.send(url);
            }
            log.lock().unwrap().push_str(&line);
            line.clear();
        }
    })
}

/// Finds the URL that the server listens on.
fn find_url(line: &str) -> Option<(String, SocketAddr)> {
    let (_, rest) = line.split_once("listens on ")?;
    let url = rest.split_whitespace().next()?.trim_end_matches('.');
    let (_, address) = url.split_once("://")?;
    Some((url.to_owned(), address.parse().ok()?))
}
