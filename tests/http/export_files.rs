//! Export files as bodies of ingestions: what one gateway exports, another one takes as it is.
use penstock_test_support::prelude::*;

/// Exports `Pump` and returns the file.
async fn export(server: &TestApp) -> String {
    let pushed = server.post("/api/v1/business-objects/Pump/push", &json!({})).await;
    assert!(matches!(pushed.status, 200 | 202), "{pushed:?}");
    let export = &server.items("/api/v1/exports").await[0]["id"];
    server.page(&format!("/api/v1/exports/{}/content", export.text())).await
}

async fn send(server: &TestApp, query: &str, text: &str) -> Answer {
    let path = format!("/api/v1/business-objects/Pump?{query}");
    server.send("POST", &path, &[JSON], text.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_file_is_ingested_as_it_is() {
    let source = TestApp::with_pumps().await;
    let pumps = json!([
        {"uri": "https://plant.example/p/1", "name": "one", "flow": 1.50},
        {"uri": "https://plant.example/p/2", "name": "two"},
    ]);
    source.ingest("ADD", &pumps).await.expect(200);
    let file = export(&source).await;

    let server = TestApp::with_pumps().await;
    for query in ["mode=VALIDATE", "mode=REPLACE", "mode=REPLACE&onError=skip"] {
        let answer = send(&server, query, &file).await.expect(200).json();
        assert_eq!(answer["warnings"][0]["pointer"], "/metadata", "{answer}");
    }
    let exported: Value = serde_json::from_str(&file).unwrap();
    let again: Value = serde_json::from_str(&export(&server).await).unwrap();
    assert_eq!(again["data"], exported["data"]);

    // What the metadata says must be so, even if the JSON is the same.
    let before = server.get("/api/v1/status").await.json()["store"]["quads"].clone();
    for (from, to, pointer) in [
        ("\"two\"", "\"three\"", "/metadata/data_checksum"),
        ("\"name\":", "\"name\" :", "/metadata/data_checksum"),
        ("\"object_count\":2", "\"object_count\":3", "/metadata/object_count"),
        ("\"object_type\":\"Pump\"", "\"object_type\":\"Valve\"", "/metadata/object_type"),
        ("SHA-256", "MD5", "/metadata/checksum_algorithm"),
    ] {
        assert!(file.contains(from), "{file}");
        let problem = send(&server, "mode=REPLACE", &file.replacen(from, to, 1)).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    send(&server, "mode=REPLACE", "{\"metadata\": {}, \"data\": []}").await.problem(422);
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_deletions_needs_the_mode_delete() {
    use sha2::{Digest, Sha256};
    let server = TestApp::with_pumps().await;
    let pump = json!([{"uri": "https://plant.example/p/1", "name": "one"}]);
    server.ingest("ADD", &pump).await.expect(200);
    let data = r#"[{"uri":"https://plant.example/p/1"}]"#;
    let checksum = format!("{:x}", Sha256::digest(data));
    let file = format!(
        r#"{{"metadata":{{"export_date":"20260301T120000Z","object_type":"Pump","object_count":1,"data_checksum":"{checksum}","checksum_algorithm":"SHA-256","kind":"deleted"}},"data":{data}}}"#
    );
    for mode in ["ADD", "MERGE", "REPLACE", "UPDATE"] {
        let problem = send(&server, &format!("mode={mode}"), &file).await.problem(422);
        assert!(problem.to_string().contains("mode=DELETE"), "{problem}");
    }
    let answer = send(&server, "mode=DELETE", &file).await.expect(200).json();
    assert_eq!(answer["deleted"], 1, "{answer}");
}
