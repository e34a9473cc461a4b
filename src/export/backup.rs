//! The continuous backup: the gateway sends its journal to a bucket, and a new machine continues from there.
//!
//! | file | what |
//! |---|---|
//! | `keys`, `head`, `objects` | the objects in the bucket: their keys, the head and the eras, segments and bases. |
//! | `chain`, `secrecy` | the checksum over the frames of an era; encryption and HMAC. |
//! | `place` | the requests to a bucket or directory. |
//! | `state`, `holes`, `folder`, `lists`, `data_dir` | what the gateway knows of its backup, in the data directory. |
//! | `parts`, `worker`, `start`, `heads`, `ship`, `base`, `cleanup` | the workers: when and how they find their era, write the head, ship, make bases, merge and delete. |
//! | `plan` | decisions from a listing. |
//! | `reader`, `restore`, `check` | reading a backup: restore, list and check. |
//! | `report` | what the operator sees. |
//!
//! An **era** is what one machine writes: its frames from one on, as segments, and bases, each the whole state. A new
//! machine begins a new era, and so does a machine whose journal does not continue what is in the bucket. The **head**
//! says which era counts, and up to which frame. It is written last and under a precondition, so what a crash or a second
//! machine leaves in the bucket does not count. A machine that finds another one's head stops everything that others
//! could see.
//!
//! A directory, and a bucket that ignores `If-Match`, cannot exclude that two machines replace the same head. So each
//! process reads its first head again after writing it, and stops if the other one's is there. If the other machine
//! writes even later, both continue until the next head, an interval later, which stops the first one (`single_writer`
//! in the status is false).
//!
//! Invariants:
//! - A process uploads nothing before the bucket has accepted a head of its own (`Shipper::confirm_head`), and no object
//!   that may count is overwritten (`Parts::upload`).
//! - Only durable frames are sent, and a commit never waits for the bucket.
//! - The data directory knows era, token and sequence of a head before the bucket does.
//! - The journal keeps what no head covers ([`penstock_store::Options::retain_after`]). What it has to give up is a hole,
//!   which ends where the next era begins.
//! - Nothing is deleted before a head names what replaces it, and not within a day.
mod base;
mod chain;
mod check;
mod cleanup;
pub(crate) mod data_dir;
mod folder;
mod head;
mod heads;
mod holes;
mod keys;
mod lists;
mod objects;
mod parts;
mod place;
mod plan;
mod reader;
mod report;
mod restore;
mod secrecy;
mod ship;
mod start;
mod state;
mod takeover;
#[cfg(test)]
mod tests;
mod worker;

pub use check::{CheckFinding, CheckedBackup, ListedBackup, ListedEra};
pub use data_dir::{request_take_over, retain_after};
pub use report::{BackupState, BackupStatus};
pub use restore::{RestoreProgress, RestoreRequest, RestoredBackup};
pub use secrecy::{GeneratedKey, generate_key};

use crate::Exporter;
use crate::delivery_loop::SHUTDOWN_GRACE;
use crate::target;
use crate::uplink::Traffic;
use data_dir::{state_error, store_take_over};
use folder::BackupFolder;
use keys::BackupKeys;
use parking_lot::Mutex;
use parts::{BaseWork, Parts, Reported};
use penstock_base::clock::Clock;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::{Backup, Targets};
use penstock_store::ReadStore;
use place::TargetObjects;
use reader::Reader;
use secrecy::BackupKey;
use state::LocalState;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use worker::run_workers;

/// How long exports, sources and webhooks wait at the start for the bucket to accept a head. Then they run without it.
const MAX_CLEARANCE_WAIT: Duration = Duration::from_secs(30);
/// How long the start of a gateway with an empty store waits for the bucket.
const EMPTY_STORE_TIMEOUT: Duration = Duration::from_secs(20);

/// The continuous backup of this gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Backups {
    parts: Arc<Parts<TargetObjects>>,
    /// The state at the start.
    state: Arc<LocalState>,
}

