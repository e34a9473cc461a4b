//! Content codings over HTTP: compressed bodies are read within the limits of their content, and responses are compressed
//! for clients that accept it.
use flate2::Compression;
use flate2::write::GzEncoder;
use penstock_test_support::prelude::*;
use std::io::{Read as _, Write as _};

const PUMP: &str = "/api/v1/business-objects/Pump";
const GZIP: (&str, &str) = ("Content-Encoding", "gzip");
const ZSTD: (&str, &str) = ("Content-Encoding", "zstd");

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(text, 3).unwrap()
}

fn unzip(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    text
}

async fn post(server: &TestApp, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
    server.send("POST", PUMP, headers, body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_may_be_compressed() {
    let server = TestApp::plain().await;
    let body = gzip(definition().to_string().as_bytes());
    server.send("PUT", "/api/v1/business-objects", &[JSON, GZIP], body).await.expect(201);

    let pump = json!({"data": [{"uri": "https://plant.example/p/1", "name": "p"}]}).to_string();
    let key = ("Idempotency-Key", "one");
    let first = post(&server, &[JSON, ZSTD, key], zstd(pump.as_bytes())).await.expect(200);
    for (coding, body) in [("x-gzip", gzip(pump.as_bytes())), ("identity", pump.clone().into())] {
        let again = post(&server, &[JSON, ("Content-Encoding", coding), key], body).await;
        assert_eq!(again.expect(200).body, first.body, "{coding}");
    }

    // A stream of several members (RFC 1952, 2.2), or frames.
    let lines =
        |name: &str| format!("{{\"uri\":\"https://plant.example/{name}\",\"name\":\"p\"}}\n");
    for (coding, encode) in [(GZIP, gzip as fn(&[u8]) -> Vec<u8>), (ZSTD, zstd)] {
        let body = [encode(lines("a").as_bytes()), encode(lines("b").as_bytes())].concat();
        let answer =
            server.send("POST", &format!("{PUMP}?mode=REPLACE"), &[NDJSON, coding], body).await;
        assert_eq!(answer.expect(200).lines()[0]["lastIndex"], 1);
    }

    let query = gzip(json!({"query": "{__typename}"}).to_string().as_bytes());
    server.send("POST", "/graphql", &[JSON, GZIP], query).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_that_cannot_be_read_is_an_error() {
    let server = TestApp::with_pumps().await;
    let pump = json!({"data": [{"name": "p".repeat(5000)}]}).to_string();
    for (coding, whole) in [(GZIP, gzip(pump.as_bytes())), (ZSTD, zstd(pump.as_bytes()))] {
        let half = whole[..whole.len() - 1].to_vec();
        for body in [half, b"{\"data\": []}".to_vec()] {
            post(&server, &[JSON, coding], body).await.refused(400, coding.1);
        }
    }
    for coding in ["br", "gzip, zstd"] {
        let answer =
            post(&server, &[JSON, ("Content-Encoding", coding)], pump.clone().into()).await;
        answer.problem(415);
        assert_eq!(answer.header("accept-encoding"), "gzip, zstd");
    }
    // A client without credentials makes the gateway decode nothing.
    let headers = [JSON, GZIP];
    connect(server.address, "POST", "/login", &headers, gzip(b"{}")).await.problem(415);
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_are_those_of_the_content() {
    let server = TestApp::start(&["--service.limits.body=2000"]).await;
    let long = json!({"data": [{"name": "x".repeat(3000)}]}).to_string();
    for (coding, body) in [(GZIP, gzip(long.as_bytes())), (ZSTD, zstd(long.as_bytes()))] {
        assert!(body.len() < 2000);
        let answer = server.send("PUT", "/api/v1/business-objects", &[JSON, coding], body).await;
        assert!(answer.problem(413)["detail"].has("2000"));
    }
    server.stop().await;

    // Within the limit of the body, and more than 200 times as long.
    let server = TestApp::with_pumps().await;
    let mut long = json!({"data": []}).to_string().into_bytes();
    long.resize(8 << 20, b' ');
    for (coding, body) in [(GZIP, gzip(&long)), (ZSTD, zstd(&long))] {
        for kind in [JSON, NDJSON] {
            post(&server, &[kind, coding], body.clone()).await.refused(413, "200 times");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_compressed_for_clients_that_accept_it() {
    let server = TestApp::with_pumps().await;
    let objects: Vec<_> = (0..2000)
        .map(|n| json!({"uri": format!("https://plant.example/p/{n}"), "name": "p"}))
        .collect();
    server.ingest("ADD", &json!(objects)).await.expect(200);
    // A short response, one that is compressed at once, one that is compressed while it is sent, and a stream.
    let paths = [
        ("/api/v1/business-objects/Pump/objects?uri=https%3A%2F%2Fplant.example%2Fp%2F1", false),
        ("/api/v1/business-objects/Pump", true),
        ("/api/v1/business-objects/Pump/objects?limit=1000", true),
        ("/api-doc/openapi.json", true),
        ("/sparql?query=SELECT%20*%20%7B%3Fs%20%3Fp%20%3Fo%7D", true),
    ];
    for (path, is_long) in paths {
        let plain = server.get(path).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, ""), "{path}");
        if !is_long {
            assert!(plain.body.len() <= 1024, "{path}");
        }
        for (accepted, coding) in
            [("gzip", "gzip"), ("gzip, deflate, br, zstd", "zstd"), ("br", "")]
        {
            let answer = server.get_with(path, &[("Accept-Encoding", accepted)]).await;
            assert_eq!(answer.status, plain.status);
            let coding = if is_long && plain.body.len() > 1024 { coding } else { "" };
            assert_eq!(answer.header("content-encoding"), coding, "{path} {accepted}");
            let text = match coding {
                "gzip" => unzip(&answer.body),
                "zstd" => zstd::stream::decode_all(&answer.body[..]).unwrap(),
                _ => answer.body.to_vec(),
            };
            assert_eq!(text, plain.body, "{path} {accepted}");
            assert_eq!(answer.header("etag"), plain.header("etag"), "{path}");
            let varies =
                answer.headers.get_all("vary").iter().any(|value| value == "Accept-Encoding");
            assert_eq!(varies, plain.body.len() > 1024, "{path}");
            if !coding.is_empty() {
                assert!(answer.body.len() < plain.body.len());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_with_a_form_token_are_not_compressed() {
    let server = TestApp::plain().await;
    let cookie = server.sign_in(Role::Admin);
    let headers = [("Cookie", cookie.as_str()), ("Accept-Encoding", "gzip, zstd"), HTML];
    let page = server.get_with("/admin/business-objects", &headers).await.expect(200);
    assert!(page.body.len() > 1024);
    assert_eq!(page.header("content-encoding"), "");
}
