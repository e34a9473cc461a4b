//! `penstock export` asks the running service through its control socket.
use crate::{DATA, penstock};
use penstock_store::{Options, Store};
use penstock_test_support::prelude::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::process::Output;

/// Answers requests with these responses in order, and returns the first line of each request.
fn service(
    dir: &Path,
    answers: Vec<(&'static str, String)>,
) -> std::thread::JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(dir.join("control.sock")).expect("a socket");
    std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a request");
                request.extend(byte);
            }
            asked.extend(String::from_utf8_lossy(&request).lines().next().map(str::to_owned));
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).expect("an answer is taken");
        }
        asked
    })
}

fn export(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = penstock(dir, &["export", "--service.data-dir=."]);
    command.args(arguments).output().expect("the binary runs")
}

#[test]
fn a_data_directory_whose_path_is_too_long_for_a_socket_is_used_without_a_service() {
    let dir = tempfile::tempdir().unwrap();
    // A path of a socket has at most 107 bytes.
    let data = dir.path().join("d".repeat(120));
    std::fs::create_dir(&data).unwrap();
    let setting = format!("--service.data-dir={}", data.display());
    let list = || penstock(dir.path(), &["export", "list", &setting]).output().unwrap();
    list().success();
    let store = Store::open(&data.join("store"), Options::default(), &mut |_| {}).unwrap();
    list().fails(1, "a service that runs cannot be asked there: stop it");
    drop(store);
}

#[test]
fn list_reads_every_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = |id: &str, next: &str| {
        let item = json!({"id": id, "status": "queued"});
        ("200 OK", format!(r#"{{"items": [{item}], "next": {next}}}"#))
    };
    let service = service(dir.path(), vec![page("one", "\"a&b\""), page("two", "null")]);
    let output = export(dir.path(), &["list", "--json"]);
    let asked = service.join().unwrap();
    let paths = ["limit=100", "limit=99&cursor=a%26b"];
    assert_eq!(asked, paths.map(|query| format!("GET /api/v1/exports?{query} HTTP/1.1")));
    assert_eq!(output.json()["items"][1]["id"], "two");
}

#[test]
fn an_id_is_escaped_in_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let problem = r#"{"status": 404, "detail": "there is no export ../x"}"#.to_owned();
    let service = service(dir.path(), vec![("404 Not Found", problem)]);
    let output = export(dir.path(), &["park", "../x"]);
    assert_eq!(service.join().unwrap(), ["POST /api/v1/exports/%2E%2E%2Fx/park HTTP/1.1"]);
    output.fails(1, "there is no export ../x");
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no export ../x"));
}

#[test]
fn a_command_waits_for_the_process_that_has_the_store_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("data/store");
    let store = Store::open(&store, Options::default(), &mut |_| {}).unwrap();
    let mut command = penstock(dir.path(), &["export", "list", DATA]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("for the process that has the store open"), "{line}");
    drop(store);
    let output = child.wait_with_output().unwrap().success();
    assert_eq!(output.out(), "There are no exports.\n");
}
