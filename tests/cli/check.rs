//! `penstock check` and `penstock verify-export` on valid and invalid files.
use crate::penstock;
use penstock_test_support::prelude::*;

const MAPPING: &str = "type: object\npath: \"Pumps:.\"\nfields:\n  name: {type: string, path: <https://plant.example/name>}\n";

/// Runs the command, and returns the exit status and the standard output.
fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = penstock(dir, arguments).output().unwrap();
    (output.status.code(), output.out())
}

fn check(name: &str, text: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join(name), text).expect("a file");
    run(dir.path(), &["check", name])
}

#[test]
fn a_valid_file_is_reported_with_its_kind() {
    let definition = json!({ "name": "Pumps", "config": MAPPING, "pushTargets": [] }).to_string();
    for (name, text, expected) in [
        ("pumps.yaml", MAPPING, "a mapping of 1 field, namespaces Pumps"),
        ("pumps.json", definition.as_str(), "the Business Object Pumps"),
        ("application.properties", "server.port=9000", "a configuration"),
        ("plant.yaml", "service: {data-dir: x}", "a configuration"),
    ] {
        let (status, answer) = check(name, text);
        assert_eq!(status, Some(0), "{answer}");
        assert!(answer.starts_with(&format!("{name}: valid: {expected}")), "{answer}");
    }
}

#[test]
fn each_error_has_its_place() {
    let wrong = MAPPING.replace("type: string", "type: strng");
    let definition =
        json!({ "name": "Pumps", "config": wrong, "pushTargets": [{"bucketName": "../x"}] });
    for (name, text, expected) in [
        ("pumps.yaml", wrong.as_str(), "pumps.yaml:4:16: "),
        ("pumps.json", &definition.to_string(), "pumps.json: config, line 4, column 16: field"),
        ("pumps.json", &definition.to_string(), "pumps.json: /pushTargets/0/bucketName: "),
        ("pumps.json", "{\"name\": ", "pumps.json:1:10: "),
        ("pumps.yaml", "name: x\nconfig: y\n", "sent as JSON"),
        ("application.yaml", "server:\n  port: many\n", "expected a whole number from 0 to 65535"),
        (
            "application.yaml",
            "server.port: many\nservice.export.targets.No.type: directory\n",
            "is not an S3 bucket name",
        ),
        ("application.yaml", "a: [", "line 2"),
        (
            "dup.yaml",
            "server:\n  port: 1\nserver:\n  address: ::1\n",
            "line 3: the duplicate key \"server\", which is in line 1 already",
        ),
        ("service.properties", "service.x=\\u1", "line 1"),
        ("other.yaml", "a: 1", "neither a mapping"),
        ("other.yaml", "- 1", "neither a mapping"),
    ] {
        let (status, answer) = check(name, text);
        assert_eq!(status, Some(1), "{answer}");
        assert!(answer.contains(expected), "{expected}\nis not in\n{answer}");
    }
}

