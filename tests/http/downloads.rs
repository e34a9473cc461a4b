//! Downloads of all objects: as CSV that can be sent back, and as NDJSON.
use penstock_test_support::prelude::*;
use tokio::io::AsyncReadExt;

const PUMP: &str = "/api/v1/business-objects/Pump";

const CONFIG: &str = "
type: object
path: Pump:.
key: tag
fields:
  tag: {type: string, required: true, path: <https://plant.example/tag>}
  note: {type: string, path: <https://plant.example/note>}
  flow: {type: number, path: <https://plant.example/flow>}
  running: {type: boolean, path: <https://plant.example/running>}
  built: {type: date, path: <https://plant.example/built>}
  any: {type: scalar, path: <https://plant.example/any>}
  state: {type: string, path: <https://plant.example/state>, values: {0: 'off', 1: 'on'}}
  title: {type: languageMap, path: <https://plant.example/title>, languages: [en, de]}
  aliases: {type: array, path: <https://plant.example/alias>}
  steps: {type: array, ordered: true, path: <https://plant.example/step>, elements: {type: integer}}
  position:
    type: object
    path: <https://plant.example/position>/Position:.
    fields:
      latitude: {type: number, path: <https://plant.example/latitude>}
  parts:
    type: array
    elements:
      type: object
      path: <https://plant.example/part>/Part:.
      fields:
        label: {type: string, path: <https://plant.example/label>}
";

const OBJECTS: &str = r#"{"data": [
  {"tag": "P-1", "note": "a \"b\"; c,\r\nd", "flow": 12.50, "running": true, "built": "2019-05-04", "any": "7", "state": 1,
   "title": {"en": "Pump", "de": "Pumpe"}, "aliases": ["x", "y\\z"], "steps": [2, 1, 2], "position": {"latitude": 47.10},
   "parts": [{"label": "seal"}]},
  {"tag": "P-2", "note": "=1+1", "flow": -3, "any": 7.50},
  {"tag": "P-3"}]}"#;

async fn start() -> TestApp {
    let server = TestApp::plain().await;
    let base = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    let definition = json!({"name": "Pump", "config": CONFIG, "namespaces": base});
    server.define_object(&definition).await;
    server.send("POST", &format!("{PUMP}?mode=ADD"), &[JSON], OBJECTS).await.expect(200);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_that_is_sent_back_changes_nothing() {
    let server = start().await;
    let before = server.dump().await;
    let answer = server.get(&format!("{PUMP}/objects?format=csv")).await.expect(200);
    assert_eq!(answer.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"Pump.csv\"");
    let text = answer.text();
    let header = "uri,tag,note,flow,running,built,any,state,title.en,title.de,aliases,steps,position.uri,position.latitude\r\n";
    assert!(text.starts_with(header), "{text}");
    let csv = [("Content-Type", "text/csv")];
    for mode in ["MERGE", "UPDATE", "ADD"] {
        let path = format!("{PUMP}?mode={mode}&arrayDelimiter=%7C");
        let lines = server.send("POST", &path, &csv, text.clone()).await.expect(200).lines();
        assert_eq!(lines[0]["unchanged"], 3, "{mode}: {lines:?}");
    }
    assert_eq!(server.dump().await, before);
    // An accepted media type is the same.
    let accepted = server.get_with(&format!("{PUMP}/objects"), &[("Accept", "text/csv")]).await;
    assert_eq!(accepted.text(), text);
    assert!(accepted.headers.get_all("vary").iter().any(|value| value == "Accept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ndjson_has_a_line_for_each_object_of_the_list() {
    let server = start().await;
    let answer = server.get(&format!("{PUMP}/objects?format=ndjson")).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    assert_eq!(answer.lines(), server.items(&format!("{PUMP}/objects")).await);
    assert!(answer.text().contains("12.50"), "numbers keep their digits");
    let accept = [("Accept", "application/json;q=0.5, application/x-ndjson")];
    let accepted = server.get_with(&format!("{PUMP}/objects"), &accept).await;
    assert_eq!(accepted.body, answer.body);
    // A client that accepts anything gets a page as before.
    for accept in ["*/*", "text/*", "application/json, text/csv", "image/png"] {
        let page = server.get_with(&format!("{PUMP}/objects"), &[("Accept", accept)]).await;
        assert_eq!(page.expect(200).json()["items"].list().len(), 3, "{accept}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_chosen_and_formulas_are_made_harmless() {
    let server = start().await;
    let csv = async |query: &str| {
        server.get(&format!("{PUMP}/objects?format=csv&{query}")).await.expect(200).text()
    };
    assert_eq!(
        csv("fields=flow,position.latitude,tag").await,
        "flow,position.latitude,tag\r\n12.50,47.10,P-1\r\n-3,,P-2\r\n,,P-3\r\n"
    );
    assert_eq!(csv("fields=note&spreadsheet=true").await.lines().last(), Some("\"\""));
    // A number is no formula.
    assert_eq!(
        csv("fields=tag,note,flow&spreadsheet=true").await,
        "tag,note,flow\r\nP-1,\"a \"\"b\"\"; c,\r\nd\",12.50\r\nP-2,'=1+1,-3\r\nP-3,,\r\n"
    );
    let german =
        csv("fields=tag,flow,steps&delimiter=%3B&decimalComma=true&arrayDelimiter=/").await;
    assert_eq!(german.lines().nth(1), Some("P-1;12,50;2/1/2"));
}

/// An ingestion takes only the separator of the field in a cell, which programs read as a text.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_have_points_in_every_field_if_the_client_wants_no_comma() {
    let server = TestApp::plain().await;
    let config = "
type: object
path: Pump:.
key: tag
fields:
  tag: {type: string, required: true, path: <https://plant.example/tag>}
  flow: {type: number, path: <https://plant.example/flow>, accept: {decimal: ',', group: '.'}}
  all: {type: array, ordered: true, path: <https://plant.example/all>, elements: {type: number, accept: {decimal: ','}}}
";
    let base = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    server.define_object(&json!({"name": "Pump", "config": config, "namespaces": base})).await;
    let objects =
        r#"{"data": [{"tag": "P-1", "flow": 3.0, "all": [0.5, 1]}, {"tag": "P-2", "flow": 2}]}"#;
    server.send("POST", &format!("{PUMP}?mode=ADD"), &[JSON], objects).await.expect(200);
    let csv = async |query: &str| {
        let path = format!("{PUMP}/objects?format=csv&fields=tag,flow,all{query}");
        server.get(&path).await.expect(200).text()
    };
    assert_eq!(csv("").await, "tag,flow,all\r\nP-1,\"3,0\",\"0,5|1\"\r\nP-2,2,\r\n");
    assert_eq!(csv("&decimalComma=false").await, "tag,flow,all\r\nP-1,3.0,0.5|1\r\nP-2,2,\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_with_the_delimiter_end_the_download_unless_they_are_escaped() {
    let server = start().await;
    server.ingest("ADD", &json!([{"tag": "P-4", "aliases": ["a|b", "c\\"]}])).await.expect(200);
    let path = format!("{PUMP}/objects?format=csv");
    server.get(&path).await.refused(422, "arrayEscape=true");
    let text = server.get(&format!("{path}&arrayEscape=true")).await.expect(200).text();
    assert!(text.contains(r"a\|b|c\\"), "{text}");
    let before = server.dump().await;
    let back = format!("{PUMP}?mode=MERGE&arrayDelimiter=%7C&arrayEscape=true");
    let csv = [("Content-Type", "text/csv")];
    let lines = server.send("POST", &back, &csv, text).await.expect(200).lines();
    assert_eq!(lines[0]["unchanged"], 4, "{lines:?}");
    assert_eq!(server.dump().await, before);
    let without = format!("{PUMP}?arrayEscape=true");
    server.send("POST", &without, &csv, "tag\nP-9\n").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_together_is_refused() {
    let server = start().await;
    let objects = format!("{PUMP}/objects");
    for query in [
        "?format=xml",
        "?format=csv&limit=3",
        "?format=ndjson&cursor=x",
        "?format=ndjson&fields=tag",
        "?fields=tag",
        "?format=csv&uri=urn:x",
        "?format=csv&delimiter=ab",
        "?format=csv&arrayEscape=true&arrayDelimiter=%5C",
    ] {
        server.get(&format!("{objects}{query}")).await.problem(400);
    }
    for (query, words) in [
        ("?format=csv&fields=tga", "did you mean \"tag\"?"),
        ("?format=csv&fields=parts", "or use format=ndjson without `fields`"),
        ("?format=csv&fields=tga,parts", "did you mean \"tag\"?; the field \"parts\" is"),
        ("?format=csv&fields=tag,tag", "twice"),
    ] {
        server.get(&format!("{objects}{query}")).await.refused(422, words);
    }
    let head = server.send("HEAD", &format!("{objects}?format=csv"), &[], "").await.expect(200);
    assert_eq!((head.header("content-type"), head.body.len()), ("text/csv; charset=utf-8", 0));
    server
        .define_object(&json!({"name": "Other", "config": CONFIG.replace("Pump:.", "Other:.")}))
        .await;
    let other = server.with_key(Role::User, Some("Other"));
    other.get(&format!("{objects}?format=csv")).await.problem(403);
}

/// Ingests many long objects, after which comes one that CSV cannot hold.
async fn ingest_much(server: &TestApp) {
    let note = "x".repeat(8_000);
    let lines =
        (0..3_000).map(|number| format!("{{\"tag\":\"Q-{number:05}\",\"note\":\"{note}\"}}\n"));
    let text = lines.collect::<Vec<_>>().concat();
    server.send("POST", &format!("{PUMP}?mode=ADD"), &[NDJSON], text).await.expect(200);
    let last = json!([{"tag": "Z", "aliases": ["a|b"]}]);
    server.ingest("ADD", &last).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_after_the_first_bytes_resets_the_connection() {
    let server = start().await;
    ingest_much(&server).await;
    let mut stream = server.begin(&format!("GET {PUMP}/objects?format=csv"), "").await;
    let mut answer = Vec::new();
    // The connection may be reset before everything that was sent has been read.
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 200"), "{}", text.chars().take(200).collect::<String>());
    assert!(!text.ends_with("0\r\n\r\n"), "the answer looks complete");
    // All of it with the escape.
    let path = format!("{PUMP}/objects?format=csv&arrayEscape=true&fields=tag,aliases");
    assert_eq!(server.get(&path).await.expect(200).text().lines().count(), 1 + 3_000 + 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_account_has_one_download_at_a_time_and_commits_continue() {
    let server = start().await;
    ingest_much(&server).await;
    let path = format!("{PUMP}/objects?format=ndjson");
    // This client does not read its answer.
    let unread = server.begin(&format!("GET {path}"), "").await;
    unread.readable().await.unwrap();
    server.ingest("ADD", &json!([{"tag": "new"}])).await.expect(200);
    let refused = server.get(&path).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"));
    // Other accounts are not delayed, and see the new state.
    let other = server.session(Role::User);
    assert!(other.get(&path).await.expect(200).text().contains("\"new\""));
    drop(unread);
    let is_free = async || server.get(&path).await.status == 200;
    until("the permit is free again", is_free).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_an_order_select_what_is_downloaded() {
    let server = start().await;
    let csv = async |query: &str| {
        let path = format!("{PUMP}/objects?format=csv&fields=tag,flow&{query}");
        server.get(&path).await.expect(200).text()
    };
    assert_eq!(csv("orderBy=-flow").await, "tag,flow\r\nP-1,12.50\r\nP-2,-3\r\nP-3,\r\n");
    assert_eq!(csv("filter.note.startsWith=%3D").await, "tag,flow\r\nP-2,-3\r\n");
    assert_eq!(csv("filter.tag=none").await, "tag,flow\r\n");
    for (query, words) in [
        ("filter.flwo=1", "did you mean `flow`?"),
        ("filter.flow.after=high", "is not a number"),
        ("orderBy=parts", "cannot be ordered by parts"),
    ] {
        let path = format!("{PUMP}/objects?format=csv&{query}");
        server.get(&path).await.refused(422, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_document_can_be_sent_back() {
    let server = start().await;
    let answer = server.get(&format!("{PUMP}/objects?format=json")).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"Pump.json\"");
    let items = server.items(&format!("{PUMP}/objects")).await;
    assert_eq!(answer.json()["data"], json!(items));
    let path = format!("{PUMP}?mode=MERGE");
    let back = server.send("POST", &path, &[JSON], answer.text()).await.expect(200).json();
    assert_eq!(back["unchanged"], 3, "{back}");
    let none = server.get(&format!("{PUMP}/objects?format=json&filter.tag=none")).await;
    assert_eq!(none.expect(200).json(), json!({"data": []}));
}
