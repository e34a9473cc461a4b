//! A long upload continues after a broken connection, a restart, and operator actions.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use penstock_base::commit::NoClient;
use penstock_export::walk::{BucketLocation, walk_bucket};
use penstock_test_support::exports::prelude::*;
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};

const PART: u64 = 5 << 20;

/// Returns a plant with an export of 30 MB, a link to the server, and the targets behind the link.
async fn plant_with_long_export(server: &Server, bucket: &str) -> (Plant, Link, Targets) {
    server.create_plain(bucket).await;
    let link = Link::to(&server.endpoint, || Fault::Pass).await;
    let plant = Plant::with_pumps(0..600, 50_000);
    let targets = server.at(&link.endpoint).target(bucket);
    (plant, link, targets)
}

async fn until_no_uploads(server: &Server, bucket: &str) {
    until("no uploads are left", async || server.uploads(bucket).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_continues_after_a_restart_with_the_missing_parts() {
    let formats = [ExportFormat::Json, ExportFormat::JsonLines];
    let servers = [ceph(), swift()].into_iter();
    for (server, format) in
        servers.flat_map(|server| formats.map(|format| (server.clone(), format)))
    {
        let bucket = new_name();
        let (plant, link, mut targets) = plant_with_long_export(&server, &bucket).await;
        targets.named.values_mut().for_each(|target| target.format = format);
        let exporter = plant.quick(targets.clone());
        let entry = push_pump(&exporter);
        assert!(entry.bytes > 5 * PART);
        link.set_after(3 * PART + PART / 2, Fault::Reset);
        let running = run(&exporter);
        until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
        running.stop().await;
        drop(exporter);
        // The metadata is stored before the first part.
        assert_eq!(server.keys(&bucket).await, Vec::from_iter(entry.metadata_key()));
        let before = link.sent();

        let plant = plant.restart();
        link.set(Fault::Pass);
        let exporter = plant.quick(targets);
        let running = run(&exporter);
        until_delivered(&exporter, &entry).await;
        until_no_uploads(&server, &bucket).await;
        running.stop().await;
        let after = link.sent() - before;
        assert!(after < entry.bytes - 2 * PART, "{after} bytes were sent again");
        server.check(&bucket, &[entry]).await;
        assert!(files(&plant.dir.path().join("uploads")).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_upload_leaves_no_parts_and_starts_again() {
    let (server, bucket) = (ceph(), new_name());
    let (plant, link, targets) = plant_with_long_export(&server, &bucket).await;
    let exporter = plant.quick(targets);
    let entry = push_pump(&exporter);
    link.set_after(2 * PART, Fault::SlowDown);
    let running = run(&exporter);
    until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
    assert_eq!(server.uploads(&bucket).await, 1);
    park(&exporter, &entry).await;
    link.set(Fault::Pass);
    until_no_uploads(&server, &bucket).await;
    exporter.retry(&NoClient, &entry.id).unwrap();
    let entry = until_delivered(&exporter, &entry).await;
    running.stop().await;
    server.check(&bucket, &[entry]).await;
}

/// Sends a part of an upload to the server, and returns the part as the gateway records it.
async fn send_part(server: &Server, path: &str, upload: &str) -> Value {
    let id = s3::signing::uri_encode(upload, true);
    let part = "x".repeat(usize::try_from(PART).unwrap());
    let path = format!("{path}?partNumber=1&uploadId={id}");
    let (status, headers, _) = server.ask("PUT", &path, &part).await;
    assert_eq!(status, 200);
    json!({"number": 1, "etag": headers.get("etag").unwrap().to_str().unwrap()})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_with_records_of_only_some_parts_does_not_replace_the_whole_object() {
    for server in [ceph(), swift()] {
        let bucket = new_name();
        let (plant, _link, targets) = plant_with_long_export(&server, &bucket).await;
        let exporter = plant.quick(targets.clone());
        let entry = push_pump(&exporter);
        let running = run(&exporter);
        let entry = until_delivered(&exporter, &entry).await;

        // Creates the state after an interrupted completion and a power cut that lost the records of the last parts.
        let path = format!("{bucket}/{}", s3::signing::uri_encode(&entry.key, false));
        let (status, _, body) = server.ask("POST", &format!("{path}?uploads="), "").await;
        let body = String::from_utf8(body).unwrap();
        assert_eq!(status, 200, "{body}");
        let (_, upload) = body.split_once("<UploadId>").unwrap();
        let upload = upload.split_once("</").unwrap().0;
        let part = send_part(&server, &path, upload).await;
        let TargetKind::S3 { endpoint, .. } = &targets.named["plant-a"].kind else { panic!() };
        let record = json!({
            "target": "plant-a", "place": format!("{endpoint}/{bucket}"), "key": entry.key, "upload": upload,
            "partSize": PART, "length": entry.bytes, "sha256": entry.sha256,
        });
        let record_file = plant.dir.path().join(format!("uploads/{}.upload", entry.id));
        std::fs::write(&record_file, format!("{record}\n{part}\n")).unwrap();
        exporter.replay(&NoClient, &entry.id).unwrap();
        until("the record is removed", async || !record_file.exists()).await;
        until_delivered(&exporter, &entry).await;
        running.stop().await;
        server.check(&bucket, &[entry]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_the_server_lost_starts_again() {
    let (server, bucket) = (ceph(), new_name());
    let (plant, link, targets) = plant_with_long_export(&server, &bucket).await;
    let exporter = plant.quick(targets);
    let entry = push_pump(&exporter);
    link.set_after(2 * PART, Fault::SlowDown);
    let running = run(&exporter);
    until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
    let record = plant.dir.path().join(format!("uploads/{}.upload", entry.id));
    let record = std::fs::read_to_string(record).unwrap();
    let upload: Value = serde_json::from_str(record.lines().next().unwrap()).unwrap();
    let id = s3::signing::uri_encode(upload["upload"].text(), true);
    let path = s3::signing::uri_encode(&entry.key, false);
    let (status, ..) = server.ask("DELETE", &format!("{bucket}/{path}?uploadId={id}"), "").await;
    assert_eq!(status, 204);
    link.set(Fault::Pass);
    let entry = until_delivered(&exporter, &entry).await;
    until_no_uploads(&server, &bucket).await;
    running.stop().await;
    server.check(&bucket, &[entry]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_is_sent_compressed_and_read_back_unchanged() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    for (compression, ending) in [(Compression::Gzip, ".gz"), (Compression::Zstd, ".zst")] {
        let plant = Plant::new();
        let noise = |number: u32| {
            let mut bytes = vec![0; 50_000];
            StdRng::seed_from_u64(number.into()).fill_bytes(&mut bytes);
            let letter = |byte: &u8| char::from(b' ' + 3 + byte % 32 + (byte & 32));
            bytes.iter().map(letter).filter(|letter| *letter != '\\').collect::<String>()
        };
        plant.named(0..260, noise);
        let mut targets = server.target(&bucket);
        for target in targets.named.values_mut() {
            target.prefix = format!("{ending}/");
            if let TargetKind::S3 { compression: chosen, .. } = &mut target.kind {
                *chosen = compression;
            }
        }
        let exporter = plant.quick(targets.clone());
        let entry = push_pump(&exporter);
        let entry = run_until_delivered(&exporter, &entry).await;
        let (headers, body) = server.object(&bucket, &entry.key).await;
        assert!(headers["etag"].to_str().unwrap().contains('-'), "it was not sent in parts");
        assert!((body.len() as u64) < entry.bytes, "{} of {}", body.len(), entry.bytes);
        assert!(files(&plant.dir.path().join("uploads")).is_empty());
        let dir = plant.dir.path().to_owned();
        let found = tokio::task::spawn_blocking(move || {
            let place = BucketLocation::of_target(&targets, &dir, "plant-a").unwrap();
            let mut found = Vec::new();
            let report = &mut |finding: &_| found.push(format!("{finding:?}"));
            let walked = walk_bucket(&place, false, &mut |_, _| {}, report).unwrap();
            (walked.bytes, found)
        });
        assert_eq!(found.await.unwrap(), (entry.bytes, Vec::new()));
    }
}

/// Restores a backup that lacks the files of exports. Its two exports were delivered after the backup was created, and
/// `forget` removes the second one from the target.
async fn restore_without_files(targets: Targets, forget: impl AsyncFnOnce(&str)) {
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(targets.clone());
    let pumps = pump("Pump", &["plant-a"]);
    let entries = [push_one(&exporter, &pumps), push_one(&exporter, &pumps)];
    drop(exporter);
    // The backup is a separate folder, so that changes of the plant do not affect it.
    let backup = tempfile::tempdir().unwrap();
    let plant = plant.copy_store_to(backup.path());
    let exporter = plant.quick(targets.clone());
    run_until_delivered(&exporter, &entries[1]).await;
    drop(exporter);
    forget(&entries[1].key).await;

    let plant = plant.restore_store_from(backup.path());
    std::fs::remove_dir_all(plant.dir.path().join("spool")).unwrap();
    let exporter = plant.quick(targets);
    let running = run(&exporter);
    until_delivered(&exporter, &entries[0]).await;
    let lost = until_entry(&exporter, &entries[1].id, |entry| {
        entry.last_error.as_ref().is_some_and(|error| error.contains("does not have it either"))
    })
    .await;
    assert!(lost.last_error.unwrap().contains("park the export"));
    let next = push_one(&exporter, &pumps);
    park(&exporter, &entries[1]).await;
    until_delivered(&exporter, &next).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_gateway_finds_delivered_exports_and_reports_lost_ones() {
    let (server, bucket) = (ceph(), new_name());
    server.create_plain(&bucket).await;
    let targets = server.target(&bucket);
    restore_without_files(targets, async |key| {
        server.delete(&bucket, key).await;
    })
    .await;
    let out = tempfile::tempdir().unwrap();
    let targets = plant_a(directory(out.path()));
    restore_without_files(targets, async |key| {
        std::fs::remove_file(out.path().join("plant-a").join(key)).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bandwidth_limit_holds_and_a_closed_window_stops_deliveries() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let plant = Plant::with_pumps(0..20, 50_000);
    let open = Targets { bandwidth: Some(1 << 20), ..server.target(&bucket) };
    let exporter = plant.quick(open.clone());
    let entries = [push_pump(&exporter), push_pump(&exporter)];
    drop(exporter);

    let hour = jiff::Timestamp::now().strftime("%H").to_string().parse::<u32>().unwrap();
    let window = format!("{:02}:00-{:02}:00", (hour + 2) % 24, (hour + 3) % 24);
    let times = penstock_config::DeliveryWindow {
        window: window.parse().unwrap(),
        zone: "UTC".parse().unwrap(),
    };
    let closed = Targets { delivery_window: Some(times), ..open.clone() };
    let exporter = plant.quick(closed);
    let running = run(&exporter);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let target = find_target(&exporter, "plant-a");
    assert!(target.paused.unwrap().contains("it opens at") && target.blocked.is_none());
    assert_eq!((target.depth, exporter.get(&entries[0].id).unwrap().unwrap().attempts), (2, 0));
    running.stop().await;
    drop(exporter);

    let exporter = plant.quick(open);
    let begun = Instant::now();
    run_until_delivered(&exporter, &entries[1]).await;
    // Two files of 1 MB at 1 MB/s. The first chunk is sent immediately.
    assert!(begun.elapsed() > Duration::from_millis(1_700), "{:?}", begun.elapsed());
    server.check(&bucket, &entries).await;
}
