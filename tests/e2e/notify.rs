//! The notifications to the service manager (`sd_notify(3)`), read from the socket that it would listen on.
use crate::define_notes;
use penstock_test_support::prelude::*;
use std::os::unix::net::UnixDatagram;

struct Manager(UnixDatagram);

impl Manager {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self(socket)
    }

    /// Waits for a notification with a line that starts with `line`. Returns all lines received so far.
    #[track_caller]
    fn until(&self, line: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut notice = [0; 4096];
            let length =
                self.0.recv(&mut notice).unwrap_or_else(|e| panic!("{line}: {e}: {lines:?}"));
            assert!(length < notice.len(), "systemd ignores such a long notification");
            let notice = String::from_utf8_lossy(&notice[..length]).into_owned();
            lines.extend(notice.lines().map(str::to_owned));
            if notice.lines().any(|received| received.starts_with(line)) {
                return lines;
            }
        }
    }
}

#[test]
fn the_manager_is_notified_of_readiness_status_and_liveness() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = Manager::listen(&path);
    let environment = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "4000000")];
    let server = TestProcess::start_with(dir.path(), &["--service.data-dir=data"], &environment);
    let lines = manager.until("STATUS=Serving; no export waits");
    // After the gateway is ready, no notification says that it is opening.
    let ready = lines.iter().position(|line| line == "READY=1").expect("it is ready");
    let opening = lines.iter().rposition(|line| line.starts_with("STATUS=Opening"));
    assert!(opening.is_none_or(|opening| opening > ready), "{lines:?}");
    manager.until("WATCHDOG=1");

    // A blocked target is reported by its name.
    std::fs::create_dir_all(dir.path().join("data/buckets")).unwrap();
    std::fs::File::create(dir.path().join("data/buckets/away")).unwrap();
    define_notes(server.client, &json!([{ "bucketName": "away" }]));
    let note = json!({ "data": [{ "text": "a" }] }).to_string();
    server.client.post("/api/v1/business-objects/Notes", note).expect(200);
    server.client.post("/api/v1/business-objects/Notes/push", "").expect(202);
    manager.until("STATUS=Serving; 1 export waits; away is blocked: ");

    signal(server.id(), "HUP");
    manager.until("RELOADING=1");
    manager.until("READY=1");
    server.stop();
    manager.until("STOPPING=1");
}

/// The watchdog is notified together with the status, which names each blocked target.
#[test]
fn the_status_stays_short_when_many_targets_are_blocked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = Manager::listen(&path);
    let environment = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "4000000")];
    let server = TestProcess::start_with(dir.path(), &["--service.data-dir=data"], &environment);
    let buckets = dir.path().join("data/buckets");
    std::fs::create_dir_all(&buckets).unwrap();
    let mut targets = Vec::new();
    for number in 10..50 {
        let name = format!("away-{number}-{}", "x".repeat(50));
        std::fs::File::create(buckets.join(&name)).unwrap();
        targets.push(json!({ "bucketName": name }));
    }
    define_notes(server.client, &json!(targets));
    let note = json!({ "data": [{ "text": "a" }] }).to_string();
    server.client.post("/api/v1/business-objects/Notes", note).expect(200);
    server.client.post("/api/v1/business-objects/Notes/push", "").expect(202);
    wait_for("the watchdog is notified with a status that was cut", || {
        let lines = manager.until("STATUS=");
        matches!(&lines[..], [.., status, alive] if status.ends_with('…') && alive == "WATCHDOG=1")
    });
    server.stop();
}
