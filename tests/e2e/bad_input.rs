//! Bad input: each kind gets an error with the cause and the place, and is not stored.
use bytes::Bytes;
use penstock_test_support::prelude::*;

const CONFIG: &str = include_str!("bad_input.yaml");
const INGEST: &str = "/api/v1/business-objects/Meters?mode=ADD";
const BODY_LIMIT: usize = 65_536;

/// The expected error.
#[derive(Clone, Copy)]
struct Expected {
    status: u16,
    /// The text that `detail` must contain.
    detail: &'static str,
    /// The JSON Pointer of one of `errors`.
    pointer: Option<&'static str>,
    /// Whether one of `errors` has line and column.
    line: bool,
}

const MALFORMED: Expected = Expected { status: 400, detail: "", pointer: None, line: true };
const INVALID: Expected = Expected { status: 422, detail: "", pointer: None, line: false };

#[test]
fn bad_input_is_refused_with_an_error_and_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = TestProcess::start(dir.path(), &["--service.data-dir=data"]);
    let client = server.client;
    client.put("/api/v1/business-objects", &definition(CONFIG)).expect(201);
    let good =
        json!({ "data": [{ "uri": "https://meters.example/1", "label": "One", "reading": 1 }] });
    client.post(INGEST, good.to_string()).expect(200);
    server.stop();
    let before = quads(&data);

    let limit = format!("--service.limits.body={BODY_LIMIT}");
    let strict = ["--service.data-dir=data", "--service.namespace.auto-create=false", &limit];
    let server = TestProcess::start(dir.path(), &strict);
    let client = server.client;
    let state = state(client);
    for (name, answer, expected) in definitions(client).into_iter().chain(ingestions(client)) {
        check(name, &answer, &expected);
        assert_eq!(self::state(client), state, "{name}: something was stored");
    }
    // Each refusal is logged, even if it comes before the ingestion begins.
    let mode = client.post(&INGEST.replace("ADD", "add"), r#"{"data": []}"#).json();
    assert!(mode["detail"].has("did you mean ADD?"), "{mode}");
    client.post("/api/v1/business-objects/Metres", r#"{"data": []}"#).expect(404);
    for cause in
        ["did you mean ADD?", "no Business Object with the id or name", "service.limits.body"]
    {
        wait_for(cause, || {
            let log = server.log();
            let is_refusal = |line: &str| line.contains("An ingestion was refused.");
            log.lines().any(|line| is_refusal(line) && line.contains(cause))
        });
    }
    server.stop();
    // The journal still grows, because it also records the use of the API key.
    assert!(quads(&data).0 == before.0, "the quads changed");
}

/// Sends each bad definition. Returns a name, the answer and the expected error for each.
fn definitions(client: Client) -> Vec<(&'static str, Answer, Expected)> {
    let put = |value: Value| client.put("/api/v1/business-objects", &value);
    let bucket = |name: &str| {
        let mut definition = definition(CONFIG);
        definition["pushTargets"] = json!([{ "bucketName": name }]);
        definition
    };
    let bucket_name = Expected { pointer: Some("/pushTargets/0/bucketName"), ..INVALID };
    let line = Expected { line: true, ..INVALID };
    let yaml = "type: object\npath: \"Meters:.\"\nfields: [oops\n";
    let unknown = CONFIG.replace("Meters:.", "Metres:.");
    let bad_iri = CONFIG.replace("<https://meters.example/site>", "<not an iri>");
    vec![
        ("invalid YAML", put(definition(yaml)), line),
        (
            "an unknown namespace",
            put(definition(&unknown)),
            Expected { detail: "Meters", ..INVALID },
        ),
        ("a bad IRI in a path", put(definition(&bad_iri)), line),
        ("a bucketName with a path to another folder", put(bucket("../../etc")), bucket_name),
        ("a bucketName with such a path after a name", put(bucket("a/../../b")), bucket_name),
    ]
}

/// Sends each bad ingestion. Returns a name, the answer and the expected error for each.
fn ingestions(client: Client) -> Vec<(&'static str, Answer, Expected)> {
    let object = |members: &str| {
        let good = r#"{"uri":"https://meters.example/2","label":"Two"}"#;
        client.post(INGEST, format!(r#"{{"data":[{good},{{{members}}}]}}"#))
    };
    let long = json!({ "data": [{ "label": "x".repeat(BODY_LIMIT) }] }).to_string();
    let deep = format!(r#"{{"data":[{{"tags":{}{}}}]}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let at = |pointer| Expected { pointer: Some(pointer), ..ingestion(INVALID) };
    let of_request = |status, detail| Expected { status, detail, ..INVALID };
    let conflict =
        r#"{"data":[{"label":"New"},{"uri":"https://meters.example/1","label":"Eins"}]}"#;
    let chunked = client.send_chunks(INGEST, "application/json", over_the_limit());
    let truncated = r#"{"data":[{"label":"Two"},{"label":"#;
    let invalid = &b"{\"data\":[{\"label\":\"T\xff\"}]}"[..];
    let two = r#"{"data":[{"label":"Two"}]}"#;
    let post = |path: &str| client.post(&format!("/api/v1/business-objects/{path}"), two);
    let text = client.send("POST", INGEST, &[("content-type", "text/plain")], "label\nTwo\n");
    vec![
        ("an unknown field", object(r#""lable":"Two""#), at("/data/1/lable")),
        (
            "an unknown field in a nested object",
            object(r#""registers":[{"unit":"kWh"},{"unti":"kWh"}]"#),
            at("/data/1/registers/1/unti"),
        ),
        ("a string instead of an array", object(r#""tags":"hot""#), at("/data/1/tags")),
        ("a string instead of a number", object(r#""reading":"12""#), at("/data/1/reading")),
        ("an invalid IRI", object(r#""site":"hall 7""#), at("/data/1/site")),
        ("an invalid uri", object(r#""uri":"two","label":"Two""#), at("/data/1/uri")),
        ("no data", client.post(INGEST, r#"{"date":[]}"#), ingestion(INVALID)),
        (
            "a different value for a field that has one",
            client.post(INGEST, conflict),
            Expected { status: 409, ..at("/data/1/label") },
        ),
        ("a body over the limit", client.post(INGEST, long), of_request(413, "")),
        ("a body over the limit in chunks, without a Content-Length", chunked, of_request(413, "")),
        ("truncated JSON", client.post(INGEST, truncated), ingestion(MALFORMED)),
        ("invalid UTF-8", client.post(INGEST, invalid), ingestion(MALFORMED)),
        ("half a surrogate pair", object(r#""label":"\ud83d""#), ingestion(MALFORMED)),
        ("JSON nested 10,000 deep", client.post(INGEST, deep), ingestion(MALFORMED)),
        (
            "a duplicate key",
            object(r#""label":"Two","label":"Zwei""#),
            Expected { detail: "label", ..ingestion(MALFORMED) },
        ),
        ("an unknown mode", post("Meters?mode=PATCH"), of_request(400, "PATCH")),
        ("a missing Business Object", post("Metres?mode=ADD"), of_request(404, "Metres")),
        ("another media type", text.unwrap(), of_request(415, "text/plain")),
    ]
}

#[test]
fn numbers_keep_the_digits_that_a_double_cannot_hold() {
    let numbers = [
        "12345678901234567890.123456789012345678901234567890",
        "0.1000000000000000000000001",
        "-0.0",
        "100.00",
        "1e400",
        "2.50E-3",
        "9007199254740993",
    ];
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &["--service.data-dir=data"]);
    let client = server.client;
    client.put("/api/v1/business-objects", &definition(CONFIG)).expect(201);
    let objects: Vec<String> = numbers
        .iter()
        .enumerate()
        .map(|(i, n)| format!(r#"{{"uri":"https://meters.example/{i}","reading":{n}}}"#))
        .collect();
    client.post(INGEST, format!(r#"{{"data":[{}]}}"#, objects.join(","))).expect(200);

    let entry = push_and_wait(client, "Meters");
    let key = entry["key"].text();
    let file = dir.path().join("data/buckets/meters").join(key);
    let file = std::fs::read_to_string(file).unwrap();
    for (i, number) in numbers.iter().enumerate() {
        let uri = format!("https%3A%2F%2Fmeters.example%2F{i}");
        let path = format!("/api/v1/business-objects/Meters/objects/{uri}");
        let shown = client.get(&path).expect(200);
        let member = format!(r#""reading":{number}"#);
        assert!(shown.text().contains(&member), "{member} is not in {}", shown.text());
        assert!(file.contains(&member), "{member} is not in the export");
    }
    server.stop();
}

fn definition(config: &str) -> Value {
    json!({
        "name": "Meters",
        "description": "Meters of the plant",
        "enabled": true,
        "config": config,
        "conditions": [],
        "pushTargets": [{ "bucketName": "meters" }],
    })
}

fn ingestion(expected: Expected) -> Expected {
    Expected { detail: "Ingestion failed: ", ..expected }
}

fn over_the_limit() -> impl Iterator<Item = Bytes> + Send + Sync {
    let filler = (0..40).map(|_| Bytes::from("x".repeat(BODY_LIMIT / 20)));
    std::iter::once(Bytes::from_static(b"{\"data\":[{\"label\":\"")).chain(filler)
}

/// Returns everything that a client can read of the store.
fn state(client: Client) -> Vec<String> {
    ["business-objects", "namespaces", "ingestions", "exports", "business-objects/Meters/objects"]
        .map(|path| client.get(&format!("/api/v1/{path}")).expect(200).text())
        .to_vec()
}

fn check(name: &str, answer: &Answer, expected: &Expected) {
    let text = answer.text();
    assert_eq!(answer.status, expected.status, "{name}: {text}");
    assert_eq!(answer.header("content-type"), "application/problem+json", "{name}: {text}");
    let problem = answer.json();
    assert_eq!(problem["status"], expected.status, "{name}: {text}");
    for member in ["type", "title", "detail", "instance"] {
        assert!(problem[member].is_string(), "{name}: no {member} in {text}");
    }
    assert!(text.contains(expected.detail), "{name}: no {:?} in {text}", expected.detail);
    if expected.detail == "Ingestion failed: " {
        let detail = problem["detail"].text();
        let cause = detail.strip_prefix("Ingestion failed: ");
        assert!(cause.is_some_and(|c| !c.is_empty() && c != "null"), "{name}: {text}");
    }
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    if let Some(pointer) = expected.pointer {
        assert!(errors.iter().any(|e| e["pointer"] == pointer), "{name}: not {pointer} in {text}");
    }
    if expected.line {
        let placed = errors.iter().any(|e| e["line"].is_u64() && e["column"].is_u64());
        assert!(placed, "{name}: no line and column in {text}");
    }
}
