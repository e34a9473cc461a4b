//! What the exporter consists of, and its options.
use super::backoff::DeliveryTimings;
use super::capacity::WaitingExports;
use super::pushes::PushLimiter;
use super::queue::ExportQueue;
use super::runs::{EmptyRun, EmptyRuns};
use super::uplink::Uplink;
use super::uploads::UploadFolder;
use parking_lot::Mutex;
use penstock_base::clock::Stamp;
use penstock_base::disk::Disk;
use penstock_base::events::EventBus;
use penstock_base::shared::Shared;
use penstock_config::Targets;
use penstock_model::catalogue::Catalogue;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// The part of the configuration that exports use.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// `service.export.*`
    pub targets: Targets,
    /// `service.gateway-id`
    pub gateway_id: String,
    /// `service.data-dir`. It contains the spool (`spool`) and the embedded buckets (`buckets`).
    pub data_dir: PathBuf,
    /// `service.limits.history`
    pub history: usize,
    /// Timeouts and retry intervals of deliveries.
    pub timings: DeliveryTimings,
    /// Receives an event for each change of an export or a target.
    pub events: EventBus,
    /// `service.export.spool`: the maximum bytes that undelivered files take on the disk. At this limit no further exports
    /// are created.
    pub spool: u64,
    /// The disk of the spool.
    pub disk: Disk,
    /// The Business Objects, for automatic exports.
    pub catalogue: Catalogue,
}

/// What the exporter consists of. A function gets only the part that it uses, or all of them.
#[derive(Debug)]
pub(super) struct ExporterParts {
    pub(super) options: ExportOptions,
    pub(super) queue: Shared<ExportQueue>,
    pub(super) uplink: Arc<Uplink>,
    pub(super) uploads: UploadFolder,
    /// One lock for each Business Object id. With it, the exports of a Business Object are created one after the
    /// other, so that a later sequence never has older content.
    pub(super) export_locks: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    pub(super) pushes: PushLimiter,
    pub(super) waiting: WaitingExports,
    pub(super) empty_runs: EmptyRuns,
    /// The bucketName of the continuous backup, once it is open.
    pub(super) backup_target: OnceLock<String>,
    /// Whether the gateway is stopping.
    pub(super) stopping: AtomicBool,
}

impl ExporterParts {
    /// Returns the lock to hold while an export of this Business Object is created.
    pub(super) fn export_lock(&self, id: &str) -> Arc<Mutex<()>> {
        let mut locks = self.export_locks.lock();
        Arc::clone(locks.entry(id.to_owned()).or_default())
    }

    /// Records that a run of a Business Object exported nothing.
    pub(super) fn record_empty_run(&self, id: &str, cause: &str, is_error: bool) {
        let at = self.current_stamp().to_rfc3339();
        self.empty_runs.record(id, EmptyRun { at, cause: cause.to_owned(), is_error });
    }

    /// Returns a timestamp that never goes back, for records in an order.
    pub(super) fn current_stamp(&self) -> Stamp {
        self.options.catalogue.watch().stamp()
    }
}
