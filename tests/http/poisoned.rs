//! After a failed write to the disk, changes are refused and reads continue. The gateway recovers automatically once
//! the disk accepts writes again.
use penstock_store::faults::{Failure, Faults};
use penstock_test_support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn it_recovers_automatically_with_the_disk() {
    let server = TestApp::with_pumps().await;
    let pump = |name: &str| json!([{"uri": format!("https://plant.example/{name}"), "name": name}]);
    let object = |name: &str| {
        let uri = escaped(&format!("https://plant.example/{name}"));
        format!("/api/v1/business-objects/Pump/objects/{uri}")
    };
    server.ingest("ADD", &pump("before")).await.expect(200);

    // Another commit, such as that of the key's last use, would take the fault.
    tokio::task::block_in_place(|| server.gateway().auth.flush_deferred());
    let faults = Faults::inject_below(&server.dir().join("data/store"));
    // The frame is written. Its sync fails, and so do all later attempts.
    faults.fail_nth(2, Failure::Io, true);
    server.ingest("ADD", &pump("lost")).await.problem(500);
    let answer = server.ingest("ADD", &pump("refused")).await;
    answer.problem(503);
    assert_eq!(answer.header("retry-after"), "10");
    let ready = server.get("/health/ready").await;
    assert!(ready.problem(503)["detail"].has("reopens automatically"));
    server.get(&object("before")).await.expect(200);
    let metrics = server.get("/metrics").await.body;
    assert!(String::from_utf8_lossy(&metrics).contains("penstock_store_poisoned 1"));

    faults.clear_plan();
    until("the gateway recovers", async || server.get("/health/ready").await.status == 200).await;
    server.ingest("ADD", &pump("after")).await.expect(200);
    for (name, status) in [("before", 200), ("after", 200), ("lost", 404), ("refused", 404)] {
        assert_eq!(server.get(&object(name)).await.status, status, "{name}");
    }
    server.stop().await;
}
