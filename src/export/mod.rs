//! Exports: rendered into the spool, queued with a sequence, delivered oldest first to each target.
//!
//! | file | what |
//! |---|---|
//! | `file`, `render`, `verify`, `tokens` | the file of the specification: written, filled from the store, checked |
//! | `spool` | the folder that holds the files |
//! | `queue`, `record`, `state` | the entries, as they are kept with the store's commits and in memory |
//! | `operate`, `history` | retry, park, replay; what is kept of the delivered ones |
//! | `deliver`, `backoff`, `cause`, `uplink` | the workers, one a target; when they try, what goes wrong, what they share |
//! | `parcel`, `uploads`, `sweep` | what goes out; what is kept of a long upload, and what is left of one |
//! | `target`, `directory`, `s3` | where a bucketName leads |
//! | `targets` | how each target is |
//! | `walk` | a bucket checked as a consumer would |

mod backoff;
mod cause;
mod deliver;
mod directory;
pub mod entry;
mod file;
mod history;
#[cfg(test)]
mod model;
mod operate;
mod parcel;
mod queue;
mod record;
mod render;
mod s3;
mod spool;
mod state;
mod sweep;
mod target;
mod targets;
mod tokens;
mod uplink;
mod uploads;
pub mod verify;
pub mod walk;

pub use backoff::Pace;
pub use cause::Class;
pub use entry::{Entry, Kind, Status};
pub use record::SEQUENCES;
pub use targets::TargetState;

use crate::business_object::resource::Compiled;
use crate::config::Targets;
use crate::events::Events;
use crate::fault::{self, Fault};
use crate::telemetry::metrics;
use crate::time;
use penstock_store::Store;
use queue::{New, Queue};
use spool::Spool;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use uplink::Uplink;
use uploads::Uploads;
use uuid::Uuid;

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
    /// How delivery keeps time.
    pub pace: Pace,
    /// Where changes of exports and targets are told.
    pub events: Events,
}

/// The exporter. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Exporter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    queue: Queue,
    uplink: Arc<Uplink>,
    uploads: Uploads,
    /// One lock for each Business Object's name: its pushes run one after the other, so that sequences
    /// follow the content.
    pushing: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// What a push did.