impl Backups {
    /// Prepares the backup with these settings. Sends nothing. `is_checked` says that [`refuse_empty_store`] was called,
    /// which can take long without a link. Blocking.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the target or the key cannot be used, and as [`refuse_empty_store`] if there are no quads and
    /// no state of a backup; `ErrorClass::Damaged` if a newer version wrote the state in the data directory.
    pub fn open(
        exporter: &Exporter,
        settings: &Backup,
        clock: Clock,
        is_checked: bool,
    ) -> Result<Self, GatewayError> {
        let invalid = |cause: String| GatewayError::new(ErrorClass::Invalid, cause);
        let inner = &*exporter.inner;
        let options = &inner.options;
        let key = BackupKey::parse(settings.key.as_deref()).map_err(invalid)?;
        if !key.encrypts() && !settings.insecure {
            return Err(invalid(
                "service.backup.key is missing; penstock offsite-backup new-key creates one"
                    .to_owned(),
            ));
        }
        let folder = BackupFolder::of(&options.data_dir);
        let state = folder.read_state()?;
        if let Err(error) = folder.prepare() {
            // Only the backup needs it. Each attempt reports why it fails.
            tracing::error!(error = %state_error(&folder, &error), "The folder of the backup cannot be used.");
        }
        let (targets, name) = (&options.targets, settings.target.as_str());
        let (gateway, timings) = (options.gateway_id.as_str(), options.timings);
        // It is opened once.
        let _ = inner.backup_target.set(name.to_owned());
        // A command can have created the store before the target was set.
        let is_new = state == LocalState::default() && inner.queue.store.stats().quads == 0;
        if is_new && !is_checked {
            refuse_empty_store(settings, targets, &options.data_dir, gateway)?;
        }
        let objects = TargetObjects::open(targets, &options.data_dir, name, gateway, &timings);
        let prefix = target::key_prefix(targets, name);
        let parts = Parts {
            objects: objects.map_err(invalid)?.with_uploads(inner, &folder.path, name),
            keys: BackupKeys::new(&prefix, gateway, key.encrypts()),
            key,
            gateway: gateway.to_owned(),
            token: keys::random_token(),
            store: ReadStore::clone(&inner.queue.store),
            clock,
            disk: options.disk.clone(),
            options: settings.clone(),
            timings,
            folder,
            uplink: inner.uplink.for_traffic(Traffic::Export),
            wake: Arc::default(),
            base_wake: Arc::new(Notify::new()),
            cleared: watch::Sender::new(false),
            base: Mutex::new(BaseWork::Idle),
            take_over: Mutex::new(false),
            state_lock: Mutex::new(()),
            reported: Mutex::new(Reported::default()),
        };
        Ok(Self { parts: Arc::new(parts), state: Arc::new(state) })
    }

    /// Sends commits and bases until `stop` becomes true. Then sends the last commits, for at most 5 s.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let state = LocalState::clone(&self.state);
        Box::pin(run_workers(&self.parts, state, stop, SHUTDOWN_GRACE)).await;
    }

    /// Logs how many commits the bucket lacks. Call it after the last commit of a shutdown. Blocking.
    pub fn log_unsent(&self) {
        let commits = self.parts.count_unsent();
        if commits > 0 {
            tracing::warn!(
                commits,
                "The backup does not have the last commits; the gateway sends them after the next start."
            );
        }
    }

    /// Waits until the head says that this gateway may export, or that it may not ([`Exporter::hold_reason`]), for at most
    /// 30 s.
    pub async fn wait_until_cleared(&self) {
        let mut cleared = self.parts.cleared.subscribe();
        let waiting = cleared.wait_for(|cleared| *cleared);
        if tokio::time::timeout(MAX_CLEARANCE_WAIT, waiting).await.is_err() {
            tracing::warn!(
                "The head of the backup could not be read and written so far; exports, sources and webhooks begin without it."
            );
        }
    }

    /// Begins a new era on purpose, whichever machine has the current one. The request is on the medium when this returns.
    /// Blocking.
    ///
    /// # Errors
    /// As [`request_take_over`].
    pub fn take_over(&self) -> Result<(), GatewayError> {
        let _guard = self.parts.state_lock.lock();
        store_take_over(&self.parts.folder, || Ok(()))?;
        *self.parts.take_over.lock() = true;
        self.parts.wake.notify_one();
        Ok(())
    }

    /// Returns what is shown of the backup. Blocking.
    pub fn report(&self) -> BackupStatus {
        self.parts.report()
    }
}

