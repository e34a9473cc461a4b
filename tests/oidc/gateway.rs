//! The binary, with sign-in at a provider.
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The maximum time until a gateway has logged its address, and until it is ready.
const START_TIMEOUT: Duration = Duration::from_mins(3);

/// A running gateway, killed on drop.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) url: String,
    log: Arc<Mutex<String>>,
    pub(crate) dir: TempDir,
}

impl Gateway {
    /// Starts a gateway with these settings, and waits until it is ready.
    pub(crate) async fn start(settings: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(binary())
            .args(["serve", "--server.port=0", "--service.data-dir=data"])
            .args(settings)
            .current_dir(dir.path())
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (found, address) = mpsc::channel();
        follow_output(child.stderr.take().unwrap(), log.clone(), found.clone());
        follow_output(child.stdout.take().unwrap(), log.clone(), found);
        let Ok(url) = address.recv_timeout(START_TIMEOUT) else {
            let _ = child.kill();
            panic!("the gateway did not log its address:\n{}", log.lock().unwrap());
        };
        let gateway = Self { child, url, log, dir };
        let begun = Instant::now();
        let ready = format!("{}/health/ready", gateway.url);
        while !reqwest::get(&ready).await.is_ok_and(|answer| answer.status() == 200) {
            assert!(begun.elapsed() < START_TIMEOUT, "it is never ready:\n{}", gateway.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        gateway
    }

    /// Starts a gateway with sign-in at this provider, and registers it there.
    pub(crate) async fn start_with_provider(provider: &super::Provider, more: &[&str]) -> Self {
        let mut settings = settings(&provider.issuer);
        settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        let gateway = Self::start(&settings).await;
        provider.register_redirect_uri(&gateway.url, "kc").await;
        gateway
    }

    /// Returns the output of the gateway so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Sends a `GET` as local administration.
    pub(crate) fn get_locally(&self, path: &str) -> Value {
        self.send_locally("GET", path, "")
    }

    /// Sends a request as local administration, over the control socket.
    pub(crate) fn send_locally(&self, method: &str, path: &str, body: &str) -> Value {
        use std::io::Write;
        let socket = self.dir.path().join("data/control.sock");
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{answer}");
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    /// Returns the account with this `email`.
    pub(crate) fn account(&self, email: &str) -> Value {
        let users = self.get_locally("/api/v1/users");
        let found: Vec<_> = users["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|user| user["email"] == email)
            .collect();
        assert_eq!(found.len(), 1, "{users}");
        found[0].clone()
    }

    /// Lists the details of every event of this kind in the audit trail.
    pub(crate) fn events(&self, what: &str) -> Vec<String> {
        let audit = self.get_locally("/api/v1/audit");
        let items = audit["items"].as_array().unwrap().iter().filter(|event| event["what"] == what);
        items.map(|event| event["detail"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the gateway's log:\n{}", self.log());
        }
    }
}

/// Returns the settings of sign-in at this issuer, with the registration `kc`.
pub(crate) fn settings(issuer: &str) -> Vec<String> {
    let client = "--framework.security.oauth2.client";
    vec![
        "--security=oauth2".into(),
        "--profiles.active=oauth2".into(),
        "--service.security.registration=kc".into(),
        format!("{client}.registration.kc.client-id=penstock-web"),
        format!("{client}.registration.kc.client-secret=web-secret-0123456789abcdef0123456"),
        format!("{client}.provider.kc.issuer-uri={issuer}"),
    ]
}

fn binary() -> std::path::PathBuf {
    std::env::var_os("PENSTOCK_TEST_BINARY")
        .map_or_else(|| Path::new(env!("CARGO_BIN_EXE_penstock")).to_owned(), Into::into)
}

fn follow_output(
    stream: impl Read + Send + 'static,
    log: Arc<Mutex<String>>,
    found: mpsc::Sender<String>,
) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some((_, rest)) = line.split_once(" listens on ")
                && let Some(url) = rest.split(' ').next()
            {
                let _ = found.send(url.to_owned());
            }
            *log.lock().unwrap() += &(line + "\n");
        }
    });
}
