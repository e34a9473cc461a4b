//! Exports into a real S3-compatible bucket, checked there only with `sha256sum` and Python's json.
//!
//! `PENSTOCK_TEST_S3=http://HOST:PORT,KEYID,SECRET` names the server; `tests/run` starts Ceph and sets it.
use crate::countries;
use penstock_test_support::prelude::*;
use s3::creds::Credentials;
use s3::{Bucket, BucketConfiguration, Region};

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
    let settings = account.settings(&account.secret);
    let more =
        ["--service.gateway-id=e2e-gateway", "--service.export.default.prefix=from-the-edge/"];
    let server = TestProcess::start(dir.path(), &[&lent(&settings)[..], &more].concat());
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
    assert_eq!(keys, [half["key"].text(), whole["key"].text()]);

    for entry in [&half, &whole] {
        let key = entry["key"].text();
        assert!(key.starts_with("from-the-edge/Countries/Countries-"), "{key}");
        let (head, _) = runtime.block_on(bucket.head_object(key)).unwrap();
        let metadata = head.metadata.expect("the object has metadata");
        for (name, value) in [
            ("export-id", entry["id"].text()),
            ("sequence", &entry["sequence"].to_string()),
            ("kind", "full"),
            ("gateway-id", "e2e-gateway"),
            ("sha256", entry["sha256"].text()),
        ] {
            assert_eq!(metadata.get(name).map(String::as_str), Some(value), "{name}");
        }
        let object = runtime.block_on(bucket.get_object(key)).unwrap();
        let file = dir.path().join("downloaded.json");
        std::fs::write(&file, object.bytes()).unwrap();
        let id = entry["id"].text();
        let kept = client.get(&format!("/api/v1/exports/{id}/content")).expect(200);
        assert!(
            kept.body == *object.bytes(),
            "the bytes in the bucket differ from those of the gateway"
        );
        let sum = Command::new("sha256sum").arg(&file).succeed().out();
        assert_eq!(sum.split_whitespace().next(), entry["sha256"].as_str());
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
    let start = |secret: &str| TestProcess::start(dir.path(), &lent(&account.settings(secret)));

    let server = start("not-the-secret");
    let client = server.client;
    countries::define(client, &name);
    countries::ingest(client, &countries::countries()[..10]);
    client.post("/api/v1/business-objects/Countries/push", "").expect(202);
    wait_for("the target is blocked", || {
        client.read("/api/v1/targets")["items"]
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
    wait_for("the export is delivered after the restart", || {
        client.read("/api/v1/exports")["items"][0]["status"] == "delivered"
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

    /// Returns the settings that make buckets of the server the default target.
    fn settings(&self, secret: &str) -> [String; 7] {
        let of_default =
            |name: &str, value: &str| format!("--service.export.default.{name}={value}");
        [
            "--service.data-dir=data".to_owned(),
            of_default("type", "s3"),
            of_default("endpoint", &self.endpoint),
            of_default("region", "default"),
            of_default("access-key-id", &self.key_id),
            of_default("secret-access-key", secret),
            of_default("path-style", "true"),
        ]
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

fn check_export(file: &Path) {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check-export");
    Command::new(check).arg(file).succeed();
}
