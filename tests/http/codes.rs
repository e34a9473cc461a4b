//! Codes of fields: in JSON, CSV, GraphQL, the schemas, and the warnings about a definition.
use penstock_test_support::prelude::*;

const PUMP: &str = "/api/v1/business-objects/Pump";

const CONFIG: &str = "
type: object
path: Pump:.
key: tag
prefixes: {v: 'https://plant.example/v/'}
fields:
  tag: {type: string, path: v:tag, required: true, values: {1: one, 2: two}}
  maker: {type: resource, path: v:maker, base: 'https://makers.example/id/'}
  state: {type: resource, path: v:state, values: {RUN: v:Running, STOP: v:Stopped}}
  valve: {type: string, path: v:valve, values: {0: closed, 1: open}}
";

async fn define(server: &TestApp, config: &str) -> Answer {
    let namespaces = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    let definition = json!({"name": "Pump", "config": config, "namespaces": namespaces});
    server.put("/api/v1/business-objects", &definition).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_has_codes() {
    let server = TestApp::plain().await;
    define(&server, CONFIG).await.expect(201);
    let records = "tag,maker,state,valve\n1,KSB SE,RUN,1\n2,https://other.example/7, STOP,0\n";
    let path = format!("{PUMP}?mode=ADD");
    server.send("POST", &path, &[("Content-Type", "text/csv")], records).await.expect(200);
    let first = json!({
        "uri": "https://plant.example/pumps/one", "tag": 1, "maker": "KSB SE", "state": "RUN", "valve": 1
    });
    let second = json!({
        "uri": "https://plant.example/pumps/two", "tag": 2, "maker": "https://other.example/7", "state": "STOP",
        "valve": 0
    });
    let objects = server.items(&format!("{PUMP}/objects")).await;
    assert_eq!(objects, [first.clone(), second.clone()]);

    // The key is the value, and what the view shows changes nothing.
    let same = server.post(&path, &json!({"data": [first, second]})).await.expect(200).json();
    assert_eq!(same["unchanged"], 2, "{same}");
    let changed = json!({"data": [{"tag": 2, "valve": 1}]});
    server.post(&format!("{PUMP}?mode=MERGE"), &changed).await.expect(200);

    let data = server
        .graphql(
        r#"{
            found: pumpConnection(where: {state: {eq: "STOP"}, valve: {in: [1, "0"]}}) { nodes { tag maker state valve } }
            made: pumpConnection(where: {maker: {eq: "KSB SE"}}) { nodes { tag } }
            elsewhere: pumpConnection(where: {maker: {in: ["https://other.example/7"]}}) { nodes { tag } }
            ordered: pumpConnection(orderBy: {field: tag, direction: DESC}) { nodes { tag } }
        }"#,
        )
        .await;
    let expected = json!({
        "found": {"nodes": [{"tag": 2, "maker": "https://other.example/7", "state": "STOP", "valve": 1}]},
        "made": {"nodes": [{"tag": 1}]},
        "elsewhere": {"nodes": [{"tag": 2}]},
        "ordered": {"nodes": [{"tag": 2}, {"tag": 1}]},
    });
    assert_eq!(data, expected);

    let schema = server.read(&format!("{PUMP}/schema")).await;
    let properties = &schema["properties"];
    assert_eq!(properties["state"]["enum"], json!(["RUN", "STOP", null]));
    assert_eq!(properties["tag"]["enum"], json!([1, 2]));
    assert_eq!(properties["tag"]["type"], "integer");
    assert_eq!(properties["maker"]["type"], json!(["string", "null"]));

    let wrong = json!({"data": [{"tag": 1, "state": "RUNN"}]});
    server.post(&path, &wrong).await.refused(422, "did you mean \"RUN\"?");
    server.stop().await;
}

#[tokio::test]
async fn a_definition_names_the_values_that_its_codes_hide() {
    let server = TestApp::plain().await;
    let config = |codes: &str| {
        format!(
            "type: object\npath: Pump:.\nfields:\n  valve: {{type: string, path: <urn:valve>{codes}}}\n"
        )
    };
    define(&server, &config("")).await.expect(201);
    let data = json!({"data": [{"valve": "open"}, {"valve": "off"}, {"valve": "stuck"}]});
    server.post(&format!("{PUMP}?mode=ADD"), &data).await.expect(200);
    let defined =
        define(&server, &config(", values: {open: 'on', off: 'closed'}")).await.expect(200);
    let warnings = defined.json()["warnings"].to_string();
    assert!(
        warnings.contains("2 stored values of the field `valve` cannot be shown"),
        "{warnings}"
    );
    // Only the request that changes the definition waits until the stored values are read.
    assert_eq!(server.read(PUMP).await["warnings"], json!([]));
    server.stop().await;
}
