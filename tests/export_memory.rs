//! An export of 100,000 objects needs at most 32 MB more memory than the idle gateway.
#[path = "export/support/mod.rs"]
mod support;

use penstock_export::verify;
use penstock_resources::export::ExportStatus;
use support::{Plant, embedded, memory, pump, push_one, reset_peak, run, until_status};

#[tokio::test(flavor = "multi_thread")]
async fn a_long_export_needs_little_memory() {
    let plant = Plant::new();
    for thousand in 0..100 {
        plant.pumps(thousand * 1000..(thousand + 1) * 1000, 200);
    }
    let plant = plant.restart();
    let exporter = plant.open(embedded());
    let running = run(&exporter);
    let idle = memory("VmRSS");
    reset_peak();
    let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
    until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
    let peak = memory("VmHWM");
    running.stop().await;
    assert_eq!(entry.object_count, 100_000);
    assert!(entry.bytes > 25_000_000, "{}", entry.bytes);
    let verified =
        verify::verify_file(&plant.bucket("plant-a").join(&entry.key)).expect("the file is valid");
    assert_eq!(verified.object_count, 100_000);
    println!("idle {} MB, peak {} MB", idle >> 20, peak >> 20);
    assert!(peak.saturating_sub(idle) < 32 << 20, "idle {idle}, peak {peak}");
}
