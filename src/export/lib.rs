//! Exports. Each export is rendered into the spool and queued with a sequence number. Each target receives its
//! exports oldest first.
//!
//! | file | what |
//! |---|---|
//! | `file`, `render`, `verify`, `tokens` | the export file: the format, rendering from the store, verifying. |
//! | `key` | the key of an export in its target. |
//! | `spool` | the folder with the files. |
//! | `queue`, `record`, `state` | the entries, in the store's commits and in memory. |
//! | `operate`, `history` | retry, park and replay; how long delivered entries are kept. |
//! | `make` | creates an export: renders, syncs and queues it, and commits how far the changes are exported. |
//! | `parts` | what the exporter consists of. |
//! | `pushes` | limits concurrent pushes. |
//! | `automatic`, `schedule`, `alarm` | automatic exports: when they are due, and a timer for them. |
//! | `runs` | why the last run of a Business Object exported nothing. |
//! | `retention` | removes objects once every target has them. |
//! | `capacity` | the capacity of the spool, and the exports that wait for capacity. |
//! | `delivery_loop`, `backoff`, `cause`, `uplink` | the loop of a worker, the rule of retries, errors, bandwidth. |
//! | `deliver`, `blocking` | the delivery worker of each target, work on threads that may block. |
//! | `delivery`, `uploads`, `sweep` | one delivery, recorded multipart uploads, and their cleanup. |
//! | `target`, `directory`, `s3`, `sparql` | the target that a bucketName refers to. |
//! | `graph_lines` | the lines of an export for a SPARQL store. |
//! | `transport` | HTTP requests to targets. |
//! | `heartbeat` | writes the gateway's status into buckets and directories. |
//! | `probe` | tests whether a target would accept files. |
//! | `targets` | the state of each target. |
//! | `webhooks` | sends events to webhooks. |
//! | `walk` | checks a bucket as a consumer would. |
//! | `backup` | the continuous backup: sends the journal to a bucket, and restores a gateway from there. |
//! | `lost` | replaces exports whose files are gone after that. |
//!
//! `record` explains the three numbers of an entry (order, place, sequence), and `penstock_model::change_feed` the
//! generations of changes.

mod alarm;
mod automatic;
#[cfg(test)]
mod automatic_model;
mod backoff;
pub mod backup;
mod blocking;
mod builder;
mod capacity;
mod cause;
mod deliver;
mod delivery;
mod delivery_loop;
mod directory;
mod file;
mod graph_lines;
mod heartbeat;
mod history;
mod key;
mod lost;
mod make;
#[cfg(test)]
mod model;
mod operate;
mod parts;
mod probe;
mod pushes;
mod queue;
mod record;
mod render;
mod retention;
mod runs;
mod s3;
mod schedule;
mod sparql;
mod spool;
mod state;
mod sweep;
mod target;
mod targets;
mod tokens;
mod transport;
mod uplink;
mod uploads;
pub mod verify;
pub mod walk;
mod webhooks;

pub use backoff::DeliveryTimings;
pub use key::ExportExt;
pub use make::PushResult;
pub use parts::ExportOptions;
pub use pushes::PushPermit;
pub use queue::ExportRequester;
pub use record::forget_object_counts;
pub use runs::EmptyRun;
pub use webhooks::Webhooks;

use capacity::WaitingExports;
use parking_lot::Mutex;
use parts::ExporterParts;
use penstock_base::commit::CommitCheck;
use penstock_base::error::{self, GatewayError};
use penstock_base::shared::Shared;
use penstock_model::resource::Compiled;
use penstock_resources::export::Export;
use penstock_store::Store;
use pushes::PushLimiter;
use queue::ExportQueue;
use runs::EmptyRuns;
use spool::Spool;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;
use uplink::Uplink;
use uploads::UploadFolder;

/// The number of entries that [`Exporter::iterate`] reads at a time.
const ENTRIES_PER_PAGE: usize = 200;

/// The exporter. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Exporter {
    inner: Shared<ExporterParts>,
}

/// The usage of the spool. A file counts once for each target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolUsage {
    /// The number of queued exports, each counted for each target.
    pub queued: u64,
    /// The bytes that undelivered exports take on the disk.
    pub waiting: u64,
    /// The maximum of `waiting` (`service.export.spool`). At this limit no further exports are created.
    pub limit: u64,
    /// The bytes of delivered exports that are kept for reading and replay.
    pub delivered: u64,
    /// The number of parked exports.
    pub parked: u64,
}

/// An entry with its open spool file.
#[derive(Debug)]
pub struct OpenedExport {
    /// The entry.
    pub entry: Export,
    /// The spool file. It stays readable while this handle is open, even after the file is removed.
    pub file: std::fs::File,
    /// Its length in bytes.
    pub length: u64,
    /// The version of the Business Object that the file was rendered with. `None` if an earlier version of the gateway
    /// queued it.
    pub schema_version: Option<u64>,
}