#[test]
fn derive_prints_a_definition_that_is_valid() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write =
        |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("a file");
    write("pumps.json", r#"{"name": "P-1", "flow": 1}"#);
    write("more.csv", "name;flow\nP-2;2,5\n");
    let derive = |arguments: &[&str]| {
        let output = penstock(dir.path(), arguments).output().unwrap();
        (output.status.code(), output.out(), output.err())
    };
    let vocabulary = "--vocabulary=https://plant.example/v/";
    let (status, answer, notes) =
        derive(&["derive", "pumps.json", "more.csv", "--name", "Pumps", vocabulary]);
    assert_eq!(status, Some(0), "{notes}");
    // Both files count: `flow` has a fraction in the second one only.
    let definition: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(definition["name"], "Pumps");
    let config = definition["config"].as_str().expect("YAML");
    assert!(config.contains("number") && config.contains("https://plant.example/v/"), "{config}");
    assert!(notes.contains("The sample is CSV."), "{notes}");
    write("definition.json", &answer);
    let (status, checked) = run(dir.path(), &["check", "definition.json"]);
    assert_eq!(status, Some(0), "{checked}");

    write("array.json", r#"[{"name": "P-1"}, {"name": "P-2"}]"#);
    write("lines.ndjson", "{\"name\": \"P-1\"}\n{\"name\": \"P-2\"}\n");
    for (file, expected) in [
        ("array.json", "query parameter form=document"),
        ("lines.ndjson", "Content-Type: application/x-ndjson"),
    ] {
        let (status, _, notes) = derive(&["derive", file, "--name", "Pumps"]);
        assert!(status == Some(0) && notes.contains(expected), "{notes}");
    }

    write("bad.json", "[1]");
    for arguments in [
        ["derive", "bad.json", "--name", "Pumps"],
        ["derive", "none.json", "--name", "Pumps"],
        ["derive", "pumps.json", "--name", ""],
    ] {
        let (status, answer, cause) = derive(&arguments);
        assert_eq!((status, answer.as_str()), (Some(1), ""), "{cause}");
        assert!(cause.starts_with("penstock: "), "{cause}");
    }
    std::fs::write(dir.path().join("latin.csv"), b"name,site\nP-1,M\xFCnchen\n").expect("a file");
    std::fs::write(dir.path().join("wide.json"), b"\xFF\xFE{\0}\0").expect("a file");
    std::fs::write(dir.path().join("packed.json"), b"\x1F\x8B\x08\0").expect("a file");
    for (wrong, expected) in [
        ("bad.json", "penstock: bad.json: the sample is a number"),
        ("packed.json", "penstock: packed.json is gzip; decompress it first"),
        ("latin.csv", "penstock: latin.csv is not UTF-8: line 2 has the byte 0xFC; convert it"),
    ] {
        let (_, _, cause) = derive(&["derive", "pumps.json", wrong, "--name", "Pumps"]);
        assert!(cause.starts_with(expected), "{cause}");
    }
    let (_, _, cause) = derive(&["derive", "wide.json", "--name", "Pumps"]);
    assert!(cause.contains("`iconv -f UTF-16 -t UTF-8`"), "{cause}");
}

#[test]
fn a_probable_mistake_is_a_warning() {
    let nested = format!(
        "{MAPPING}  part: {{type: object, path: <urn:p>/Pumps:., fields: {{name: {{type: string, path: <urn:n>}}}}}}\n"
    );
    let definition = json!({
        "name": "Pumps",
        "config": nested,
        "schedule": "0 5 * * *",
        "conditions": [{"predicate": "rdf:type", "value": "urn:x:Pump"}],
        "namespaces": [{"name": "Pmups", "uriBase": "urn:p:"}],
    });
    for (name, text, expected) in [
        ("pumps.yaml", nested.as_str(), "pumps.yaml:5:30: warning: field `part`: "),
        (
            "pumps.json",
            &definition.to_string(),
            "pumps.json: config, line 5, column 30: warning: field",
        ),
        ("pumps.json", &definition.to_string(), "pumps.json: warning: /schedule: "),
        ("pumps.json", &definition.to_string(), "pumps.json: warning: /conditions/0: "),
        ("pumps.json", &definition.to_string(), "pumps.json: warning: /namespaces/0/name: "),
    ] {
        let (status, answer) = check(name, text);
        assert_eq!(status, Some(0), "{answer}");
        assert!(answer.contains(expected), "{expected}\nis not in\n{answer}");
    }
}

#[test]
fn the_subscriptions_of_a_source_are_compared_with_the_definitions_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    let subscriptions = |names: &[&str]| {
        let one = |name: &&str| {
            let fields = "{tag: \"{1}\", tog: \"{1}\"}";
            format!("    - {{topic: a, business-object: {name}, fields: {fields}}}\n")
        };
        let all: String = names.iter().map(one).collect();
        format!(
            "service.sources.plant:\n  type: mqtt\n  url: mqtt://127.0.0.1\n  subscriptions:\n{all}"
        )
    };
    let config = |key: &str| {
        format!(
            "type: object\npath: A:.\n{key}fields: {{tag: {{type: string, path: <urn:t>, required: true}}}}\n"
        )
    };
    for (name, definition) in [
        ("Keyed", json!({"config": config("key: tag\n")})),
        ("Plain", json!({"config": config("")})),
        ("Reviewed", json!({"config": config("key: tag\n"), "review": "required"})),
    ] {
        let mut definition = definition;
        definition["name"] = json!(name);
        let file = dir.path().join(format!("{name}.json"));
        std::fs::write(file, definition.to_string()).unwrap();
    }
    let files = ["check", "application.yaml", "Keyed.json", "Plain.json", "Reviewed.json"];
    let names = ["Keyed", "Plain", "Reviewed", "Missing"];
    std::fs::write(dir.path().join("application.yaml"), subscriptions(&names)).unwrap();
    let (status, answer) = run(dir.path(), &files);
    assert_eq!(status, Some(0), "{answer}");
    answer.has_all(&[
        "\"Plain\", which has no key",
        "\"Reviewed\", which requires a review",
        "\"Missing\", which none of the files defines",
        "takes the field \"tog\" of \"Plain\" from the topic",
        "did you mean \"tag\"?",
    ]);
    assert!(!answer.contains("into \"Keyed\"") && !answer.contains("field \"tag\" of"), "{answer}");
    // Without definitions, the ones of the gateway are unknown.
    let (_, answer) = run(dir.path(), &files[..2]);
    assert!(!answer.contains("warning"), "{answer}");
}

