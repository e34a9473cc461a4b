//! The real S3 servers: checks the content of their buckets, and sets permissions.
use super::{Plant, find_target, plant_a, until_entry};
use penstock_base::hex::encode_hex;
use penstock_config::{Compression, ExportFormat, KeyTemplate, Target, TargetKind, Targets};
use penstock_export::{DeliveryTimings, ExportExt as _, Exporter};
use penstock_resources::export::{Cause, Export};
use s3::region::Region;
use s3::signing;
use std::process::Command;
use std::time::Duration;
use time::OffsetDateTime;

/// A server, and the credentials to use there.
#[derive(Debug, Clone)]
pub struct Server {
    pub endpoint: String,
    pub region: String,
    pub key: String,
    pub secret: String,
    /// The number of files in a bucket that it may have stored a second time, with the same content. Under load, Swift can
    /// store a file later than the settle time, when it was sent again.
    pub max_late_copies: usize,
}

/// Returns the value that `tests/servers/*-up` prints under this name.
pub fn said(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "this test needs an S3 server: run `tests/run`, which starts them, or `tests/servers/ceph-up DIR 5630 5632` and \
             `tests/servers/swift-up DIR 5740`, and set {name} to the printed value"
        )
    })
}

pub fn ceph() -> Server {
    Server::of(&said("PENSTOCK_TEST_S3"), "default")
}

pub fn swift() -> Server {
    Server { max_late_copies: 1, ..Server::of(&said("PENSTOCK_TEST_SWIFT"), "us-east-1") }
}

/// Returns timings for tests: short delays, and the timeouts of the product, because the server may be slow.
pub fn quick() -> DeliveryTimings {
    DeliveryTimings {
        first_delay: Duration::from_millis(10),
        first_delay_if_operator_needed: Duration::from_millis(50),
        max_delay: Duration::from_millis(300),
        probe_interval: Duration::from_millis(100),
        cleanup_interval: Duration::from_millis(500),
        ..DeliveryTimings::default()
    }
}

pub fn new_name() -> String {
    format!("plant-{}", uuid::Uuid::now_v7().simple())
}

impl Server {
    fn of(said: &str, region: &str) -> Self {
        let parts: Vec<&str> = said.splitn(3, ',').collect();
        let [endpoint, key, secret] = parts[..] else { panic!("{said:?} has three parts") };
        Self {
            endpoint: endpoint.to_owned(),
            region: region.to_owned(),
            key: key.to_owned(),
            secret: secret.to_owned(),
            max_late_copies: 0,
        }
    }

    /// Creates a user of Ceph. Returns its id, and the server with its credentials.
    pub fn user() -> (String, Self) {
        let id = format!("u{}", uuid::Uuid::now_v7().simple());
        let server = Self { key: format!("key-{id}"), secret: "SECRET".to_owned(), ..ceph() };
        let (key, secret) = (format!("--access-key={}", server.key), "--secret-key=SECRET");
        admin(&["user", "create", &format!("--uid={id}"), "--display-name=x", &key, secret]);
        (id, server)
    }