impl Exporter {
    /// Opens the spool and the queue, and removes spool files that no entry refers to.
    pub fn open(store: Store, options: ExportOptions) -> Result<Self, GatewayError> {
        let spool = Spool::open(options.data_dir.join("spool"))?;
        let limits =
            queue::HistoryLimits { records: options.history, bytes: options.targets.history_bytes };
        let uplink =
            Uplink::new(options.targets.bandwidth, options.targets.delivery_window.clone());
        let uploads = UploadFolder::new(options.data_dir.join("uploads"));
        if let Some(reason) = backup::data_dir::stored_hold(&options.data_dir)? {
            uplink.hold(reason);
        }
        let parks_lost = backup::data_dir::has_lost_exports(&options.data_dir);
        let queue = ExportQueue::open(store, spool, limits, options.events.clone(), parks_lost)?;
        let inner = ExporterParts {
            options,
            queue: Shared::new(queue),
            uplink: Arc::new(uplink),
            uploads,
            export_locks: Mutex::default(),
            pushes: PushLimiter::default(),
            waiting: WaitingExports::default(),
            empty_runs: EmptyRuns::default(),
            backup_target: OnceLock::new(),
            stopping: AtomicBool::new(false),
        };
        Ok(Self { inner: Shared::new(inner) })
    }

    /// Checks that a bucketName refers to a target. The error is the reason.
    pub fn check_target(&self, bucket_name: &str) -> Result<(), String> {
        target::check_target(&self.inner.options, bucket_name)
    }

    /// Renders all members of the Business Object and queues the export for each of its targets. When this returns,
    /// the files and the entries are on disk. Blocking. Callers with many concurrent requests first acquire a push
    /// permit ([`Self::acquire_push_permit`]).
    ///
    /// # Errors
    /// `ErrorClass::Conflict` if the Business Object is disabled or has no target. `ErrorClass::Invalid` if a
    /// bucketName no longer refers to a target. `ErrorClass::InsufficientStorage` if the disk or the spool is full.
    /// `ErrorClass::Unavailable` if the gateway stops.
    pub fn push(
        &self,
        business_object: &Compiled,
        by: ExportRequester<'_>,
    ) -> Result<PushResult, GatewayError> {
        let inner = &*self.inner;
        make::check_exportable(&inner.options, business_object)?;
        let export_lock = inner.export_lock(&business_object.object.id);
        let _one_at_a_time = export_lock.lock();
        // Checked under the lock, so that exports created in the meantime count.
        if let Some(cause) = capacity::spool_full_reason(&inner.queue, inner.options.spool) {
            return Err(GatewayError::new(error::ErrorClass::InsufficientStorage, cause));
        }
        let targets = make::all_targets(business_object);
        make::create_full_export(inner, business_object, &targets, by, &mut |_| Ok(()))
    }

    /// Waits for the permit of an account to push this Business Object with [`Self::push`]. Hold the permit until the push
    /// is done.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` if too many pushes wait, or if the gateway stops.
    pub async fn acquire_push_permit(
        &self,
        account: &str,
        business_object: &Compiled,
    ) -> Result<PushPermit, GatewayError> {
        self.inner.pushes.acquire_permit(account, business_object, &self.inner.stopping).await
    }

    /// Cancels the rendering in progress and prevents further rendering, because the gateway stops.
    pub fn stop_rendering(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }

