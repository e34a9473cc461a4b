//! A test of a target: it reports obstacles and writes nothing.
use crate::server::Server;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_a_target_writes_no_data() {
    let target = "--service.export.targets";
    let server = Server::start(&[
        &format!("{target}.archive.type=directory"),
        &format!("{target}.away.type=s3"),
        // No server listens there.
        &format!("{target}.away.endpoint=http://127.0.0.1:9"),
        &format!("{target}.away.access-key-id=key"),
        &format!("{target}.away.secret-access-key=a-secret-of-the-target"),
    ])
    .await;
    let test = async |name: &str| {
        server.send("POST", &format!("/api/v1/targets/{name}/test"), &[], "").await
    };

    let found = test("archive").await.expect(200).json();
    assert_eq!((&found["target"], &found["type"]), (&"archive".into(), &"directory".into()));
    assert_eq!((&found["ok"], &found["reachable"]), (&true.into(), &true.into()));
    assert_eq!(found["causedBy"], Value::Null);
    assert!(found["cause"].as_str().unwrap().contains("does not exist yet"), "{found}");

    let found = test("away").await.expect(200).json();
    assert_eq!((&found["ok"], &found["reachable"]), (&false.into(), &false.into()));
    assert_eq!(found["causedBy"], "unreachable");
    assert!(found["cause"].as_str().unwrap().contains("127.0.0.1:9"), "{found}");
    assert!(!found.to_string().contains("a-secret-of-the-target"));

    let problem = test("nowhere").await.problem(404);
    assert!(problem["detail"].as_str().unwrap().contains("has no target"), "{problem}");
    test("Not%20a%20bucket").await.problem(404);

    // There is a file instead of the directory.
    let buckets = server.dir().join("data/buckets");
    assert!(!buckets.exists());
    std::fs::write(&buckets, "").unwrap();
    let found = test("archive").await.expect(200).json();
    assert_eq!((&found["ok"], &found["causedBy"]), (&false.into(), &"gateway".into()));
    // The export queue is not changed.
    let targets = server.get("/api/v1/targets").await.expect(200).json();
    assert!(
        targets["items"].as_array().unwrap().iter().all(|target| target["reachable"].is_null())
    );
}
