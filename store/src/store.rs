//! The store: commits go to the journal and then to the index; reads come from the index.
use crate::data_dir::{DirLock, discard_scratch, lock_data_dir, refuse_unfinished_restore};
use crate::frame::Change;
use crate::index;
use crate::index_lock::{IndexLock, IndexReadGuard, IndexWriteGuard};
use crate::journal::{Recovery, Retained, SyncState, SyncThread, Writer};
use crate::maintenance_thread::{Closing, MaintenanceThread};
use crate::read::collect_first;
use crate::replay::{ReplayContext, catch_up};
use crate::slot::Slot;
use crate::steps::{Stage, WriterSteps};
use crate::transaction::Changes;
use crate::{
    Commit, Error, Format, Options, Progress, Reader, Stats, SubjectFilter, Transaction, files,
};
use oxrdf::NamedNode;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A durable set of quads and documents. It is cheap to clone. All clones are one store, which closes with a
/// checkpoint when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Store {
    reads: ReadStore,
}

/// A [`Store`] that cannot commit, for code that reads, backs up or maintains the store (checkpoint, compact,
/// reopen). None of these changes the content. Like a [`Store`], it keeps the store open.
#[derive(Debug, Clone)]
pub struct ReadStore {
    shared: Arc<Shared>,
}

impl Deref for Store {
    type Target = ReadStore;

    fn deref(&self) -> &ReadStore {
        &self.reads
    }
}

/// The state that all clones share. The maintenance thread only has `inner`, so that it does not keep a store
/// open.
#[derive(Debug)]
struct Shared {
    inner: Arc<StoreInner>,
    maintenance: MaintenanceThread,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.inner.closing.begin_closing();
        self.maintenance.join();
    }
}

/// The number of changes since the store was opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChangeCounts {
    /// The number of quads added and removed.
    pub(crate) quads: u64,
    /// The number of documents put and deleted.
    pub(crate) documents: u64,
}

/// The opened store, without the maintenance thread.
#[derive(Debug)]
pub(crate) struct StoreInner {
    /// Held by a pass over the whole store, such as a compaction or a backup. Locked before `writer`.
    pub(crate) slot: Slot,
    /// Held by every change. Locked before the locks below.
    writer: Mutex<Writer>,
    /// Changed only under `writer`, or while the store is reopened. Opening a snapshot only reads it.
    index: IndexLock,
    /// Replaced when the store is reopened.
    synced: RwLock<Arc<SyncState>>,
    pub(crate) sync_thread: SyncThread,
    pub(crate) retained: Retained,
    pub(crate) closing: Closing,
    change_counts: Mutex<ChangeCounts>,
    pub(crate) steps: WriterSteps,
    /// Bytes of the index on disk at the last checkpoint.
    index_bytes: AtomicU64,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// Excludes other processes. It is dropped last.
    _lock: DirLock,
}

impl Store {
    /// Opens the store in `dir`, or creates it. Replays the frames that the index lacks, and reports to
    /// `progress` from time to time.
    pub fn open(
        dir: &Path,
        options: Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Error> {
        files::create_folder(dir)?;
        let lock = lock_data_dir(dir)?;
        refuse_unfinished_restore(dir)?;
        let recovery = Recovery::find_or_create(&dir.join("journal"), index::index_exists(dir))?;
        let (id, from) = (recovery.id, recovery.base_sequence());
        let found = index::find_index(dir, id, from, options.value_index)?;
        let journal = recovery.settle_end(found.checkpointed_sequence())?;
        let steps = WriterSteps::default();
        let context = ReplayContext { dir, options: &options, steps: &steps };
        let index = catch_up(context, found, &journal, progress)?;
        let retained = Retained::new(options.retain_after);
        journal.remove_obsolete(retained.after())?;
        discard_scratch(dir)?;
        let writer = journal.into_writer(options.segment_bytes);
        let index_bytes = index.bytes_on_disk();
        let inner = StoreInner {
            slot: Slot::default(),
            synced: RwLock::new(writer.sync_state()),
            writer: Mutex::new(writer),
            index: IndexLock::new(index),
            sync_thread: SyncThread::default(),
            retained,
            closing: Closing::default(),
            change_counts: Mutex::default(),
            steps,
            index_bytes: AtomicU64::new(index_bytes),
            dir: dir.to_owned(),
            options,
            _lock: lock,
        };
        let shared = Shared { inner: Arc::new(inner), maintenance: MaintenanceThread::default() };
        let store = Self { reads: ReadStore { shared: Arc::new(shared) } };
        store.start_maintenance();
        Ok(store)
    }
}

impl ReadStore {
    pub(crate) fn inner(&self) -> &StoreInner {
        &self.shared.inner
    }

