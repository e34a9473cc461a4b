//! Pushes that wait take no thread from whatever else the gateway does, and are bounded.
use crate::server::{Server, connect};
use penstock_base::commit::NoClient;
use serde_json::json;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

const PLACES: usize = 64;
const LONG: Duration = Duration::from_mins(1);

/// Keeps every other writer of the store waiting until it is let go.
fn hold(server: &Server) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let store = server.gateway.as_ref().unwrap().store.clone();
    let (held, is_held) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let holding = tokio::task::spawn_blocking(move || {
        store
            .commit::<_, penstock_base::fault::Fault>(&NoClient, |_| {
                held.send(()).unwrap();
                let _ = released.recv();
                Ok(())
            })
            .unwrap();
    });
    tokio::task::block_in_place(|| is_held.recv().unwrap());
    (release, holding)
}

/// Pushes `Pump` over a connection of its own; gives the answer's status.
fn push(server: &Server) -> impl Future<Output = u16> + Send + use<> {
    let (address, key) = (server.address, format!("Bearer {}", server.key));
    async move {
        let path = "/api/v1/business-objects/Pump/push";
        let answer = connect(address, "POST", path, &[("Authorization", &key)], "").await;
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), "10");
            assert!(answer.text().contains("pushes wait already"), "{}", answer.text());
        }
        answer.status
    }
}

async fn many_at_once() {
    let server = Server::start(&[]).await;
    server.define().await;
    let pumps = json!([{"uri": "https://plant.example/p/1", "name": "one"}]);
    server.ingest("ADD", &pumps).await.expect(200);

    let (release, holding) = hold(&server);
    let mut pushing = JoinSet::new();
    for _ in 0..PLACES + 4 {
        pushing.spawn(push(&server));
    }
    for _ in 0..4 {
        let refused = timeout(LONG, pushing.join_next()).await.expect("some are refused").unwrap();
        assert_eq!(refused.unwrap(), 503);
    }
    // The others wait now, and what needs a thread has one.
    let listed = timeout(LONG, server.get("/api/v1/exports")).await.expect("it is answered");
    assert_eq!(listed.expect(200).json()["items"], json!([]));

    // Those whose client goes give up their places.
    pushing.shutdown().await;
    let end = Instant::now() + LONG;
    let mut next = Box::pin(push(&server));
    // What waits has no answer.
    while timeout(Duration::from_millis(300), &mut next).await == Ok(503) {
        assert!(Instant::now() < end, "no place is free again");
        sleep(Duration::from_millis(20)).await;
        next = Box::pin(push(&server));
    }
    drop(release);
    holding.await.unwrap();
    assert_eq!(timeout(LONG, next).await.expect("it is made"), 202);
    let made = server.get("/api/v1/exports?limit=100").await.expect(200).json();
    let made = made["items"].as_array().unwrap().len();
    assert!((1..PLACES).contains(&made), "{made} exports were made");
    server.stop().await;
}

#[test]
fn those_that_wait_take_no_thread_and_go_with_their_clients() {
    // As many threads as the service has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(many_at_once()).await.unwrap() });
}

#[tokio::test(flavor = "multi_thread")]
async fn none_is_made_once_the_gateway_stops() {
    let server = Server::start(&[]).await;
    server.define().await;
    server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200);
    server.gateway.as_ref().unwrap().exporter.stop();
    assert_eq!(
        server.send("POST", "/api/v1/business-objects/Pump/push", &[], "").await.status,
        503
    );
    assert_eq!(server.get("/api/v1/exports").await.expect(200).json()["items"], json!([]));
    server.stop().await;
}
