//! SIGKILL at random moments, over a link that fails at random: every queued export arrives once and in order.
//!
//! `PENSTOCK_TEST_KILLS=200` makes the test longer.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failing test ends immediately, and prints what it did"
)]

use penstock_export::verify;
use penstock_export::walk::{BucketLocation, walk_bucket};
use penstock_test_support::exports::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// Runs in the process to kill: creates and delivers exports without end. The other test starts this one in a separate
/// process with these variables. Without them, it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn runs_in_the_process_to_kill() {
    let Ok(data_dir) = std::env::var("PENSTOCK_TEST_KILLED_DIR") else { return };
    if let Ok(out) = std::env::var("PENSTOCK_TEST_KILLED_OUT") {
        let exporter = open_with(Path::new(&data_dir), lines_and_documents(Path::new(&out)));
        let _running = run(&exporter);
        loop {
            let pumps = pump("Pump", &["lines", "documents"]);
            exporter.push(&pumps, ExportRequester::gateway()).unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let endpoint = std::env::var("PENSTOCK_TEST_KILLED_ENDPOINT").unwrap();
    let bucket = std::env::var("PENSTOCK_TEST_KILLED_BUCKET").unwrap();
    let exporter = open(Path::new(&data_dir), &ceph().at(&endpoint).one(&bucket));
    let _running = run(&exporter);
    loop {
        exporter.push(&pump("Pump", &["plant-a"]), ExportRequester::gateway()).unwrap();
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
}

fn open(data_dir: &Path, target: &Target) -> Exporter {
    let mut targets = embedded();
    targets.named.insert("plant-a".to_owned(), target.clone());
    open_with(data_dir, targets)
}

/// Returns two directory targets whose files have extended metadata, one for each format.
fn lines_and_documents(out: &Path) -> Targets {
    let mut targets = Targets { has_extended_metadata: true, ..embedded() };
    for (name, format) in [("lines", ExportFormat::JsonLines), ("documents", ExportFormat::Json)] {
        targets.named.insert(name.to_owned(), Target { format, ..directory(out) });
    }
    targets
}

fn open_with(data_dir: &Path, targets: Targets) -> Exporter {
    let store = open_store(data_dir);
    let options = ExportOptions {
        history: 1_000_000,
        timings: quick(),
        spool: 1 << 40,
        ..options(&store, data_dir, targets)
    };
    Exporter::open(store, options).unwrap()
}

fn endpoint_of(target: &Target) -> String {
    match &target.kind {
        TargetKind::S3 { endpoint, .. } => endpoint.clone(),
        TargetKind::Directory { .. } | TargetKind::Sparql(_) => String::new(),
    }
}

async fn kill_and_check(server: Server, kills: u32) {
    let bucket = new_name();
    server.create_plain(&bucket).await;
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut faults = StdRng::seed_from_u64(seed + 1);
    let link = Link::to(&server.endpoint, move || match faults.random_range(0..12) {
        0 => Fault::DropAnswer,
        1 => Fault::CutUp(faults.random_range(1..100_000)),
        2 => Fault::Latency(5),
        _ => Fault::Pass,
    })
    .await;
    let plant = Plant::with_pumps(0..20, 20_000);
    let dir = plant.dir.path().to_owned();
    let Plant { dir: kept, store } = plant;
    drop(store);
    let target = server.at(&link.endpoint).one(&bucket);
    for _ in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::runs_in_the_process_to_kill"])
            .env("PENSTOCK_TEST_KILLED_DIR", &dir)
            .env("PENSTOCK_TEST_KILLED_ENDPOINT", endpoint_of(&target))
            .env("PENSTOCK_TEST_KILLED_BUCKET", &bucket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(random.random_range(100..900))).await;
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    link.set(Fault::Pass);
    let exporter = open(&dir, &target);
    let running = run(&exporter);
    // A slow machine may have killed every process before its first export.
    let newest = push_pump(&exporter);
    until_delivered(&exporter, &newest).await;
    running.stop().await;
    let mut entries = exporter.list(None, 1_000_000).unwrap();
    entries.reverse();
    println!("{} exports, {kills} kills", entries.len());
    assert!(entries.iter().all(|entry| entry.status == ExportStatus::Delivered));
    assert!(entries.is_sorted_by_key(|entry| entry.delivered_at.clone()), "out of order");
    assert!(entries.iter().map(|entry| entry.sequence).eq(1..=entries.len() as u64));
    server.check(&bucket, &entries).await;
    drop(kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_exports_arrive_once_and_in_order_whenever_the_process_is_killed() {
    let kills = std::env::var("PENSTOCK_TEST_KILLS").map_or(12, |text| text.parse().unwrap());
    kill_and_check(ceph(), kills).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn extended_metadata_and_lines_arrive_whole_whenever_the_process_is_killed() {
    let kills = std::env::var("PENSTOCK_TEST_KILLS").map_or(12, |text| text.parse().unwrap());
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let out = tempfile::tempdir().unwrap();
    let plant = Plant::with_pumps(0..20, 2_000);
    let Plant { dir, store } = plant;
    drop(store);
    for _ in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::runs_in_the_process_to_kill"])
            .env("PENSTOCK_TEST_KILLED_DIR", dir.path())
            .env("PENSTOCK_TEST_KILLED_OUT", out.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(random.random_range(100..600))).await;
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it was killed");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let targets = lines_and_documents(out.path());
    let exporter = open_with(dir.path(), targets.clone());
    let running = run(&exporter);
    let pumps = pump("Pump", &["lines", "documents"]);
    for last in exporter.push(&pumps, ExportRequester::gateway()).unwrap().exports {
        until_delivered(&exporter, &last).await;
    }
    running.stop().await;
    let entries = exporter.list(None, 1_000_000).unwrap();
    println!("{} exports, {kills} kills", entries.len());
    for entry in &entries {
        assert_eq!(entry.status, ExportStatus::Delivered);
        let file = verify::verify_file(&out.path().join(&entry.target).join(&entry.key)).unwrap();
        let extended = file.extended.unwrap();
        assert_eq!((extended.sequence, &extended.export_id), (entry.sequence, &entry.id));
        assert_eq!(file.data_checksum, entry.data_checksum);
    }
    for name in ["lines", "documents"] {
        let place = BucketLocation::of_target(&targets, dir.path(), name).unwrap();
        let walked = walk_bucket(&place, false, &mut |_, _| {}, &mut |finding| {
            panic!("{finding:?}");
        });
        let exports = entries.iter().filter(|entry| entry.target == name).count() as u64;
        assert_eq!(walked.unwrap().folders[0].exports, exports);
    }
    let spooled = files(&dir.path().join("spool"));
    assert!(spooled.len() <= entries.len(), "{spooled:?}");
}
