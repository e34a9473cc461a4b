//! `penstock user` and `penstock api-key`, on the store itself and through the running service.
use crate::penstock;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Output, Stdio};

const PASSWORD: &str = "correct horse battery\n";

fn run(dir: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = penstock(dir, arguments);
    command.arg("--service.data-dir=data").stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    // A command that does not read its input may have ended already.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn assert_success(output: &Output) -> String {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    out.trim_end().to_owned()
}

#[track_caller]
fn assert_failure(output: &Output, status: i32, why: &str) {
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{err}");
    assert!(err.contains(why), "{err}");
    assert!(output.stdout.is_empty(), "{:?}", text(&output.stdout));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&assert_success(output)).expect("JSON")
}

/// A running service, killed when dropped.
struct Service(Child, std::net::SocketAddr);

impl Service {
    fn start(dir: &Path) -> Self {
        let arguments = ["serve", "--service.data-dir=data", "--server.port=0"];
        let mut child =
            penstock(dir, &arguments).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let log = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let port = line.split("127.0.0.1:").nth(1);
                let digits = port.map(|rest| rest.chars().take_while(char::is_ascii_digit));
                if let Some(port) =
                    digits.and_then(|digits| digits.collect::<String>().parse().ok())
                {
                    // Only the first port is received.
                    let _ = sender.send(port);
                }
            }
        });
        let port: u16 = address.recv().expect("it says where it listens");
        let address = ([127, 0, 0, 1], port).into();
        while !dir.join("data/control.sock").exists() {
            assert!(child.try_wait().expect("a child").is_none(), "it ended");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self(child, address)
    }

    /// Returns the status of a request with this key.
    fn status(&self, key: &str) -> String {
        let mut stream = std::net::TcpStream::connect(self.1).expect("it listens");
        let request = format!(
            "GET /api/v1/users HTTP/1.1\r\nHost: localhost\r\nApikey: {key}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("it takes a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The service may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates, changes and deletes accounts and a key, with or without a service.
fn manage_accounts(dir: &Path, service: Option<&Service>) {
    let add = ["user", "add", "ada@plant.example", "--role", "contributor", "--given-name", "Ada"];
    assert!(
        assert_success(&run(dir, &add, PASSWORD))
            .starts_with("The account ada@plant.example was created")
    );
    assert_failure(&run(dir, &add, PASSWORD), 1, "has the email");
    assert_failure(&run(dir, &["user", "add", "bob", "--role", "User"], "short\n"), 1, "too short");
    assert_failure(&run(dir, &["user", "add", "bob", "--role", "User"], ""), 1, "standard input");
    assert_failure(&run(dir, &["user", "add", "bob", "--role", "Metrics"], PASSWORD), 2, "Metrics");

    let generated = ["user", "add", "bob", "--role", "User", "--generate"];
    assert_eq!(assert_success(&run(dir, &generated, "")).len(), 27);
    let listed = json(&run(dir, &["user", "list", "--json"], ""));
    let emails: Vec<&str> = listed["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["email"].as_str().expect("an email"))
        .collect();
    assert_eq!(emails, ["admin", "ada@plant.example", "bob"]);
    assert_eq!(listed["items"][1]["givenName"], "Ada");
    assert!(!listed.to_string().contains("argon2"), "{listed}");
    let table = assert_success(&run(dir, &["user", "list"], ""));
    assert_eq!(table.lines().count(), 4, "{table}");

    let initial = dir.join("data/initial-admin-password");
    assert!(initial.exists());
    assert_success(&run(dir, &["user", "passwd", "admin"], PASSWORD));
    assert!(!initial.exists());
    assert_failure(&run(dir, &["user", "passwd", "nobody"], PASSWORD), 1, "nobody");
    assert_failure(&run(dir, &["user", "disable", "admin"], ""), 1, "last enabled Admin");
    let disabled = json(&run(dir, &["user", "disable", "bob", "--json"], ""));
    assert_eq!(disabled["enabled"], false);
    assert_success(&run(dir, &["user", "enable", "bob"], ""));
    assert_success(&run(dir, &["user", "delete", "bob"], ""));
    assert_failure(&run(dir, &["user", "delete", "bob"], ""), 1, "bob");

    let create = ["api-key", "create", "--name", "line 4", "--role", "Admin", "--expires", "90d"];
    let key = assert_success(&run(dir, &create, ""));
    assert!(key.starts_with("penstock_") && key.lines().count() == 1, "{key}");
    let listed = json(&run(dir, &["api-key", "list", "--json"], ""));
    let items = listed["items"].as_array().expect("items");
    let item = items.iter().find(|item| item["name"] == "line 4").expect("the key");
    assert!(item["expiresAt"].is_string(), "{item}");
    assert!(!listed.to_string().contains(&key[9..]), "{listed}");
    if let Some(service) = service {
        assert_eq!(service.status(&key), "200");
    }
    let id = item["id"].as_str().expect("an id");
    assert_success(&run(dir, &["api-key", "revoke", id], ""));
    assert_failure(&run(dir, &["api-key", "revoke", id], ""), 1, "no API key");
    if let Some(service) = service {
        assert_eq!(service.status(&key), "401");
    }
    for wrong in [
        &["api-key", "create", "--name", "x"] as &[&str],
        &["api-key", "create", "--name", "x", "--role", "Root"],
        &["api-key", "create", "--name", "x", "--role", "User", "--expires", "soon"],
        &["api-key"],
        &["user"],
    ] {
        assert_eq!(run(dir, wrong, "").status.code(), Some(2), "{wrong:?}");
    }
    let unknown = ["api-key", "create", "--name", "x", "--role", "User", "--business-object", "P"];
    assert_failure(&run(dir, &unknown, ""), 1, "/businessObject");
}

#[test]
fn accounts_and_keys_are_managed_without_the_service() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    assert_failure(&run(dir.path(), &["user", "list"], ""), 1, "no data directory");
    std::fs::create_dir(dir.path().join("data")).expect("a directory");
    manage_accounts(dir.path(), None);
}

#[test]
fn accounts_and_keys_are_managed_through_the_running_service() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let service = Service::start(dir.path());
    manage_accounts(dir.path(), Some(&service));
}
