//! Maps (`type: map`), on every surface that knows fields.
use penstock_test_support::prelude::*;

const PUMP: &str = "/api/v1/business-objects/Pump";

const CONFIG: &str = "
type: object
path: Pump:.
prefixes: {v: 'https://plant.example/v/'}
fields:
  sensors:
    type: map
    path: v:sensor/Sensor:.
    key: {path: v:code}
    elements: {type: object, fields: {value: {type: number, path: v:value}}}
  levels: {type: map, path: 'v:level/Level:.', key: {path: v:number, type: integer}, elements: {type: number, path: v:value}}
";

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_shows_the_members_of_maps() {
    let server = TestApp::plain().await;
    let defined = server.define_object(&json!({"name": "Pump", "config": CONFIG})).await;
    let pump = json!({
        "uri": "urn:pump:1",
        "sensors": {
            "10.0.0.1": {"uri": "urn:sensor:1", "value": 5},
            "T1": {"uri": "urn:sensor:2", "value": 1.5},
        },
        "levels": {"1": 2.5},
    });
    server
        .ingest("ADD", &json!([pump, {"uri": "urn:pump:2", "levels": {"2": 1}}]))
        .await
        .expect(200);
    let items = server.items(&format!("{PUMP}/objects")).await;
    assert_eq!(items[0], pump);

    let schema = server.read(&format!("{PUMP}/schema")).await;
    let members = &schema["properties"]["sensors"]["additionalProperties"];
    assert_eq!(members["properties"]["value"]["type"], json!(["number", "null"]));
    assert_eq!(schema["properties"]["levels"]["propertyNames"]["pattern"], "^-?(0|[1-9][0-9]*)$");

    let query = r#"{
        pump(uri: "urn:pump:1") { sensors { key value { uri value } } levels { key value } }
        found: pumpConnection(where: {sensors: {key: {eq: "T1"}, value: {value: {after: 1}}}}) { nodes { uri } }
        none: pumpConnection(where: {sensors: {key: {eq: "T1"}, value: {value: {after: 2}}}}) { nodes { uri } }
        levels: pumpConnection(where: {levels: {key: {after: 1}}}) { nodes { uri } }
    }"#;
    assert_eq!(
        server.graphql(query).await,
        json!({
            "pump": {
                "sensors": [
                    {"key": "10.0.0.1", "value": {"uri": "urn:sensor:1", "value": 5}},
                    {"key": "T1", "value": {"uri": "urn:sensor:2", "value": 1.5}},
                ],
                "levels": [{"key": 1, "value": 2.5}],
            },
            "found": {"nodes": [{"uri": "urn:pump:1"}]},
            "none": {"nodes": []},
            "levels": {"nodes": [{"uri": "urn:pump:2"}]},
        })
    );

    let page = server.page("/admin/object?uri=urn:pump:1").await;
    assert!(page.contains("urn%3Asensor%3A1") && page.contains("sensors"), "{page}");
    let id = defined["id"].text();
    let form = server.page(&format!("/admin/object/edit?uri=urn:pump:1&view={id}")).await;
    assert!(form.contains("name=\"j/sensors\"") && form.contains("map of number"), "{form}");

    // CSV names a member with a dot, and MERGE keeps the others.
    let headers = [("Content-Type", "text/csv")];
    let text =
        "uri,sensors.T1.value,\"sensors[\"\"10.0.0.1\"\"].value\"\nurn:pump:1,7.50,6\n".to_owned();
    server.send("POST", &format!("{PUMP}?mode=MERGE"), &headers, text).await.expect(200);
    let removed = json!([{"uri": "urn:pump:1", "sensors": {"10.0.0.1": null}}]);
    server.ingest("MERGE", &removed).await.expect(200);
    let merged = server.items(&format!("{PUMP}/objects")).await;
    let sensors = r#"{"T1":{"uri":"urn:sensor:2","value":7.50}}"#;
    assert_eq!(merged[0]["sensors"].to_string(), sensors);
    assert_eq!(merged[0]["levels"], json!({"1": 2.5}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_point_to_the_member() {
    let server = TestApp::plain().await;
    server.define_object(&json!({"name": "Pump", "config": CONFIG})).await;
    for (object, pointer, message) in [
        (json!({"sensors": {"T1": {"valu": 1}}}), "/data/0/sensors/T1/valu", "did you mean"),
        (json!({"sensors": {"": {}}}), "/data/0/sensors/", "it is empty"),
        (json!({"levels": {"one": 1}}), "/data/0/levels/one", "cannot be the name of a member"),
        (json!({"levels": {"1": []}}), "/data/0/levels/1", "not an array"),
        (json!({"sensors": []}), "/data/0/sensors", "an object with a member for each name"),
    ] {
        server.ingest("REPLACE", &json!([object])).await.refused_at(pointer, message);
    }
    server.stop().await;
}
