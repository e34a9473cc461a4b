//! The demo: in an empty folder, again in the same folder, and with its port in use.
use crate::server::{Server, penstock, wait_for};
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
        for shown in [
            "Port 8080 is in use, so the demo listens on ".to_owned(),
            "Three Business Objects were defined".to_owned(),
            "3 plants with 90 objects nested in them".to_owned(),
            "240 rounds were ingested".to_owned(),
            "20 are drafts".to_owned(),
            "A round with a reading of 4125000 was refused with 422".to_owned(),
            "\"pointer\": \"/data/0/readings/0/value\"".to_owned(),
            "No sensor of these plants measures this.".to_owned(),
            format!("queued as number {number} for the bucket operations"),
            "and verified: 3 objects of Plants".to_owned(),
            "operator after   https://demo.example/organisation/alpine-hydro".to_owned(),
            "Ada cannot approve her own change (403 Forbidden)".to_owned(),
            "the change is approved, and the plant has its new operator".to_owned(),
            format!("/id/Rounds/{number}\n"),
        ] {
            assert!(said.contains(&shown), "no {shown:?} in\n{said}");
        }
    }
    drop(taken);
}

#[test]
fn it_stays_up_until_it_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::spawn(penstock(dir.path()).args(["demo", "--server.port=0"]));
    wait_for("the demo comes to its end", || {
        server.log().lines().any(|line| line.starts_with("Press Ctrl-C to stop"))
    });
    assert!(server.log().lines().any(|line| line.starts_with("1. ")), "{}", server.log());
    server.client.get("/health/ready").expect(200);
    assert!(server.client.get("/swagger-ui").status < 400);
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
