//! The demo: once in an empty folder, once more on what it left, and with its port taken.
use crate::server::penstock;
use std::net::TcpListener;

#[test]
fn it_shows_everything_and_goes_on_with_what_it_left() {
    let dir = tempfile::tempdir().unwrap();
    // Whoever has the port, it is taken now.
    let taken = TcpListener::bind(("127.0.0.1", 8080));
    for number in ["1", "2"] {
        let run = penstock(dir.path()).args(["demo", "--exit"]).output().unwrap();
        let said = String::from_utf8(run.stdout).unwrap();
        assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
        for shown in [
            "Port 8080 is taken, so this runs on ".to_owned(),
            "Three Business Objects were defined".to_owned(),
            "3 plants with 90 objects nested in them".to_owned(),
            "240 rounds were ingested".to_owned(),
            "20 are drafts".to_owned(),
            format!("queued as number {number} for the bucket operations"),
            "and verified: 3 objects of Plants".to_owned(),
            format!("/id/Rounds/{number}\n"),
        ] {
            assert!(said.contains(&shown), "no {shown:?} in\n{said}");
        }
    }
    drop(taken);
}

#[test]
fn a_port_that_was_asked_for_and_is_taken_is_a_failure() {
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
