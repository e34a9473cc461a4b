//! `penstock dump` and `penstock load`, with the service running and without.
use crate::{DATA, penstock, run, serve, serve_for_admin};
use penstock_test_support::prelude::*;
use std::fs;
use std::io::{Read as _, Write as _};

const PUMPS: &str = "\
@prefix v: <https://plant.example/v/> .
<https://plant.example/p/1> v:name \"Feed pump\"@en ; v:flow 01.50 ; v:maker <https://makers.example/ksb> .
<https://plant.example/p/2> v:name \"a\\rb\\u0000\" .
";

fn lines(dir: &Path, arguments: &[&str]) -> BTreeSet<String> {
    run(dir, arguments).success().out().lines().map(str::to_owned).collect()
}

#[test]
fn a_dump_can_be_loaded_elsewhere_with_and_without_a_running_service() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("pumps.ttl"), PUMPS).unwrap();
    let graph = "https://plant.example/p/";
    let (service, client) = serve_for_admin(dir);
    let load = ["load", "pumps.ttl", "--graph", graph, "--json", DATA];
    let first = run(dir, &load).json();
    assert_eq!((first["quads"].as_u64(), first["added"].as_u64()), (Some(4), Some(4)));
    assert_eq!(run(dir, &load).json()["added"], 0);
    let quads = lines(dir, &["dump", DATA]);
    assert_eq!(quads.len(), 4);
    assert!(quads.iter().all(|line| line.ends_with(" <https://plant.example/p/> .")), "{quads:?}");
    assert!(quads.iter().any(|line| line.contains(r#""a\rb\u0000""#)), "{quads:?}");
    for name in ["all.nq", "all.trig.zst", "all.jsonld"] {
        run(dir, &["dump", name, DATA]).success();
    }
    run(dir, &["dump", "all.nq", DATA]).fails(1, "all.nq: File exists");
    run(dir, &["dump", "all.ttl", DATA]).fails(1, "holds one graph");
    // Dump and load are not available over TCP, because they give access to all data.
    client.get("/control/dump?format=nq").expect(404);
    client.post("/control/load?format=nq", "").expect(404);
    service.stop();
    assert_eq!(lines(dir, &["dump", "-", DATA]), quads);

    for (number, name) in ["all.nq", "all.trig.zst", "all.jsonld"].iter().enumerate() {
        let data = format!("--service.data-dir=new{number}");
        serve(dir, &format!("new{number}")).stop();
        assert_eq!(run(dir, &["load", name, "--json", &data]).json()["added"], 4, "{name}");
        assert_eq!(lines(dir, &["dump", &data]), quads, "{name}");
    }
    let triples = lines(dir, &["dump", "--format", "nt", "--graph", graph, DATA]);
    assert_eq!(triples.len(), 4);
    assert!(lines(dir, &["dump", "--format", "nt", "--graph", "default", DATA]).is_empty());
    run(dir, &["dump", "all.ttl", DATA]).fails(1, "holds one graph");
    run(dir, &["dump", "all.rdf", "--graph", graph, DATA]).fails(1, "RDF/XML cannot write");
    // A failed dump leaves no file.
    assert!(!dir.join("all.ttl").exists() && !dir.join("all.rdf").exists());
}

#[test]
fn an_error_reports_its_place_and_the_quads_loaded_so_far() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let lines = (0..10_001).map(|n| format!("<urn:x:{n}> <urn:x:p> \"{n}\" .\n"));
    let text = lines.chain(["<urn:x:last> oops\n".to_owned()]).collect::<Vec<_>>().concat();
    fs::write(dir.join("bad.nt"), &text).unwrap();
    let service = serve(dir, "data");
    let assert_reported = |output: &std::process::Output| {
        output.fails(1, "line 10002, column 14");
        let answer = output.out();
        assert!(answer.contains("10000 quads in 1 commit"), "{answer}");
    };
    assert_reported(&run(dir, &["load", "bad.nt", DATA]));
    service.stop();
    assert_reported(&run(dir, &["load", "bad.nt", DATA]));

    let wrong = |arguments: &[&str], why: &str| run(dir, arguments).fails(2, why);
    wrong(&["load", "-", DATA], "give --format");
    wrong(&["load", "bad.nt", "--graph", "no iri", DATA], "is not an absolute IRI");
    wrong(&["dump", "--format", "n3", DATA], "is not a format");
    run(dir, &["load", "none.nt", DATA]).fails(1, "none.nt: No such file");
}

#[test]
fn the_error_about_a_long_document_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let valid = (0..200_000).map(|n| format!("<urn:x:{n}> <urn:x:p> \"{n}\" .\n"));
    let valid = valid.collect::<String>();
    fs::write(dir.join("first.nt"), format!("oops\n{valid}")).unwrap();
    fs::write(dir.join("blank.ttl"), format!("<urn:x:a> <urn:x:p>\n  \"_:no\" , [] .\n{valid}"))
        .unwrap();
    let service = serve(dir, "data");
    let assert_reported = || {
        run(dir, &["load", "first.nt", DATA]).fails(1, "line 1, column 1");
        let blank = run(dir, &["load", "blank.ttl", DATA]);
        blank.fails(1, "line 2, column 12");
        blank.fails(1, "there is a blank node");
    };
    assert_reported();
    // The connection also stays open while another program continues to send the document.
    let answer = send_all(&dir.join("data/control.sock"), &format!("oops\n{valid}"));
    assert!(answer.contains(" 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"fault\"") && answer.contains("line 1"), "{answer}");
    service.stop();
    assert_reported();
}

/// Sends a whole document before it reads the response.
fn send_all(socket: &Path, document: &str) -> String {
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    write!(
        stream,
        "POST /control/load?format=nt HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{document}",
        document.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn standard_input_is_loaded_and_a_reader_that_goes_away_ends_a_dump() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    serve(dir, "data").stop();
    let quads = (0..20_000).map(|number| format!("<urn:x:{number}> <urn:x:p> \"{number}\" .\n"));
    let load = ["load", "-", "--format", "nt", DATA];
    penstock(dir, &load).pipe(&quads.collect::<String>()).success();
    let mut dump = penstock(dir, &["dump", DATA])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(dump.stdout.take());
    assert!(dump.wait().unwrap().code().is_some());
    assert_eq!(lines(dir, &["dump", DATA]).len(), 20_000);
}
