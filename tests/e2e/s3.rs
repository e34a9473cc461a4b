//! Exports into a real S3-compatible bucket, checked there only with `sha256sum` and Python's json.
//!
//! `PENSTOCK_TEST_S3=http://HOST:PORT,KEYID,SECRET` names the server; `tests/run` starts Ceph and sets it.
use crate::countries;
use crate::server::{Server, push_and_wait};
use s3::creds::Credentials;
use s3::{Bucket, BucketConfiguration, Region};
use std::path::Path;
use std::process::Command;

/// The endpoint of the server, and credentials for it.
pub(crate) struct Account {
    pub(crate) endpoint: String,
    pub(crate) key_id: String,
    pub(crate) secret: String,
}

#[test]
fn exports_arrive_in_a_bucket_complete_and_in_order() {
    let account = Account::of_environment();
    let name = format!("countries-{}", uuid::Uuid::now_v7());
    let bucket = account.create_bucket(&name);
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(
        dir.path(),
        &[
            "--service.data-dir=data",
            "--service.gateway-id=e2e-gateway",
            "--service.export.default.type=s3",
            &format!("--service.export.default.endpoint={}", account.endpoint),
            "--service.export.default.region=default",
            "--service.export.default.prefix=from-the-edge/",
            &format!("--service.export.default.access-key-id={}", account.key_id),
            &format!("--service.export.default.secret-access-key={}", account.secret),
            "--service.export.default.path-style=true",
        ],
    );
    let client = server.client;
    countries::define(client, &name);
    let all = countries::countries();
    let (first, rest) = all.split_at(100);
    countries::ingest(client, first);
    let half = push_and_wait(client, "Countries");
    countries::ingest(client, rest);
    let whole = push_and_wait(client, "Countries");
    assert_eq!([&half["sequence"], &whole["sequence"]], [1, 2]);
    assert_eq!([&half["objectCount"], &whole["objectCount"]], [100, 250]);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listed = runtime.block_on(bucket.list(String::new(), None)).unwrap();
    let mut keys: Vec<&str> =
        listed.iter().flat_map(|page| &page.contents).map(|o| o.key.as_str()).collect();
    keys.sort_by_key(|key| key.rsplit('-').next());
    assert_eq!(keys, [half["key"].as_str().unwrap(), whole["key"].as_str().unwrap()]);

    for entry in [&half, &whole] {
        let key = entry["key"].as_str().unwrap();
        assert!(key.starts_with("from-the-edge/Countries/Countries-"), "{key}");
        let (head, _) = runtime.block_on(bucket.head_object(key)).unwrap();
        let metadata = head.metadata.expect("the object has metadata");
        for (name, value) in [
            ("export-id", entry["id"].as_str().unwrap()),
            ("sequence", &entry["sequence"].to_string()),
            ("kind", "full"),
            ("gateway-id", "e2e-gateway"),
            ("sha256", entry["sha256"].as_str().unwrap()),
        ] {
            assert_eq!(metadata.get(name).map(String::as_str), Some(value), "{name}");
        }
        let object = runtime.block_on(bucket.get_object(key)).unwrap();
        let file = dir.path().join("downloaded.json");
        std::fs::write(&file, object.bytes()).unwrap();
        let id = entry["id"].as_str().unwrap();
        let kept = client.get(&format!("/api/v1/exports/{id}/content")).expect(200);
        assert!(
            kept.body == *object.bytes(),
            "the bytes in the bucket differ from those of the gateway"
        );
        assert_eq!(sha256sum(&file), entry["sha256"].as_str().unwrap());
        check_export(&file);
    }
    server.stop();
}

#[test]
fn wrong_credentials_block_the_target_without_losing_exports() {
    let account = Account::of_environment();
    let name = format!("refused-{}", uuid::Uuid::now_v7());
    let bucket = account.create_bucket(&name);
    let dir = tempfile::tempdir().unwrap();
    let arguments = |secret: &str| {
        [
            "--service.data-dir=data".to_owned(),
            "--service.export.default.type=s3".to_owned(),
            format!("--service.export.default.endpoint={}", account.endpoint),
            "--service.export.default.region=default".to_owned(),
            format!("--service.export.default.access-key-id={}", account.key_id),
            format!("--service.export.default.secret-access-key={secret}"),
            "--service.export.default.path-style=true".to_owned(),
        ]
    };
    let start = |secret: &str| {
        let arguments = arguments(secret);
        Server::start(dir.path(), &arguments.each_ref().map(String::as_str))
    };

    let server = start("not-the-secret");
    let client = server.client;
    countries::define(client, &name);
    countries::ingest(client, &countries::countries()[..10]);
    client.post("/api/v1/business-objects/Countries/push", "").expect(202);
    crate::server::wait_for("the target is blocked", || {
        client.get("/api/v1/targets").expect(200).json()["items"]
            .as_array()
            .is_some_and(|targets| targets.iter().any(|t| t["blocked"].is_string()))
    });
    let state = client.get("/api/v1/targets");
    assert!(!state.text().contains("not-the-secret"), "{}", state.text());
    assert_eq!(client.get("/health/ready").status, 200, "readiness depends only on the store");
    assert!(!server.log().contains("not-the-secret"), "the log shows a secret");
    server.stop();

    let server = start(&account.secret);
    let client = server.client;
    crate::server::wait_for("the export is delivered after the restart", || {
        client.get("/api/v1/exports").expect(200).json()["items"][0]["status"] == "delivered"
    });
    let listed = tokio::runtime::Runtime::new().unwrap().block_on(bucket.list(String::new(), None));
    assert_eq!(listed.unwrap().iter().map(|page| page.contents.len()).sum::<usize>(), 1);
    server.stop();
}

impl Account {
    pub(crate) fn of_environment() -> Self {
        let text = std::env::var("PENSTOCK_TEST_S3").expect(
            "PENSTOCK_TEST_S3=http://HOST:PORT,KEYID,SECRET names an S3 server; tests/run starts one",
        );
        let parts: Vec<&str> = text.split(',').collect();
        let [endpoint, key_id, secret] = parts[..] else {
            panic!("PENSTOCK_TEST_S3 is not http://HOST:PORT,KEYID,SECRET");
        };
        Self { endpoint: endpoint.to_owned(), key_id: key_id.to_owned(), secret: secret.to_owned() }
    }

    pub(crate) fn create_bucket(&self, name: &str) -> Box<Bucket> {
        let region =
            Region::Custom { region: "default".to_owned(), endpoint: self.endpoint.clone() };
        let credentials =
            Credentials::new(Some(&self.key_id), Some(&self.secret), None, None, None).unwrap();
        let created = tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(Bucket::create_with_path_style(
                name,
                region,
                credentials,
                BucketConfiguration::default(),
            ))
            .unwrap();
        assert!(created.success(), "{}", created.response_text);
        created.bucket
    }
}

fn sha256sum(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().expect("sha256sum runs");
    let line = String::from_utf8(output.stdout).unwrap();
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

fn check_export(file: &Path) {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check-export");
    let output = Command::new(check).arg(file).output().expect("tests/check-export runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
