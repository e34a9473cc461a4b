//! Exports: rendered into the spool, queued with a sequence, delivered oldest first to each target.
//!
//! | file | what |
//! |---|---|
//! | `file`, `render`, `verify`, `tokens` | the file of the specification: written, filled from the store, checked |
//! | `spool` | the folder that holds the files |
//! | `queue`, `record`, `state` | the entries, as they are kept with the store's commits and in memory |
//! | `operate`, `history` | retry, park, replay; what is kept of the delivered ones |
//! | `make` | an export made: rendered, synced, queued, with how far the changes have come |
//! | `pushes` | whose turn it is to be pushed |
//! | `automatic`, `schedule`, `alarm` | the exports that are due by themselves |
//! | `retention` | objects removed once every target has them |
//! | `room` | the bound of the spool, and what waits for room |
//! | `deliver`, `backoff`, `cause`, `uplink` | the workers, one a target; when they try, what goes wrong, what they share |
//! | `parcel`, `uploads`, `sweep` | what goes out; what is kept of a long upload, and what is left of one |
//! | `target`, `directory`, `s3` | where a bucketName leads |
//! | `probe` | whether it would take files |
//! | `targets` | how each target is |
//! | `walk` | a bucket checked as a consumer would |

mod alarm;
mod automatic;
#[cfg(test)]
mod automatic_model;
mod backoff;
mod cause;
mod deliver;
mod directory;
pub mod entry;
mod file;
mod history;
mod make;
#[cfg(test)]
mod model;
mod operate;
mod parcel;
mod probe;
mod pushes;
mod queue;
mod record;
mod render;
mod retention;
mod room;
mod s3;
mod schedule;
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
pub use probe::Probe;
pub use pushes::Turn;
pub use record::SEQUENCES;
pub use targets::TargetState;

use penstock_base::clock::Stamp;
use penstock_base::commit::{CommitCheck, NoClient};
use penstock_base::disk::Disk;
use penstock_base::events::{self, Events};
use penstock_base::fault::{self, Fault};
use penstock_config::Targets;
use penstock_model::catalogue::Catalogue;
use penstock_model::resource::Compiled;
use penstock_store::Store;
use pushes::Pushes;
use queue::Queue;
use room::Waiting;
use spool::Spool;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use uplink::Uplink;
use uploads::Uploads;

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
    /// `service.export.spool`: bytes of files that no target has taken yet, at which no more are made.
    pub spool: u64,
    /// The disk that the spool is on.
    pub disk: Disk,
    /// The Business Objects that are exported by themselves.
    pub catalogue: Catalogue,
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
    /// One lock for each Business Object: its exports are made one after the other, so that sequences
    /// follow the content.
    making: Mutex<HashMap<String, Arc<Mutex<()>>>>,
    pushes: Pushes,
    waiting: Waiting,
    /// Whether the gateway stops.
    stopping: AtomicBool,
}

impl Inner {
    /// The lock to hold while an export of this Business Object is made.
    fn making(&self, id: &str) -> Arc<Mutex<()>> {
        let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(making.entry(id.to_owned()).or_default())
    }
}

/// Who asks for an export.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    /// The check of whoever asks, made in the commit.
    pub check: &'a dyn CommitCheck,
    /// The account.
    pub account: Option<&'a str>,
    /// The trace that the request is part of, as the header `traceparent`.
    pub traceparent: Option<&'a str>,
}

impl By<'_> {
    /// The gateway itself.
    pub fn gateway() -> Self {
        Self { check: &NoClient, account: None, traceparent: None }
    }
}

/// What a push did.
#[derive(Debug, Clone)]
pub struct Push {
    /// The exports queued, one a target.
    pub exports: Vec<Entry>,
    /// Why there are none.
    pub reason: Option<String>,
}