    /// Starts the maintenance thread if there is something to pack or compact.
    pub(crate) fn start_maintenance(&self) {
        if self.inner().options.background_maintenance && self.inner().needs_maintenance() {
            let inner = Arc::clone(&self.shared.inner);
            self.shared.maintenance.start_if_idle(move || inner.maintain());
        }
    }

    /// Packs the full segments of the journal. Commits and reads continue meanwhile. With
    /// [`Options::background_maintenance`] a background thread does this automatically.
    pub fn pack_segments(&self) -> Result<(), Error> {
        self.inner().pack_segments()
    }

    /// Writes the whole state into a new base of the journal, and removes the frames that it replaces.
    /// Commits and reads continue meanwhile. With [`Options::background_maintenance`] a background thread does
    /// this automatically when much of the journal is obsolete.
    pub fn compact_journal(&self) -> Result<(), Error> {
        self.inner().compact_journal()
    }

    /// Returns a view of all complete commits. Drop it soon: commits wait while it exists. A commit on the
    /// same thread would wait forever.
    pub fn read(&self) -> Reader<'_> {
        Reader { index: self.inner().lock_index() }
    }

    /// Returns a view without waiting, or `None` while a commit is being applied.
    pub fn try_read(&self) -> Option<Reader<'_>> {
        Some(Reader { index: self.inner().index.try_read()? })
    }

    /// Lists the IRIs of the subjects that satisfy `filter`, in code point order: at most `limit`, starting
    /// after `after`.
    ///
    /// Commits continue meanwhile, even if many subjects have to be tested. A subject that they change is
    /// listed in its old or new state. Fails with [`Error::Reopening`] if the store is reopened meanwhile.
    pub fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        collect_first(limit, |found| {
            let listing = self.inner().lock_index().view().begin_listing(filter, after)?;
            let Some(mut listing) = listing else { return Ok(()) };
            let visit = &mut |iri: &str, _| found(NamedNode::new_unchecked(iri));
            while self
                .inner()
                .lock_index()
                .view()
                .continue_listing(&mut listing, visit)?
                .is_continue()
            {}
            Ok(())
        })
    }
}

impl Store {
    /// Runs `change` while no other writer runs, and commits its changes as one frame. Returns once the frame
    /// is synced. If nothing changed, it returns once everything that `change` could have read is synced. If
    /// `change` fails, none of its changes are kept.
    ///
    /// After an error for which [`Error::is_disk_full`] holds, none of the changes are kept either, unless the
    /// store is poisoned ([`ReadStore::poison_cause`]). After another [`Error::Io`], or an [`Error::Poisoned`]
    /// or [`Error::Index`], it is unknown whether the commit exists until the store is reopened. It never
    /// exists in part.
    pub fn transact<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Commit), E> {
        Ok(self.transact_unsynced(change)?.wait()?)
    }

    /// Runs `work` while no other writer runs, and keeps none of its changes.
    pub fn dry_run<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let writer = self.inner().lock_writer_if_writable()?;
        self.inner().checkpoint_if_due(&writer)?;
        let steps = &self.inner().steps;
        let _begun = steps.enter_stage(Stage::Changing);
        let mut transaction = Transaction::new(self.read().index, steps);
        work(&mut transaction)
    }
}

impl ReadStore {
    /// Returns why the store refuses commits until it is reopened ([`ReadStore::reopen`]); `None` while it
    /// accepts them.
    pub fn poison_cause(&self) -> Option<String> {
        self.inner().sync_state().poison_cause()
    }

    /// Returns the first damage of the index that was found, if any. [`ReadStore::reopen`] repairs it. This
    /// does not wait, and returns `None` while a commit is being applied.
    pub fn index_damage(&self) -> Option<String> {
        self.try_read()?.index.first_damage().map(str::to_owned)
    }

    /// Writes all changes in memory to the index and syncs it, so that the next open is fast.
    pub fn checkpoint(&self) -> Result<(), Error> {
        let writer = self.inner().lock_writer_if_writable()?;
        self.inner().write_checkpoint(&writer)
    }

    /// Returns a number that grows with the work of writers. Each quad or document that a transaction changes
    /// or finds counts, and each of its lookups. So do terms, quads, documents, blocks and names processed by
    /// a commit, a checkpoint or a reopening.
    ///
    /// It is read without waiting. While it grows, writers make progress, however long a single one takes.
    pub fn step_count(&self) -> u64 {
        self.inner().steps.step_count()
    }

    /// Returns the current activity of the writer, or of the commits that wait for a sync. It is read without
    /// waiting.
    pub fn stage(&self) -> Stage {
        self.inner().steps.stage()
    }

    /// Returns the format of the store.
    pub fn format(&self) -> Format {
        self.inner().sync_state().format()
    }

