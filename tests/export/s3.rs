//! Delivery to a real S3 server: the bucket receives the spooled files in order, despite failures.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use penstock_base::commit::NoClient;
use penstock_model::resource::Compiled;
use penstock_test_support::exports::prelude::*;
use s3::creds::Credentials;
use s3::{Bucket, BucketConfiguration, Region};

fn region() -> Region {
    let Server { endpoint, region, .. } = ceph();
    Region::Custom { region, endpoint }
}

fn credentials() -> Credentials {
    let Server { key, secret, .. } = ceph();
    Credentials::new(Some(&key), Some(&secret), None, None, None).unwrap()
}

async fn create(name: &str) -> Box<Bucket> {
    let config = BucketConfiguration::default();
    Bucket::create_with_path_style(name, region(), credentials(), config).await.unwrap().bucket
}

/// Returns targets with this bucket of the server, whose keys begin with `from/`.
fn targets(server: &Server, bucket: &str) -> Targets {
    let mut targets = server.target(bucket);
    for target in targets.named.values_mut() {
        target.prefix.insert_str(0, "from/");
    }
    targets
}

fn pumps() -> Compiled {
    pump("Pump ü", &["plant-a"])
}

/// Checks that the bucket has the file of this entry, byte for byte, with its metadata.
async fn check(bucket: &Bucket, exporter: &Exporter, entry: &Export) {
    let spooled =
        std::fs::read(exporter.spool_folder().join(format!("{}.json", entry.id))).unwrap();
    let object = bucket.get_object(&entry.key).await.unwrap();
    assert!(object.as_slice() == spooled, "the bytes differ");
    let (head, _) = bucket.head_object(&entry.key).await.unwrap();
    assert_eq!(head.content_type.as_deref(), Some("application/json"));
    let metadata = head.metadata.unwrap();
    for (name, value) in [
        ("export-id", entry.id.as_str()),
        ("sequence", &entry.sequence.to_string()),
        ("kind", "full"),
        ("gateway-id", "gateway-1"),
        ("sha256", &entry.sha256),
    ] {
        assert_eq!(metadata.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_stored_in_the_bucket_in_sequence_order() {
    let name = new_name();
    let bucket = create(&name).await;
    let plant = Plant::new();
    let exporter = plant.open(targets(&ceph(), &name));
    let mut entries = Vec::new();
    for number in 0..4 {
        plant.pumps(number..number + 1, 10);
        entries.push(push_one(&exporter, &pumps()));
    }
    run_until_delivered(&exporter, &entries[3]).await;
    for entry in &entries {
        assert!(entry.key.starts_with("from/edge 1/Pump%20%C3%BC/Pump%20%C3%BC-"), "{}", entry.key);
        check(&bucket, &exporter, entry).await;
    }
    let listed = bucket.list(String::new(), None).await.unwrap();
    let mut objects: Vec<_> = listed.into_iter().flat_map(|page| page.contents).collect();
    objects.sort_by_key(|object| object.last_modified.clone());
    let keys: Vec<_> = objects.into_iter().map(|object| object.key).collect();
    assert_eq!(keys, entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_arrives_in_parts() {
    let name = new_name();
    let bucket = create(&name).await;
    let plant = Plant::with_pumps(0..400, 50_000);
    let exporter = plant.open(targets(&ceph(), &name));
    let entry = push_one(&exporter, &pumps());
    // Creates the state after a crash during an upload.
    bucket.initiate_multipart_upload(&entry.key, "application/json").await.unwrap();
    assert!(entry.bytes > 3 * (5 << 20), "{} bytes are no more than three parts", entry.bytes);
    let running = run(&exporter);
    until_delivered(&exporter, &entry).await;
    check(&bucket, &exporter, &entry).await;
    // An object that the bucket has is not sent again. One that it lost is.
    exporter.replay(&NoClient, &entry.id).unwrap();
    until_delivered(&exporter, &entry).await;
    bucket.delete_object(&entry.key).await.unwrap();
    exporter.replay(&NoClient, &entry.id).unwrap();
    until_delivered(&exporter, &entry).await;
    running.stop().await;
    check(&bucket, &exporter, &entry).await;
    let uploads = bucket.list_multiparts_uploads(None, None).await.unwrap();
    assert!(uploads.iter().all(|page| page.uploads.is_empty()));
}

/// Checks that a target with a wrong setting blocks with `cause` and without the secret, and continues once the
/// setting is corrected.
async fn blocks_until_corrected(wrong: Targets, bucket: &str, cause: &str, secret: &str) {
    let plant = Plant::with_pumps(0..2, 10);
    let exporter = plant.open(wrong);
    let entries = [push_one(&exporter, &pumps()), push_one(&exporter, &pumps())];
    let running = run(&exporter);
    let blocked = until_status(&exporter, &entries[0].id, ExportStatus::Blocked).await;
    let error = blocked.last_error.unwrap();
    assert!(error.contains(cause) && !error.contains(secret), "{error}");
    assert_eq!(status_of(&exporter, &entries[1]), ExportStatus::Queued);
    running.stop().await;
    drop(exporter);

    let found = Bucket::new(bucket, region(), credentials()).unwrap().with_path_style();
    let created = if found.exists().await.unwrap() { found } else { create(bucket).await };
    let exporter = plant.open(targets(&ceph(), bucket));
    run_until_delivered(&exporter, &entries[1]).await;
    for entry in &entries {
        check(&created, &exporter, entry).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_blocks_until_it_is_corrected() {
    let name = new_name();
    create(&name).await;
    let wrong = Server { secret: "WRONGSECRET".to_owned(), ..ceph() };
    blocks_until_corrected(targets(&wrong, &name), &name, "`secret-access-key`", "WRONGSECRET")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_bucket_blocks_until_it_exists() {
    let name = new_name();
    let server = ceph();
    blocks_until_corrected(targets(&server, &name), &name, "does not exist", &server.secret).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_blocks_until_it_is_reachable() {
    let name = new_name();
    create(&name).await;
    let server = ceph();
    // No server listens there.
    let away = targets(&server.at("http://127.0.0.1:9"), &name);
    blocks_until_corrected(away, &name, "cannot be reached", &server.secret).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_targets_ca_file_makes_a_private_certificate_trusted() {
    let name = new_name();
    let bucket = create(&name).await;
    let plant = Plant::with_pumps(0..200, 50_000);
    let tls = said("PENSTOCK_TEST_S3_TLS");
    let (endpoint, authority) = tls.split_once(',').expect("an endpoint and an authority");
    let untrusted = targets(&ceph().at(endpoint), &name);
    let exporter = plant.open(untrusted.clone());
    let large = push_one(&exporter, &pumps());
    let running = run(&exporter);
    let blocked = until_status(&exporter, &large.id, ExportStatus::Blocked).await;
    assert!(blocked.last_error.as_ref().unwrap().contains("not trusted"), "{blocked:?}");
    running.stop().await;
    drop(exporter);

    let mut trusted = untrusted;
    trust(&mut trusted, Path::new(authority));
    let exporter = plant.open(trusted);
    plant.clear();
    plant.pumps(0..1, 10);
    let small = push_one(&exporter, &pumps());
    let running = run(&exporter);
    until_delivered(&exporter, &small).await;
    check(&bucket, &exporter, &large).await;
    check(&bucket, &exporter, &small).await;
    exporter.replay(&NoClient, &large.id).unwrap();
    until_delivered(&exporter, &large).await;
    running.stop().await;
    check(&bucket, &exporter, &large).await;
}

/// Starts a relay to the server that drops the first answer and breaks the connection. Returns its endpoint.
async fn forgetful_relay(endpoint: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let upstream = endpoint.strip_prefix("http://").unwrap().to_owned();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut first = true;
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = tokio::net::TcpStream::connect(&upstream).await.unwrap();
            if std::mem::take(&mut first) {
                let (mut from_client, _) = client.split();
                let (mut from_server, mut to_server) = server.split();
                let mut answer = [0; 1024];
                tokio::select! {
                    _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                    _ = from_server.read(&mut answer) => {}
                }
                let _ = client.shutdown().await;
            } else {
                tokio::spawn(async move {
                    tokio::io::copy_bidirectional(&mut client, &mut server).await
                });
            }
        }
    });
    format!("http://{address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_leads_to_one_object_and_the_next_export_follows() {
    let name = new_name();
    let bucket = create(&name).await;
    let plant = Plant::with_pumps(0..2, 10);
    let server = ceph();
    let relay = forgetful_relay(&server.endpoint).await;
    let exporter = plant.open(targets(&server.at(&relay), &name));
    let entries = [push_one(&exporter, &pumps()), push_one(&exporter, &pumps())];
    let last = run_until_delivered(&exporter, &entries[1]).await;
    let first = exporter.get(&entries[0].id).unwrap().unwrap();
    assert_eq!((first.attempts, last.attempts), (2, 1));
    assert!(first.delivered_at <= last.delivered_at);
    for entry in &entries {
        check(&bucket, &exporter, entry).await;
    }
    let listed = bucket.list(String::new(), None).await.unwrap();
    assert_eq!(listed.iter().map(|page| page.contents.len()).sum::<usize>(), 2);
}
