//! The demo: in an empty folder, again in the same folder, and with its port in use.
use penstock_test_support::prelude::*;
use std::io::ErrorKind;
use std::net::TcpListener;

#[test]
fn it_shows_everything_and_continues_with_existing_data() {
    let dir = tempfile::tempdir().unwrap();
    // This fails if another program uses the port. Either way, the port is in use.
    let taken = TcpListener::bind(("127.0.0.1", 8080));
    for number in ["1", "2"] {
        let run = penstock(dir.path()).args(["demo", "--exit"]).output().unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
        said.has_all(&[
            "Port 8080 is in use, so the demo listens on ",
            "Three Business Objects were defined",
            "3 plants with 90 objects nested in them",
            "240 rounds were ingested",
            "20 are drafts",
            "A round with a reading of 4125000 was refused with 422",
            "\"pointer\": \"/data/0/readings/0/value\"",
            "No sensor of these plants measures this.",
            &format!("queued as number {number} for the bucket operations"),
            "and verified: 3 objects of Plants",
            "operator after   https://demo.example/organisation/alpine-hydro",
            "Ada cannot approve her own change (403 Forbidden)",
            "the change is approved, and the plant has its new operator",
            &format!("/id/Rounds/{number}\n"),
        ]);
    }
    drop(taken);
}

#[test]
fn it_uses_nothing_of_the_configuration_that_leads_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = other.local_addr().unwrap().port();
    let configuration = format!(
        "server:
  address: 0.0.0.0
  ssl:
    self-signed: true
service:
  definitions:
    dir: {}/definitions
  sources:
    plant:
      type: mqtt
      url: mqtt://127.0.0.1:{port}
      subscriptions:
        - topic: readings/#
          business-object: Plants
  webhooks:
    ops:
      url: http://127.0.0.1:{port}/hook
      secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
      events: penstock.ingestion.committed
",
        dir.path().display()
    );
    std::fs::write(dir.path().join("application.yaml"), configuration).unwrap();
    let run = penstock(dir.path()).args(["demo", "--exit"]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}\n{said}", String::from_utf8_lossy(&run.stdout));
    // A connection would wait in the queue of this socket.
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{said}");
    // There is no such folder, which would be an error in the log.
    assert!(!said.contains("service.definitions.dir"), "{said}");
}

#[test]
fn beyond_loopback_a_configured_certificate_does_not_replace_the_permission() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--exit", "--server.address=0.0.0.0", "--server.ssl.self-signed=true"];
    let run = penstock(dir.path()).arg("demo").args(arguments).output().unwrap();
    run.fails(1, "the demo serves plain HTTP, and 0.0.0.0 is beyond loopback");
}

#[test]
fn it_stays_up_until_it_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::spawn(penstock(dir.path()).args(["demo", "--server.port=0"]));
    wait_for("the demo comes to its end", || {
        server.log().lines().any(|line| line.starts_with("Press Ctrl-C to stop"))
    });
    assert!(server.log().lines().any(|line| line.starts_with("1. ")), "{}", server.log());
    server.client.get("/health/ready").expect(200);
    let backups = dir.path().join("penstock-demo/buckets/backup/_backup");
    wait_for("the backup has begun", || {
        let mut folders = std::fs::read_dir(&backups).into_iter().flatten().flatten();
        folders.any(|folder| folder.path().join("head.json").is_file())
    });
    assert!(server.client.get("/swagger-ui").status < 400);
    // The command that the demo prints: the serial number identifies a machine, so the second one changes nothing.
    let key = std::fs::read_to_string(dir.path().join("penstock-demo/demo-api-key")).unwrap();
    let client = server.client.with_key(key.trim().to_owned());
    let spare = json!({"data": [{"name": "Spare pump", "serialNumber": "SP-1"}]});
    for status in ["created", "unchanged"] {
        let path = "/api/v1/business-objects/Machines?mode=ADD";
        let answer = client.post(path, spare.to_string()).expect(200).json();
        assert_eq!(answer["objects"][0]["status"], status, "{answer}");
    }
    assert_eq!(server.stop_with_signal("INT").code(), Some(0));
}

#[test]
fn a_requested_port_that_is_in_use_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let run = penstock(dir.path())
        .args(["demo", "--exit", &format!("--server.port={port}")])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains(&port.to_string()), "{said}");
}
