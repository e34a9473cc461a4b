//! Delivering a long file to a bucket needs at most 32 MB more memory than the idle gateway.

#[path = "export/support/mod.rs"]
mod support;

use penstock_resources::export::ExportStatus;
use support::s3::{ceph, new_name};
use support::{Plant, memory, pump, push_one, reset_peak, run, until_status};

#[tokio::test(flavor = "multi_thread")]
async fn a_long_upload_needs_little_memory() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let plant = Plant::new();
    for hundred in 0..16 {
        plant.pumps(hundred * 100..(hundred + 1) * 100, 50_000);
    }
    let plant = plant.restart();
    let exporter = plant.quick(server.target(&bucket));
    let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
    assert!(entry.bytes > 75 << 20, "{}", entry.bytes);
    let idle = memory("VmRSS");
    reset_peak();
    let running = run(&exporter);
    until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
    let peak = memory("VmHWM");
    running.stop().await;
    println!("idle {} MB, peak {} MB", idle >> 20, peak >> 20);
    assert!(peak.saturating_sub(idle) < 32 << 20, "idle {idle}, peak {peak}");
}