/// Reads the backup of one gateway, on any machine.
#[derive(Debug)]
pub struct BackupReader(Reader<TargetObjects>);

impl BackupReader {
    /// Opens the backup of a gateway in a configured target. `key` is `service.backup.key`. Sends nothing.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the target or the key cannot be used.
    pub fn of_target(
        targets: &Targets,
        data_dir: &Path,
        bucket_name: &str,
        gateway: &str,
        key: Option<&str>,
    ) -> Result<Self, GatewayError> {
        Reader::of_target(targets, data_dir, bucket_name, gateway, key).map(Self)
    }

    /// Lists the gateways that have a backup in a configured target. Blocking.
    ///
    /// # Errors
    /// As [`Self::of_target`], and if the target cannot be read.
    pub fn list_gateways(
        targets: &Targets,
        data_dir: &Path,
        bucket_name: &str,
    ) -> Result<Vec<String>, GatewayError> {
        Reader::list_gateways(targets, data_dir, bucket_name)
    }

    /// Restores the gateway into an empty data directory, and takes over from the old machine. Blocking.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if there is no backup, `ErrorClass::Forbidden` if the key is another one,
    /// `ErrorClass::Damaged` if an object is missing, damaged or at a wrong place, `ErrorClass::Conflict` if the head
    /// changed meanwhile; the errors of the disk.
    pub fn restore(
        &self,
        request: &RestoreRequest<'_>,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<RestoredBackup, GatewayError> {
        self.0.restore(request, progress)
    }

    /// Lists what there is. It needs no key. Blocking.
    ///
    /// # Errors
    /// The bucket cannot be read, or a newer version wrote the backup.
    pub fn list(&self) -> Result<ListedBackup, GatewayError> {
        self.0.list()
    }

    /// Reads and verifies everything of an era, or of all eras. Passes each problem to `found`. Blocking.
    ///
    /// # Errors
    /// The bucket cannot be read, there is no backup, or the key is another one.
    pub fn check(
        &self,
        era: Option<&str>,
        found: &mut dyn FnMut(&CheckFinding),
        progress: &mut dyn FnMut(&CheckedBackup),
    ) -> Result<CheckedBackup, GatewayError> {
        self.0.check(era, found, progress)
    }
}

/// Refuses to begin an empty store beside the backup of a gateway with the same id. If the bucket does not answer soon, the
/// gateway begins. Blocking.
///
/// # Errors
/// `ErrorClass::Invalid` if there is such a backup, or if the target or the key cannot be used.
pub fn refuse_empty_store(
    settings: &Backup,
    targets: &Targets,
    data_dir: &Path,
    gateway: &str,
) -> Result<(), GatewayError> {
    if settings.new_era {
        return Ok(());
    }
    let (target, key) = (settings.target.as_str(), settings.key.as_deref());
    let reader = Reader::of_target(targets, data_dir, target, gateway, key)?;
    let head = reader.keys.head();
    let found = reader.runtime.block_on(async {
        let reading = place::Objects::get(&reader.objects, &head);
        tokio::time::timeout(EMPTY_STORE_TIMEOUT, reading).await
    });
    match found {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(_))) => Err(GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "the store is empty, but the target {target} has a backup of the gateway {gateway:?}. To continue it, run \
                 penstock restore --from {target}; to begin a new gateway of the same id beside it, set \
                 service.backup.new-era=true"
            ),
        )),
        Ok(Err(failure)) => {
            warn_unread(target, gateway, &failure.cause);
            Ok(())
        }
        Err(_) => {
            warn_unread(target, gateway, "the target did not answer in time");
            Ok(())
        }
    }
}

fn warn_unread(target_name: &str, gateway: &str, cause: &str) {
    tracing::warn!(
        target_name,
        gateway,
        cause,
        "Whether the bucket has a backup of this gateway could not be found out before the start; once it is read, a backup \
         of another machine stops the backup, exports, sources and webhooks of this one."
    );
}
