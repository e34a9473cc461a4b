//! `penstock verify-export --bucket` finds missing, duplicate, damaged and foreign objects, and so does the
//! script in docs/verify-export.md.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use penstock_export::walk::{
    BucketFinding, BucketLocation, ReadCredentials, WalkSummary, walk_bucket,
};
use penstock_test_support::exports::prelude::*;

/// Delivers `count` exports.
async fn deliver(plant: &Plant, targets: Targets, count: u32) -> Vec<Export> {
    let exporter = plant.quick(targets);
    let running = run(&exporter);
    let mut entries = Vec::new();
    for number in 0..count {
        plant.pumps(number..number + 1, 10);
        let entry = push_one(&exporter, &pump("Pump ü", &["plant-a"]));
        entries.push(until_delivered(&exporter, &entry).await);
    }
    running.stop().await;
    entries
}

fn walked(place: &BucketLocation) -> (WalkSummary, Vec<BucketFinding>) {
    let mut found = Vec::new();
    let report = &mut |finding: &BucketFinding| found.push(finding.clone());
    let walked = walk_bucket(place, false, &mut |_, _| {}, report).unwrap();
    let is_note = |finding: &&BucketFinding| matches!(finding, BucketFinding::Healed { .. });
    assert_eq!(walked.findings, (found.len() - found.iter().filter(is_note).count()) as u64);
    (walked, found)
}

fn penstock(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(binary()).args(arguments).current_dir(dir).output().unwrap();
    (output.status.code().unwrap(), output.out() + &output.err())
}

