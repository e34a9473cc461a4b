//! Delivery to a real SPARQL store. `tests/sparql_targets/run` has the faults of links and processes, and Virtuoso.
use penstock_base::commit::NoClient;
use penstock_config::SparqlProtocol;
use penstock_test_support::exports::prelude::*;
use penstock_test_support::stub::{answer_with, serve};
use std::sync::atomic::{AtomicU64, Ordering};

const GRAPH: &str = "urn:penstock:gateway-1:export:Pump";
const NAME: &str = "<https://plant.example/name>";

/// Returns the names in the graph of the pumps.
fn names() -> String {
    format!("GRAPH <{GRAPH}> {{ ?s {NAME} ?x }}")
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_replace_the_graph_and_keep_every_character() {
    let text = "a \"b\" <c> .\n\t\\u0041 \\ grüße 🙂";
    for protocol in [SparqlProtocol::Update, SparqlProtocol::GraphStore] {
        let (store, plant) = (SparqlServer::start().await, Plant::new());
        let path = if protocol == SparqlProtocol::Update { "update" } else { "store" };
        let targets = plant_a(sparql(&format!("{}/{path}", store.url), protocol));
        let exporter = plant.quick(targets);
        let result = exporter.test_target("plant-a").await.unwrap();
        assert!(result.ok && result.kind == "sparql", "{result:?}");
        assert!(store.graphs().await.is_empty());
        plant.named(0..3, |number| format!("{number} {text}"));
        let pumps = pump("Pump", &["plant-a"]);
        let first = push_one(&exporter, &pumps);
        assert_eq!(first.key, format!("<{GRAPH}>"));
        assert_eq!(first.media_type(), "application/n-quads");
        let running = run(&exporter);
        until_delivered(&exporter, &first).await;
        let literals = |range: std::ops::Range<u32>| {
            let literal = |number| oxrdf::Literal::new_simple_literal(format!("{number} {text}"));
            range.map(|number| literal(number).to_string()).collect()
        };
        assert_eq!(store.select(&names()).await, literals(0..3));
        plant.clear();
        plant.named(2..5, |number| format!("{number} {text}"));
        let second = push_one(&exporter, &pumps);
        until_delivered(&exporter, &second).await;
        assert_eq!(store.select(&names()).await, literals(2..5));
        exporter.replay(&NoClient, &first.id).unwrap();
        until_delivered(&exporter, &first).await;
        assert_eq!(store.select(&names()).await, literals(2..5), "an older export changes nothing");
        if protocol == SparqlProtocol::Update {
            let held = format!("GRAPH <{GRAPH}:state> {{ ?x <urn:penstock:export:holds> ?x }}");
            let expected = (2..5).map(|number| format!("<{BASE}{number:06}>")).collect();
            assert_eq!(store.select(&held).await, expected);
            assert_eq!(store.graphs().await, [format!("<{GRAPH}:state>"), format!("<{GRAPH}>")]);
        } else {
            assert_eq!(store.graphs().await, [format!("<{GRAPH}>")]);
        }
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_export_that_is_retried_after_a_later_one_writes_nothing_and_says_so() {
    for (protocol, path) in
        [(SparqlProtocol::Update, "update"), (SparqlProtocol::GraphStore, "store")]
    {
        let (store, plant) = (SparqlServer::start().await, Plant::new());
        let link = Link::to(&store.url, || Fault::SlowDown).await;
        let targets = plant_a(sparql(&format!("{}/{path}", link.endpoint), protocol));
        let exporter = plant.quick(targets);
        plant.pumps(0..2, 10);
        let pumps = pump("Pump", &["plant-a"]);
        let parked = push_one(&exporter, &pumps);
        exporter.park(&NoClient, &parked.id).unwrap();
        plant.pumps(2..3, 10);
        let later = push_one(&exporter, &pumps);
        let running = run(&exporter);
        link.set(Fault::Pass);
        until_delivered(&exporter, &later).await;
        assert_eq!(store.select(&names()).await.len(), 3);
        exporter.retry(&NoClient, &parked.id).unwrap();
        let retried = until_delivered(&exporter, &parked).await;
        assert_eq!(store.select(&names()).await.len(), 3);
        let [warning] = retried.warnings.try_into().unwrap();
        assert!(warning.starts_with("Nothing was written: "), "{warning}");
        if protocol == SparqlProtocol::Update {
            assert!(warning.contains("push the Business Object"), "{warning}");
            let remark = find_target(&exporter, "plant-a").remark.unwrap();
            assert!(remark.contains("push `Pump`"), "{remark}");
        }
        let full = push_one(&exporter, &pumps);
        until_delivered(&exporter, &full).await;
        assert_eq!(find_target(&exporter, "plant-a").remark, None);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_for_people_in_place_of_the_store_is_no_delivery() {
    // A captive portal.
    let lines = "Content-Type: text/html; charset=utf-8\r\nConnection: close\r\n";
    let url = serve(move |_| Some(answer_with("200 OK", lines, "<p>Sign in.</p>")));
    for protocol in [SparqlProtocol::Update, SparqlProtocol::GraphStore] {
        let plant = Plant::with_pumps(0..2, 10);
        let targets = plant_a(sparql(&format!("http://{url}/update"), protocol));
        let exporter = plant.quick(targets);
        let entry = push_pump(&exporter);
        let running = run(&exporter);
        blocked(&exporter, &entry, Cause::Bucket, "sign-in page").await;
        assert!(!exporter.test_target("plant-a").await.unwrap().ok);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_store_names_the_cause_and_no_secret() {
    let store = SparqlServer::start().await;
    for (fault, path, class, words) in [
        (Fault::Pass, "nothing", Cause::Bucket, "`endpoint`"),
        (Fault::Deny, "update", Cause::Policy, "may not write"),
        (Fault::SlowDown, "update", Cause::Busy, "unavailable (503)"),
        (Fault::Refuse(600_000), "update", Cause::Unreachable, "refused"),
    ] {
        let link = Link::to(&store.url, move || fault).await;
        let plant = Plant::with_pumps(0..2, 10);
        let targets = plant_a(sparql(&format!("{}/{path}", link.endpoint), SparqlProtocol::Update));
        let exporter = plant.quick(targets);
        let entry = push_pump(&exporter);
        let running = run(&exporter);
        blocked(&exporter, &entry, class, words).await;
        let result = exporter.test_target("plant-a").await.unwrap();
        assert!(!result.ok && !format!("{result:?}").contains("SECRET"), "{result:?}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_somebody_else_writes_is_a_conflict() {
    for (state, words) in [
        ("<urn:penstock:export:target> \"other\"", "`other` writes the graph"),
        (
            "<urn:penstock:export:sequence> 7 ; <urn:penstock:export:export-id> \"x\"",
            "same `service.gateway-id`",
        ),
    ] {
        let (store, plant) = (SparqlServer::start().await, Plant::new());
        plant.pumps(0..2, 10);
        let insert = format!("INSERT DATA {{ GRAPH <{GRAPH}:state> {{ <{GRAPH}> {state} }} }}");
        store.update(&insert).await;
        let exporter = plant.quick(updated(&store.url));
        let entry = push_pump(&exporter);
        let running = run(&exporter);
        blocked(&exporter, &entry, Cause::Conflict, words).await;
        assert_eq!(store.graphs().await, [format!("<{GRAPH}:state>")]);
        store.update(&format!("DROP GRAPH <{GRAPH}:state>")).await;
        until_delivered(&exporter, &entry).await;
        assert_eq!(store.select(&names()).await.len(), 2);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_staging_graphs_of_a_parked_export_are_dropped() {
    let (store, plant) = (SparqlServer::start().await, Plant::new());
    plant.pumps(0..2, 10);
    let requests = Arc::new(AtomicU64::new(0));
    // The state is queried and the lines are staged. Then nothing works.
    let choose = move || match requests.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Fault::Pass,
        _ => Fault::Deny,
    };
    let link = Link::to(&store.url, choose).await;
    let exporter = plant.quick(updated(&link.endpoint));
    let entry = push_pump(&exporter);
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Policy, "may not write").await;
    let staged = store.graphs().await;
    assert!(staged.contains(&format!("<{GRAPH}:{}>", entry.id)), "{staged:?}");
    assert!(!staged.contains(&format!("<{GRAPH}>")), "{staged:?}");
    park(&exporter, &entry).await;
    link.set(Fault::Pass);
    let state = [format!("<{GRAPH}:state>")];
    until("only the state is left", async || store.graphs().await == state).await;
    exporter.retry(&NoClient, &entry.id).unwrap();
    until_delivered(&exporter, &entry).await;
    assert_eq!(store.select(&names()).await.len(), 2);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_late_request_restores_of_the_staging_graphs_is_dropped() {
    let (store, plant) = (SparqlServer::start().await, Plant::new());
    plant.pumps(0..2, 10);
    let requests = Arc::new(AtomicU64::new(0));
    // The state is queried and the lines are staged. Then nothing works.
    let choose = move || match requests.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Fault::Pass,
        _ => Fault::Deny,
    };
    let link = Link::to(&store.url, choose).await;
    let exporter = plant.quick(updated(&link.endpoint));
    let entry = push_pump(&exporter);
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Policy, "may not write").await;
    link.set(Fault::Pass);
    until_delivered(&exporter, &entry).await;
    let applied = [format!("<{GRAPH}:state>"), format!("<{GRAPH}>")];
    until("the staging graphs are dropped", async || store.graphs().await == applied).await;
    // As a store without conflict detection applies a request of the first attempt that has taken long.
    let staging = format!("{GRAPH}:{}", entry.id);
    for graph in [staging.clone(), format!("{staging}:state")] {
        store.update(&format!("INSERT DATA {{ GRAPH <{graph}> {{ <urn:a> <urn:b> 1 }} }}")).await;
    }
    until("they are dropped again", async || store.graphs().await == applied).await;
    assert_eq!(store.select(&names()).await.len(), 2);
    running.stop().await;
}
