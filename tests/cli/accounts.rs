//! `penstock user` and `penstock api-key`, on the store itself and through the running service.
use crate::{penstock, serve};
use penstock_test_support::prelude::*;
use std::process::Output;

const PASSWORD: &str = "correct horse battery\n";

fn run(dir: &Path, arguments: &[&str], input: &str) -> Output {
    penstock(dir, arguments).arg("--service.data-dir=data").pipe(input)
}

/// Returns what a command printed, which must have succeeded.
#[track_caller]
fn assert_success(output: Output) -> String {
    output.success().out().trim_end().to_owned()
}

#[track_caller]
fn assert_failure(output: &Output, status: i32, why: &str) {
    output.fails(status, why);
    assert!(output.stdout.is_empty(), "{:?}", output.out());
}

/// Returns the status of a request with this key.
fn request_users(service: &TestProcess, key: &str) -> u16 {
    let answer = service.client.send("GET", "/api/v1/users", &[("apikey", key)], "");
    answer.expect("it answers").status
}

/// Creates, changes and deletes accounts and a key, with or without a service.
fn manage_accounts(dir: &Path, service: Option<&TestProcess>) {
    let add = ["user", "add", "ada@plant.example", "--role", "contributor", "--given-name", "Ada"];
    let added = run(dir, &add, PASSWORD).success().out();
    assert!(added.starts_with("The account ada@plant.example was created"), "{added}");
    assert_failure(&run(dir, &add, PASSWORD), 1, "has the email");
    assert_failure(&run(dir, &["user", "add", "bob", "--role", "User"], "short\n"), 1, "too short");
    assert_failure(&run(dir, &["user", "add", "bob", "--role", "User"], ""), 1, "standard input");
    assert_failure(&run(dir, &["user", "add", "bob", "--role", "Metrics"], PASSWORD), 2, "Metrics");

    let generated = ["user", "add", "bob", "--role", "User", "--generate"];
    assert_eq!(assert_success(run(dir, &generated, "")).len(), 27);
    let listed = run(dir, &["user", "list", "--json"], "").json();
    let emails: Vec<&str> =
        listed["items"].list().iter().map(|item| item["email"].text()).collect();
    assert_eq!(emails, ["admin", "ada@plant.example", "bob"]);
    assert_eq!(listed["items"][1]["givenName"], "Ada");
    assert!(!listed.to_string().contains("argon2"), "{listed}");
    let table = assert_success(run(dir, &["user", "list"], ""));
    assert_eq!(table.lines().count(), 4, "{table}");

    let initial = dir.join("data/initial-admin-password");
    assert!(initial.exists());
    run(dir, &["user", "passwd", "admin"], PASSWORD).success();
    assert!(!initial.exists());
    assert_failure(&run(dir, &["user", "passwd", "nobody"], PASSWORD), 1, "nobody");
    assert_failure(&run(dir, &["user", "disable", "admin"], ""), 1, "last enabled Admin");
    let disabled = run(dir, &["user", "disable", "bob", "--json"], "").json();
    assert_eq!(disabled["enabled"], false);
    run(dir, &["user", "enable", "bob"], "").success();
    run(dir, &["user", "delete", "bob"], "").success();
    assert_failure(&run(dir, &["user", "delete", "bob"], ""), 1, "bob");

    let create = ["api-key", "create", "--name", "line 4", "--role", "Admin", "--expires", "90d"];
    let key = assert_success(run(dir, &create, ""));
    assert!(key.starts_with("penstock_") && key.lines().count() == 1, "{key}");
    let listed = run(dir, &["api-key", "list", "--json"], "").json();
    let items = listed["items"].list();
    let item = items.iter().find(|item| item["name"] == "line 4").expect("the key");
    assert!(item["expiresAt"].is_string(), "{item}");
    assert!(!listed.to_string().contains(&key[9..]), "{listed}");
    if let Some(service) = service {
        assert_eq!(request_users(service, &key), 200);
    }
    let id = item["id"].text();
    run(dir, &["api-key", "revoke", id], "").success();
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
    let dir = tempfile::tempdir().unwrap();
    assert_failure(&run(dir.path(), &["user", "list"], ""), 1, "no data directory");
    std::fs::create_dir(dir.path().join("data")).unwrap();
    manage_accounts(dir.path(), None);
}

#[test]
fn accounts_and_keys_are_managed_through_the_running_service() {
    let dir = tempfile::tempdir().unwrap();
    let service = serve(dir.path(), "data");
    manage_accounts(dir.path(), Some(&service));
}
