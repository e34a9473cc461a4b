//! Measures the levels that the overview shows over time.
use super::Gateway;
use penstock_base::memory;
use penstock_base::telemetry::metrics::{self, Levels};
use std::time::Duration;

/// The interval of the measurements: several in each period, which is a minute at least.
const MEASUREMENT_INTERVAL: Duration = Duration::from_secs(20);

/// Measures the levels at intervals, until the future is dropped.
pub async fn record_levels(gateway: Gateway) {
    loop {
        let recorded = gateway.read(|gateway| {
            metrics::record_levels(gateway.measure_levels());
            Ok(())
        });
        if let Err(error) = recorded.await {
            tracing::warn!(
                cause = error.detail,
                "Measuring the queue, the disk and the memory failed; the overview has a gap."
            );
        }
        tokio::time::sleep(MEASUREMENT_INTERVAL).await;
    }
}

impl Gateway {
    fn measure_levels(&self) -> Levels {
        Levels {
            queued: self.exporter.spool_usage().queued,
            // So the log has a full disk also while no client asks for anything.
            disk_free_bytes: self.disk.observe_free_bytes(),
            memory_bytes: memory::resident_bytes(),
        }
    }
}
