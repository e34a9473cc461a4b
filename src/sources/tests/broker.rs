//! A mosquitto on a free port of 127.0.0.1.
use rand::Rng as _;
use std::fs::write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time in which mosquitto must accept connections.
const START_TIMEOUT: Duration = Duration::from_mins(2);

/// A running broker. It ends with this value.
pub(super) struct Broker {
    pub(super) port: u16,
    pub(super) folder: TempDir,
    child: Option<Child>,
}

impl Broker {
    /// Starts a broker that lets everyone in and queues any number of messages.
    pub(super) fn start() -> Self {
        Self::start_with(|_| "allow_anonymous true\n".to_owned())
    }

    /// Starts a broker with these lines in its configuration; `configure` may create files in its folder.
    pub(super) fn start_with(configure: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let path = folder.path().display();
        let lines = configure(folder.path());
        // As root, mosquitto would switch to a user who cannot write into the folder.
        let config = format!(
            "user root\nlistener {port} 127.0.0.1\npersistence true\npersistence_location {path}/\n\
             max_queued_messages 0\nmax_inflight_messages 1000\n{lines}"
        );
        write(folder.path().join("mosquitto.conf"), config).unwrap();
        let mut broker = Self { port, folder, child: None };
        broker.run();
        broker
    }

    /// Starts it again, after it was stopped or killed.
    pub(super) fn run(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let started = Command::new(find_program("mosquitto"))
            .arg("-c")
            .arg(self.folder.path().join("mosquitto.conf"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(started.expect("mosquitto starts"));
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < START_TIMEOUT, "{}", self.read_log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it with SIGTERM. It saves its sessions and messages.
    pub(super) fn stop(&mut self) {
        let child = self.child.as_mut().expect("it runs");
        let stopped = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(stopped.success());
        child.wait().unwrap();
        self.child = None;
    }

    /// Ends it with SIGKILL. It loses its sessions, and messages that were not saved.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn read_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a port that no one listens on. It is below the ports that the system gives to connections and to listeners
/// without a port of their own, so that none of them takes it before the broker does.
pub(super) fn free_port() -> u16 {
    loop {
        let port = rand::rng().random_range(20_000_u16..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns the path of a program of mosquitto. Debian has them in a folder that is in the PATH of root only.
pub(super) fn find_program(name: &str) -> String {
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"]
        .iter()
        .map(|folder| format!("{folder}/{name}"))
        .find(|path| Path::new(path).exists())
        .unwrap_or_else(|| panic!("{name} is missing; run: apt-get install mosquitto"))
}
