//! A simulated week without a link: the queue grows but memory does not, the log stays short, and everything
//! arrives in order once the link is back.
//!
//! `PENSTOCK_TEST_QUEUED=10000` queues as many exports as a week has. The default is fewer.
#[path = "export/support/mod.rs"]
mod support;

use penstock_export::{ExportOptions, Exporter};
use penstock_resources::export::{Cause, ExportStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use support::link::{Fault, Link};
use support::s3::{blocked, ceph, new_name, quick};
use support::{Plant, find_target, memory, pump, push_one, run, until_status};
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// Counts the log lines that an operator would have to read.
struct Warnings(Arc<AtomicU64>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Warnings {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if *event.metadata().level() <= tracing::Level::WARN {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_week_offline() {
    let queued: u64 =
        std::env::var("PENSTOCK_TEST_QUEUED").map_or(300, |text| text.parse().unwrap());
    let warnings = Arc::new(AtomicU64::new(0));
    let counted = tracing_subscriber::registry().with(Warnings(Arc::clone(&warnings)));
    tracing::subscriber::set_global_default(counted).unwrap();
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let link = Link::to(&server.endpoint, || Fault::Refuse(u64::MAX)).await;
    let plant = Plant::new();
    plant.pumps(0..1, 10);
    let options = ExportOptions {
        history: 1_000_000,
        timings: quick(),
        spool: 1 << 40,
        ..plant.options(server.at(&link.endpoint).target(&bucket))
    };
    let exporter = Exporter::open(plant.store.clone(), options).unwrap();
    let pumps = pump("Pump", &["plant-a"]);
    let running = run(&exporter);
    let mut entries = vec![push_one(&exporter, &pumps)];
    blocked(&exporter, &entries[0], Cause::Unreachable, "refused").await;
    while (entries.len() as u64) < queued / 4 {
        entries.push(push_one(&exporter, &pumps));
    }
    let begun = memory("VmRSS");
    while (entries.len() as u64) < queued {
        entries.push(push_one(&exporter, &pumps));
    }
    let grown = memory("VmRSS").saturating_sub(begun);
    let target = find_target(&exporter, "plant-a");
    assert_eq!(target.depth, queued);
    let lines = warnings.load(Ordering::Relaxed);
    println!(
        "{queued} exports, {} failed attempts, {lines} lines, {} kB more",
        target.attempts,
        grown >> 10
    );
    assert!(target.attempts > lines, "{target:?}");
    assert!(lines <= 20, "{lines} lines");
    // This includes the memory of the entries that the test keeps.
    assert!(grown < 24 << 20, "{grown} bytes");

    link.set(Fault::Pass);
    link.listen().await;
    let last = entries.last().unwrap().id.clone();
    let begun = std::time::Instant::now();
    while exporter.get(&last).unwrap().unwrap().status != ExportStatus::Delivered {
        assert!(begun.elapsed().as_secs() < 900, "{:?}", exporter.list_targets());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    until_status(&exporter, &last, ExportStatus::Delivered).await;
    running.stop().await;
    let mut delivered = exporter.list(None, 1_000_000).unwrap();
    delivered.reverse();
    assert!(delivered.iter().map(|entry| entry.sequence).eq(1..=queued));
    assert!(delivered.is_sorted_by_key(|entry| entry.delivered_at.clone()), "out of order");
    server.check(&bucket, &delivered).await;
}