    /// Delivers exports and creates automatic exports until `stop` becomes true, then shuts down gracefully.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let must_retry = lost::replace_lost_exports(&self.inner).await;
        let retries = lost::retry_lost_exports(&self.inner, must_retry, stop.clone());
        let automatic = automatic::run_automatic_exports(self.inner.clone(), stop.clone());
        tokio::join!(automatic, deliver::run_deliveries(self.inner.clone(), stop), retries);
    }

    /// Returns why exports, events, heartbeats and sources stand still, if they do: another machine has taken over, or may
    /// have because the state of the backup is lost, or the store is a copy for inspection.
    pub fn hold_reason(&self) -> Option<String> {
        self.inner.uplink.hold_reason()
    }

    /// Lists entries, newest first, starting after the entry with the id `after`. The exports that wait for spool
    /// capacity come first.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Export>, GatewayError> {
        let mut entries = self.inner.waiting.list_entries();
        let mut after = after;
        if let Some(id) = after {
            match entries.iter().position(|entry| entry.id == id) {
                Some(place) => {
                    entries.drain(..=place);
                    after = None;
                }
                None => entries.clear(),
            }
        }
        entries.truncate(limit);
        let left = limit - entries.len();
        entries.extend(self.inner.queue.list(after, left)?);
        Ok(entries)
    }

    /// Iterates over entries in the order of [`Self::list`], and reads them page by page. Blocking.
    pub fn iterate(
        &self,
        mut after: Option<String>,
    ) -> impl Iterator<Item = Result<Export, GatewayError>> {
        let mut page = Vec::new().into_iter();
        let mut is_over = false;
        std::iter::from_fn(move || {
            if page.as_slice().is_empty() && !is_over {
                match self.list(after.as_deref(), ENTRIES_PER_PAGE) {
                    Ok(entries) => {
                        is_over = entries.is_empty();
                        after = entries.last().map(|last| last.id.clone());
                        page = entries.into_iter();
                    }
                    Err(error) => {
                        is_over = true;
                        return Some(Err(error));
                    }
                }
            }
            page.next().map(Ok)
        })
    }

    /// Returns the entries in a target's queue in delivery order, and their total number.
    pub fn list_queue(
        &self,
        target: &str,
        limit: usize,
    ) -> Result<(Vec<Export>, usize), GatewayError> {
        self.inner.queue.list_queue(target, limit)
    }

    /// Returns the entry with this id.
    pub fn get(&self, id: &str) -> Result<Option<Export>, GatewayError> {
        if let Some(entry) = self.inner.waiting.find_entry(id) {
            return Ok(Some(entry));
        }
        let queue = &self.inner.queue;
        Ok(queue.find_entry(&queue.lock_state(), id)?.map(|(_, _, entry)| entry))
    }

    /// Opens the file of an entry.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if there is no such entry, or if its file is no longer kept.
    pub fn open_content(&self, id: &str) -> Result<OpenedExport, GatewayError> {
        self.inner.queue.open_content(id)
    }

    /// Retries the target of a queued entry now, or queues a parked entry again at its original place.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if there is no such entry, `ErrorClass::Conflict` if it is delivered.
    pub fn retry(&self, check: &dyn CommitCheck, id: &str) -> Result<Export, GatewayError> {
        if let Some(entry) = self.inner.waiting.find_entry(id) {
            self.inner.queue.commit_checked(check, |_| Ok(()))?;
            self.inner.waiting.request_retry();
            self.inner.queue.capacity_freed.notify_one();
            return Ok(entry);
        }
        self.inner.queue.retry(check, id)
    }

    /// Parks a queued entry, so that the entries behind it can be delivered.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if there is no such entry. `ErrorClass::Conflict` if it is being delivered, is delivered
    /// or parked already, or still waits for spool capacity.
    pub fn park(&self, check: &dyn CommitCheck, id: &str) -> Result<Export, GatewayError> {
        if let Some(entry) = self.inner.waiting.find_entry(id) {
            let why =
                "waits for spool capacity, so it is not in the queue yet and cannot be parked";
            return Err(GatewayError::new(
                error::ErrorClass::Conflict,
                format!("the export of {} for {} {why}", entry.business_object_name, entry.target),
            ));
        }
        self.inner.queue.park(check, id)
    }

    /// Queues a delivered file again under the same key.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if there is no such entry. `ErrorClass::Conflict` if it is not delivered, or if its file
    /// is no longer kept.
    pub fn replay(&self, check: &dyn CommitCheck, id: &str) -> Result<Export, GatewayError> {
        self.inner.queue.replay(check, id)
    }

    /// Returns the usage and the limit of the spool.
    pub fn spool_usage(&self) -> SpoolUsage {
        let state = self.inner.queue.lock_state();
        SpoolUsage {
            queued: state.queues.values().map(|queue| queue.waiting.len() as u64).sum(),
            waiting: state.undelivered_bytes(),
            limit: self.inner.options.spool,
            delivered: state.delivered.values().sum(),
            parked: state.parked.len() as u64,
        }
    }

    /// Returns the names of the Business Objects whose automatic exports wait for spool capacity.
    pub fn list_waiting_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .inner
            .waiting
            .list_entries()
            .into_iter()
            .map(|entry| entry.business_object_name)
            .collect();
        names.dedup();
        names
    }

    /// Returns the last run of the Business Object with this id, if it exported nothing.
    pub fn find_empty_run(&self, id: &str) -> Option<EmptyRun> {
        self.inner.empty_runs.find(id)
    }

    /// Lists the Business Objects whose last automatic export failed, by name, each with the cause.
    pub fn list_failing(&self) -> Vec<(String, String)> {
        let catalogue = &self.inner.options.catalogue;
        let mut failing: Vec<_> = self
            .inner
            .empty_runs
            .list_errors()
            .into_iter()
            .filter_map(|(id, cause)| {
                Some((catalogue.get(&id)?.object.definition.name.clone(), cause))
            })
            .collect();
        failing.sort_unstable();
        failing
    }

    /// Returns the folder of the spool.
    pub fn spool_folder(&self) -> &Path {
        self.inner.queue.spool.folder()
    }
}
