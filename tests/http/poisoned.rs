//! After a failed write to the disk, changes are refused and reads continue. The gateway recovers automatically once
//! the disk accepts writes again.
use crate::server::Server;
use penstock_store::faults::{Failure, Faults};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn it_recovers_automatically_with_the_disk() {
    let server = Server::start(&[]).await;
    server.define().await;
    let pump = |name: &str| json!([{"uri": format!("https://plant.example/{name}"), "name": name}]);
    let object = |name: &str| {
        let uri = crate::server::escaped(&format!("https://plant.example/{name}"));
        format!("/api/v1/business-objects/Pump/objects/{uri}")
    };
    server.ingest("ADD", &pump("before")).await.expect(200);

    let faults = Faults::inject_below(&server.dir().join("data/store"));
    // The frame is written. Its sync fails, and so do all later attempts.
    faults.fail_nth(2, Failure::Io, true);
    server.ingest("ADD", &pump("lost")).await.problem(500);
    let answer = server.ingest("ADD", &pump("refused")).await;
    answer.problem(503);
    assert_eq!(answer.header("retry-after"), "10");
    let ready = server.get("/health/ready").await;
    assert!(ready.problem(503)["detail"].as_str().unwrap().contains("reopens automatically"));
    server.get(&object("before")).await.expect(200);
    let metrics = server.get("/metrics").await.body;
    assert!(String::from_utf8_lossy(&metrics).contains("penstock_store_poisoned 1"));

    faults.clear_plan();
    let end = Instant::now() + Duration::from_mins(2);
    while server.get("/health/ready").await.status != 200 {
        assert!(Instant::now() < end, "the gateway did not recover");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.ingest("ADD", &pump("after")).await.expect(200);
    for (name, status) in [("before", 200), ("after", 200), ("lost", 404), ("refused", 404)] {
        assert_eq!(server.get(&object(name)).await.status, status, "{name}");
    }
    server.stop().await;
}