    /// Returns the size and content of the store.
    pub fn stats(&self) -> Stats {
        let index = self.read().index;
        let bytes = self.inner().sync_state().bytes();
        Stats {
            sequence: index.sequence(),
            quads: index.quad_count(),
            journal_bytes: bytes.all,
            base_bytes: bytes.base,
            index_bytes: index.bytes_on_disk(),
            write_back_bytes: index.dirty_bytes() as u64,
            snapshots: index.snapshots().stats(),
        }
    }
}

impl StoreInner {
    pub(crate) fn lock_index(&self) -> IndexReadGuard<'_> {
        self.index.read()
    }

    pub(crate) fn lock_index_mut(&self) -> IndexWriteGuard<'_> {
        self.index.write()
    }

    pub(crate) fn sync_state(&self) -> Arc<SyncState> {
        self.synced.read().clone()
    }

    pub(crate) fn replace_sync_state(&self, synced: Arc<SyncState>) {
        *self.synced.write() = synced;
    }

    /// Returns the number of changes by the commits so far.
    pub(crate) fn change_counts(&self) -> ChangeCounts {
        *self.change_counts.lock()
    }

    pub(crate) fn lock_writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Locks the writer, or fails if the store is poisoned: at once, even while another commit has the lock,
    /// and also if the store is poisoned while this call waits for the lock.
    pub(crate) fn lock_writer_if_writable(&self) -> Result<MutexGuard<'_, Writer>, Error> {
        self.sync_state().check_writable()?;
        let writer = self.lock_writer();
        self.sync_state().check_writable()?;
        Ok(writer)
    }

    /// Appends the frame of the changes and applies it. Returns the sequence to wait for.
    pub(crate) fn append_and_apply(
        &self,
        writer: &mut Writer,
        changes: &Changes,
    ) -> Result<u64, Error> {
        let newest = self.lock_index().sequence();
        if changes.is_empty() {
            return Ok(newest);
        }
        let sequence = newest + 1;
        let payload = changes.encode_payload(newest - self.sync_state().newest_synced());
        let change = Change::decode(&payload)
            .map_err(|what| Error::Index(format!("the commit cannot be decoded: {what}")))?;
        let _appending = self.steps.enter_stage(Stage::Appending);
        writer.raise_format(sequence, changes.format)?;
        writer.append_frame(sequence, &payload)?;
        self.sync_thread.begin_sync(&writer.sync_state(), sequence, payload.len());
        // Counted before the commit becomes visible: a pass that reads these changes compares with the counts.
        let mut counts = self.change_counts.lock();
        counts.quads += changes.added + changes.removed;
        counts.documents += changes.document_count();
        drop(counts);
        self.steps.count_step();
        let _applying = self.steps.enter_stage(Stage::Applying);
        let mut index = self.lock_index_mut();
        index
            .apply_frame(sequence, &change, &self.steps)
            .inspect_err(|error| self.sync_state().poison_after(sequence, error))?;
        let snapshots = Arc::clone(index.snapshots());
        drop(index);
        // Readers continue meanwhile.
        snapshots.make_room(&mut || self.steps.count_step());
        Ok(sequence)
    }

    pub(crate) fn checkpoint_if_due(&self, writer: &MutexGuard<'_, Writer>) -> Result<(), Error> {
        let due = self.lock_index().is_checkpoint_due(self.options.write_back_bytes);
        if due { self.write_checkpoint(writer) } else { Ok(()) }
    }

    /// Writes a checkpoint. Readers continue meanwhile; the writer's lock excludes commits.
    pub(crate) fn write_checkpoint(&self, _writer: &MutexGuard<'_, Writer>) -> Result<(), Error> {
        let index = self.lock_index();
        // After a power cut the index must not be newer than its journal.
        let _syncing = self.steps.enter_stage(Stage::Syncing);
        self.sync_state().wait_synced(index.sequence())?;
        let _writing = self.steps.enter_stage(Stage::Checkpointing);
        index.check_checkpoint_space()?;
        let written = index
            .write_checkpoint(&self.steps)
            .inspect_err(|error| self.sync_state().poison(error))?;
        drop(index);
        let mut index = self.lock_index_mut();
        index.mark_written(written);
        self.index_bytes.store(index.bytes_on_disk(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the size of the index on disk at the last checkpoint, in bytes.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.index_bytes.load(Ordering::Relaxed)
    }

    /// Returns the folder of the journal.
    pub(crate) fn journal_folder(&self) -> PathBuf {
        self.dir.join("journal")
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        let writer = self.lock_writer();
        if self.sync_state().check_writable().is_ok()
            && let Err(cause) = self.write_checkpoint(&writer)
        {
            tracing::warn!(%cause, "The final checkpoint failed; the next open replays the journal.");
        }
    }
}
