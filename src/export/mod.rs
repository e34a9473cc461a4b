//! Exports: rendered into the spool, queued with a sequence, delivered oldest first to each target.
//!
//! `file` is the specification's file and its verifier, `queue` the entries kept with the store's
//! commits, `deliver` the workers (one a target), `target` the directory and `s3` the bucket.

pub mod entry;
pub mod verify;

pub use entry::{Entry, Kind, Status};

use crate::business_object::resource::Compiled;
use crate::config::Targets;
use crate::fault::Fault;
use penstock_store::Store;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// What exporting takes from the configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// `service.export.*`
    pub targets: Targets,
    /// `service.gateway-id`
    pub gateway_id: String,
    /// `service.data-dir`: the spool is `spool` in it, the embedded buckets are `buckets` in it.
    pub data_dir: PathBuf,
    /// `service.limits.history`
    pub history: usize,
}

/// The exporter. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Exporter {
    // PLACEHOLDER
    _store: Store,
}

/// What a push did.
#[derive(Debug, Clone)]
pub struct Push {
    /// The exports queued, one a target.
    pub exports: Vec<Entry>,
    /// Why there are none.
    pub reason: Option<String>,
}

/// A target and how it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetState {
    /// The bucketName.
    pub name: String,
    /// `directory` or `s3`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the last attempt reached it; null before the first.
    pub reachable: Option<bool>,
    /// Why its head of the queue does not get through, in words.
    pub blocked: Option<String>,
    /// Exports that wait for it.
    pub depth: u64,
    /// Bytes that wait for it.
    pub bytes: u64,
    /// When the oldest that waits was made (RFC 3339).
    pub oldest: Option<String>,
    /// When the last one was delivered (RFC 3339).
    pub last_delivery: Option<String>,
}

/// The bytes of an export's file.
#[derive(Debug)]
pub struct Content {
    /// The entry.
    pub entry: Entry,
    /// The spool file; it stays readable while it is held open.
    pub file: std::fs::File,
    /// Its length in bytes.
    pub length: u64,
}

impl Exporter {
    /// Opens the spool and the queue as they were left: files that no entry names are removed.
    pub fn open(store: Store, options: Options) -> Result<Self, Fault> {
        let _ = options;
        Ok(Self { _store: store })
    }

    /// Why a bucketName leads nowhere.
    pub fn check_target(&self, bucket_name: &str) -> Result<(), String> {
        let _ = bucket_name;
        todo!()
    }

    /// Renders everything that belongs to the Business Object and queues it for each of its targets.
    /// Blocks. When it returns, the files and the entries are on disk.
    ///
    /// # Errors
    /// `Kind::Conflict` when it is disabled or has no target; `Kind::NoRoom`.
    pub fn push(&self, business_object: &Compiled) -> Result<Push, Fault> {
        let _ = business_object;
        todo!()
    }

    /// Delivers until `stop` becomes true, then ends the delivery under way in good order.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let _ = stop;
        todo!()
    }

    /// Entries, newest first, those older than the one with the id `after`.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Entry>, Fault> {
        let _ = (after, limit);
        todo!()
    }

    /// One entry.
    pub fn get(&self, id: &str) -> Result<Option<Entry>, Fault> {
        let _ = id;
        todo!()
    }

    /// The file of an entry.
    ///
    /// # Errors
    /// `Kind::NotFound` when there is no such entry, or its file is no longer kept.
    pub fn content(&self, id: &str) -> Result<Content, Fault> {
        let _ = id;
        todo!()
    }

    /// Tries a waiting entry's target now, or queues a parked one again at its place.
    pub fn retry(&self, id: &str) -> Result<Entry, Fault> {
        let _ = id;
        todo!()
    }

    /// Takes a waiting entry out of the way; the ones behind it go on.
    pub fn park(&self, id: &str) -> Result<Entry, Fault> {
        let _ = id;
        todo!()
    }

    /// Queues a delivered file again under its own key.
    pub fn replay(&self, id: &str) -> Result<Entry, Fault> {
        let _ = id;
        todo!()
    }

    /// Every target that the configuration, a Business Object or the queue names.
    pub fn targets(&self) -> Result<Vec<TargetState>, Fault> {
        todo!()
    }

    /// Where the spool is.
    pub fn spool(&self) -> &Path {
        todo!()
    }
}
