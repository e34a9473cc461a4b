//! What the workers of the backup share.
use super::folder::BackupFolder;
use super::head::{BaseEntry, Head};
use super::keys::{BackupKeys, ObjectName};
use super::place::{Objects, SmallObject, Upload};
use super::secrecy::{BackupKey, HeadSecret};
use super::state::OwnBase;
use crate::backoff::DeliveryTimings;
use crate::cause::DeliveryFailure;
use crate::uplink::Uplink;
use parking_lot::Mutex;
use penstock_base::blocking::spawn_blocking;
use penstock_base::clock::Clock;
use penstock_base::disk::Disk;
use penstock_config::Backup;
use penstock_resources::export::Cause;
use penstock_resources::gateway::BackupStatus;
use penstock_store::ReadStore;
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// What the workers share.
#[derive(Debug)]
pub(super) struct Parts<O> {
    pub(super) objects: O,
    pub(super) keys: BackupKeys,
    pub(super) key: BackupKey,
    pub(super) gateway: String,
    /// The token of this process in its heads.
    pub(super) token: String,
    pub(super) store: ReadStore,
    pub(super) clock: Clock,
    pub(super) disk: Disk,
    pub(super) options: Backup,
    pub(super) timings: DeliveryTimings,
    pub(super) folder: BackupFolder,
    /// Holds exports and events.
    pub(super) uplink: Uplink,
    /// Ends a wait of the worker that ships.
    pub(super) wake: Arc<Notify>,
    /// Ends a wait of the worker that makes bases.
    pub(super) base_wake: Arc<Notify>,
    /// Whether the bucket has accepted a head, or the head is of another machine: exports and sources may begin unless they
    /// are held.
    pub(super) cleared: watch::Sender<bool>,
    pub(super) base: Mutex<BaseWork>,
    pub(super) take_over: Mutex<bool>,
    /// Held while `state.json` is written.
    pub(super) state_lock: Mutex<()>,
    pub(super) reported: Mutex<Reported>,
}

/// What the workers report.
#[derive(Debug, Clone, Default)]
pub(super) struct Reported {
    pub(super) report: BackupStatus,
    /// The class of the last failure.
    pub(super) class: Option<Cause>,
    /// Why the last attempt to make or send a base failed.
    pub(super) base_failure: Option<String>,
    /// Why the last attempt to list, merge or delete objects failed.
    pub(super) cleanup_failure: Option<String>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uploaded {
    /// The bucket has it.
    Stored,
    /// Its key has an object with other bytes, which counts already and stays.
    Kept,
    /// Its key has an object with other bytes, and the head is not of this process.
    HeadChanged,
    /// The file was damaged, cut or removed before it was sent. It has to be made again.
    Spoiled,
}

/// The next base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BaseWork {
    /// None is needed.
    Idle,
    /// One is wanted for this era, with the secret of the head's HMAC.
    Wanted { era: String, secret: Option<HeadSecret> },
    /// One is in the bucket. The next head names it.
    Stored { era: String, base: OwnBase },
}

