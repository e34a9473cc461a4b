//! `penstock validate`, with a document and with a store.
use crate::{DATA, penstock, run, serve};
use penstock_test_support::prelude::*;
use std::fs;

const SHAPES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix v: <https://plant.example/v/> . \
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n\
    v:Pump a sh:NodeShape ; sh:targetClass v:P ; \
    sh:property [ sh:path v:flow ; sh:datatype xsd:decimal ] ; \
    sh:property [ sh:path v:name ; sh:minCount 1 ; sh:severity sh:Warning ; sh:message \"give it a name\" ] .\n";
const TARGETS: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix v: <https://plant.example/v/> .\n\
    v:Value a sh:NodeShape ; sh:targetObjectsOf v:flow ; sh:nodeKind sh:IRI .\n\
    v:Node a sh:NodeShape ; sh:targetNode <https://plant.example/none> ; \
    sh:property [ sh:path v:name ; sh:minCount 1 ] .\n";
const WRONG: &str =
    "<urn:p:1> a <https://plant.example/v/P> ; <https://plant.example/v/flow> \"much\" .\n";
const RIGHT: &str =
    "<urn:p:1> a <https://plant.example/v/P> ; <https://plant.example/v/flow> 01.50 .\n";
const WITHOUT_SERVICE: &str = "stop the service first";

/// Checks the exit status, and returns the standard output.
fn validate(dir: &Path, arguments: &[&str], status: i32) -> String {
    let arguments: Vec<&str> = ["validate", "--shapes"].iter().chain(arguments).copied().collect();
    let output = run(dir, &arguments);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    output.out()
}

#[test]
fn a_document_is_validated() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let files = [
        ("pump.ttl", SHAPES),
        ("wrong.ttl", WRONG),
        ("right.ttl", RIGHT),
        ("pump.shex", "start = { <https://plant.example/v/flow> LITERAL /^[0-9]/ }\n"),
        ("bad.ttl", "<urn:s> <http://www.w3.org/ns/shacl#sparql> 1 ."),
        ("torn.ttl", "<urn:s> <urn:p> "),
    ];
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
    }
    let lines = validate(dir, &["pump.ttl", "wrong.ttl"], 1);
    assert!(lines.starts_with("violation: urn:p:1 https://plant.example/v/flow \"much\": must be a literal of the datatype "), "{lines}");
    assert!(lines.contains("warning: urn:p:1 https://plant.example/v/name: give it a name [MinCount of https://plant.example/v/Pump]"), "{lines}");
    assert!(lines.ends_with("1 objects: violations: 1, warnings: 1, infos: 0\n"), "{lines}");
    // A warning is no violation.
    let report = validate(dir, &["pump.ttl", "right.ttl", "--format", "turtle"], 0);
    assert!(report.contains("sh:ValidationResult") && report.contains("sh:Warning"), "{report}");
    let json = validate(dir, &["pump.ttl", "wrong.ttl", "--format", "json"], 1);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["counts"], json!({"violation": 1, "warning": 1, "info": 0}));
    json["results"][0].includes(&json!({"value": "\"much\"", "severity": "violation"}));
    assert_eq!(json["conforms"], false);
    // Targets need not be subjects, nor be in the data at all.
    fs::write(dir.join("targets.ttl"), TARGETS).unwrap();
    let lines = validate(dir, &["targets.ttl", "wrong.ttl"], 1);
    for focus in [
        "\"much\" \"much\": must be an IRI",
        "https://plant.example/none https://plant.example/v/name: ",
    ] {
        assert_eq!(lines.matches(&format!("violation: {focus}")).count(), 1, "{focus}: {lines}");
    }
    validate(dir, &["pump.shex", "wrong.ttl"], 1);
    validate(dir, &["pump.shex", "right.ttl"], 0);
    for [shapes, data] in [
        ["bad.ttl", "wrong.ttl"],
        ["none.ttl", "wrong.ttl"],
        ["pump.ttl", "torn.ttl"],
        ["pump.csv", "wrong.ttl"],
    ] {
        validate(dir, &[shapes, data], 2);
    }
    let piped = penstock(dir, &["validate", "--shapes", "pump.ttl", "-"]).pipe(WRONG);
    assert_eq!(piped.status.code(), Some(1));
}

#[test]
fn a_store_is_validated_while_the_service_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("pump.ttl"), SHAPES).unwrap();
    // More than two batches. The last object violates.
    let mut pumps = WRONG.replace("urn:p:1", "urn:p:9999");
    for n in 1000..3500 {
        let right = RIGHT.replace("urn:p:1", &format!("urn:p:{n}"));
        pumps += &right.replace(" .\n", " ; <https://plant.example/v/name> 'x' .\n");
    }
    fs::write(dir.join("pumps.ttl"), pumps).unwrap();
    let service = serve(dir, "data");
    create_key(dir, DATA, "cli", "Admin");
    run(dir, &["load", "pumps.ttl", DATA]).success();
    run(dir, &["validate", "--shapes", "pump.ttl", DATA]).fails(2, WITHOUT_SERVICE);
    service.stop();
    fs::write(dir.join("targets.ttl"), TARGETS).unwrap();
    let lines = validate(dir, &["targets.ttl", DATA], 1);
    // "much" and 01.50 are each validated once, whatever refers to them.
    assert_eq!(lines.matches("must be an IRI").count(), 2, "{lines}");
    assert!(lines.contains("violation: https://plant.example/none "), "{lines}");
    let lines = validate(dir, &["pump.ttl", DATA], 1);
    assert!(lines.contains("violation: urn:p:9999 "), "{lines}");
    assert!(lines.ends_with("2501 objects: violations: 1, warnings: 1, infos: 0\n"), "{lines}");
    validate(dir, &["pump.ttl", "--service.data-dir=none"], 2);
}

#[test]
fn a_validation_in_the_background_counts_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("pump.ttl"), SHAPES).unwrap();
    let service = TestProcess::start(dir, &[DATA]);
    let client = &service.client;
    let path = "/api/v1/shapes/pumps";
    client.send("PUT", path, &[TURTLE], SHAPES).unwrap().expect(201);
    let config = "type: object\npath: Pump:.\nprefixes: {v: 'https://plant.example/v/'}\ntypes: [v:P]\n\
         fields: {flow: {type: string, path: v:flow}, name: {type: string, path: v:name}}";
    let validation = json!({"shapes": ["pumps"], "mode": "off"});
    let definition =
        json!({"name": "Pump", "enabled": true, "config": config, "validation": validation});
    client.put("/api/v1/business-objects", &definition).expect(201);
    let pump = |n: usize| match n % 3 {
        0 => json!({"flow": "much", "name": "north"}),
        1 => json!({"flow": "little"}),
        _ => json!({"name": "south"}),
    };
    let data: Vec<_> = (0..350).map(pump).collect();
    let body = json!({ "data": data }).to_string();
    client.post("/api/v1/business-objects/Pump?mode=ADD", body).expect(200);
    let started = client.post("/api/v1/business-objects/Pump/validation", "").expect(202);
    let path = format!("/api/v1/validations/{}", started.json()["id"].text());
    wait_for("the validation has ended", || !client.get(&path).json()["endedAt"].is_null());
    let report = client.get(&path).json();
    service.stop();
    let printed = validate(dir, &["pump.ttl", "--format", "json", DATA], 1);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["counts"], printed["counts"], "{report}");
    assert_eq!(report["progress"]["validated"], printed["objects"]);
    assert_eq!(report["counts"], json!({"violation": 234, "warning": 117, "info": 0}));
}
