//! `/api/v1/status`: everything that an operator of many gateways needs.
use penstock_test_support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn one_answer_has_the_whole_status() {
    let server = TestApp::start(&["--service.limits.memory=1GiB", "--server.prot=1"]).await;
    server.define().await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    let status = server.read("/api/v1/status").await;
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    status["store"].includes(&json!({"format": 2, "poisoned": null}));
    status["targets"][0].includes(&json!({"name": "plant-exports", "oldestAgeSeconds": null}));
    assert_eq!(status["queue"]["depth"], 0);
    assert_eq!(status["memory"]["level"], "ample");
    assert!(status["memory"]["limitBytes"].as_u64().unwrap() <= 1 << 30, "{status}");
    status["disk"].includes(&json!({"reserveBytes": 64 << 20, "spoolLimitBytes": 256 << 20}));
    assert!(status["disk"]["journalBytes"].as_u64().unwrap() > 0, "{status}");
    assert_eq!(status["certificate"], Value::Null);
    assert!(status["warnings"][0].has("server.port"), "{status}");
    assert!(status["lastErrors"].is_array(), "{status}");
    let epoch = status["epoch"].as_u64().unwrap();
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    let again = server.read("/api/v1/status").await;
    assert!(again["epoch"].as_u64().unwrap() > epoch, "{again}");
    assert_eq!(again["gatewayId"], status["gatewayId"]);

    let user = server.with_key(Role::User, None);
    let answer = user.get("/api/v1/status").await;
    for line in answer.expect(200).json()["lastErrors"].list() {
        assert_eq!(line["fields"], json!({}), "a User must not see details of the log");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reports_the_expiry_of_the_certificate() {
    let server = TestApp::start(&["--server.ssl.self-signed=true"]).await;
    let status = server.control("GET", "/api/v1/status", &[], "").await.expect(200).json();
    assert_eq!(status["certificate"], json!({"selfSigned": true, "expiresAt": null}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_is_the_status_as_a_user_sees_it() {
    let server =
        TestApp::start(&["--service.export.heartbeat=1m", "--service.gateway-id=edge-1"]).await;
    server.define().await;
    let path = server.dir().join("data/buckets/plant-exports/_status/edge-1.json");
    // The first one follows within 10 s.
    let heartbeat: Value = until_some("there is a heartbeat", async || {
        std::fs::read(&path).ok().map(|text| serde_json::from_slice(&text).unwrap())
    })
    .await;
    let user = server.with_key(Role::User, None);
    let status = user.get("/api/v1/status").await;
    let members =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let mut expected = vec!["heartbeat".to_owned()];
    expected.extend(members(&status.expect(200).json()));
    assert_eq!(members(&heartbeat), expected);
    assert_eq!(heartbeat["gatewayId"], "edge-1");
    assert_eq!(heartbeat["targets"][0]["name"], "plant-exports");
    for line in heartbeat["lastErrors"].list() {
        assert_eq!(line["fields"], json!({}), "a User must not see details of the log");
    }
    let times = &heartbeat["heartbeat"];
    let time = |name: &str| times[name].text().parse::<jiff::Timestamp>().unwrap();
    let seconds = time("nextDue").duration_since(time("at")).as_secs();
    assert_eq!(times["intervalSeconds"], 60);
    assert!((50..=60).contains(&seconds), "{times}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_new_business_object_has_the_name_of_heartbeats_or_backups() {
    let server = TestApp::plain().await;
    let made = server.define().await;
    let changed = format!("/api/v1/business-objects/{}", made["id"].text());
    for name in ["_status", "_backup"] {
        let mut body = definition();
        body["name"] = json!(name);
        for path in ["/api/v1/business-objects", &changed] {
            let problem = server.put(path, &body).await.problem(422);
            assert_eq!(problem["errors"][0]["pointer"], "/name", "{problem}");
        }
    }
    server.stop().await;
}
