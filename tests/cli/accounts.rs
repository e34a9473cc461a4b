//! `penstock user` and `penstock api-key`, on the store itself and through the running service.
use crate::server::Server;
use crate::{penstock, serve};
use hyper::Method;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

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

/// Returns the status of a request with this key.
fn request_users(service: &Server, key: &str) -> u16 {
    let answer = service.client.send(Method::GET, "/api/v1/users", &[("apikey", key)], "");
    answer.expect("it answers").status
}

/// Creates, changes and deletes accounts and a key, with or without a service.
fn manage_accounts(dir: &Path, service: Option<&Server>) {
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
        assert_eq!(request_users(service, &key), 200);
    }
    let id = item["id"].as_str().expect("an id");
    assert_success(&run(dir, &["api-key", "revoke", id], ""));
    assert_failure(&run(dir, &["api-key", "revoke", id], ""), 1, "no API key");
    if let Some(service) = service {
        assert_eq!(request_users(service, &key), 401);
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
    let service = serve(dir.path(), "data");
    manage_accounts(dir.path(), Some(&service));
}