/// What the spool holds, in bytes of files, each counted for each target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of exports that no target has taken yet.
    pub waiting: u64,
    /// How many of those there may be before no more are made (`service.export.spool`).
    pub limit: u64,
    /// Of delivered exports that are kept for reading and replay.
    pub delivered: u64,
    /// Exports that an operator took out of the way.
    pub parked: u64,
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
        let uplink = Uplink::new(options.targets.bandwidth, options.targets.times.clone());
        let uploads = Uploads::new(options.data_dir.join("uploads"));
        let queue = Queue::open(store, spool, limits, options.events.clone())?;
        let inner = Inner {
            options,
            queue,
            uplink: Arc::new(uplink),
            uploads,
            making: Mutex::default(),
            pushes: Pushes::default(),
            waiting: Waiting::default(),
            stopping: AtomicBool::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Why a bucketName leads nowhere.
    pub fn check_target(&self, bucket_name: &str) -> Result<(), String> {
        target::check(&self.inner.options, bucket_name)
    }

    /// Renders everything that belongs to the Business Object and queues it for each of its targets; `by` is
    /// who asks. Blocks; where many may ask at once, take a [`Self::turn`] first. When it returns, the files
    /// and the entries are on disk.
    ///
    /// # Errors
    /// `Kind::Conflict` when it is disabled or has no target; `Kind::Invalid` when a target leads
    /// nowhere any more; `Kind::NoRoom`, also when the spool is full.
    pub fn push(&self, business_object: &Compiled, by: By<'_>) -> Result<Push, Fault> {
        let inner = &*self.inner;
        make::check(inner, business_object)?;
        let making = inner.making(&business_object.object.id);
        let _one_at_a_time = making.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that were made meanwhile count.
        if let Some(cause) = room::spool(inner) {
            return Err(Fault::new(fault::Kind::NoRoom, cause));
        }
        let targets = make::all_targets(business_object);
        make::full(inner, business_object, &targets, by, &mut |_| Ok(()))
    }

    /// Delivers, and makes the exports that are due by themselves, until `stop` becomes true; then ends what
    /// is under way in good order.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let automatic = automatic::run(Arc::clone(&self.inner), stop.clone());
        tokio::join!(automatic, deliver::run(Arc::clone(&self.inner), stop));
    }

    /// Entries, newest first, those older than the one with the id `after`. Before them stand those that
    /// wait for room in the spool.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Entry>, Fault> {
        let mut entries = self.inner.waiting.entries();
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

    /// Entries that wait for a target, in the order they will be delivered; and how many there are in all.
    pub fn line(&self, target: &str, limit: usize) -> Result<(Vec<Entry>, usize), Fault> {
        self.inner.queue.line(target, limit)
    }

    /// One entry.
    pub fn get(&self, id: &str) -> Result<Option<Entry>, Fault> {
        if let Some(entry) = self.inner.waiting.entry(id) {
            return Ok(Some(entry));
        }
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
    pub fn retry(&self, check: &dyn CommitCheck, id: &str) -> Result<Entry, Fault> {
        if let Some(entry) = self.inner.waiting.entry(id) {
            self.inner.queue.commit(check, |_| Ok(()))?;
            self.inner.waiting.ask();
            self.inner.queue.room.notify_one();
            return Ok(entry);
        }
        self.inner.queue.retry(check, id)
    }

    /// Takes a waiting entry out of the way; the ones behind it go on.
    ///
    /// # Errors
    /// `Kind::NotFound`; `Kind::Conflict` for one that is under way, delivered, or parked already.
    pub fn park(&self, check: &dyn CommitCheck, id: &str) -> Result<Entry, Fault> {
        if let Some(entry) = self.inner.waiting.entry(id) {
            let why = "waits for room in the spool, and holds nothing yet that could be parked";
            return Err(Fault::new(
                fault::Kind::Conflict,
                format!("the export of {} for {} {why}", entry.business_object_name, entry.target),
            ));
        }
        self.inner.queue.park(check, id)
    }

    /// Queues a delivered file again under its own key.
    ///
    /// # Errors
    /// `Kind::NotFound`; `Kind::Conflict` for one that was not delivered, or whose file is no longer kept.
    pub fn replay(&self, check: &dyn CommitCheck, id: &str) -> Result<Entry, Fault> {
        self.inner.queue.replay(check, id)
    }

    /// What the spool holds, and may hold.
    pub fn room(&self) -> Room {
        let state = self.inner.queue.state();
        Room {
            waiting: state.held(),
            limit: self.inner.options.spool,
            delivered: state.delivered.values().sum(),
            parked: state.parked.len() as u64,
        }
    }

    /// The names of the Business Objects whose exports by themselves wait for room in the spool.
    pub fn waiting(&self) -> Vec<String> {
        let mut names: Vec<_> = self
            .inner
            .waiting
            .entries()
            .into_iter()
            .map(|entry| entry.business_object_name)
            .collect();
        names.dedup();
        names
    }

    /// Where the spool is.
    pub fn spool(&self) -> &Path {
        self.inner.queue.spool.folder()
    }
}

impl Inner {
    /// The time, for what stands in an order.
    fn stamp(&self) -> Stamp {
        self.options.catalogue.watch().stamp()
    }

    /// Tells of a target as it is now.
    fn tell_target(&self, name: &str) {
        // What the store could not read shows where it is asked for.
        if let Ok(target) = self.target(name.to_owned()) {
            self.options.events.publish(events::Kind::Target, name, &target);
        }
    }
}
