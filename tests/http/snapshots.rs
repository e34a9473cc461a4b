//! Every reader sees the state after one commit: a writer sets the same number on the first and the last object in each
//! request, and no answer has two different ones.
use crate::server::{Server, connect};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of objects between the first and the last.
const OBJECTS: usize = 600;

fn uri(number: usize) -> String {
    format!("https://plant.example/p/{number:04}")
}

fn flows(number: u64) -> String {
    let object = |at: usize| json!({"uri": uri(at), "flow": number});
    json!({"data": [object(0), object(OBJECTS)]}).to_string()
}

/// Returns the numbers of the two objects in a list of objects.
fn read_pair(objects: &[Value]) -> [Value; 2] {
    let find = |at: usize| {
        let found = objects.iter().find(|object| object["uri"] == uri(at));
        found.map_or(Value::Null, |object| object["flow"].clone())
    };
    [find(0), find(OBJECTS)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_a_dump_and_a_query_show_one_commit() {
    let server = Server::start(&[]).await;
    server.define_with(&json!({"pushTargets": [{"bucketName": "embedded"}]})).await;
    let all: Vec<Value> =
        (0..=OBJECTS).map(|at| json!({"uri": uri(at), "name": "n", "flow": 0})).collect();
    server.ingest("ADD", &json!(all)).await.expect(200);

    let is_over = Arc::new(AtomicBool::new(false));
    let (stop, address, key) =
        (Arc::clone(&is_over), server.address, format!("Bearer {}", server.key));
    let writer = tokio::spawn(async move {
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            number += 1;
            let headers = [("Authorization", key.as_str()), ("Content-Type", "application/json")];
            let path = "/api/v1/business-objects/Pump?mode=UPDATE";
            connect(address, "POST", path, &headers, flows(number)).await.expect(200);
        }
        number
    });

    let mut seen = BTreeSet::new();
    let mut check = |what: &str, [first, last]: [Value; 2]| {
        assert!(first.is_number(), "{what}: the objects are missing");
        assert_eq!(first, last, "{what}");
        seen.insert(first.to_string());
    };
    for _ in 0..6 {
        let query = "{ first: pumpConnection(first: 100) { nodes { uri flow } } \
                     last: pump(uri: \"https://plant.example/p/0600\") { uri flow } }";
        let answer = server.json("POST", "/graphql", &json!({"query": query})).await.expect(200);
        let data = &answer.json()["data"];
        let mut nodes = data["first"]["nodes"].as_array().unwrap().clone();
        nodes.push(data["last"].clone());
        check("GraphQL", read_pair(&nodes));

        let dump = server.control("GET", "/control/dump?format=nq", &[], "").await.expect(200);
        let dump = dump.text();
        let flow = |at: usize| {
            let subject = format!("<{}> <https://plant.example/flow> \"", uri(at));
            let (_, rest) = dump.split_once(&subject).unwrap();
            json!(rest.split('"').next().unwrap().parse::<u64>().unwrap())
        };
        check("dump", [flow(0), flow(OBJECTS)]);

        let path = "/api/v1/business-objects/Pump/push";
        let pushed = server.send("POST", path, &[], "").await.expect(202).json();
        let id = pushed["exports"][0]["id"].as_str().unwrap();
        let content = server.get(&format!("/api/v1/exports/{id}/content")).await.expect(200).json();
        check("push", read_pair(content["data"].as_array().unwrap()));
    }
    is_over.store(true, Ordering::Relaxed);
    let written = writer.await.unwrap();
    assert!(seen.len() > 6, "of {written} commits, the answers show only {seen:?}");
    server.stop().await;
}
