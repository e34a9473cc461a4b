//! Several fields with the same property: in the API, exports and GraphQL, the namespace of a URI determines its
//! field.
use crate::server::{Answer, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PLANTS: &str = "/api/v1/business-objects/Plant";

fn definition() -> Value {
    let config = "\
type: object
path: Plant:.
prefixes: {ex: 'https://plant.example/'}
fields:
  name: {type: string, path: ex:name}
  pumps:
    type: array
    path: ex:hasPart
    elements:
      type: object
      path: Pump:.
      fields:
        flow: {type: number, path: ex:flow}
        seals:
          type: array
          path: ex:seal
          elements: {type: object, path: Seal:., fields: {size: {type: number, path: ex:size}}}
  valves:
    type: array
    path: ex:hasPart
    elements:
      type: object
      path: Valve:.
      fields:
        flow: {type: number, path: ex:flow}
        seals: {type: array, path: ex:seal, elements: {type: resource}}
";
    json!({"name": "Plant", "config": config, "pushTargets": [{"bucketName": "plant-exports"}]})
}

async fn ingest(server: &Server, mode: &str, objects: Value) -> Answer {
    server.json("POST", &format!("{PLANTS}?mode={mode}"), &json!({"data": objects})).await
}

async fn graphql(server: &Server, query: &str) -> Value {
    let answer = server.json("POST", "/graphql", &json!({"query": query})).await.expect(200).json();
    assert_eq!(answer.get("errors"), None, "{answer}");
    answer["data"].clone()
}

/// Pushes an export and returns its data.
async fn exported(server: &Server) -> Value {
    let pushed = server.send("POST", &format!("{PLANTS}/push"), &[], "").await.expect(202).json();
    let export = format!("/api/v1/exports/{}", pushed["exports"][0]["id"].as_str().unwrap());
    let start = Instant::now();
    while server.get(&export).await.expect(200).json()["status"] != "delivered" {
        assert!(start.elapsed() < Duration::from_mins(1), "the export was not delivered");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.get(&format!("{export}/content")).await.expect(200).json()["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_separates_the_fields_by_namespace() {
    let server = Server::start(&[]).await;
    for (name, base) in [("Pump", "urn:part:"), ("Valve", "urn:part:valve:"), ("Seal", "urn:seal:")]
    {
        let namespace = json!({"uriBase": base, "generator": "counter"});
        server.json("PUT", &format!("/api/v1/namespaces/{name}"), &namespace).await.expect(201);
    }
    server.json("PUT", "/api/v1/business-objects", &definition()).await.expect(201);

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
        assert!(
            problem["detail"].as_str().unwrap().contains("must begin with urn:part:"),
            "{problem}"
        );
    }

    let schema = server.get(&format!("{PLANTS}/schema")).await.expect(200).json();
    let uri = |field: &str| &schema["properties"][field]["items"]["properties"]["uri"];
    assert_eq!(uri("pumps")["pattern"], "^urn:part:");
    assert_eq!(uri("valves")["pattern"], "^urn:part:valve:");
    assert_eq!(schema["properties"]["uri"].get("pattern"), None);

    let data = graphql(
        &server,
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
    assert_eq!(data["plant"]["pumps"].as_array().unwrap().len(), 2);
    assert_eq!(
        data["plant"]["valves"][0],
        json!({"uri": "urn:part:valve:1", "flow": 3, "seals": ["urn:seal:a"]})
    );
    assert_eq!(data["plant"]["valves"].as_array().unwrap().len(), 2);
    assert_eq!(data["pumps"], json!({"nodes": []}));
    assert_eq!(data["valves"], found);
    assert_eq!(data["byPump"], json!({"nodes": []}));
    assert_eq!(data["byValve"], found);
    assert_eq!(data["ofValve"], json!({"edges": [{"path": "valves"}]}));
    assert_eq!(data["ofPump"], json!({"edges": [{"path": "pumps"}]}));
    assert_eq!(
        data["ofSeal"],
        json!({"edges": [{"path": "pumps.seals"}, {"path": "valves.seals"}]})
    );

    // A restart reads the namespaces again.
    let dir = server.stop().await.unwrap();
    let server = Server::start_in(dir.path(), &[]).await.unwrap();
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
