//! Bad input: each kind gets an error with the cause and the place, and is not stored.
use crate::client::{Answer, Client};
use crate::server::{Server, quads, wait_for};
use bytes::Bytes;
use serde_json::{Value, json};

const CONFIG: &str = r#"
type: object
path: "Meters:."
fields:
  uri: { type: id }
  label: { type: string, path: "<http://www.w3.org/2000/01/rdf-schema#label>" }
  reading: { type: number, path: "<https://meters.example/reading>" }
  site: { type: resource, path: "<https://meters.example/site>" }
  tags: { type: array, path: "<https://meters.example/tag>" }
  registers:
    type: array
    path: "<https://meters.example/register>"
    elements:
      type: object
      path: "Registers:."
      fields:
        unit: { type: string, path: "<https://meters.example/unit>" }
"#;
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
    let server = Server::start(dir.path(), &["--service.data-dir=data"]);
    let client = server.client;
    client.put("/api/v1/business-objects", &definition(CONFIG)).expect(201);
    let good =
        json!({ "data": [{ "uri": "https://meters.example/1", "label": "One", "reading": 1 }] });
    client.post(INGEST, good.to_string()).expect(200);
    server.stop();
    let before = quads(&data);

    let server = Server::start(
        dir.path(),
        &[
            "--service.data-dir=data",
            "--service.namespace.auto-create=false",
            &format!("--service.limits.body={BODY_LIMIT}"),
        ],
    );
    let client = server.client;
    let state = state(client);
    for (name, answer, expected) in definitions(client).into_iter().chain(ingestions(client)) {
        check(name, &answer, &expected);
        assert_eq!(self::state(client), state, "{name}: something was stored");
    }
    // Each refusal is logged, even if it comes before the ingestion begins.
    let mode = client.post(&INGEST.replace("ADD", "add"), r#"{"data": []}"#).json();
    assert!(mode["detail"].as_str().unwrap().contains("did you mean ADD?"), "{mode}");
    client.post("/api/v1/business-objects/Metres", r#"{"data": []}"#).expect(404);
    for cause in
        ["did you mean ADD?", "no Business Object with the id or name", "service.limits.body"]
    {
        wait_for(cause, || {
            let log = server.log();
            let mut refusals =
                log.lines().filter(|line| line.contains("An ingestion was refused."));
            refusals.any(|line| line.contains(cause))
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
    vec![
        (
            "invalid YAML",
            put(definition("type: object\npath: \"Meters:.\"\nfields: [oops\n")),
            Expected { line: true, ..INVALID },
        ),
        (
            "an unknown namespace",
            put(definition(&CONFIG.replace("Meters:.", "Metres:."))),
            Expected { detail: "Meters", ..INVALID },
        ),
        (
            "a bad IRI in a path",
            put(definition(&CONFIG.replace("<https://meters.example/site>", "<not an iri>"))),
            Expected { line: true, ..INVALID },
        ),
        (
            "a bucketName with a path to another folder",
            put(bucket("../../etc")),
            Expected { pointer: Some("/pushTargets/0/bucketName"), ..INVALID },
        ),
        (
            "a bucketName with such a path after a name",
            put(bucket("a/../../b")),
            Expected { pointer: Some("/pushTargets/0/bucketName"), ..INVALID },
        ),
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
    vec![
        (
            "an unknown field",
            object(r#""lable":"Two""#),
            Expected { pointer: Some("/data/1/lable"), ..ingestion(INVALID) },
        ),
        (
            "an unknown field in a nested object",
            object(r#""registers":[{"unit":"kWh"},{"unti":"kWh"}]"#),
            Expected { pointer: Some("/data/1/registers/1/unti"), ..ingestion(INVALID) },
        ),
        (
            "a string instead of an array",
            object(r#""tags":"hot""#),
            Expected { pointer: Some("/data/1/tags"), ..ingestion(INVALID) },
        ),
        (
            "a string instead of a number",
            object(r#""reading":"12""#),
            Expected { pointer: Some("/data/1/reading"), ..ingestion(INVALID) },
        ),
        (
            "an invalid IRI",
            object(r#""site":"hall 7""#),
            Expected { pointer: Some("/data/1/site"), ..ingestion(INVALID) },
        ),
        (
            "an invalid uri",
            object(r#""uri":"two","label":"Two""#),
            Expected { pointer: Some("/data/1/uri"), ..ingestion(INVALID) },
        ),
        ("no data", client.post(INGEST, r#"{"date":[]}"#), Expected { ..ingestion(INVALID) }),
        (
            "a different value for a field that has one",
            client.post(
                INGEST,
                r#"{"data":[{"label":"New"},{"uri":"https://meters.example/1","label":"Eins"}]}"#,
            ),
            Expected { status: 409, pointer: Some("/data/1/label"), ..ingestion(INVALID) },
        ),
        ("a body over the limit", client.post(INGEST, long), Expected { status: 413, ..INVALID }),
        (
            "a body over the limit in chunks, without a Content-Length",
            client.send_chunks(INGEST, "application/json", over_the_limit()),
            Expected { status: 413, ..INVALID },
        ),
        (
            "truncated JSON",
            client.post(INGEST, r#"{"data":[{"label":"Two"},{"label":"#),
            ingestion(MALFORMED),
        ),
        (
            "invalid UTF-8",
            client.post(INGEST, &b"{\"data\":[{\"label\":\"T\xff\"}]}"[..]),
            ingestion(MALFORMED),
        ),
        ("half a surrogate pair", object(r#""label":"\ud83d""#), ingestion(MALFORMED)),
        ("JSON nested 10,000 deep", client.post(INGEST, deep), ingestion(MALFORMED)),
        (
            "a duplicate key",
            object(r#""label":"Two","label":"Zwei""#),
            Expected { detail: "label", ..ingestion(MALFORMED) },
        ),
        (
            "an unknown mode",
            client.post(
                "/api/v1/business-objects/Meters?mode=PATCH",
                r#"{"data":[{"label":"Two"}]}"#,
            ),
            Expected { status: 400, detail: "PATCH", ..INVALID },
        ),
        (
            "a missing Business Object",
            client
                .post("/api/v1/business-objects/Metres?mode=ADD", r#"{"data":[{"label":"Two"}]}"#),
            Expected { status: 404, detail: "Metres", ..INVALID },
        ),
        (
            "another media type",
            client
                .send(
                    hyper::Method::POST,
                    INGEST,
                    &[("content-type", "text/plain")],
                    "label\nTwo\n",
                )
                .unwrap(),
            Expected { status: 415, detail: "text/plain", ..INVALID },
        ),
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
    let server = Server::start(dir.path(), &["--service.data-dir=data"]);
    let client = server.client;
    client.put("/api/v1/business-objects", &definition(CONFIG)).expect(201);
    let objects: Vec<String> = numbers
        .iter()
        .enumerate()
        .map(|(i, n)| format!(r#"{{"uri":"https://meters.example/{i}","reading":{n}}}"#))
        .collect();
    client.post(INGEST, format!(r#"{{"data":[{}]}}"#, objects.join(","))).expect(200);

    let entry = crate::server::push_and_wait(client, "Meters");
    let key = entry["key"].as_str().unwrap();
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
    [
        "/api/v1/business-objects",
        "/api/v1/namespaces",
        "/api/v1/ingestions",
        "/api/v1/exports",
        "/api/v1/business-objects/Meters/objects",
    ]
    .map(|path| client.get(path).expect(200).text().to_owned())
    .to_vec()
}

fn check(name: &str, answer: &Answer, expected: &Expected) {
    let text = answer.text();
    assert_eq!(answer.status, expected.status, "{name}: {text}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{name}: {text}");
    let problem = answer.json();
    assert_eq!(problem["status"], expected.status, "{name}: {text}");
    for member in ["type", "title", "detail", "instance"] {
        assert!(problem[member].is_string(), "{name}: no {member} in {text}");
    }
    assert!(text.contains(expected.detail), "{name}: no {:?} in {text}", expected.detail);
    if expected.detail == "Ingestion failed: " {
        let detail = problem["detail"].as_str().unwrap();
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
