//! Natural keys, MERGE and If-Match, as a client of the REST interface uses them.
use penstock_test_support::prelude::*;

const ALL: &str = "/api/v1/business-objects";
const PUMPS: &str = "/api/v1/business-objects/Pumps";

fn definition(key: &str) -> Value {
    json!({"name": "Pumps", "config": format!("
type: object
path: Pump:.
{key}fields:
  tag: {{type: string, path: <https://plant.example/tag>, required: true}}
  power: {{type: number, path: <https://plant.example/power>}}
  motor:
    type: object
    path: <https://plant.example/motor>/Motor:.
    fields:
      maker: {{type: string, path: <https://plant.example/maker>}}
")})
}

async fn send(server: &TestApp, mode: &str, objects: &Value) -> Value {
    let path = format!("{PUMPS}?mode={mode}");
    server.post(&path, &json!({"data": objects})).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_data_is_stored_once_and_stored_objects_are_found_by_a_key_that_is_added() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestApp::reopen(dir.path()).await;
    server.put(ALL, &definition("")).await.expect(201);
    let minted = send(&server, "ADD", &json!([{"tag": "P-1"}, {"tag": "P-2"}])).await;
    let uri = minted["objects"][0]["uri"].clone();

    server.put(ALL, &definition("key: tag\n")).await.expect(200);
    let again = send(&server, "MERGE", &json!([{"tag": "P-1", "power": 7}, {"tag": "P-3"}])).await;
    assert_eq!((&again["objects"][0]["uri"], &again["updated"]), (&uri, &json!(1)));
    let new = again["objects"][1]["uri"].text();
    assert!(new.ends_with("Pump:P-3"), "{again}");
    assert_eq!(send(&server, "ADD", &json!([{"tag": "P-3"}])).await["unchanged"], 1);

    // The index survives a restart.
    server.stop().await;
    let server = TestApp::reopen(dir.path()).await;
    let found = send(&server, "ADD", &json!([{"tag": "P-1"}])).await;
    assert_eq!((&found["objects"][0]["uri"], &found["unchanged"]), (&uri, &json!(1)));

    let omitted = server.put(ALL, &definition("")).await.problem(409);
    assert_eq!(omitted["errors"][0]["pointer"], "/config");
    assert!(omitted["detail"].has("leaves out `key`"), "{omitted}");
    server.put(&format!("{ALL}?force=true"), &definition("")).await.expect(200);
    send(&server, "ADD", &json!([{"tag": "P-1"}])).await;
    server.put(ALL, &definition("key: tag\n")).await.refused(409, "1 stored object ");
    server.put(ALL, &definition("key: []\n")).await.expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_clears_with_null_and_names_what_it_removes() {
    let server = TestApp::plain().await;
    server.put(ALL, &definition("key: tag\n")).await.expect(201);
    let stored = json!([{"tag": "P-1", "power": 7, "motor": {"maker": "M"}}]);
    let motor = send(&server, "MERGE", &stored).await["objects"][0]["nested"][0]["uri"].clone();
    let merged =
        send(&server, "MERGE", &json!([{"tag": "P-1", "power": null, "motor": null}])).await;
    assert_eq!((&merged["updated"], &merged["deleted"]), (&json!(1), &json!(1)));
    let warning = &merged["warnings"][0];
    assert_eq!(warning["pointer"], "/data/0/motor");
    assert!(warning["message"].text().starts_with(motor.text()), "{merged}");
    let uri = merged["objects"][0]["uri"].text();
    let read = server.read(&format!("{PUMPS}/objects/{}", escaped(uri))).await;
    assert_eq!(read, json!({"uri": uri, "tag": "P-1"}));
    let required = json!({"data": [{"tag": null}]});
    server.post(&format!("{PUMPS}?mode=MERGE"), &required).await.problem(422);
}

fn with(etag: &str) -> [(&str, &str); 2] {
    [JSON, ("If-Match", etag)]
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_editors_the_second_reads_again() {
    let server = TestApp::plain().await;
    server.put(ALL, &definition("key: tag\n")).await.expect(201);
    let uri = send(&server, "ADD", &json!([{"tag": "P-1"}])).await["objects"][0]["uri"].clone();
    let by_path = format!("{PUMPS}/objects/{}", escaped(uri.text()));
    let read = server.get(&by_path).await.expect(200);
    let etag = read.header("etag").to_owned();
    let by_query = format!("{PUMPS}/objects?uri={}", escaped(uri.text()));
    assert_eq!(server.get(&by_query).await.expect(200).header("etag"), etag);

    let merge = format!("{PUMPS}?mode=MERGE");
    let body = |power: u8| json!({"data": [{"tag": "P-1", "power": power}]}).to_string();
    server.send("POST", &merge, &with(&etag), body(1)).await.expect(200);
    server.send("POST", &merge, &with(&etag), body(2)).await.problem(412);
    assert_eq!(server.get(&by_path).await.json()["power"], 1);
    let etag = server.get(&by_path).await.header("etag").to_owned();
    server.send("POST", &merge, &with(&etag), body(2)).await.expect(200);

    let missing = json!({"data": [{"tag": "P-2"}]}).to_string();
    server.send("POST", &merge, &with("*"), missing).await.problem(412);
    let two = json!({"data": [{"tag": "P-1"}, {"tag": "P-1"}]}).to_string();
    server.send("POST", &merge, &with("*"), two).await.problem(400);
    server.send("POST", &format!("{merge}&onError=skip"), &with("*"), body(3)).await.problem(400);
    let lines = [NDJSON, ("If-Match", "*")];
    server.send("POST", &merge, &lines, "{\"tag\": \"P-1\"}\n").await.problem(400);
}
