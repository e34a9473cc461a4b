//! A gateway with a backup into a bucket in memory.
use super::bucket::{Fault, MemoryBucket};
use crate::DeliveryTimings;
use crate::backup::base::BaseWorker;
use crate::backup::folder::BackupFolder;
use crate::backup::keys::{BackupKeys, random_token};
use crate::backup::parts::{BaseWork, Parts, Reported};
use crate::backup::reader::Reader;
use crate::backup::restore::RestoreRequest;
use crate::backup::retain_after;
use crate::backup::secrecy::BackupKey;
use crate::backup::ship::{Phase, Shipper};
use crate::uplink::Uplink;
use parking_lot::Mutex;
use penstock_base::clock::Clock;
use penstock_base::disk::Disk;
use penstock_config::Backup;
use penstock_store::{Error, Options, Read as _, ReadStore, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub(super) const GATEWAY: &str = "edge-1";
const COLLECTION: &str = "d";

/// The documents of a store.
pub(super) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) fn content(store: &ReadStore) -> Content {
    let range = penstock_store::DocumentRange {
        prefix: b"",
        after: None,
        reverse: false,
        limit: usize::MAX,
    };
    store.read().read_documents(COLLECTION, range).unwrap().into_iter().collect()
}

/// A gateway with a backup.
pub(super) struct Machine {
    pub(super) dir: TempDir,
    pub(super) bucket: MemoryBucket,
    pub(super) key: String,
    /// `service.limits.disk-reserve`, from the next start on.
    pub(super) reserve: u64,
    /// `service.backup.new-era`, from the next start on.
    pub(super) new_era: bool,
    pub(super) runtime: Runtime,
    pub(super) running: Option<Running>,
    /// The content after each commit, by sequence.
    pub(super) states: BTreeMap<u64, Content>,
}

pub(super) struct Running {
    pub(super) store: Store,
    pub(super) shipper: Shipper<MemoryBucket>,
    pub(super) base: BaseWorker<MemoryBucket>,
}

pub(super) fn settings(key: &str) -> Backup {
    Backup {
        target: "vault".to_owned(),
        interval: Duration::from_secs(10),
        base: Duration::from_hours(168),
        keep: Duration::from_hours(30 * 24),
        key: Some(key.to_owned()),
        insecure: false,
        new_era: false,
    }
}

impl Machine {
    pub(super) fn new(bucket: &MemoryBucket, key: &str) -> Self {
        Self::in_dir(tempfile::tempdir().unwrap(), bucket, key)
    }

    pub(super) fn in_dir(dir: TempDir, bucket: &MemoryBucket, key: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (bucket, key, states) = (bucket.clone(), key.to_owned(), BTreeMap::new());
        let mut machine =
            Self { dir, bucket, key, reserve: 0, new_era: false, runtime, running: None, states };
        machine.restart();
        machine
    }

    /// Ends the process and starts it again.
    pub(super) fn restart(&mut self) {
        self.running = None;
        let folder = BackupFolder::of(self.dir.path());
        folder.prepare().unwrap();
        let state = folder.repair_state().unwrap();
        let options = Options {
            segment_bytes: 2_000,
            background_maintenance: false,
            retain_after: retain_after(self.dir.path()).unwrap(),
            ..Options::default()
        };
        let store = Store::open(&self.dir.path().join("store"), options, &mut |_| {}).unwrap();
        let key = BackupKey::parse(Some(&self.key)).unwrap();
        let parts = Arc::new(Parts {
            objects: self.bucket.clone(),
            keys: BackupKeys::new("", GATEWAY, key.encrypts()),
            key,
            gateway: GATEWAY.to_owned(),
            token: random_token(),
            store: ReadStore::clone(&store),
            clock: Clock::open(store.clone()).unwrap(),
            disk: Disk::new(self.dir.path().to_owned(), self.reserve),
            options: Backup { new_era: self.new_era, ..settings(&self.key) },
            timings: DeliveryTimings::default(),
            folder,
            uplink: Uplink::new(None, None),
            wake: Arc::default(),
            base_wake: Arc::default(),
            cleared: watch::Sender::new(false),
            base: Mutex::new(BaseWork::Idle),
            take_over: Mutex::new(false),
            state_lock: Mutex::new(()),
            reported: Mutex::new(Reported::default()),
        });
        let base = BaseWorker::new(Arc::clone(&parts));
        let shipper = Shipper::new(parts, state);
        let sequence = store.stats().sequence;
        self.states.insert(sequence, content(&store));
        self.running = Some(Running { store, shipper, base });
    }

