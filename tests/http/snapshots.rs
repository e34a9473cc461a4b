//! Every reader sees the state after one commit: a writer sets the same number on the first and the last object in each
//! request, and no answer has two different ones.
use penstock_store::faults::{Failure, Faults, Operation};
use penstock_test_support::prelude::*;
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
    let server = TestApp::plain().await;
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
            let headers = [("Authorization", key.as_str()), JSON];
            let path = "/api/v1/business-objects/Pump?mode=UPDATE";
            connect(address, "POST", path, &headers, flows(number)).await.expect(200);
        }
        number
    });

    let check = |seen: &mut BTreeSet<String>, what: &str, [first, last]: [Value; 2]| {
        assert!(first.is_number(), "{what}: the objects are missing");
        assert_eq!(first, last, "{what}");
        seen.insert(first.to_string());
    };
    let mut seen = BTreeSet::new();
    let mut rounds = 0;
    let end = Instant::now() + TEST_TIMEOUT;
    // If the disk is slow, several answers show the same commit.
    while rounds < 6 || (seen.len() <= 6 && Instant::now() < end) {
        rounds += 1;
        let query = "{ first: pumpConnection(first: 100) { nodes { uri flow } } \
                     last: pump(uri: \"https://plant.example/p/0600\") { uri flow } }";
        let answer = server.post("/graphql", &json!({"query": query})).await.expect(200);
        let data = &answer.json()["data"];
        let mut nodes = data["first"]["nodes"].list().to_vec();
        nodes.push(data["last"].clone());
        check(&mut seen, "GraphQL", read_pair(&nodes));

        let dump = server.control("GET", "/control/dump?format=nq", &[], "").await.expect(200);
        let dump = dump.text();
        let flow = |at: usize| {
            let subject = format!("<{}> <https://plant.example/flow> \"", uri(at));
            let (_, rest) = dump.split_once(&subject).unwrap();
            json!(rest.split('"').next().unwrap().parse::<u64>().unwrap())
        };
        check(&mut seen, "dump", [flow(0), flow(OBJECTS)]);

        let path = "/api/v1/business-objects/Pump/push";
        let pushed = server.post_empty(path).await.expect(202).json();
        let id = pushed["exports"][0]["id"].text();
        let content = server.read(&format!("/api/v1/exports/{id}/content")).await;
        check(&mut seen, "push", read_pair(content["data"].list()));
    }
    is_over.store(true, Ordering::Relaxed);
    let written = writer.await.unwrap();
    assert!(seen.len() > 6, "of {written} commits, the answers show only {seen:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_snapshot_is_503_for_a_query_and_a_warning_for_an_export_and_a_dump() {
    let server = TestApp::plain().await;
    server.define_with(&json!({"pushTargets": [{"bucketName": "embedded"}]})).await;
    let all: Vec<Value> =
        (0..50).map(|at| json!({"uri": uri(at), "name": "n", "flow": 0})).collect();
    server.ingest("ADD", &json!(all)).await.expect(200);
    let faults = Faults::inject_below(&server.dir().join("data/store"));
    let lose_at = |nth| faults.fail_nth_of(Operation::FindPreserved, nth, Failure::Io);

    let query = json!({"query": "{ pumpConnection(first: 50) { totalCount nodes { flow } } }"});
    lose_at(3);
    let refused = server.post("/graphql", &query).await.expect(503).json();
    assert_eq!(refused.get("data"), None, "{refused}");
    server.post("/graphql", &query).await.expect(200);

    let headers = [("TE", "trailers")];
    let path = "/control/dump?format=nq";
    let dump = server.control("GET", path, &headers, "").await.expect(200);
    assert_eq!(dump.headers.get("penstock-warning"), None);
    lose_at(1);
    let mixed = server.control("GET", path, &headers, "").await.expect(200);
    assert!(faults.first_failure().is_some());
    let warning = mixed.headers["penstock-warning"].to_str().unwrap();
    assert!(warning.starts_with("the dump may mix several commits, because "), "{warning}");
    assert_eq!(mixed.text(), dump.text());
    let events = server.items("/api/v1/audit?limit=1").await;
    let detail = events[0]["detail"].text();
    assert!(detail.ends_with(warning), "{detail}");

    let push = async || {
        let path = "/api/v1/business-objects/Pump/push";
        let pushed = server.post_empty(path).await.expect(202).json();
        let id = pushed["exports"][0]["id"].text();
        let export = server.read(&format!("/api/v1/exports/{id}")).await;
        let query = json!({"query": "{ exports(first: 1) { nodes { id commit warnings } } }"});
        let shown = server.post("/graphql", &query).await.expect(200).json();
        let shown = &shown["data"]["exports"]["nodes"][0];
        assert_eq!((&shown["id"], &shown["commit"]), (&export["id"], &export["commit"]));
        export
    };
    let sequence = || server.gateway().store.stats().sequence;
    let before = sequence();
    let commit = push().await["commit"].as_u64().unwrap();
    assert!((before..sequence()).contains(&commit), "{commit} is not after {before}");
    // If the first reads fail, the export starts over.
    let mut nth = 1;
    let export = loop {
        lose_at(nth);
        let export = push().await;
        assert!(faults.first_failure().is_some());
        assert_eq!(export["objectCount"], 50);
        if export.get("commit").is_none() {
            break export;
        }
        nth += 1;
    };
    let warning = export["warnings"][0].text();
    assert!(warning.starts_with("The export may mix several commits: objects up to "), "{warning}");
    server.stop().await;
}
