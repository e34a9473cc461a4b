//! The main job over HTTP: define, ingest, read back, export and look up.
use penstock_test_support::prelude::*;
use sha2::{Digest, Sha256};

#[tokio::test(flavor = "multi_thread")]
async fn from_a_definition_to_a_delivered_file() {
    let server = TestApp::plain().await;
    let id = server.define().await["id"].string();
    // Sent as text, because its digits must be returned unchanged.
    let given = r#"{"data": [
        {"uri": "https://plant.example/p/1", "name": "one", "flow": 1.50, "parts": [{"label": "seal"}]},
        {"name": "two"}
    ]}"#;
    let path = format!("/api/v1/business-objects/{id}?mode=ADD");
    let answer = server.send("POST", &path, &[JSON], given).await.expect(200).json();
    assert_eq!((&answer["created"], &answer["mode"]), (&json!(2), &json!("ADD")));
    assert_eq!(answer["objects"][0]["uri"], "https://plant.example/p/1");
    assert_eq!(answer["objects"][0]["nested"][0]["pointer"], "/data/0/parts/0");
    let minted = answer["objects"][1]["uri"].string();

    let record = format!("/api/v1/ingestions/{}", answer["ingestionId"].text());
    let record = server.read(&record).await;
    assert_eq!(record["businessObject"], json!(id));
    assert!(record["caller"].is_string(), "{record}");
    let all = server.read("/api/v1/ingestions").await;
    assert_eq!(all, json!({"items": [record], "next": null}));
    server.get("/api/v1/ingestions/none").await.problem(404);

    // The objects through the view: in pages, one by one, by path and by parameter.
    let objects = format!("/api/v1/business-objects/{id}/objects");
    let first = server.read(&format!("{objects}?limit=1")).await;
    assert_eq!(first["items"][0]["name"], "one");
    let next = first["next"].text();
    let second = server.read(&format!("{objects}?cursor={next}")).await;
    second.includes(&json!({"items": [{"uri": minted, "name": "two", "parts": []}], "next": null}));
    let uri = escaped("https://plant.example/p/1");
    for path in [format!("{objects}/{uri}"), format!("{objects}?uri={uri}")] {
        let one = server.get(&path).await.expect(200);
        assert!(String::from_utf8_lossy(&one.body).contains("\"flow\":1.50"));
        assert_eq!(one.json(), first["items"][0]);
    }
    server.get(&format!("{objects}/{}", escaped("https://plant.example/p/9"))).await.problem(404);
    server.get(&format!("{objects}/{}", escaped("no iri"))).await.problem(400);

    let pushed = server.post_empty(&format!("/api/v1/business-objects/{id}/push")).await;
    let pushed = pushed.expect(202);
    assert_eq!(pushed.header("cache-control"), "no-store");
    let pushed = pushed.json();
    assert_eq!(pushed["exports"][0]["objectCount"], 2);
    assert_eq!(pushed["exports"][0]["sequence"], 1);
    assert_eq!(pushed["exports"][0]["target"], "plant-exports");
    let export = format!("/api/v1/exports/{}", pushed["exports"][0]["id"].text());
    let delivered = until_some("the export is delivered", async || {
        Some(server.read(&export).await).filter(|entry| entry["status"] == "delivered")
    })
    .await;
    let content = server.get(&format!("{export}/content")).await.expect(200);
    let sum = format!("{:x}", Sha256::digest(&content.body));
    assert_eq!(delivered["sha256"], json!(sum));
    assert_eq!(content.header("etag"), format!("\"{sum}\""));
    assert_eq!(content.header("content-length"), content.body.len().to_string());
    assert_eq!(content.json()["data"][1]["uri"], json!(minted));
    let bucket = server.dir().join("data/buckets/plant-exports");
    let file = bucket.join(delivered["key"].text());
    assert_eq!(std::fs::read(file).unwrap(), content.body);

    let exports = server.read("/api/v1/exports?limit=1").await;
    assert_eq!(exports["items"][0]["id"], delivered["id"]);
    let targets = server.items("/api/v1/targets").await;
    assert_eq!(targets[0]["name"], "plant-exports");
    server.post_empty(&format!("{export}/park")).await.problem(409);
    let again = server.post_empty(&format!("{export}/replay")).await.expect(200).json();
    assert_eq!(again["key"], delivered["key"]);
    for act in ["", "/content"] {
        server.get(&format!("/api/v1/exports/none{act}")).await.problem(404);
    }

    let status = server.read("/api/v1/status").await;
    assert!(status["store"]["quads"].as_u64().unwrap() >= 5, "{status}");
    assert!(status["memory"]["residentBytes"].as_u64().unwrap() > 0, "{status}");
    assert!(status["disk"]["freeBytes"].is_u64(), "{status}");
    let limits = server.read("/api/v1/limits").await;
    assert_eq!(limits["nesting"], 128);
    assert_eq!(
        (&limits["graphql"]["depth"], &limits["graphql"]["timeSeconds"]),
        (&20.into(), &10.0.into())
    );
    for (accept, media_type) in [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ] {
        let metrics = server.get_with("/metrics", &[("Accept", accept)]).await.expect(200);
        assert_eq!(metrics.header("content-type"), media_type, "{accept}");
        assert_eq!(metrics.header("vary"), "Accept");
        let text = String::from_utf8_lossy(&metrics.body);
        assert_eq!(text.ends_with("# EOF\n"), accept.contains("openmetrics"), "{text}");
        assert!(text.contains("penstock_"), "{text}");
    }
    assert_eq!(server.read("/health/live").await["status"], "live");
    assert_eq!(server.read("/health/ready").await["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn ingestion_errors_have_their_prefix_and_store_nothing() {
    let server = TestApp::start(&["--service.limits.body=1KiB"]).await;
    server.define().await;
    let pump = "/api/v1/business-objects/Pump";
    for (path, headers, body, status) in [
        (format!("{pump}?mode=add"), &[JSON][..], "{\"data\":[]}", 400),
        (format!("{pump}?mdoe=ADD"), &[JSON], "{\"data\":[]}", 400),
        (pump.to_owned(), &[JSON], "{\"data\":[", 400),
        (pump.to_owned(), &[JSON], "{\"data\":[{\"name\":\"x\",\"name\":\"y\"}]}", 400),
        (pump.to_owned(), &[JSON], "{}", 422),
        (pump.to_owned(), &[JSON], "{\"data\":[{\"nam\":\"x\"}]}", 422),
        (pump.to_owned(), &[], "{\"data\":[]}", 415),
        (pump.to_owned(), &[JSON], &"x".repeat(1025), 413),
        ("/api/v1/business-objects/None".to_owned(), &[JSON], "{\"data\":[]}", 404),
    ] {
        let problem = server.send("POST", &path, headers, body.to_owned()).await.problem(status);
        let detail = problem["detail"].text();
        assert!(detail.starts_with("Ingestion failed: "), "{detail}");
        assert!(!detail.contains("null"), "{detail}");
    }
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 0);
    assert_eq!(server.get("/api/v1/ingestions").await.json()["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_and_body_is_executed_once() {
    let server = TestApp::with_pumps().await;
    let send = async |key: &str, name: &str| {
        let headers = [JSON, ("Idempotency-Key", key)];
        let body = json!({"data": [{"name": name}]}).to_string();
        server.send("POST", "/api/v1/business-objects/Pump", &headers, body).await
    };
    let first = send("k1", "a").await.expect(200);
    assert_eq!(send("k1", "a").await.expect(200).json(), first.json());
    send("k1", "b").await.problem(409);
    assert_ne!(send("k2", "a").await.expect(200).json(), first.json());
    send("k 2", "a").await.problem(400);
    send("", "a").await.problem(400);
    let objects = server.get("/api/v1/business-objects/Pump/objects").await.json();
    assert_eq!(objects["items"].list().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_can_leave_the_objects_out() {
    let server = TestApp::with_pumps().await;
    let body = json!({"data": [{"name": "x"}]});
    let answer = server.post("/api/v1/business-objects/Pump?objects=false", &body).await;
    let answer = answer.expect(200).json();
    assert_eq!((&answer["created"], answer.get("objects")), (&json!(1), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_resources() {
    let server = TestApp::start(&["--service.base-url=http://localhost"]).await;
    let path = "/api/v1/namespaces/Valve";
    server.get(path).await.problem(404);
    let created = server.put(path, &json!({"generator": "counter"})).await.expect(201);
    assert_eq!(created.header("location"), path);
    assert_eq!(created.json()["uriBase"], "http://localhost/id/Valve/");
    let changed = json!({"name": "Valve", "uriBase": "https://v.example/", "generator": "manual"});
    let changed = server.put(path, &changed).await.expect(200).json();
    assert_eq!(changed["uriBase"], "https://v.example/");
    assert_eq!(server.read(path).await, changed);
    assert_eq!(server.get("/api/v1/namespaces").await.json()["items"], json!([changed]));
    let bad = json!({"name": "Other", "generator": "random", "x/y": 1});
    let problem = server.put(path, &bad).await.problem(422);
    let pointers: Vec<_> =
        problem["errors"].list().iter().map(|error| error["pointer"].clone()).collect();
    assert_eq!(pointers, ["/name", "/generator", "/x~1y"]);
    server.delete(path).await.expect(204);
    server.delete(path).await.problem(404);
    server.define().await;
    server.delete("/api/v1/namespaces/Pump").await.problem(409);
}