#[derive(Debug, Clone)]
pub struct Push {
    /// The exports queued, one a target.
    pub exports: Vec<Entry>,
    /// Why there are none.
    pub reason: Option<String>,
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
        let spool = Spool::open(options.data_dir.join("spool"))?;
        let limits =
            queue::Limits { records: options.history, bytes: options.targets.history_bytes };
        let queue = Queue::open(store, spool, limits)?;
        let uplink = Uplink::new(options.targets.bandwidth, options.targets.times.clone());
        let uploads = Uploads::new(options.data_dir.join("uploads"));
        let (uplink, pushing) = (Arc::new(uplink), Mutex::default());
        Ok(Self { inner: Arc::new(Inner { options, queue, uplink, uploads, pushing }) })
    }

    /// Why a bucketName leads nowhere.
    pub fn check_target(&self, bucket_name: &str) -> Result<(), String> {
        target::check(&self.inner.options, bucket_name)
    }

    /// Renders everything that belongs to the Business Object and queues it for each of its targets.
    /// Blocks. When it returns, the files and the entries are on disk.
    ///
    /// # Errors
    /// `Kind::Conflict` when it is disabled or has no target; `Kind::Invalid` when a target leads
    /// nowhere any more; `Kind::NoRoom`.
    pub fn push(&self, business_object: &Compiled) -> Result<Push, Fault> {
        let definition = &business_object.object.definition;
        let name = definition.name.as_str();
        let conflict =
            |why| Fault::new(fault::Kind::Conflict, format!("the Business Object `{name}` {why}"));
        if !definition.enabled {
            return Err(conflict("is disabled; enable it to export it"));
        }
        queue::check_name(name).map_err(|cause| Fault::new(fault::Kind::Invalid, cause))?;
        let mut targets: Vec<(String, String, String)> = Vec::new();
        for push_target in &definition.push_targets {
            let bucket_name = &push_target.bucket_name;
            self.check_target(bucket_name)
                .map_err(|cause| Fault::new(fault::Kind::Invalid, cause))?;
            if !targets.iter().any(|(_, known, _)| known == bucket_name) {
                let prefix = target::prefix(&self.inner.options.targets, bucket_name);
                targets.push((Uuid::now_v7().to_string(), bucket_name.clone(), prefix));
            }
        }
        let Some((first, ..)) = targets.first() else {
            return Err(conflict("has no pushTargets; add one to export it"));
        };

        let lock = {
            let mut pushing = self.inner.pushing.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(pushing.entry(name.to_owned()).or_default())
        };
        let _one_at_a_time = lock.lock().unwrap_or_else(PoisonError::into_inner);
        // A store that takes no commits says so before a file is written for nothing.
        self.inner.queue.store.transact::<_, penstock_store::Error>(|_| Ok(()))?;
        let started = Instant::now();
        let export_date = time::compact();
        let mut files = Unqueued { spool: &self.inner.queue.spool, names: Vec::new() };
        let path = files.add(first);
        let queue = &self.inner.queue;
        let (finished, warnings) =
            render::full(&queue.store, business_object, &path, &export_date)?;
        if finished.objects == 0 && queue.last_full(name)? == 0 {
            let reason = render::why_none(&queue.store, business_object)?;
            return Ok(Push { exports: Vec::new(), reason: Some(reason) });
        }
        for (id, ..) in targets.iter().skip(1) {
            let link = files.add(id);
            std::fs::hard_link(&path, &link)
                .or_else(|_| {
                    std::fs::copy(&path, &link).and_then(|_| std::fs::File::open(&link)?.sync_all())
                })
                .map_err(|error| spool::fault("linking", &link, &error))?;
        }
        queue.spool.sync()?;
        let added = queue.add(&New {
            business_object: &business_object.object.id,
            name,
            kind: Kind::Full,
            export_date: &export_date,
            finished: &finished,
            warnings,
            targets: &targets,
        });
        let none_remains = added.as_ref().is_err_and(|error| {
            matches!(error, penstock_store::Error::TooLarge { .. })
                || (error.is_no_room() && queue.store.poisoned().is_none())
        });
        // Another commit that failed may still be there after the next start, and needs the files then.
        if !none_remains {
            files.names.clear();
        }
        let exports = added?;
        let seconds = started.elapsed().as_secs_f64();
        metrics::export_queued(finished.objects, finished.bytes, seconds);
        for entry in &exports {
            tracing::info!(
                export_id = entry.id,
                business_object = name,
                target_name = entry.target,
                sequence = entry.sequence,
                objects = entry.object_count,
                bytes = entry.bytes,
                duration_ms = started.elapsed().as_millis(),
                "An export was queued."
            );
        }
        Ok(Push { exports, reason: None })
    }

    /// Delivers until `stop` becomes true, then ends the delivery under way in good order.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        deliver::run(Arc::clone(&self.inner), stop).await;
    }

    /// Entries, newest first, those older than the one with the id `after`.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.inner.queue.list(after, limit)
    }

    /// One entry.
    pub fn get(&self, id: &str) -> Result<Option<Entry>, Fault> {
        let queue = &self.inner.queue;
        Ok(queue.find(&queue.state(), id)?.map(|(_, _, entry)| entry))
    }

    /// The file of an entry.
    ///
    /// # Errors
    /// `Kind::NotFound` when there is no such entry, or its file is no longer kept.
    pub fn content(&self, id: &str) -> Result<Content, Fault> {
        let (entry, file) = self.inner.queue.content(id)?;
        Ok(Content { length: entry.bytes, entry, file })
    }

    /// Tries a waiting entry's target now, or queues a parked one again at its place.
    ///
    /// # Errors
    /// `Kind::NotFound`; `Kind::Conflict` for a delivered one.
    pub fn retry(&self, id: &str) -> Result<Entry, Fault> {
        self.inner.queue.retry(id)
    }

    /// Takes a waiting entry out of the way; the ones behind it go on.
    ///
    /// # Errors
    /// `Kind::NotFound`; `Kind::Conflict` for one that is under way, delivered, or parked already.
    pub fn park(&self, id: &str) -> Result<Entry, Fault> {
        self.inner.queue.park(id)
    }

    /// Queues a delivered file again under its own key.
    ///
    /// # Errors
    /// `Kind::NotFound`; `Kind::Conflict` for one that was not delivered, or whose file is no longer kept.
    pub fn replay(&self, id: &str) -> Result<Entry, Fault> {
        self.inner.queue.replay(id)
    }

    /// Where the spool is.
    pub fn spool(&self) -> &Path {
        self.inner.queue.spool.folder()
    }
}

/// Files of a push that is not queued yet; they are removed unless it is.
struct Unqueued<'a> {
    spool: &'a Spool,
    names: Vec<String>,
}

impl Unqueued<'_> {
    fn add(&mut self, id: &str) -> PathBuf {
        let name = record::file_name(id);
        let path = self.spool.path(&name);
        self.names.push(name);
        path
    }
}

impl Drop for Unqueued<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            self.spool.remove(name);
        }
    }
}
