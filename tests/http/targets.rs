//! A test of a target, which reports obstacles and writes nothing, and what an operator should know of a target.
use crate::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::{TcpListener, TcpStream};

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

/// Serves a SPARQL store that accepts updates and allows no queries. Returns its URL.
async fn serve_store_without_queries() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_request(stream));
        }
    });
    url
}

/// Reads one request, and answers 204 to a POST and 403 to any other.
async fn answer_request(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufStream::new(stream);
    let (mut method, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if method.is_empty() {
            line.split(' ').next().unwrap().clone_into(&mut method);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length]).await?;
    let status = if method == "POST" { "204 No Content" } else { "403 Forbidden" };
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_queries_has_a_remark_wherever_its_target_is_shown() {
    let url = serve_store_without_queries().await;
    let target = "--service.export.targets.central";
    let server = Server::start(&[
        &format!("{target}.type=sparql"),
        &format!("{target}.endpoint={url}/update"),
    ])
    .await;
    let list = async || {
        let targets = server.get("/api/v1/targets").await.expect(200).json();
        targets["items"][0].clone()
    };
    let target = list().await;
    assert_eq!((&target["name"], &target["type"]), (&"central".into(), &"sparql".into()));
    assert_eq!(target["remark"], Value::Null);
    let words = "the store does not answer queries";
    for path in ["/admin/targets", "/admin/targets/central"] {
        assert!(!server.get(path).await.expect(200).text().contains(words), "{path}");
    }

    server.define_with(&json!({"pushTargets": [{"bucketName": "central"}]})).await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.send("POST", "/api/v1/business-objects/Pump/push", &[], "").await.expect(202);
    let begun = Instant::now();
    let target = loop {
        let target = list().await;
        if target["lastDelivery"].is_string() {
            break target;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{target}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let remark = target["remark"].as_str().unwrap();
    assert!(remark.starts_with(words), "{target}");
    let query = json!({"query": "{ targets { name remark } }"}).to_string();
    let json_body = [("Content-Type", "application/json")];
    let found = server.send("POST", "/graphql", &json_body, query).await.expect(200).json();
    assert_eq!(found["data"]["targets"], json!([{"name": "central", "remark": remark}]));
    for path in ["/admin/targets", "/admin/targets/central"] {
        let page = server.get(path).await.expect(200).text();
        assert!(page.contains(remark), "{path}: {page}");
    }
}
