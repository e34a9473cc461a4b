//! Whatever failures the link has, every object arrives in its bucket once, byte for byte, in order.
//!
//! Each run prints its seed, and `PENSTOCK_TEST_SEED` repeats that run. `PENSTOCK_TEST_DELIVERIES=5000` makes a run
//! longer than the default.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failing test ends immediately, and prints its seed"
)]

use penstock_test_support::exports::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use std::collections::HashMap;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Fails one request in three in one of nine ways.
fn random_faults(
    seed: u64,
    seen: Arc<Mutex<HashMap<&'static str, u64>>>,
) -> impl FnMut() -> Fault + Send {
    let mut random = StdRng::seed_from_u64(seed);
    move || {
        let (name, fault) = match random.random_range(0..27) {
            0 => ("refuse", Fault::Refuse(random.random_range(1..60))),
            1 => ("reset", Fault::Reset),
            2 => ("blackhole", Fault::Blackhole),
            3 => ("latency", Fault::Latency(random.random_range(1..60))),
            4 => ("rate", Fault::Rate(random.random_range(20_000..2_000_000))),
            5 => ("cut up", Fault::CutUp(random.random_range(1..3_000))),
            6 => ("cut down", Fault::CutDown(random.random_range(1..400))),
            7 => ("answer dropped", Fault::DropAnswer),
            8 => ("slow down", Fault::SlowDown),
            _ => ("pass", Fault::Pass),
        };
        *seen.lock().unwrap().entry(name).or_default() += 1;
        fault
    }
}

async fn everything_arrives(server: Server, deliveries: u64) {
    const TARGETS: u64 = 12;
    let seed = number("PENSTOCK_TEST_SEED").unwrap_or_else(rand::random);
    println!("PENSTOCK_TEST_SEED={seed}");
    let seen = Arc::default();
    let mut targets = embedded();
    let mut links = Vec::new();
    let mut names = Vec::new();
    for number in 0..TARGETS {
        let bucket = new_name();
        server.create(&bucket).await;
        let link =
            Link::to(&server.endpoint, random_faults(seed.wrapping_add(number), Arc::clone(&seen)))
                .await;
        let name = format!("plant-{number}");
        // Half of the targets have two objects for each export.
        let format = if number % 2 == 0 { ExportFormat::Json } else { ExportFormat::JsonLines };
        let target = Target { format, ..server.at(&link.endpoint).one(&bucket) };
        targets.named.insert(name.clone(), target);
        links.push(link);
        names.push((name, bucket));
    }
    let plant = Plant::new();
    let options = ExportOptions {
        history: 1_000_000,
        spool: 1 << 40,
        timings: DeliveryTimings { idle_timeout: Duration::from_secs(1), ..quick() },
        ..plant.options(targets)
    };
    let exporter = Exporter::open(plant.store.clone(), options).unwrap();
    let every: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    let business_object = pump("Pump ü", &every);
    let running = run(&exporter);
    let mut pushed = Vec::new();
    for number in 0..deliveries.div_ceil(TARGETS) {
        if number % 16 == 0 {
            let number = u32::try_from(number).unwrap();
            plant.pumps(number..number + 1, 1 + (number as usize * 37) % 3000);
        }
        let push = exporter.push(&business_object, ExportRequester::gateway()).unwrap();
        pushed.extend(push.exports);
    }
    // The time limit is for each of them.
    for entry in &pushed {
        until_delivered(&exporter, entry).await;
    }
    running.stop().await;
    println!("{deliveries} deliveries; {:?}", seen.lock().unwrap());
    let all = exporter.list(None, 1_000_000).unwrap();
    for (name, bucket) in &names {
        let mut entries: Vec<Export> =
            all.iter().filter(|entry| entry.target == *name).cloned().collect();
        entries.reverse();
        assert!(entries.iter().map(|entry| entry.sequence).eq(1..=deliveries.div_ceil(TARGETS)));
        assert!(entries.is_sorted_by_key(|entry| entry.delivered_at.clone()), "out of order");
        server.check(bucket, &entries).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_at_ceph_once_and_in_order_over_a_failing_link() {
    everything_arrives(ceph(), number("PENSTOCK_TEST_DELIVERIES").unwrap_or(1_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_at_swift_once_and_in_order_over_a_failing_link() {
    let deliveries = number("PENSTOCK_TEST_DELIVERIES").map_or(180, |all| all / 5);
    everything_arrives(swift(), deliveries).await;
}

/// A proxy delays the file. It forwards it only after the gateway has given up the request.
async fn late_file_arrives_once(server: Server) {
    let bucket = new_name();
    server.create(&bucket).await;
    let mut requests = 0;
    let link = Link::to(&server.endpoint, move || {
        requests += 1;
        // The first request is the query, the second stores the file.
        if requests == 2 { Fault::Late(4_000) } else { Fault::Pass }
    })
    .await;
    let plant = Plant::with_pumps(0..3, 10);
    let options = ExportOptions {
        timings: DeliveryTimings {
            idle_timeout: Duration::from_secs(2),
            settle_time: Duration::from_secs(30),
            ..quick()
        },
        ..plant.options(server.at(&link.endpoint).target(&bucket))
    };
    let exporter = Exporter::open(plant.store.clone(), options).unwrap();
    let entry = push_one(&exporter, &pump("Pump ü", &["plant-a"]));
    let running = run(&exporter);
    let entry = until_delivered(&exporter, &entry).await;
    // A second copy would have arrived by now.
    tokio::time::sleep(Duration::from_secs(2)).await;
    running.stop().await;
    // A slow machine may need more of them.
    assert!(entry.attempts >= 2, "{entry:?}");
    server.check(&bucket, &[entry]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_file_arrives_at_ceph_once() {
    late_file_arrives_once(ceph()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_file_arrives_at_swift_once() {
    late_file_arrives_once(swift()).await;
}

/// Delivers a file of several parts over a link that breaks at random.
async fn long_file_arrives(server: Server) {
    let bucket = new_name();
    // Swift may keep the upload after it has assembled the parts. Then the gateway completes the upload again.
    server.create_plain(&bucket).await;
    let mut random = StdRng::seed_from_u64(7);
    let requests = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&requests);
    let link = Link::to(&server.endpoint, move || {
        *counted.lock().unwrap() += 1;
        match random.random_range(0..6) {
            0 => Fault::CutUp(random.random_range(1..(5 << 20))),
            1 => Fault::DropAnswer,
            2 => Fault::CutDown(random.random_range(1..300)),
            3 => Fault::SlowDown,
            _ => Fault::Pass,
        }
    })
    .await;
    let plant = Plant::with_pumps(0..600, 50_000);
    let exporter = plant.quick(server.at(&link.endpoint).target(&bucket));
    let entry = push_one(&exporter, &pump("Pump ü", &["plant-a"]));
    assert!(entry.bytes > 25 << 20);
    let running = run(&exporter);
    let entry = until_delivered(&exporter, &entry).await;
    until("no uploads are left", async || server.uploads(&bucket).await == 0).await;
    running.stop().await;
    println!("{} attempts, {} requests", entry.attempts, requests.lock().unwrap());
    server.check(&bucket, &[entry]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_arrives_at_ceph_part_by_part() {
    long_file_arrives(ceph()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_arrives_at_swift_part_by_part() {
    long_file_arrives(swift()).await;
}
