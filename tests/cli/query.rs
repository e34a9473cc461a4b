//! `penstock query`, with the service running and without.
use crate::backup::{DATA, fails, run};
use crate::server::create_key;
use crate::{penstock, serve};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

const DOCUMENT: &str = "<urn:p:1> <https://plant.example/v/flow> 01.50 .\n\
                        <urn:p:2> <https://plant.example/v/flow> 7 .\n";

fn output(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_query_is_answered_with_and_without_a_running_service() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("pumps.ttl"), DOCUMENT).unwrap();
    fs::write(dir.join("flows.rq"), "SELECT ?flow { ?pump v:flow ?flow }\nORDER BY ?flow\n")
        .unwrap();
    fs::write(
        dir.join("graph.rq"),
        "CONSTRUCT { ?pump v:q ?flow } { ?pump v:flow ?flow FILTER (?flow > 2) }",
    )
    .unwrap();
    fs::write(dir.join("both.rq"), "ASK { ?pump w:flow ?flow }").unwrap();
    fs::write(dir.join("wrong.rq"), "SELECT ?flow {\n ?pump v:flow }").unwrap();

    let service = serve(dir, "data");
    let client = service.client.with_key(create_key(dir, DATA, "cli", "Admin"));
    // `v` is the same in both mappings, and `w` is not.
    for (name, w) in [("Pumps", "urn:w:1:"), ("Valves", "urn:w:2:")] {
        let config = format!(
            "prefixes: {{v: 'https://plant.example/v/', w: '{w}'}}\ntype: object\npath: '{name}:.'\n\
             fields: {{flow: {{type: number, path: 'v:flow'}}, other: {{type: string, path: 'w:other'}}}}"
        );
        let body = json!({"name": name, "config": config});
        client.put("/api/v1/business-objects", &body).expect(201);
    }
    output(dir, &["load", "pumps.ttl", DATA]);
    let check = || {
        assert_eq!(output(dir, &["query", "flows.rq", DATA]), "?flow\n01.50\n7\n");
        assert_eq!(
            output(dir, &["query", "flows.rq", "--format", "csv", DATA]),
            "flow\r\n01.50\r\n7\r\n"
        );
        let graph = output(dir, &["query", "graph.rq", "--format", "nt", DATA]);
        assert!(graph.starts_with("<urn:p:2> <https://plant.example/v/q> \"7\"^^"), "{graph}");
        assert!(output(dir, &["query", "graph.rq", DATA]).starts_with("<urn:p:2>"));
        fails(&run(dir, &["query", "wrong.rq", DATA]), "line 2, column ");
        fails(&run(dir, &["query", "both.rq", DATA]), "line 1, column ");
        fails(&run(dir, &["query", "flows.rq", "--format", "ttl", DATA]), "json, xml, csv or tsv");
        fails(&run(dir, &["query", "none.rq", DATA]), "none.rq: No such file");
    };
    check();
    let mut piped = penstock(dir, &["query", "-", "--format", "json", DATA])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(b"ASK { ?pump v:flow 7 }").unwrap();
    let answer = String::from_utf8(piped.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(answer, r#"{"head":{},"boolean":true}"#);
    // The route gives access to all data, so it does not exist over TCP.
    client.post("/control/query", "ASK {}").expect(404);
    service.stop();
    check();
    let wrong = run(dir, &["query", "flows.rq", "--format", "pdf", DATA]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}
