//! Several fields with the same property: in the API, exports and GraphQL, the namespace of a URI determines its
//! field.
use penstock_test_support::prelude::*;

const PLANTS: &str = "/api/v1/business-objects/Plant";

fn definition() -> Value {
    let config = include_str!("shared_property.yaml");
    json!({"name": "Plant", "config": config, "pushTargets": [{"bucketName": "plant-exports"}]})
}

async fn ingest(server: &TestApp, mode: &str, objects: Value) -> Answer {
    server.post(&format!("{PLANTS}?mode={mode}"), &json!({"data": objects})).await
}

/// Pushes an export and returns its data.
async fn exported(server: &TestApp) -> Value {
    let export = server.deliver("Plant").await;
    let content = format!("/api/v1/exports/{}/content", export["id"].text());
    server.read(&content).await["data"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_separates_the_fields_by_namespace() {
    let server = TestApp::plain().await;
    for (name, base) in [("Pump", "urn:part:"), ("Valve", "urn:part:valve:"), ("Seal", "urn:seal:")]
    {
        let namespace = json!({"uriBase": base, "generator": "counter"});
        server.put(&format!("/api/v1/namespaces/{name}"), &namespace).await.expect(201);
    }
    server.define_object(&definition()).await;

    let plant = json!({
        "uri": "urn:plant:1", "name": "North",
        "pumps": [{"flow": 1, "seals": [{"uri": "urn:seal:a", "size": 4}]}, {"uri": "urn:part:p", "flow": 2}],
        "valves": [{"flow": 3, "seals": ["urn:seal:a"]}, {"uri": "urn:part:valve:v"}],
    });
    ingest(&server, "ADD", json!([plant])).await.expect(200);
    let shown = json!({
        "uri": "urn:plant:1", "name": "North",
        "pumps": [
            {"uri": "urn:part:1", "flow": 1, "seals": [{"uri": "urn:seal:a", "size": 4}]},
            {"uri": "urn:part:p", "flow": 2, "seals": []},
        ],
        "valves": [
            {"uri": "urn:part:valve:1", "flow": 3, "seals": ["urn:seal:a"]},
            {"uri": "urn:part:valve:v", "seals": []},
        ],
    });
    assert_eq!(server.get(&format!("{PLANTS}/objects")).await.json()["items"], json!([shown]));
    assert_eq!(exported(&server).await, json!([shown]));

    // URIs in no namespace, or in that of the other field, are refused with their position.
    for (mode, objects, pointer) in [
        ("ADD", json!([{"name": "x", "pumps": [{"uri": "urn:x", "flow": 1}]}]), "/data/0/pumps/0"),
        ("ADD", json!([{"name": "x", "pumps": [{"uri": "urn:x"}]}]), "/data/0/pumps/0"),
        (
            "UPDATE",
            json!([{"uri": "urn:plant:1", "valves": [{}, {"uri": "urn:part:p"}]}]),
            "/data/0/valves/1",
        ),
        (
            "REPLACE",
            json!([{"uri": "urn:plant:1", "pumps": [{"uri": "urn:part:valve:v"}]}]),
            "/data/0/pumps/0",
        ),
        (
            "VALIDATE",
            json!([{"name": "x", "valves": [{"uri": "urn:part:valve:"}, {"uri": "urn:y"}]}]),
            "/data/0/valves/1",
        ),
    ] {
        let problem = ingest(&server, mode, objects).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(problem["detail"].has("must begin with urn:part:"), "{problem}");
    }

    let schema = server.read(&format!("{PLANTS}/schema")).await;
    let uri = |field: &str| &schema["properties"][field]["items"]["properties"]["uri"];
    assert_eq!(uri("pumps")["pattern"], "^urn:part:");
    assert_eq!(uri("valves")["pattern"], "^urn:part:valve:");
    assert_eq!(schema["properties"]["uri"].get("pattern"), None);

    let data = server
        .graphql(
        r#"{
            plant(uri: "urn:plant:1") { pumps { uri flow seals { uri } } valves { uri flow seals } }
            pumps: plantConnection(where: {pumps: {flow: {eq: 3}}}) { nodes { uri } }
            valves: plantConnection(where: {valves: {flow: {eq: 3}}}) { nodes { uri } }
            byPump: plantConnection(where: {pumps: {uri: {eq: "urn:part:valve:v"}}}) { nodes { uri } }
            byValve: plantConnection(where: {valves: {uri: {eq: "urn:part:valve:v"}}}) { nodes { uri } }
            ofValve: referredBy(uri: "urn:part:valve:v") { edges { path } }
            ofPump: referredBy(uri: "urn:part:p") { edges { path } }
            ofSeal: referredBy(uri: "urn:seal:a") { edges { path } }
        }"#,
        )
        .await;
    let found = json!({"nodes": [{"uri": "urn:plant:1"}]});
    assert_eq!(
        data["plant"]["pumps"][0],
        json!({"uri": "urn:part:1", "flow": 1, "seals": [{"uri": "urn:seal:a"}]})
    );
    assert_eq!(data["plant"]["pumps"].list().len(), 2);
    assert_eq!(
        data["plant"]["valves"][0],
        json!({"uri": "urn:part:valve:1", "flow": 3, "seals": ["urn:seal:a"]})
    );
    assert_eq!(data["plant"]["valves"].list().len(), 2);
    data.includes(&json!({
        "pumps": {"nodes": []}, "valves": found, "byPump": {"nodes": []}, "byValve": found,
        "ofValve": {"edges": [{"path": "valves"}]}, "ofPump": {"edges": [{"path": "pumps"}]},
        "ofSeal": {"edges": [{"path": "pumps.seals"}, {"path": "valves.seals"}]},
    }));

    // A restart reads the namespaces again.
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    ingest(&server, "ADD", json!([{"name": "x", "pumps": [{"uri": "urn:x"}]}])).await.problem(422);
    let updated = json!({"uri": "urn:plant:1", "pumps": [{"uri": "urn:part:p"}]});
    ingest(&server, "UPDATE", json!([updated])).await.expect(200);
    let kept = server.get(&format!("{PLANTS}/objects")).await.json()["items"][0].clone();
    assert_eq!(kept["valves"], shown["valves"]);
    assert_eq!(kept["pumps"], json!([{"uri": "urn:part:p", "flow": 2, "seals": []}]));
    let replaced = json!({"uri": "urn:plant:1", "name": "North", "pumps": [{"uri": "urn:part:p"}]});
    let answer = ingest(&server, "REPLACE", json!([replaced])).await.expect(200).json();
    assert_eq!(answer["deleted"], 1, "{answer}");
    server.stop().await;
}
