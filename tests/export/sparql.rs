//! Delivery to a real SPARQL store. `tests/sparql_targets/run` has the faults of links and processes, and Virtuoso.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use crate::support::link::{Fault, Link};
use crate::support::s3::blocked;
use crate::support::sparql::{Store, sparql, updated};
use crate::support::{BASE, Plant, embedded, find_target, pump, push_one, run, until_status};
use penstock_base::commit::NoClient;
use penstock_config::SparqlProtocol;
use penstock_export::ExportExt as _;
use penstock_resources::export::{Cause, ExportStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

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
        let (store, plant) = (Store::start().await, Plant::new());
        let path = if protocol == SparqlProtocol::Update { "update" } else { "store" };
        let mut targets = embedded();
        targets
            .named
            .insert("plant-a".to_owned(), sparql(&format!("{}/{path}", store.url), protocol));
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
        until_status(&exporter, &first.id, ExportStatus::Delivered).await;
        let literals = |range: std::ops::Range<u32>| {
            let literal = |number| oxrdf::Literal::new_simple_literal(format!("{number} {text}"));
            range.map(|number| literal(number).to_string()).collect()
        };
        assert_eq!(store.select(&names()).await, literals(0..3));
        plant.clear();
        plant.named(2..5, |number| format!("{number} {text}"));
        let second = push_one(&exporter, &pumps);
        until_status(&exporter, &second.id, ExportStatus::Delivered).await;
        assert_eq!(store.select(&names()).await, literals(2..5));
        exporter.replay(&NoClient, &first.id).unwrap();
        until_status(&exporter, &first.id, ExportStatus::Delivered).await;
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
        let (store, plant) = (Store::start().await, Plant::new());
        let link = Link::to(&store.url, || Fault::SlowDown).await;
        let mut targets = embedded();
        let target = sparql(&format!("{}/{path}", link.endpoint), protocol);
        targets.named.insert("plant-a".to_owned(), target);
        let exporter = plant.quick(targets);
        plant.pumps(0..2, 10);
        let pumps = pump("Pump", &["plant-a"]);
        let parked = push_one(&exporter, &pumps);
        exporter.park(&NoClient, &parked.id).unwrap();
        plant.pumps(2..3, 10);
        let later = push_one(&exporter, &pumps);
        let running = run(&exporter);
        link.set(Fault::Pass);
        until_status(&exporter, &later.id, ExportStatus::Delivered).await;
        assert_eq!(store.select(&names()).await.len(), 3);
        exporter.retry(&NoClient, &parked.id).unwrap();
        let retried = until_status(&exporter, &parked.id, ExportStatus::Delivered).await;
        assert_eq!(store.select(&names()).await.len(), 3);
        let [warning] = retried.warnings.try_into().unwrap();
        assert!(warning.starts_with("Nothing was written: "), "{warning}");
        if protocol == SparqlProtocol::Update {
            assert!(warning.contains("push the Business Object"), "{warning}");
            let remark = find_target(&exporter, "plant-a").remark.unwrap();
            assert!(remark.contains("push `Pump`"), "{remark}");
        }
        let full = push_one(&exporter, &pumps);
        until_status(&exporter, &full.id, ExportStatus::Delivered).await;
        assert_eq!(find_target(&exporter, "plant-a").remark, None);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_for_people_in_place_of_the_store_is_no_delivery() {
    let url = serve_page().await;
    for protocol in [SparqlProtocol::Update, SparqlProtocol::GraphStore] {
        let plant = Plant::new();
        plant.pumps(0..2, 10);
        let mut targets = embedded();
        targets.named.insert("plant-a".to_owned(), sparql(&format!("{url}/update"), protocol));
        let exporter = plant.quick(targets);
        let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
        let running = run(&exporter);
        blocked(&exporter, &entry, Cause::Bucket, "sign-in page").await;
        assert!(!exporter.test_target("plant-a").await.unwrap().ok);
        running.stop().await;
    }
}

/// Serves a page of a captive portal for every request. Returns its URL.
async fn serve_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 1 << 20];
                let _ = stream.read(&mut request).await;
                let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
                            Content-Length: 15\r\nConnection: close\r\n\r\n<p>Sign in.</p>";
                let _ = stream.write_all(page.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_store_names_the_cause_and_no_secret() {
    let store = Store::start().await;
    for (fault, path, class, words) in [
        (Fault::Pass, "nothing", Cause::Bucket, "`endpoint`"),
        (Fault::Deny, "update", Cause::Policy, "may not write"),
        (Fault::SlowDown, "update", Cause::Busy, "unavailable (503)"),
        (Fault::Refuse(600_000), "update", Cause::Unreachable, "refused"),
    ] {
        let link = Link::to(&store.url, move || fault).await;
        let plant = Plant::new();
        plant.pumps(0..2, 10);
        let mut targets = embedded();
        let target = sparql(&format!("{}/{path}", link.endpoint), SparqlProtocol::Update);
        targets.named.insert("plant-a".to_owned(), target);
        let exporter = plant.quick(targets);
        let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
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
        let (store, plant) = (Store::start().await, Plant::new());
        plant.pumps(0..2, 10);
        let insert = format!("INSERT DATA {{ GRAPH <{GRAPH}:state> {{ <{GRAPH}> {state} }} }}");
        store.update(&insert).await;
        let exporter = plant.quick(updated(&store.url));
        let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
        let running = run(&exporter);
        blocked(&exporter, &entry, Cause::Conflict, words).await;
        assert_eq!(store.graphs().await, [format!("<{GRAPH}:state>")]);
        store.update(&format!("DROP GRAPH <{GRAPH}:state>")).await;
        until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
        assert_eq!(store.select(&names()).await.len(), 2);
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_staging_graphs_of_a_parked_export_are_dropped() {
    let (store, plant) = (Store::start().await, Plant::new());
    plant.pumps(0..2, 10);
    let requests = Arc::new(AtomicU64::new(0));
    // The state is queried and the lines are staged. Then nothing works.
    let choose = move || match requests.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Fault::Pass,
        _ => Fault::Deny,
    };
    let link = Link::to(&store.url, choose).await;
    let exporter = plant.quick(updated(&link.endpoint));
    let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Policy, "may not write").await;
    let staged = store.graphs().await;
    assert!(staged.contains(&format!("<{GRAPH}:{}>", entry.id)), "{staged:?}");
    assert!(!staged.contains(&format!("<{GRAPH}>")), "{staged:?}");
    let begun = Instant::now();
    while exporter.park(&NoClient, &entry.id).is_err() {
        // It is being delivered at this moment.
        assert!(begun.elapsed() < Duration::from_mins(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    link.set(Fault::Pass);
    while store.graphs().await != [format!("<{GRAPH}:state>")] {
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", store.graphs().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    exporter.retry(&NoClient, &entry.id).unwrap();
    until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
    assert_eq!(store.select(&names()).await.len(), 2);
    running.stop().await;
}
