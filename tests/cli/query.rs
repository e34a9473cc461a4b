//! `penstock query`, with the service running and without.
use crate::{DATA, penstock, run, serve_for_admin};
use penstock_test_support::prelude::*;
use std::fs;

const DOCUMENT: &str = "<urn:p:1> <https://plant.example/v/flow> 01.50 .\n\
                        <urn:p:2> <https://plant.example/v/flow> 7 .\n";

fn output(dir: &Path, arguments: &[&str]) -> String {
    run(dir, arguments).success().out()
}

#[test]
fn a_query_is_answered_with_and_without_a_running_service() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("pumps.ttl"), DOCUMENT).unwrap();
    let flows = "SELECT ?flow { ?pump v:flow ?flow }\nORDER BY ?flow\n";
    fs::write(dir.join("flows.rq"), flows).unwrap();
    let graph = "CONSTRUCT { ?pump v:q ?flow } { ?pump v:flow ?flow FILTER (?flow > 2) }";
    fs::write(dir.join("graph.rq"), graph).unwrap();
    fs::write(dir.join("both.rq"), "ASK { ?pump w:flow ?flow }").unwrap();
    fs::write(dir.join("wrong.rq"), "SELECT ?flow {\n ?pump v:flow }").unwrap();
    fs::write(dir.join("typo.rq"), "SELEC").unwrap();
    fs::write(dir.join("blank.rq"), "\n").unwrap();

    let (service, client) = serve_for_admin(dir);
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
        let csv = output(dir, &["query", "flows.rq", "--format", "csv", DATA]);
        assert_eq!(csv, "flow\r\n01.50\r\n7\r\n");
        let graph = output(dir, &["query", "graph.rq", "--format", "nt", DATA]);
        assert!(graph.starts_with("<urn:p:2> <https://plant.example/v/q> \"7\"^^"), "{graph}");
        assert!(output(dir, &["query", "graph.rq", DATA]).starts_with("<urn:p:2>"));
        run(dir, &["query", "wrong.rq", DATA]).fails(1, "line 2, column ");
        run(dir, &["query", "typo.rq", DATA]).fails(1, "line 1, column 1: ");
        run(dir, &["query", "blank.rq", DATA]).fails(1, "line 1, column 1: ");
        run(dir, &["query", "both.rq", DATA]).fails(1, "line 1, column ");
        run(dir, &["query", "flows.rq", "--format", "ttl", DATA]).fails(1, "json, xml, csv or tsv");
        run(dir, &["query", "none.rq", DATA]).fails(1, "none.rq: No such file");
    };
    check();
    let piped =
        penstock(dir, &["query", "-", "--format", "json", DATA]).pipe("ASK { ?pump v:flow 7 }");
    assert_eq!(piped.out(), r#"{"head":{},"boolean":true}"#);
    // The route gives access to all data, so it does not exist over TCP.
    client.post("/control/query", "ASK {}").expect(404);
    service.stop();
    check();
    run(dir, &["query", "flows.rq", "--format", "pdf", DATA]).fails(2, "");
}
