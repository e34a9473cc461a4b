//! Deliveries to a real S3 server: exports and bytes per second, and memory during the delivery.
//!
//! `PENSTOCK_TEST_S3=http://HOST:PORT,KEYID,SECRET cargo bench --bench export`. Without the variable, and when run as a
//! test, it delivers one file of 1 KiB and one of 1 MiB to a directory.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench prints its results, and panics on an error"
)]

#[path = "../tests/export/support/mod.rs"]
mod support;

use penstock_config::Targets;
use penstock_export::{ExportOptions, Exporter};
use penstock_resources::export::ExportStatus;
use std::time::{Duration, Instant};
use support::s3::{ceph, new_name};
use support::{Plant, embedded, memory, pump, push_one, reset_peak, run};

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench")
        && std::env::var("PENSTOCK_TEST_S3").is_ok();
    println!(
        "| file | exports | exports/s | MB/s | idle MB | peak MB |\n|---|---|---|---|---|---|"
    );
    // Each size runs in a process of its own, so that the memory of one does not count for the next.
    if let Ok(size) = std::env::var("PENSTOCK_BENCH_EXPORT") {
        let (pumps, length, count) = match size.as_str() {
            "1 KiB" => (1, 780, 1000),
            "1 MiB" => (20, 52_300, 100),
            _ => (2000, 52_300, 5),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(measure_deliveries(
            &size,
            pumps,
            length,
            if measured { count } else { 1 },
            measured,
        ));
        return;
    }
    for size in ["1 KiB", "1 MiB", "100 MiB"] {
        if !measured && size == "100 MiB" {
            continue;
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(std::env::args().skip(1)).env("PENSTOCK_BENCH_EXPORT", size);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        for line in text.lines().skip(2) {
            println!("{line}");
        }
    }
}

async fn measure_deliveries(size: &str, pumps: u32, length: usize, count: u32, to_s3: bool) {
    let targets: Targets = if to_s3 {
        let (server, bucket) = (ceph(), new_name());
        server.create_plain(&bucket).await;
        server.target(&bucket)
    } else {
        embedded()
    };
    let plant = Plant::new();
    for hundred in 0..pumps.div_ceil(100) {
        plant.pumps(hundred * 100..pumps.min((hundred + 1) * 100), length);
    }
    let plant = plant.restart();
    let options = ExportOptions { spool: 1 << 40, ..plant.options(targets) };
    let exporter = Exporter::open(plant.store.clone(), options).unwrap();
    let business_object = pump("Pump", &["plant-a"]);
    let entries: Vec<_> = (0..count).map(|_| push_one(&exporter, &business_object)).collect();
    let last = entries.last().unwrap().id.clone();
    let idle = memory("VmRSS");
    reset_peak();
    let begun = Instant::now();
    let running = run(&exporter);
    while exporter.get(&last).unwrap().unwrap().status != ExportStatus::Delivered {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let peak = memory("VmHWM");
    running.stop().await;
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    println!(
        "| {size} | {count} | {:.1} | {:.2} | {} | {} |",
        f64::from(count) / seconds,
        bytes as f64 / seconds / 1e6,
        idle >> 20,
        peak >> 20
    );
}