/// Runs the script from the documentation.
fn script(dir: &Path, bucket: &Path) -> (i32, String) {
    let page = include_str!("../../docs/verify-export.md");
    let (_, code) = page.split_once("```python\n").unwrap();
    std::fs::write(dir.join("verify.py"), code.split("```").next().unwrap()).unwrap();
    let output = Command::new("python3").arg(dir.join("verify.py")).arg(bucket).output().unwrap();
    (output.status.code().unwrap(), output.out() + &output.err())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_directory_passes_and_each_damage_is_found() {
    let plant = Plant::new();
    let entries = deliver(&plant, embedded(), 6).await;
    let root = plant.bucket("plant-a");
    let (whole, found) = walked(&BucketLocation::of_directory(root.clone()));
    assert_eq!((whole.objects, found.len()), (6, 0));
    assert_eq!((whole.folders[0].exports, whole.folders[0].last), (6, 6));
    assert_eq!(whole.bytes, entries.iter().map(|entry| entry.bytes).sum::<u64>());
    let bucket = format!("{}/", root.display());
    let (status, text) = penstock(plant.dir.path(), &["verify-export", "--bucket", &bucket]);
    assert!(status == 0 && text.contains("whole: 6 objects"), "{text}");
    let (status, text) = script(plant.dir.path(), &root);
    assert_eq!((status, text.trim()), (0, "6 files, whole"));

    let path = |at: usize| root.join(&entries[at].key);
    std::fs::remove_file(path(1)).unwrap();
    std::fs::remove_file(path(2)).unwrap();
    let double: PathBuf = entries[3]
        .key
        .replace(&entries[3].key[entries[3].key.len() - 34..][..16], "20200101T000000Z")
        .into();
    std::fs::copy(path(3), root.join(&double)).unwrap();
    let mut damaged = std::fs::read(path(4)).unwrap();
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    std::fs::write(path(4), damaged).unwrap();
    let cut = std::fs::read(path(0)).unwrap();
    std::fs::write(path(0), &cut[..100]).unwrap();
    // The seventh is missing, and no full export comes after it.
    let last = entries[5].key.replace("-000000000006.json", "-000000000008.incremental.json");
    std::fs::copy(path(5), root.join(last)).unwrap();
    std::fs::write(root.join("readme.txt"), "hello").unwrap();
    std::fs::write(root.join(".x.part"), "incomplete").unwrap();

    let (_, found) = walked(&BucketLocation::of_directory(root.clone()));
    let folder = || "Pump%20%C3%BC".to_owned();
    let (gap, healed) = (
        BucketFinding::Gap { folder: folder(), from: 7, to: 7 },
        BucketFinding::Healed { folder: folder(), from: 2, to: 3, full: 6 },
    );
    assert!(found.contains(&gap) && found.contains(&healed), "{found:?}");
    assert!(found.contains(&BucketFinding::Foreign { key: "readme.txt".to_owned() }), "{found:?}");
    let doubled =
        |finding: &&BucketFinding| matches!(finding, BucketFinding::Double { sequence: 4, .. });
    assert_eq!(found.iter().filter(doubled).count(), 1, "{found:?}");
    let keys: Vec<_> = found
        .iter()
        .filter_map(|finding| match finding {
            BucketFinding::Damaged { key, .. } => Some(key.clone()),
            _ => None,
        })
        .collect();
    // The duplicate counts as damaged, because the date in its key differs from the date in the file.
    assert!(keys.contains(&entries[0].key) && keys.contains(&entries[4].key), "{found:?}");
    assert_eq!((keys.len(), found.len()), (3, 7), "{found:?}");
    let (status, text) =
        penstock(plant.dir.path(), &["verify-export", "--bucket", &bucket, "--json"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, lines.len()), (1, 8), "{text}");
    assert_eq!((&lines[7]["whole"], &lines[7]["findings"]), (&Value::from(false), &Value::from(6)));
    let (status, text) = script(plant.dir.path(), &root);
    assert_eq!(status, 1, "{text}");
    text.has_all(&["healed: 2 to 3", "missing: 7 to 7", "double: 4", "foreign:", "6 findings"]);
    assert_eq!(text.matches("damaged:").count(), 3, "{text}");
    assert_eq!(files(&root).len(), 8);
}

/// After a restore, a new Business Object begins at 1000001.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the files need not outlive a power cut")]
async fn a_gap_before_a_full_export_is_a_note() {
    let plant = Plant::new();
    let entries = deliver(&plant, embedded(), 1).await;
    let root = plant.bucket("plant-a");
    let move_to = |from: &str, ending: &str| {
        let to = entries[0].key.replace("-000000000001.json", ending);
        std::fs::rename(root.join(from), root.join(&to)).unwrap();
        to
    };
    let bucket = format!("{}/", root.display());
    let verify = |more: &[&str]| {
        penstock(plant.dir.path(), &[&["verify-export", "--bucket", &bucket][..], more].concat())
    };
    let full = move_to(&entries[0].key, "-000001000001.json");
    for more in [&[][..], &["--keys-only"]] {
        let (status, text) = verify(more);
        assert_eq!(status, 0, "{text}");
        text.has_all(&[
            "sequences 1 to 1000000 are missing: the gateway was restored; the full export 1000001 replaces them",
            "whole: 1 object",
        ]);
    }
    let (_, text) = verify(&["--json"]);
    let note: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&note["note"], &note["full"]), (&"healed".into(), &1_000_001.into()));
    let (status, text) = script(plant.dir.path(), &root);
    assert_eq!(status, 0, "{text}");
    text.has_all(&["healed: 1 to 1000000 by the full export 1000001", "1 files, whole"]);

    // Without a full export, the consumer lacks what was before.
    move_to(&full, "-000001000001.incremental.json");
    let (status, text) = verify(&[]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("the gateway was restored; push the Business Object"), "{text}");
    let (status, text) = script(plant.dir.path(), &root);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("missing: 1 to 1000000"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_finds_metadata_that_was_cut_off() {
    let (plant, out) = (Plant::new(), tempfile::tempdir().unwrap());
    let target = Target { format: ExportFormat::JsonLines, ..directory(out.path()) };
    let entries = deliver(&plant, plant_a(target), 2).await;
    let root = out.path().join("plant-a");
    assert_eq!(script(plant.dir.path(), &root), (0, "2 files, whole\n".to_owned()));
    let path = root.join(entries[0].metadata_key().unwrap());
    let metadata = std::fs::read(&path).unwrap();
    std::fs::write(&path, &metadata[..metadata.len() / 2]).unwrap();
    let (status, text) = script(plant.dir.path(), &root);
    assert_eq!(status, 1, "{text}");
    text.has_all(&["damaged:", "2 files, 1 findings"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_with_keys_of_several_templates_and_formats_is_complete() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let plant = Plant::new();
    let by_kind = "{prefix}{kind}/{gateway}/{name}/{yyyy}/{sequence}.json";
    let mut entries = Vec::new();
    let mut last = embedded();
    for (key, format, compression) in [
        ("{prefix}{name}/{name}-{date}-{sequence}.json", ExportFormat::Json, Compression::None),
        (
            "{prefix}{name}/{name}-{date}-{sequence}{suffix}.json",
            ExportFormat::JsonLines,
            Compression::Gzip,
        ),
        (by_kind, ExportFormat::JsonLines, Compression::None),
        (by_kind, ExportFormat::Json, Compression::Zstd),
    ] {
        let mut targets = server.target(&bucket);
        targets.has_extended_metadata = format == ExportFormat::Json;
        for target in targets.named.values_mut() {
            (target.key, target.format) = (key.parse().unwrap(), format);
            if let TargetKind::S3 { compression: chosen, .. } = &mut target.kind {
                *chosen = compression;
            }
        }
        entries.extend(deliver(&plant, targets.clone(), 2).await);
        last = targets;
    }
    assert_eq!(entries[7].key, entries[6].key.replace("000000000007", "000000000008"));
    let dir = plant.dir.path().to_owned();
    let check = move |keys_only: bool, targets: Targets| {
        let place = BucketLocation::of_target(&targets, &dir, "plant-a").unwrap();
        let mut found = Vec::new();
        let report = &mut |finding: &BucketFinding| found.push(finding.clone());
        let summary = walk_bucket(&place, keys_only, &mut |_, _| {}, report).unwrap();
        (summary, found)
    };
    for keys_only in [false, true] {
        let (check, targets) = (check.clone(), last.clone());
        let (summary, found) =
            tokio::task::spawn_blocking(move || check(keys_only, targets)).await.unwrap();
        assert!(found.is_empty(), "{found:?}");
        // Four exports have their metadata in objects of their own.
        assert_eq!((summary.objects, summary.folders.len()), (12, 1), "{summary:?}");
        assert_eq!((summary.folders[0].exports, summary.folders[0].last), (8, 8));
    }

    // The object's metadata contradicts the kind in the key, and the metadata of lines is damaged.
    let (_, body) = server.object(&bucket, &entries[4].key).await;
    let body = String::from_utf8(body).unwrap();
    let more = [
        ("x-amz-meta-kind", "deleted"),
        ("x-amz-meta-gateway-id", "gateway-1"),
        ("x-amz-meta-sha256", entries[4].sha256.as_str()),
    ];
    server.put(&bucket, &entries[4].key, &body, &more).await;
    server.put(&bucket, &entries[5].metadata_key().unwrap(), "{}", &[]).await;
    let (_, found) = tokio::task::spawn_blocking(move || check(false, last)).await.unwrap();
    let causes: Vec<_> = found
        .iter()
        .map(|finding| match finding {
            BucketFinding::Damaged { cause, .. } => cause.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(
        causes[0].contains("the kind in its key and that of its metadata differ: full, deleted")
    );
    assert!(causes[1].contains("its metadata edge 1/full/gateway-1/"), "{causes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_checked_with_the_credentials_of_its_target_or_of_the_environment() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let plant = Plant::new();
    let mut entries = Vec::new();
    // Exports with each compression read back the same.
    for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
        let mut targets = server.target(&bucket);
        for target in targets.named.values_mut() {
            if let TargetKind::S3 { compression: chosen, .. } = &mut target.kind {
                *chosen = compression;
            }
        }
        entries.extend(deliver(&plant, targets, 2).await);
    }
    for (entry, encoding) in entries.iter().step_by(2).zip([None, Some("gzip"), Some("zstd")]) {
        let (headers, body) = server.object(&bucket, &entry.key).await;
        assert_eq!(headers.get("content-encoding").map(|value| value.to_str().unwrap()), encoding);
        assert_eq!(headers["x-amz-meta-sha256"], entry.sha256.as_str());
        assert_eq!(encoding.is_none(), body.len() as u64 == entry.bytes);
    }
    let targets = server.target(&bucket);
    let dir = plant.dir.path().to_owned();
    let check = move |targets: Targets| {
        let place = BucketLocation::of_target(&targets, &dir, "plant-a").unwrap();
        walked(&place)
    };
    let whole = tokio::task::spawn_blocking({
        let (check, targets) = (check.clone(), targets.clone());
        move || check(targets)
    })
    .await
    .unwrap();
    assert!(whole.0.objects == 6 && whole.1.is_empty(), "{whole:?}");
    assert_eq!(whole.0.bytes, entries.iter().map(|entry| entry.bytes).sum::<u64>());
    assert_eq!(whole.0.folders[0].gateway.as_deref(), Some("gateway-1"));

    // An object of another gateway, an object whose bytes do not match its metadata, and a gap.
    let (_, body) = server.object(&bucket, &entries[1].key).await;
    let body = String::from_utf8(body).unwrap();
    let path = |entry: &Export| format!("{bucket}/{}", s3::signing::uri_encode(&entry.key, false));
    let sha256 = |entry: &Export| ("x-amz-meta-sha256", entry.sha256.clone());
    for (entry, gateway) in [(&entries[1], "gateway-2"), (&entries[0], "gateway-1")] {
        let (name, sha256) = sha256(entry);
        let more = [(name, sha256.as_str()), ("x-amz-meta-gateway-id", gateway)];
        server.put(&bucket, &entry.key, &body, &more).await;
    }
    server.ask("DELETE", &path(&entries[3]), "").await;
    let (_, found) = tokio::task::spawn_blocking(move || check(targets)).await.unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found.iter().any(|finding| matches!(finding, BucketFinding::Mixed { .. })),
        "{found:?}"
    );
    assert!(found.iter().any(|finding| matches!(finding, BucketFinding::Damaged { key, cause } if *key == entries[0].key && cause.contains("SHA-256"))), "{found:?}");
    assert!(
        found.iter().any(|finding| {
            matches!(finding, BucketFinding::Healed { from: 4, to: 4, full: 6, .. })
        }),
        "{found:?}"
    );

    let url = format!("{}/{bucket}/edge%201/", server.endpoint);
    let reader = ReadCredentials {
        access_key_id: server.key.clone(),
        secret_access_key: server.secret.clone(),
        region: server.region.clone(),
    };
    let by_url =
        tokio::task::spawn_blocking(move || walked(&BucketLocation::of_url(&url, reader).unwrap()))
            .await
            .unwrap();
    assert_eq!(by_url.1.len(), 3);
}