#[test]
fn a_template_of_keys_without_a_kind_is_a_warning() {
    let template =
        |key: &str| format!("service.export.targets.plant:\n  type: directory\n  key: '{key}'\n");
    let earlier = "{prefix}{name}/{name}-{date}-{sequence}.json";
    let (status, answer) = check("application.yaml", &template(earlier));
    assert_eq!(status, Some(0), "{answer}");
    let expected = "service.export.targets.plant.key has neither {kind} nor {suffix}";
    assert!(answer.contains(expected), "{answer}");
    let (status, answer) = check("application.yaml", &template("{prefix}{name}.json"));
    assert_eq!(status, Some(1), "{answer}");
    assert!(answer.contains("has no `{sequence}`"), "{answer}");
}

#[test]
fn the_json_output_has_a_line_for_each_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("right.yaml"), MAPPING).unwrap();
    std::fs::write(dir.path().join("wrong.yaml"), "type: object\n").unwrap();
    let (status, answer) =
        run(dir.path(), &["check", "--json", "wrong.yaml", "right.yaml", "absent.yaml"]);
    assert_eq!(status, Some(1));
    let lines: Vec<Value> =
        answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let right: Vec<_> = lines.iter().map(|line| line["right"].as_bool().unwrap()).collect();
    assert_eq!(right, [false, true, false]);
    assert!(lines[0]["faults"][0]["line"].is_u64(), "{answer}");
}

#[test]
fn an_export_file_is_whole_or_the_cause_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let data = "[{\"uri\":\"https://plant.example/1\"}]";
    // sha256sum of the bytes above.
    let sum = "c0859b12300183751701dea521c21b2fed22f51537ab90b450e4816e12550179";
    let file = format!(
        "{{\"metadata\":{{\"export_date\":\"20260301T120000Z\",\"object_type\":\"Pumps\",\"object_count\":1,\"data_checksum\":\"{sum}\",\"checksum_algorithm\":\"SHA-256\"}},\"data\":{data}}}"
    );
    std::fs::write(dir.path().join("whole.json"), &file).unwrap();
    std::fs::write(dir.path().join("cut.json"), &file[..file.len() - 3]).unwrap();
    std::fs::write(dir.path().join("changed.json"), file.replace("example/1", "example/2"))
        .unwrap();
    let (status, answer) = run(dir.path(), &["verify-export", "whole.json"]);
    assert_eq!(status, Some(0), "{answer}");
    assert_eq!(
        answer,
        format!("whole.json: whole: 1 object of Pumps, exported 20260301T120000Z, SHA-256 {sum}\n")
    );
    for broken in ["cut.json", "changed.json", "absent.json"] {
        let (status, answer) = run(dir.path(), &["verify-export", "whole.json", broken]);
        assert_eq!(status, Some(1), "{answer}");
        assert!(answer.lines().nth(1).unwrap().starts_with(broken), "{answer}");
    }
    let (_, answer) = run(dir.path(), &["verify-export", "--json", "whole.json"]);
    let line: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&line["whole"], &line["objectCount"]), (&json!(true), &json!(1)));
}