impl<O: Objects> Parts<O> {
    /// Runs work on the store or the disk on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, DeliveryFailure> + Send + 'static,
    ) -> Result<T, DeliveryFailure> {
        let parts = Arc::clone(self);
        spawn_blocking(move || work(&parts)).await.unwrap_or_else(|error| {
            Err(DeliveryFailure::of_gateway(format!("a task of the backup failed: {error}")))
        })
    }

    /// Stores a file. An object that its key has already is replaced only if it does not count.
    ///
    /// No process stores an object before the bucket has accepted a head of its own. So if the head is still that of this
    /// process after the object was seen, an earlier process or attempt left it, and no later head can cover it. Without
    /// that order, the clone of a disk could overwrite what the head of the other machine covers.
    pub(super) async fn upload(&self, upload: &Upload) -> Result<Uploaded, DeliveryFailure> {
        let failure = match self.store_file(upload).await {
            Err(failure) if !failure.is_interruption => failure,
            done => return done,
        };
        // A base is long, so it is read again only where the failure can be that of the file.
        let may_be_spoiled =
            !upload.is_base || failure.class == Cause::Gateway || !self.objects.has_preconditions();
        let is_spoiled = may_be_spoiled && !upload.is_whole().await;
        if is_spoiled { Ok(Uploaded::Spoiled) } else { Err(failure) }
    }

    async fn store_file(&self, upload: &Upload) -> Result<Uploaded, DeliveryFailure> {
        let conflict = match self.objects.upload(upload, None).await {
            Ok(()) => return Ok(Uploaded::Stored),
            Err(failure) if failure.class == Cause::Conflict => failure,
            Err(failure) => return Err(failure),
        };
        let Some(leftover) = self.objects.find_other(upload).await? else { return Err(conflict) };
        let found = self.objects.get(&self.keys.head()).await?;
        let head = found.and_then(|SmallObject { text, .. }| Head::read(&text, &self.gateway).ok());
        let Some(head) = head.filter(|head| head.writer == self.token) else {
            return Ok(Uploaded::HeadChanged);
        };
        if self.covers(&head, &upload.key) {
            return Ok(Uploaded::Kept);
        }
        self.objects.upload(upload, Some(&leftover)).await?;
        Ok(Uploaded::Stored)
    }

    /// Returns whether a restore with this head may read the object. What is not of its era is left alone too.
    fn covers(&self, head: &Head, key: &str) -> bool {
        match self.keys.parse(key) {
            Some((era, ObjectName::Segment { last, .. })) => {
                era != head.era || last <= head.last.sequence
            }
            Some((era, ObjectName::Base { sequence })) => {
                era != head.era || head.base.as_ref().is_some_and(|base| base.sequence == sequence)
            }
            Some((_, ObjectName::Era)) | None => true,
        }
    }

    /// Returns when no base of this era is wanted any more.
    pub(super) async fn wait_until_unwanted(&self, era: &str) {
        while matches!(&*self.base.lock(), BaseWork::Wanted { era: of, .. } if of == era) {
            self.base_wake.notified().await;
        }
    }

    /// Ends the work on bases.
    pub(super) fn cancel_base(&self) {
        *self.base.lock() = BaseWork::Idle;
        self.base_wake.notify_one();
    }

    /// Asks for a base of this era, unless one is in the works.
    pub(super) fn want_base(&self, era: &str, secret: Option<&HeadSecret>) {
        let mut base = self.base.lock();
        let is_there = match &*base {
            BaseWork::Idle => false,
            BaseWork::Wanted { era: of, .. } | BaseWork::Stored { era: of, .. } => of == era,
        };
        if !is_there {
            *base = BaseWork::Wanted { era: era.to_owned(), secret: secret.cloned() };
            self.base_wake.notify_one();
        }
    }

    /// Returns a stored base of this era whose commits the head covers.
    pub(super) fn stored_base(&self, era: &str, last: u64) -> Option<OwnBase> {
        match &*self.base.lock() {
            BaseWork::Stored { era: of, base } if of == era && base.entry.sequence <= last => {
                Some(base.clone())
            }
            _ => None,
        }
    }

    /// Forgets a stored base, because the head names it.
    pub(super) fn finish_base(&self, named: &BaseEntry) {
        let mut work = self.base.lock();
        if matches!(&*work, BaseWork::Stored { base, .. } if base.entry == *named) {
            *work = BaseWork::Idle;
        }
    }
}

/// Returns the failure for a head that the bucket refuses although no other machine has written one.
pub(super) fn refused_head_failure(keys: &BackupKeys) -> DeliveryFailure {
    let head = keys.head();
    let cause = format!("the bucket did not take a new {head}; the gateway reads it and retries");
    DeliveryFailure::new(Cause::Busy, cause)
}

/// Returns the failure for a key that has an object with other bytes, which is not replaced.
pub(super) fn kept_failure(key: &str) -> DeliveryFailure {
    let cause = format!("{key} exists with other bytes, and is not overwritten");
    DeliveryFailure::new(Cause::Busy, cause)
}

/// Returns the failure for a file that was damaged, cut or removed before it was sent.
pub(super) fn spoiled_failure(upload: &Upload) -> DeliveryFailure {
    DeliveryFailure::of_gateway(format!(
        "the file {} for {} was damaged or removed before it was sent; the gateway writes it again",
        upload.path.display(),
        upload.key
    ))
}

/// Converts an error of the store into a failure of the gateway.
pub(super) fn store_failure(error: &penstock_store::Error) -> DeliveryFailure {
    DeliveryFailure::of_gateway(format!("the store cannot be read for the backup: {error}"))
}

/// Converts an error of the gateway's disk into a failure.
pub(super) fn disk_failure(error: &std::io::Error) -> DeliveryFailure {
    DeliveryFailure::of_gateway(format!(
        "the gateway's disk failed while the backup was prepared: {error}"
    ))
}
