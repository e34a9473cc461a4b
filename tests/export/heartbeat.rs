//! Heartbeats: each bucket and directory has the newest one, and a failure of one place delays nothing.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use penstock_config::{GraphTemplate, SparqlLogin, SparqlProtocol, SparqlStore};
use penstock_export::walk::{BucketFinding, BucketLocation, walk_bucket};
use penstock_resources::gateway::HeartbeatTimes;
use penstock_test_support::exports::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// Runs heartbeats, each with its number.
fn beat(exporter: &Exporter) -> (watch::Sender<bool>, tokio::task::JoinHandle<()>) {
    let (stop, stopped) = watch::channel(false);
    let exporter = exporter.clone();
    let count = AtomicU64::new(0);
    let task = tokio::spawn(async move {
        let collect = |times: HeartbeatTimes| {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let text = json!({"number": number, "at": times.at, "nextDue": times.next_due});
            std::future::ready(Ok(text.to_string()))
        };
        exporter.run_heartbeats(stopped, collect).await;
    });
    (stop, task)
}

/// Waits for a heartbeat with at least this number.
async fn until_beat(path: &Path, number: u64) -> Value {
    until_some("there is a heartbeat", async || {
        // A reader never sees a part of it.
        let text = std::fs::read(path).ok()?;
        Some(serde_json::from_slice::<Value>(&text).unwrap())
            .filter(|found| found["number"].as_u64().unwrap() >= number)
    })
    .await
}

fn with_heartbeats(targets: Targets) -> Targets {
    Targets { heartbeat_interval: Some(Duration::from_millis(100)), ..targets }
}

fn named<const N: usize>(targets: [(&str, Target); N]) -> Targets {
    let named = targets.into_iter().map(|(name, target)| (name.to_owned(), target)).collect();
    Targets { named, ..embedded() }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_directory_has_the_newest_heartbeat_and_a_failing_one_delays_nothing() {
    let (plant, out) = (Plant::with_pumps(0..3, 10), tempfile::tempdir().unwrap());
    let broken = out.path().join("broken");
    std::fs::write(&broken, "a file in place of the folder").unwrap();
    let store = SparqlStore {
        endpoint: "http://127.0.0.1:9/update".to_owned(),
        protocol: SparqlProtocol::Update,
        login: SparqlLogin::Anonymous,
        ca_file: None,
        graph: GraphTemplate::default(),
    };
    let good = Target { prefix: "edge/".to_owned(), ..directory(&out.path().join("good")) };
    let exporter = plant.open(with_heartbeats(named([
        ("plant-a", good),
        ("plant-b", directory(&broken)),
        ("plant-c", Target { kind: TargetKind::Sparql(store), ..directory(out.path()) }),
    ])));
    let running = run(&exporter);
    let (stop, beating) = beat(&exporter);
    let entry = push_pump(&exporter);
    until_delivered(&exporter, &entry).await;
    let root = out.path().join("good/plant-a");
    let beat = until_beat(&root.join("edge/_status/gateway-1.json"), 3).await;
    assert!(beat["nextDue"].text() > beat["at"].text(), "{beat}");

    // The directory is usable again.
    std::fs::remove_file(&broken).unwrap();
    let number = beat["number"].as_u64().unwrap();
    until_beat(&broken.join("plant-b/_status/gateway-1.json"), number).await;
    stop.send(true).unwrap();
    beating.await.unwrap();
    running.stop().await;
    assert_eq!(files(&root).len(), 2, "{:?}", files(&root));

    // The verifier passes over this file only.
    let foreign = |root: &Path| {
        let mut found = Vec::new();
        let place = BucketLocation::of_directory(root.to_owned());
        let mut add = |finding: &BucketFinding| found.push(finding.clone());
        let summary = walk_bucket(&place, false, &mut |_, _| {}, &mut add).unwrap();
        (summary.objects, found)
    };
    assert_eq!(foreign(&root), (1, Vec::new()));
    std::fs::write(root.join("edge/_status/notes.txt"), "x").unwrap();
    std::fs::create_dir(root.join("edge/_status/more")).unwrap();
    std::fs::write(root.join("edge/_status/more/gateway-1.json"), "{}").unwrap();
    let (objects, mut found) = foreign(&root);
    found.sort_by_key(|finding| format!("{finding:?}"));
    let key = |key: &str| BucketFinding::Foreign { key: key.to_owned() };
    let expected = ["edge/_status/more/gateway-1.json", "edge/_status/notes.txt"].map(key);
    assert_eq!((objects, found), (3, expected.to_vec()));
}

/// A heartbeat in its place would hide that the disk of the folder is not mounted.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_gone_gets_no_heartbeat() {
    let (plant, out) = (Plant::with_pumps(0..3, 10), tempfile::tempdir().unwrap());
    let target = || directory(out.path());
    let exporter =
        plant.open(with_heartbeats(named([("plant-a", target()), ("plant-b", target())])));
    run_until_delivered(&exporter, &push_pump(&exporter)).await;
    std::fs::remove_dir_all(out.path().join("plant-a")).unwrap();
    let (stop, beating) = beat(&exporter);
    until_beat(&out.path().join("plant-b/_status/gateway-1.json"), 3).await;
    stop.send(true).unwrap();
    beating.await.unwrap();
    assert!(!out.path().join("plant-a").exists());
}

/// Other users who can write to the directory must not be able to redirect a heartbeat, or to block it.
#[tokio::test(flavor = "multi_thread")]
async fn links_and_fifos_in_place_of_a_heartbeat_are_replaced() {
    let (plant, out) = (Plant::new(), tempfile::tempdir().unwrap());
    let target = |name: &str| directory(&out.path().join(name));
    let exporter = plant
        .open(with_heartbeats(named([("plant-a", target("link")), ("plant-b", target("fifo"))])));
    let victim = out.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let folders =
        ["link/plant-a/_status", "fifo/plant-b/_status"].map(|name| out.path().join(name));
    for name in ["gateway-1.json", ".gateway-1.json.part"] {
        for folder in &folders {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(&victim, folders[0].join(name)).unwrap();
        nix::unistd::mkfifo(&folders[1].join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let (stop, beating) = beat(&exporter);
    let is_file = |folder: &PathBuf| {
        folder.join("gateway-1.json").symlink_metadata().unwrap().file_type().is_file()
    };
    until("the heartbeats are files", async || folders.iter().all(is_file)).await;
    for folder in &folders {
        until_beat(&folder.join("gateway-1.json"), 3).await;
    }
    stop.send(true).unwrap();
    beating.await.unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bucket_of_several_names_gets_one_heartbeat() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let plant = Plant::new();
    let default = Some(server.one(&bucket));
    let exporter = plant.quick(with_heartbeats(Targets { default, ..embedded() }));
    let running = run(&exporter);
    plant.pumps(0..1, 10);
    for (object, target) in [("Pump", "plant-a"), ("Tank", "plant-b")] {
        let entry = push_one(&exporter, &pump(object, &[target]));
        until_delivered(&exporter, &entry).await;
    }
    let (stop, beating) = beat(&exporter);
    let keys = until_some("there is a heartbeat", async || {
        let mut keys = server.keys(&bucket).await;
        // Each heartbeat is a version of one object.
        keys.dedup();
        Some(keys).filter(|keys| keys.len() > 2)
    })
    .await;
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert!(keys.contains(&"edge 1/_status/gateway-1.json".to_owned()), "{keys:?}");
    stop.send(true).unwrap();
    beating.await.unwrap();
    running.stop().await;
}