    pub(super) fn running(&mut self) -> &mut Running {
        self.running.as_mut().unwrap()
    }

    pub(super) fn commit(&mut self, number: u64) {
        let store = self.running().store.clone();
        let change = |change: &mut penstock_store::Transaction<'_>| -> Result<(), Error> {
            change.put_document(COLLECTION, b"last", &number.to_be_bytes())?;
            change.put_document(COLLECTION, &(number % 20).to_be_bytes(), &[7; 150])?;
            change.delete_document(COLLECTION, &(number * 7 % 20).to_be_bytes())
        };
        let ((), commit) = store.transact(change).unwrap();
        self.states.insert(commit.sequence, content(&store));
    }

    /// Does what is due, and returns whether it succeeded.
    pub(super) fn step(&mut self, what: &Action) -> bool {
        let Running { shipper, base, store } = self.running.as_mut().unwrap();
        let done = self.runtime.block_on(async {
            if shipper.phase == Phase::Starting {
                shipper.start().await?;
            }
            match what {
                Action::Probe => shipper.probe().await,
                Action::Check => {
                    shipper.check().await?;
                    while !shipper.deletable.is_empty() {
                        shipper.delete_some().await?;
                    }
                    Ok(())
                }
                Action::Merge => shipper.merge().await,
                Action::Base => match base.wanted() {
                    Some(wanted) => base.make_and_send(&wanted).await,
                    None => Ok(()),
                },
                _ => {
                    shipper.record_point().await?;
                    while shipper.ship().await? {}
                    // The base of before counts once its commits do.
                    shipper.ship().await.map(drop)
                }
            }
        });
        assert!(store.poison_cause().is_none());
        done.is_ok()
    }

    pub(super) fn ship(&mut self) {
        assert!(self.step(&Action::Ship));
    }

    /// Begins the backup, and makes its first base.
    pub(super) fn begin(&mut self) {
        for action in [Action::Probe, Action::Ship, Action::Base, Action::Ship] {
            assert!(self.step(&action), "{action:?}");
        }
    }

    /// Begins a new era on purpose. Returns whether its head was accepted.
    pub(super) fn take_over(&mut self) -> bool {
        let Running { shipper, .. } = self.running.as_mut().unwrap();
        *shipper.parts.take_over.lock() = true;
        self.runtime.block_on(shipper.start()).is_ok()
    }

    pub(super) fn reader(&self) -> Reader<MemoryBucket> {
        let key = BackupKey::parse(Some(&self.key)).unwrap();
        Reader::new(self.bucket.clone(), "", GATEWAY, key).unwrap()
    }

    /// Restores a copy as the bucket is now. It has the state after the commit that the head names. Returns its sequence,
    /// unless nothing can be restored yet.
    pub(super) fn check_restore(&self) -> Option<u64> {
        let mut restored_sequence = None;
        let faults = std::mem::take(&mut self.bucket.0.lock().faults);
        if let Some(head) = self.reader().read_head().unwrap()
            && let Some(restorable) = head.head.restorable()
        {
            let dir = tempfile::tempdir().unwrap();
            let restored = self.reader().restore(&request(dir.path(), true), &mut |_| {}).unwrap();
            let sequence = restored.restored.backup.sequence;
            assert_eq!(sequence, restorable.last.sequence);
            let store =
                Store::open(&store_dir(dir.path()), Options::default(), &mut |_| {}).unwrap();
            assert_eq!(Some(&content(&store)), self.states.get(&sequence), "commit {sequence}");
            restored_sequence = Some(sequence);
        }
        self.bucket.0.lock().faults = faults;
        restored_sequence
    }
}

pub(super) fn store_dir(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("store")
}

pub(super) fn request(data_dir: &Path, copy: bool) -> RestoreRequest<'_> {
    // Leaked: a request borrows it, and a test ends soon.
    let store_dir: &'static Path = Box::leak(store_dir(data_dir).into_boxed_path());
    RestoreRequest { data_dir, store_dir, counters: &["counters"], era: None, at: None, copy }
}

#[derive(Debug, Clone)]
pub(super) enum Action {
    Commit(u64),
    Probe,
    Ship,
    Base,
    Check,
    Merge,
    TakeOver,
    Restart,
    Compact,
    Pack,
    Advance(i64),
    Faults(Vec<Fault>),
}
