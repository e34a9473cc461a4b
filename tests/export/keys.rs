//! The keys and the formats of a directory target, from the template to the verification of the bucket.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use penstock_base::commit::NoClient;
use penstock_base::error::ErrorClass;
use penstock_export::verify;
use penstock_export::walk::{BucketFinding, BucketLocation, WalkSummary, walk_bucket};
use penstock_test_support::exports::prelude::*;
use sha2::{Digest as _, Sha256};

const BY_KIND: &str = "{prefix}{gateway}/{kind}/{name}/{yyyy}/{mm}/{dd}/{sequence}.json";
/// The template that keeps the keys of earlier versions.
const EARLIER: &str = "{prefix}{name}/{name}-{date}-{sequence}.json";

/// Returns targets with `plant-a`, whose directory is in `out`.
fn targets(out: &Path, key: &str, format: ExportFormat) -> Targets {
    let target = Target { key: key.parse().unwrap(), format, ..directory(out) };
    let mut targets = embedded();
    targets.named.insert("plant-a".to_owned(), target);
    targets
}

async fn deliver(exporter: &Exporter, name: &str) -> Export {
    let entry = push_one(exporter, &pump(name, &["plant-a"]));
    until_delivered(exporter, &entry).await
}

fn walk(place: &BucketLocation, keys_only: bool) -> (WalkSummary, Vec<BucketFinding>) {
    let mut found = Vec::new();
    let report = &mut |finding: &BucketFinding| found.push(finding.clone());
    let summary = walk_bucket(place, keys_only, &mut |_, _| {}, report).unwrap();
    (summary, found)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_export_keeps_its_key_when_the_template_changes() {
    let (plant, out) = (Plant::with_pumps(0..2, 5), tempfile::tempdir().unwrap());
    let exporter = plant.open(targets(out.path(), EARLIER, ExportFormat::Json));
    let earlier = push_one(&exporter, &pump("Pump ü", &["plant-a"]));
    drop(exporter);
    assert!(earlier.key.ends_with("Z-000000000001.json"), "{}", earlier.key);

    let plant = plant.restart();
    let later = targets(out.path(), BY_KIND, ExportFormat::JsonLines);
    let exporter = plant.open(later.clone());
    let running = run(&exporter);
    let entry = deliver(&exporter, "Pump ü").await;
    let date = read(&out.path().join("plant-a").join(entry.metadata_key().unwrap()));
    let date: Value = serde_json::from_str(&date).unwrap();
    let date = date["metadata"]["export_date"].text();
    let (year, month, day) = (&date[..4], &date[4..6], &date[6..8]);
    let stem = format!("gateway-1/full/Pump%20%C3%BC/{year}/{month}/{day}/000000000002");
    assert_eq!(entry.key, format!("{stem}.jsonl"));
    let root = out.path().join("plant-a");
    let all = [earlier.key.clone(), format!("{stem}.jsonl"), format!("{stem}.meta.json")];
    let mut all = all.to_vec();
    all.sort();
    assert_eq!(files(&root), all);

    // A replay writes the same bytes under the same key, whatever the template is.
    let before = read(&root.join(&earlier.key));
    std::fs::remove_file(root.join(&earlier.key)).unwrap();
    exporter.replay(&NoClient, &earlier.id).unwrap();
    until_delivered(&exporter, &earlier).await;
    running.stop().await;
    assert_eq!(read(&root.join(&earlier.key)), before);
    assert_eq!(files(&root), all);

    // The bucket is complete with the keys of both templates.
    let places = [
        BucketLocation::of_target(&later, plant.dir.path(), "plant-a").unwrap(),
        BucketLocation::of_directory(root.clone()).with_templates([BY_KIND.parse().unwrap()]),
    ];
    for place in &places {
        for keys_only in [false, true] {
            let (summary, found) = walk(place, keys_only);
            assert!(found.is_empty(), "{found:?}");
            assert_eq!((summary.objects, summary.folders.len()), (3, 1));
            let folder = &summary.folders[0];
            assert_eq!((folder.exports, folder.last), (2, 2));
            assert_eq!(folder.folder, "gateway-1/Pump%20%C3%BC");
        }
    }
    let (_, found) = walk(&BucketLocation::of_directory(root.clone()), true);
    assert_eq!(found.len(), 2, "{found:?}");
    let bucket = format!("{}/", root.display());
    let arguments = ["verify-export", "--bucket", &bucket, "--key", BY_KIND];
    Command::new(binary()).args(arguments).succeed();
    let arguments = ["verify-export", "--bucket", &bucket, "--key", "{prefix}{name}.json"];
    let refused = Command::new(binary()).args(arguments).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.contains("has no `{sequence}`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_delivered_after_their_metadata() {
    let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
    let configured = Targets {
        has_extended_metadata: true,
        ..targets(out.path(), "{prefix}{name}/{sequence}{suffix}.json", ExportFormat::JsonLines)
    };
    let exporter = plant.open(configured);
    let entry = push_pump(&exporter);
    let root = out.path().join("plant-a");
    let (metadata, lines) = (root.join("Pump/000000000001.meta.json"), root.join(&entry.key));
    assert_eq!(entry.key, "Pump/000000000001.jsonl");

    // The metadata is there, and the lines cannot be written: their name is that of a folder.
    std::fs::create_dir_all(&lines).unwrap();
    let running = run(&exporter);
    until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
    running.stop().await;
    let written = read(&metadata);
    drop(exporter);
    // A bucket in which the lines are still missing has no gap: the delivery is not finished.
    std::fs::remove_dir(&lines).unwrap();
    let (summary, found) = walk(
        &BucketLocation::of_directory(root.clone())
            .with_templates(["{prefix}{name}/{sequence}{suffix}.json".parse().unwrap()]),
        false,
    );
    assert_eq!((summary.folders.len(), found.len()), (0, 0), "{found:?}");

    // After a power cut, the metadata is not written again.
    let plant = plant.restart();
    let configured = Targets {
        // Both settings are those of the time when the export was queued.
        has_extended_metadata: false,
        ..targets(out.path(), EARLIER, ExportFormat::Json)
    };
    let exporter = plant.open(configured);
    let running = run(&exporter);
    until_delivered(&exporter, &entry).await;
    assert_eq!(read(&metadata), written);
    let text = read(&lines);
    assert_eq!(text.lines().count(), 3);
    assert!(text.ends_with("}\n") && text.starts_with("{\"uri\":"), "{text}");
    assert_eq!(entry.data_checksum, format!("{:x}", Sha256::digest(&text)));
    let verified = verify::verify_file(&lines).unwrap();
    assert_eq!((verified.object_count, &verified.data_checksum), (3, &entry.data_checksum));
    let extended = verified.extended.unwrap();
    assert_eq!((extended.kind.as_str(), extended.sequence), ("full", 1));
    assert_eq!((extended.gateway_id.as_str(), &extended.export_id), ("gateway-1", &entry.id));

    // A repeated delivery restores whichever of the two is lost, and changes nothing else.
    for lost in [&metadata, &lines] {
        std::fs::remove_file(lost).unwrap();
        exporter.replay(&NoClient, &entry.id).unwrap();
        until_delivered(&exporter, &entry).await;
        assert_eq!((read(&metadata), read(&lines)), (written.clone(), text.clone()));
    }
    // Other metadata is never overwritten.
    std::fs::write(&metadata, "{}").unwrap();
    exporter.replay(&NoClient, &entry.id).unwrap();
    until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
    let target = find_target(&exporter, "plant-a");
    assert_eq!(target.blocked_by, Some(Cause::Conflict));
    running.stop().await;
    assert_eq!(read(&metadata), "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_of_lines_and_their_metadata_is_found() {
    let (plant, out) = (Plant::new(), tempfile::tempdir().unwrap());
    let key = "{prefix}{name}/{sequence}-{kind}.json";
    let configured = targets(out.path(), key, ExportFormat::JsonLines);
    let exporter = plant.open(configured.clone());
    let running = run(&exporter);
    let root = out.path().join("plant-a");
    let mut entries = Vec::new();
    for number in 0..6 {
        plant.pumps(number..number + 1, 5);
        entries.push(deliver(&exporter, "Pump").await);
    }
    running.stop().await;
    let place = BucketLocation::of_target(&configured, plant.dir.path(), "plant-a").unwrap();
    let (summary, found) = walk(&place, false);
    assert_eq!((summary.objects, summary.folders[0].exports, found.len()), (12, 6, 0), "{found:?}");
    assert_eq!(summary.bytes, entries.iter().map(|entry| entry.bytes).sum::<u64>());

    let metadata = |at: usize| root.join(entries[at].metadata_key().unwrap());
    std::fs::remove_file(metadata(0)).unwrap();
    std::fs::remove_file(root.join(&entries[1].key)).unwrap();
    let text = read(&root.join(&entries[2].key));
    std::fs::write(root.join(&entries[2].key), text.replacen("pump 0", "pump 1", 1)).unwrap();
    std::fs::write(metadata(3), read(&metadata(3)).replacen("Pump", "Dump", 1)).unwrap();
    let deleted = entries[4].key.replace("-full", "-deleted");
    std::fs::copy(root.join(&entries[4].key), root.join(&deleted)).unwrap();
    std::fs::remove_file(root.join(&entries[4].key)).unwrap();
    std::fs::copy(metadata(5), root.join("Pump/000000000006-deleted.meta.json")).unwrap();
    let (_, found) = walk(&place, false);
    let damaged = |at: usize, words: &str| {
        let key = if at == 4 { &deleted } else { &entries[at].key };
        found.iter().any(|finding| {
            matches!(finding, BucketFinding::Damaged { key: found, cause } if found == key && cause.contains(words))
        })
    };
    assert!(
        damaged(0, "its metadata Pump/000000000001-full.meta.json does not exist"),
        "{found:?}"
    );
    let folder = "Pump".to_owned();
    assert!(
        found.contains(&BucketFinding::Healed { folder, from: 2, to: 2, full: 6 }),
        "{found:?}"
    );
    assert!(damaged(2, "/metadata/data_checksum: expected"), "{found:?}");
    assert!(damaged(3, "the name in its key and `object_type` differ: Pump, Dump"), "{found:?}");
    assert!(
        damaged(4, "its metadata Pump/000000000005-deleted.meta.json does not exist"),
        "{found:?}"
    );
    let is_double =
        |finding: &BucketFinding| matches!(finding, BucketFinding::Double { sequence: 6, .. });
    assert!(found.iter().any(is_double), "{found:?}");
    assert_eq!(found.len(), 6, "{found:?}");

    // The keys show what is missing, and that a sequence has two keys.
    let (_, found) = walk(&place, true);
    let is_without_metadata = |finding: &BucketFinding| {
        let words = "the metadata (`.meta.json`) of sequence 1 does not exist";
        matches!(finding, BucketFinding::Damaged { key, cause } if key == "Pump" && cause == words)
    };
    assert!(found.iter().any(is_without_metadata), "{found:?}");
    assert!(found.iter().any(is_double), "{found:?}");
    let folder = "Pump".to_owned();
    assert!(
        found.contains(&BucketFinding::Healed { folder, from: 2, to: 2, full: 6 }),
        "{found:?}"
    );
    assert_eq!(found.len(), 3, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_metadata_is_written_for_a_file_that_cannot_be_delivered() {
    for is_missing in [false, true] {
        let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
        let key = "{prefix}{name}/{sequence}{suffix}.json";
        let exporter = plant.open(targets(out.path(), key, ExportFormat::JsonLines));
        let entry = push_pump(&exporter);
        let spooled = exporter.spool_folder().join(format!("{}.json", entry.id));
        let text = read(&spooled);
        if is_missing {
            std::fs::remove_file(&spooled).unwrap();
        } else {
            std::fs::write(&spooled, text.replacen("pump", "pumq", 1)).unwrap();
        }
        let running = run(&exporter);
        until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
        let root = out.path().join("plant-a");
        assert!(!root.exists() || files(&root).is_empty(), "{is_missing}");

        std::fs::write(&spooled, text).unwrap();
        exporter.retry(&NoClient, &entry.id).unwrap();
        until_delivered(&exporter, &entry).await;
        running.stop().await;
        assert_eq!(files(&root), ["Pump/000000000001.jsonl", "Pump/000000000001.meta.json"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intact_bucket_with_a_long_prefix_passes_wherever_the_prefix_is_unknown() {
    let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
    let key = "{prefix}{name}/{sequence}.json";
    let mut configured = targets(out.path(), key, ExportFormat::Json);
    for target in configured.named.values_mut() {
        target.prefix = "plant-exports-of-the-gateway-edge-1-".to_owned();
    }
    let exporter = plant.open(configured);
    let running = run(&exporter);
    deliver(&exporter, "Pump").await;
    running.stop().await;
    let place = BucketLocation::of_directory(out.path().join("plant-a"));
    let (summary, found) = walk(&place.with_templates([key.parse().unwrap()]), false);
    assert_eq!((summary.objects, found), (1, Vec::new()));
}

#[test]
fn targets_with_different_formats_share_one_rendering() {
    let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
    for has_extended_metadata in [false, true] {
        let mut configured = Targets { has_extended_metadata, ..embedded() };
        for (name, format) in [
            ("plant-a", ExportFormat::Json),
            ("plant-b", ExportFormat::JsonLines),
            ("plant-c", ExportFormat::Json),
            ("plant-d", ExportFormat::JsonLines),
        ] {
            configured.named.insert(name.to_owned(), Target { format, ..directory(out.path()) });
        }
        let exporter = plant.open(configured);
        let pumps = pump("Pump", &["plant-a", "plant-b", "plant-c", "plant-d"]);
        let exports = exporter.push(&pumps, ExportRequester::gateway()).unwrap().exports;
        let names: Vec<_> = exports.iter().map(|entry| entry.target.as_str()).collect();
        assert_eq!(names, ["plant-a", "plant-b", "plant-c", "plant-d"]);
        assert_eq!(exports[1].sha256, exports[3].sha256);
        assert_eq!(exports[0].sha256 == exports[2].sha256, !has_extended_metadata);
        assert_eq!(exports[0].data_checksum, exports[2].data_checksum);
        for entry in &exports {
            let bytes =
                std::fs::read(exporter.spool_folder().join(format!("{}.json", entry.id))).unwrap();
            assert_eq!(entry.sha256, format!("{:x}", Sha256::digest(&bytes)));
            assert_eq!(entry.bytes, bytes.len() as u64);
            if entry.format() == ExportFormat::Json {
                let file: Value = serde_json::from_slice(&bytes).unwrap();
                let members = file["metadata"].as_object().unwrap().len();
                assert_eq!(members, if has_extended_metadata { 11 } else { 5 });
                if has_extended_metadata {
                    assert_eq!(file["metadata"]["export_id"], entry.id.as_str());
                    assert_eq!(file["metadata"]["sequence"], entry.sequence);
                }
            }
        }
    }
    assert_eq!(plant.spooled().len(), 8);
}

#[test]
fn a_name_that_does_not_fit_into_the_keys_of_a_target_is_refused() {
    let (plant, out) = (Plant::with_pumps(0..1, 5), tempfile::tempdir().unwrap());
    // The keys of full exports are shorter than those of changes.
    let name = "n".repeat(230);
    let exporter = plant.open(targets(out.path(), EARLIER, ExportFormat::Json));
    let refused =
        exporter.push(&pump(&name, &["plant-a"]), ExportRequester::gateway()).unwrap_err();
    assert_eq!(refused.class, ErrorClass::Invalid);
    assert!(refused.detail.contains("would be 10 bytes too long"), "{refused}");
    drop(exporter);
    let key = "{prefix}{name}/{sequence}{suffix}.json";
    let exporter = plant.open(targets(out.path(), key, ExportFormat::Json));
    push_one(&exporter, &pump(&name, &["plant-a"]));
}