    pub fn at(&self, endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), ..self.clone() }
    }

    /// Returns targets with `plant-a`, which is in this bucket.
    pub fn target(&self, bucket: &str) -> Targets {
        plant_a(self.one(bucket))
    }

    /// Returns targets with `plant-a`, whose files have one object a line.
    pub fn lines_target(&self, bucket: &str) -> Targets {
        let mut targets = self.target(bucket);
        for target in targets.named.values_mut() {
            target.format = ExportFormat::JsonLines;
        }
        targets
    }

    pub fn one(&self, bucket: &str) -> Target {
        let kind = TargetKind::S3 {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            bucket: Some(bucket.to_owned()),
            access_key_id: self.key.clone(),
            secret_access_key: self.secret.clone(),
            path_style: true,
            ca_file: None,
            compression: Compression::None,
        };
        Target {
            kind,
            prefix: "edge 1/".to_owned(),
            key: KeyTemplate::default(),
            format: ExportFormat::Json,
        }
    }

    /// Sends a signed request to `/PATH?QUERY`, both encoded. Returns status, headers and body of the answer.
    pub async fn ask(
        &self,
        method: &str,
        path_and_query: &str,
        body: impl AsRef<[u8]>,
    ) -> (u16, reqwest::header::HeaderMap, Vec<u8>) {
        self.ask_with(method, path_and_query, body, &[]).await
    }

    /// Sends a signed request with more headers.
    pub async fn ask_with(
        &self,
        method: &str,
        path_and_query: &str,
        body: impl AsRef<[u8]>,
        more: &[(&'static str, &str)],
    ) -> (u16, reqwest::header::HeaderMap, Vec<u8>) {
        use sha2::{Digest as _, Sha256};
        let body = body.as_ref().to_vec();
        let url = reqwest::Url::parse(&format!("{}/{path_and_query}", self.endpoint)).unwrap();
        let now = OffsetDateTime::now_utc();
        let region =
            Region::Custom { region: self.region.clone(), endpoint: self.endpoint.clone() };
        let sha256 = format!("{:x}", Sha256::digest(&body));
        let mut headers = reqwest::header::HeaderMap::new();
        let host = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        headers.insert("host", host.parse().unwrap());
        headers.insert("x-amz-content-sha256", sha256.parse().unwrap());
        let (year, month, day) = now.to_calendar_date();
        let (hour, minute, second) = now.to_hms();
        let date =
            format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", u8::from(month));
        headers.insert("x-amz-date", date.parse().unwrap());
        for (name, value) in more {
            headers.insert(*name, value.parse().unwrap());
        }
        let request = signing::canonical_request(method, &url, &headers, &sha256).unwrap();
        let text = signing::string_to_sign(&now, &region, &request).unwrap();
        let key = signing::signing_key(&now, &self.secret, &region, "s3").unwrap();
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
        let signature = ring::hmac::sign(&key, text.as_bytes());
        let signature = encode_hex(signature.as_ref());
        let names = signing::signed_header_string(&headers);
        let authorization =
            signing::authorization_header(&self.key, &now, &region, &names, &signature).unwrap();
        headers.insert("authorization", authorization.parse().unwrap());
        let client = reqwest::Client::new();
        let request = client.request(method.parse().unwrap(), url).headers(headers).body(body);
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (status, headers, response.bytes().await.unwrap().to_vec())
    }

    /// Puts an object that no exporter created.
    pub async fn put(
        &self,
        bucket: &str,
        key: &str,
        body: impl AsRef<[u8]>,
        more: &[(&'static str, &str)],
    ) {
        let path = format!("{bucket}/{}", signing::uri_encode(key, false));
        let (status, _, body) = self.ask_with("PUT", &path, body, more).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    }

    /// Removes an object.
    pub async fn delete(&self, bucket: &str, key: &str) {
        let path = format!("{bucket}/{}", signing::uri_encode(key, false));
        self.ask("DELETE", &path, "").await;
    }

    /// Sets the permissions of a user for a bucket.
    pub async fn allow(&self, bucket: &str, user: &str, actions: &[&str]) {
        let statement = |resource: &str| {
            serde_json::json!({
                "Effect": "Allow", "Principal": {"AWS": [format!("arn:aws:iam:::user/{user}")]},
                "Action": actions, "Resource": [resource],
            })
        };
        let policy = serde_json::json!({
            "Version": "2012-10-17",
            "Statement": [
                statement(&format!("arn:aws:s3:::{bucket}")), statement(&format!("arn:aws:s3:::{bucket}/*"))
            ],
        });
        let (status, _, body) =
            self.ask("PUT", &format!("{bucket}?policy="), &policy.to_string()).await;
        assert!(status < 300, "{}", String::from_utf8_lossy(&body));
    }

    /// Creates a bucket.
    pub async fn create_plain(&self, bucket: &str) {
        let (status, _, body) = self.ask("PUT", bucket, "").await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    }

    /// Creates a versioned bucket, in which duplicates are visible.
    pub async fn create(&self, bucket: &str) {
        self.create_plain(bucket).await;
        let on = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
        let (status, _, body) = self.ask("PUT", &format!("{bucket}?versioning="), on).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    }

    /// Lists the keys of all objects, of which there are few.
    pub async fn objects(&self, bucket: &str) -> Vec<String> {
        let (status, _, body) =
            self.ask("GET", &format!("{bucket}?encoding-type=url&list-type=2"), "").await;
        let body = String::from_utf8(body).unwrap();
        assert!(status == 200 && !body.contains("<IsTruncated>true"), "{body}");
        let keys = body.split("<Key>").skip(1);
        keys.map(|rest| decoded(rest.split_once("</Key>").unwrap().0)).collect()
    }

    /// Lists the key of every version of every object, in the order of the bucket.
    pub async fn keys(&self, bucket: &str) -> Vec<String> {
        let mut keys = Vec::new();
        let mut markers = String::new();
        loop {
            let query = format!("{bucket}?encoding-type=url{markers}&versions=");
            let (status, _, body) = self.ask("GET", &query, "").await;
            let body = String::from_utf8(body).unwrap();
            assert_eq!(status, 200, "{body}");
            let inner = |text: &str, name: &str| {
                let (_, rest) = text.split_once(&format!("<{name}>"))?;
                Some(rest.split_once("</")?.0.to_owned())
            };
            for version in body.split("<Version>").skip(1) {
                keys.push(decoded(&inner(version, "Key").unwrap()));
            }
            if inner(&body, "IsTruncated").as_deref() != Some("true") {
                return keys;
            }
            let key = inner(&body, "NextKeyMarker").unwrap();
            let id = inner(&body, "NextVersionIdMarker").unwrap();
            markers = format!("&key-marker={key}&version-id-marker={id}");
        }
    }

    /// Returns the number of unfinished multipart uploads.
    pub async fn uploads(&self, bucket: &str) -> usize {
        let (status, _, body) = self.ask("GET", &format!("{bucket}?uploads="), "").await;
        assert_eq!(status, 200);
        String::from_utf8(body).unwrap().matches("<UploadId>").count()
    }

    pub async fn object(&self, bucket: &str, key: &str) -> (reqwest::header::HeaderMap, Vec<u8>) {
        let path = signing::uri_encode(key, false);
        let (status, headers, body) = self.ask("GET", &format!("{bucket}/{path}"), "").await;
        assert_eq!(status, 200, "{key}: {}", String::from_utf8_lossy(&body));
        (headers, body)
    }

    /// Checks that the bucket has exactly these exports, byte for byte, and each once: see [`Self::max_late_copies`].
    pub async fn check(&self, bucket: &str, entries: &[Export]) {
        use sha2::{Digest as _, Sha256};
        let keys_of = |entry: &Export| [Some(entry.key.clone()), entry.metadata_key()];
        let mut expected: Vec<_> = entries.iter().flat_map(keys_of).flatten().collect();
        expected.sort();
        let stored = self.keys(bucket).await;
        let mut keys = stored.clone();
        keys.dedup();
        assert_eq!(keys, expected);
        let late_copies = stored.len() - keys.len();
        assert!(late_copies <= self.max_late_copies, "stored twice: {stored:?}");
        for entry in entries {
            let (headers, body) = self.object(bucket, &entry.key).await;
            assert_eq!(format!("{:x}", Sha256::digest(&body)), entry.sha256, "{}", entry.key);
            let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(said("x-amz-meta-sha256"), Some(entry.sha256.as_str()));
            assert_eq!(said("x-amz-meta-export-id"), Some(entry.id.as_str()));
            assert_eq!(said("x-amz-meta-sequence"), Some(&*entry.sequence.to_string()));
            assert_eq!(said("content-type"), Some(entry.media_type()));
            let Some(key) = entry.metadata_key() else { continue };
            let (headers, body) = self.object(bucket, &key).await;
            let metadata: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let checksum = metadata.pointer("/metadata/data_checksum");
            assert_eq!(checksum, Some(&entry.data_checksum.clone().into()));
            let said = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(said("x-amz-meta-sha256"), Some(&*format!("{:x}", Sha256::digest(&body))));
            assert_eq!(said("x-amz-meta-export-id"), Some(entry.id.as_str()));
            assert_eq!(said("content-type"), Some("application/json"));
        }
    }
}

fn decoded(key: &str) -> String {
    percent_encoding::percent_decode_str(&key.replace('+', " ")).decode_utf8().unwrap().into_owned()
}

/// Runs `radosgw-admin` of the Ceph under test.
pub fn admin(arguments: &[&str]) {
    let output = Command::new("radosgw-admin")
        .args(["-n", "client.rgw.a"])
        .args(arguments)
        .env("CEPH_CONF", said("PENSTOCK_TEST_S3_ADMIN"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until the target is blocked with this class and with a cause that contains `words` and no secret.
pub async fn blocked(exporter: &Exporter, entry: &Export, class: Cause, words: &str) {
    let is_named = |cause: Option<&String>| cause.is_some_and(|cause| cause.contains(words));
    let is_blocked = |entry: &Export| {
        let target = find_target(exporter, &entry.target);
        is_named(entry.last_error.as_ref())
            && is_named(target.blocked.as_ref())
            && target.blocked_by == Some(class)
            && target.blocked_since.is_some()
            && target.attempts > 0
    };
    let entry = until_entry(exporter, &entry.id, is_blocked).await;
    assert!(!entry.last_error.unwrap().contains("SECRET"));
}

impl Plant {
    /// Opens an exporter with the short timings for tests.
    pub fn quick(&self, targets: Targets) -> Exporter {
        let options = penstock_export::ExportOptions { timings: quick(), ..self.options(targets) };
        Exporter::open(self.store.clone(), options).unwrap()
    }
}
