//! Waiting pushes occupy no thread that the gateway needs for other work, and their number is bounded.
use penstock_base::commit::NoClient;
use penstock_test_support::prelude::*;
use std::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

const MAX_PUSHES: usize = 64;
const LONG: Duration = Duration::from_mins(1);

/// Blocks every other writer of the store until it is released.
fn block_writers(server: &TestApp) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let store = server.gateway().store.clone();
    let (held, is_held) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let holding = tokio::task::spawn_blocking(move || {
        store
            .commit::<_, penstock_base::error::GatewayError>(&NoClient, |_| {
                held.send(()).unwrap();
                let _ = released.recv();
                Ok(())
            })
            .unwrap();
    });
    tokio::task::block_in_place(|| is_held.recv().unwrap());
    (release, holding)
}

/// Pushes `Pump` over its own connection and returns the status of the answer.
fn push(server: &TestApp) -> impl Future<Output = u16> + Send + use<> {
    let (address, key) = (server.address, format!("Bearer {}", server.key));
    async move {
        let path = "/api/v1/business-objects/Pump/push";
        let answer = connect(address, "POST", path, &[("Authorization", &key)], "").await;
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), "10");
            assert!(answer.text().contains("pushes run or wait already"), "{}", answer.text());
        }
        answer.status
    }
}

async fn concurrent_pushes_are_bounded() {
    let server = TestApp::with_pumps().await;
    let pumps = json!([{"uri": "https://plant.example/p/1", "name": "one"}]);
    server.ingest("ADD", &pumps).await.expect(200);

    let (release, holding) = block_writers(&server);
    let mut pushing = JoinSet::new();
    for _ in 0..MAX_PUSHES + 4 {
        pushing.spawn(push(&server));
    }
    for _ in 0..4 {
        let refused =
            timeout(LONG, pushing.join_next()).await.expect("some must be refused").unwrap();
        assert_eq!(refused.unwrap(), 503);
    }
    // The others wait now, and a request that needs a thread gets one.
    let listed = timeout(LONG, server.get("/api/v1/exports")).await.expect("it must be answered");
    assert_eq!(listed.expect(200).json()["items"], json!([]));

    // Pushes whose client disconnects release their permits.
    pushing.shutdown().await;
    let end = Instant::now() + LONG;
    let mut next = Box::pin(push(&server));
    // Waiting pushes have no answer.
    while timeout(Duration::from_secs(3), &mut next).await == Ok(503) {
        assert!(Instant::now() < end, "no permit is free again");
        sleep(Duration::from_millis(20)).await;
        next = Box::pin(push(&server));
    }
    drop(release);
    holding.await.unwrap();
    assert_eq!(timeout(LONG, next).await.expect("it must be accepted"), 202);
    let made = server.items("/api/v1/exports?limit=100").await;
    let made = made.len();
    assert!((1..MAX_PUSHES).contains(&made), "{made} exports were created");
    server.stop().await;
}

#[test]
fn waiting_pushes_occupy_no_thread_and_end_with_their_clients() {
    // Uses as many threads as the service.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(concurrent_pushes_are_bounded()).await.unwrap() });
}

#[tokio::test(flavor = "multi_thread")]
async fn no_push_runs_after_the_gateway_stops() {
    let server = TestApp::with_pumps().await;
    server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200);
    server.gateway().exporter.stop_rendering();
    assert_eq!(server.post_empty("/api/v1/business-objects/Pump/push").await.status, 503);
    assert_eq!(server.read("/api/v1/exports").await["items"], json!([]));
    server.stop().await;
}
