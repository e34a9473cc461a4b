//! The store: commits go to the journal, then to the index; reads come from the index.
use crate::backup::refuse_unfinished;
use crate::frame::Change;
use crate::index::{self, Index};
use crate::journal::{Ahead, Apply, Base, Recovery, Settled, StoreId, Synced, Writer};
use crate::reopen::{caught_up, fit};
use crate::slot::Slot;
use crate::steps::{Stage, Steps};
use crate::tidy::{Closing, Tidier};
use crate::transaction::Changes;
use crate::{
    Commit, Error, Listed, Options, Progress, Reader, Stats, SubjectFilter, Transaction, files,
    verify,
};
use oxrdf::NamedNode;
use std::fs::{self, File};
use std::ops::{ControlFlow, Deref};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};

/// While the index takes over a base it notes sequences from here on, so that the next open throws
/// away what a crash left of it.
pub(crate) const LOADING: u64 = 1 << 63;

/// A durable set of quads and documents. Cheap to clone; all clones are one store, which closes
/// with a checkpoint when the last of them is dropped.
#[derive(Debug, Clone)]
pub struct Store {
    reads: ReadStore,
}

/// A [`Store`] that cannot commit: for code that reads it, backs it up, or maintains it (checkpoint,
/// compact, reopen), none of which changes its content. It keeps the store open.
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

/// What all clones share. The thread that tidies has only what is within, so that it never keeps
/// a store open.
#[derive(Debug)]
struct Shared {
    inner: Arc<Inner>,
    tidier: Tidier,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.tidier.end(&self.inner);
    }
}

/// What was changed since the store was opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Touched {
    /// How many quads were added and removed.
    pub(crate) quads: u64,
    /// How many documents were put and deleted.
    pub(crate) documents: u64,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// Had by the one who reads all that is held: a compaction or a backup. Taken before `writer`.
    pub(crate) slot: Slot,
    /// Taken before the locks below, by whoever changes anything.
    writer: Mutex<Writer>,
    /// Written to only under `writer`, or while the store is opened anew.
    index: RwLock<Index>,
    /// Another one whenever the store was opened anew.
    synced: RwLock<Arc<Synced>>,
    ahead: Ahead,
    pub(crate) closing: Closing,
    touched: Mutex<Touched>,
    pub(crate) steps: Steps,
    /// Bytes of the index on disk at the last checkpoint.
    index_bytes: AtomicU64,
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    /// Keeps other processes out; dropped last.
    _lock: Lock,
}

impl Store {
    /// Opens the store in `dir`, making it when there is none, and replays what the index lacks,
    /// telling `progress` from time to time.
    pub fn open(
        dir: &Path,
        options: Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Error> {
        files::make_folder(dir)?;
        let lock = lock(dir)?;
        refuse_unfinished(dir)?;
        let recovery = Recovery::begin(&dir.join("journal"), index::is_there(dir))?;
        let id = recovery.id;
        let index = fit(dir, index::open(dir, id)?, id, recovery.from())?;
        let mut journal = recovery.settle(index.noted())?;
        let steps = Steps::default();
        let index = caught_up(dir, index, &journal, &options, &steps, progress)?;
        journal.remove_useless()?;
        verify::discard_scratch(dir)?;
        let writer = journal.writer(options.segment_bytes);
        let index_bytes = index.bytes_on_disk();
        let inner = Inner {
            slot: Slot::default(),
            synced: RwLock::new(writer.synced()),
            writer: Mutex::new(writer),
            index: RwLock::new(index),
            ahead: Ahead::default(),
            closing: Closing::default(),
            touched: Mutex::default(),
            steps,
            index_bytes: AtomicU64::new(index_bytes),
            dir: dir.to_owned(),
            options,
            _lock: lock,
        };
        let shared = Shared { inner: Arc::new(inner), tidier: Tidier::default() };
        let store = Self { reads: ReadStore { shared: Arc::new(shared) } };
        store.tidy();
        Ok(store)
    }
}

impl ReadStore {
    pub(crate) fn inner(&self) -> &Inner {
        &self.shared.inner
    }

    /// Lets a thread of the store pack and compact, where there is something to do.
    pub(crate) fn tidy(&self) {
        if self.inner().options.tidies && self.inner().is_untidy() {
            self.shared.tidier.begin(&self.shared.inner);
        }
    }

    /// Packs the segments of the journal that are full. Commits and reads go on meanwhile. It happens by
    /// itself, in a thread of the store.
    pub fn pack(&self) -> Result<(), Error> {
        self.inner().pack()
    }

    /// Writes all that is held into a new base of the journal, and removes the frames that it
    /// stands for. Commits and reads go on meanwhile. It happens by itself, in a thread of the
    /// store, when the journal holds much of what is no longer so.
    pub fn compact(&self) -> Result<(), Error> {
        self.inner().compact()
    }

    /// A view of all whole commits. Keep it briefly: commits wait while it lives, also one of the
    /// same thread, which would wait forever.
    pub fn read(&self) -> Reader<'_> {
        Reader { index: self.inner().index() }
    }

    /// The same if nothing has to be waited for: no commit is just being applied.
    pub fn try_read(&self) -> Option<Reader<'_>> {
        match self.inner().index.try_read() {
            Ok(index) => Some(Reader { index }),
            Err(TryLockError::Poisoned(poisoned)) => Some(Reader { index: poisoned.into_inner() }),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The IRIs of the subjects that satisfy `filter`, in code point order, those after `after`, at most
    /// `limit`, and the sequence of the newest commit when the listing began. Commits go on meanwhile,
    /// however many subjects have to be looked at: one that they change may be listed as it was or as
    /// it is. It fails with [`Error::Reopening`] when the store is opened anew on the way.
    pub fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<NamedNode>, u64), Error> {
        let (listed, seen) = self.listed(filter, after, limit)?;
        Ok((listed.into_iter().map(|listed| listed.iri).collect(), seen))
    }

    /// As [`Self::subjects`], for [`Reader::about_listed`].
    pub fn listed(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Listed>, u64), Error> {
        let index = self.inner().index();
        let (seen, instance) = (index.sequence(), index.instance());
        let mut found = Vec::new();
        let listing = index.list(filter, after)?;
        drop(index);
        let Some(mut listing) = listing.filter(|_| limit > 0) else { return Ok((found, seen)) };
        let visit = &mut |iri: &str, id| {
            found.push(Listed { iri: NamedNode::new_unchecked(iri), id, instance });
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        while self.inner().index().go_on(&mut listing, after, visit)?.is_continue() {}
        Ok((found, seen))
    }
}

impl Store {
    /// Runs `change` alone among the writers and commits what it did as one frame. Returns once the
    /// frame is synced, and when nothing changed, once all that `change` could have seen is. When
    /// `change` fails, nothing of it remains.
    ///
    /// After an error for which [`Error::is_no_room`] nothing of it remains either, unless
    /// [`ReadStore::poisoned`]. After another [`Error::Io`], [`Error::Poisoned`] or [`Error::Index`] it is
    /// unknown until the store is opened anew whether the commit is there; it is never there in part.
    pub fn transact<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Commit), E> {
        let mut writer = self.inner().admitted()?;
        self.inner().make_room(&writer)?;
        let steps = &self.inner().steps;
        let begun = steps.begin(Stage::Changing);
        let mut transaction = Transaction::new(self.read().index, steps);
        let value = change(&mut transaction)?;
        let changes = transaction.into_changes()?;
        let sequence = self.inner().commit(&mut writer, &changes)?;
        let waiting = steps.wait();
        drop(begun);
        // Another one may take its place once the writer is dropped.
        let synced = writer.synced();
        drop(writer);
        synced.wait(sequence)?;
        drop(waiting);
        self.tidy();
        Ok((value, Commit { sequence, added: changes.added, removed: changes.removed }))
    }
}

impl ReadStore {
    /// Why no commit is taken until the store is opened anew ([`ReadStore::reopen`]); `None` while they are.
    pub fn poisoned(&self) -> Option<String> {
        self.inner().synced().cause()
    }

    /// What a read met in the index that is damaged, or cannot be read: [`ReadStore::reopen`] mends it. It waits
    /// for nothing, and gives `None` while a commit is just being applied.
    pub fn damage(&self) -> Option<String> {
        self.try_read()?.index.damage().map(str::to_owned)
    }

    /// Writes what waits in memory to the index and syncs it, so that the next open is quick.
    pub fn checkpoint(&self) -> Result<(), Error> {
        let writer = self.inner().admitted()?;
        self.inner().checkpoint(&writer)
    }

    /// A number that grows with each quad and document that a transaction changes or finds, with each look it
    /// takes, and with each term, quad, document, block and name that a commit, a checkpoint or opening the
    /// store anew brings to its place. It is read without waiting for anything: whoever sees it grow knows that
    /// writers go on, however long one of them takes.
    pub fn steps(&self) -> u64 {
        self.inner().steps.count()
    }

    /// What the writer is at now, or those who wait for its commits; read without waiting, too.
    pub fn stage(&self) -> Stage {
        self.inner().steps.stage()
    }

    /// What the store holds and uses now.
    pub fn stats(&self) -> Stats {
        let index = self.read().index;
        let bytes = self.inner().synced().bytes();
        Stats {
            sequence: index.sequence(),
            quads: index.quads(),
            journal_bytes: bytes.all,
            base_bytes: bytes.base,
            index_bytes: index.bytes_on_disk(),
            write_back_bytes: index.dirty_bytes() as u64,
        }
    }
}

impl Inner {
    pub(crate) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn synced(&self) -> Arc<Synced> {
        self.synced.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn replace_synced(&self, synced: Arc<Synced>) {
        *self.synced.write().unwrap_or_else(PoisonError::into_inner) = synced;
    }

    /// What the commits so far have changed.
    pub(crate) fn touched(&self) -> Touched {
        *self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for who is to be refused while the store is poisoned: at once, whatever the one who has the
    /// writer does, and still when its turn comes.
    pub(crate) fn admitted(&self) -> Result<MutexGuard<'_, Writer>, Error> {
        self.synced().check()?;
        let writer = self.writer();
        self.synced().check()?;
        Ok(writer)
    }

    /// Appends the frame of the changes and applies it. Gives the sequence to wait for.
    fn commit(&self, writer: &mut Writer, changes: &Changes) -> Result<u64, Error> {
        let newest = self.index().sequence();
        if changes.is_empty() {
            return Ok(newest);
        }
        let sequence = newest + 1;
        let payload = changes.payload(newest - self.synced().newest());
        let change = Change::decode(&payload)
            .map_err(|what| Error::Index(format!("the commit makes no frame: {what}")))?;
        let _appending = self.steps.begin(Stage::Appending);
        writer.append(sequence, &payload)?;
        self.ahead.appended(&writer.synced(), sequence, payload.len());
        // Before it can be read: who counts what was read must not count too little here.
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        touched.quads += changes.added + changes.removed;
        touched.documents += changes.documents();
        drop(touched);
        self.steps.step();
        let _applying = self.steps.begin(Stage::Applying);
        let mut index = self.index_mut();
        index
            .apply(sequence, &change, &self.steps)
            .inspect_err(|error| self.synced().poison_from(sequence, error))?;
        Ok(sequence)
    }

    fn make_room(&self, writer: &MutexGuard<'_, Writer>) -> Result<(), Error> {
        let due = self.index().is_checkpoint_due(self.options.write_back_bytes);
        if due { self.checkpoint(writer) } else { Ok(()) }
    }

    /// Readers go on while a checkpoint is written; the writer's lock keeps commits out.
    pub(crate) fn checkpoint(&self, _writer: &MutexGuard<'_, Writer>) -> Result<(), Error> {
        let index = self.index();
        // An index must not be ahead of its journal after a power cut.
        let _syncing = self.steps.begin(Stage::Syncing);
        self.synced().wait(index.sequence())?;
        let _writing = self.steps.begin(Stage::WritingOut);
        index.begin_checkpoint()?;
        let written =
            index.write_out(&self.steps).inspect_err(|error| self.synced().poison(error))?;
        drop(index);
        let mut index = self.index_mut();
        index.written(written);
        self.index_bytes.store(index.bytes_on_disk(), Ordering::Relaxed);
        Ok(())
    }

    /// Bytes of the index on disk at the last checkpoint.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.index_bytes.load(Ordering::Relaxed)
    }

    /// The folder of the journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.dir.join("journal")
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let writer = self.writer();
        if self.synced().check().is_ok()
            && let Err(cause) = self.checkpoint(&writer)
        {
            tracing::warn!(%cause, "The last checkpoint failed; the next open replays the journal.");
        }
    }
}

/// Keeps other processes out of a data directory.
#[derive(Debug)]
pub(crate) struct Lock(Vec<File>);

impl Lock {
    fn take(&mut self, file: File) -> Result<(), fs::TryLockError> {
        file.try_lock()?;
        self.0.push(file);
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is being started may have a copy of it for a moment.
        // An unlock that fails leaves the lock to the end of this process, which is as safe.
        for file in &self.0 {
            let _ = file.unlock();
        }
    }
}

/// Locks a data directory: the file `lock` in it, which is all that older versions look at, and the
/// directory itself, which nobody removes while it is in use.
pub(crate) fn lock(dir: &Path) -> Result<Lock, Error> {
    let path = dir.join("lock");
    let file = files::open_or_make(&path)?;
    let mut lock = Lock(Vec::new());
    lock.take(file).map_err(|error| lock_error(error, dir, &path))?;
    let folder = File::open(dir).map_err(files::fault("opening", dir))?;
    match lock.take(folder) {
        // Some network file systems lock files only.
        Err(fs::TryLockError::Error(cause)) => {
            tracing::debug!(path = %dir.display(), %cause, "The directory cannot be locked, only a file in it.");
        }
        taken => taken.map_err(|error| lock_error(error, dir, dir))?,
    }
    Ok(lock)
}

fn lock_error(error: fs::TryLockError, dir: &Path, path: &Path) -> Error {
    match error {
        fs::TryLockError::WouldBlock => Error::InUse { path: dir.to_owned() },
        fs::TryLockError::Error(error) => files::fault("locking", path)(error),
    }
}

/// An empty index in place of one that is of no use.
pub(crate) fn anew(dir: &Path, index: Index, id: StoreId) -> Result<Index, Error> {
    drop(index);
    index::discard(dir)?;
    index::open(dir, id)
}

pub(crate) fn replay(
    index: &mut Index,
    journal: &Settled,
    options: &Options,
    steps: &Steps,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    Replay {
        base: journal.base(),
        newest: journal.newest,
        write_back_bytes: Some(options.write_back_bytes),
        steps,
        frames: &|after, apply| journal.replay(after, apply),
    }
    .run(index, progress)
}

/// Bringing an index up to the newest frame.
pub(crate) struct Replay<'a> {
    pub(crate) base: Option<&'a Base>,
    pub(crate) newest: u64,
    /// Changed bytes after which a checkpoint is written; nothing for an index that is not to change on disk.
    pub(crate) write_back_bytes: Option<usize>,
    /// Counts what is done.
    pub(crate) steps: &'a Steps,
    /// Hands the frames after one to what it is given, in order.
    pub(crate) frames: &'a dyn Fn(u64, &mut Apply<'_>) -> Result<(), Error>,
}

impl Replay<'_> {
    pub(crate) fn run(
        &self,
        index: &mut Index,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let base = self.base.filter(|base| index.noted() < base.end.from);
        let noted = base.map_or(index.noted(), |base| base.end.from);
        let parts = base.map_or(0, |base| base.end.parts);
        let total = parts + self.newest - noted;
        if total == 0 {
            return Ok(());
        }
        let mut done = 0;
        progress(Progress { done, total });
        let mut apply = |index: &mut Index, sequence, payload: &[u8]| {
            let change = match Change::decode(payload) {
                Ok(change) => change,
                Err(what) => return Ok(Err(what)),
            };
            index.apply(sequence, &change, self.steps)?;
            if self.write_back_bytes.is_some_and(|most| index.is_checkpoint_due(most)) {
                index.begin_checkpoint()?;
                let written = index.write_out(self.steps)?;
                index.written(written);
            }
            done += 1;
            progress(Progress { done, total });
            Ok(Ok(()))
        };
        if let Some(base) = base {
            base.replay(&mut |part, payload| apply(index, LOADING + part, payload))?;
            index.apply(base.end.from, &Change::default(), self.steps)?;
        }
        (self.frames)(noted, &mut |sequence, payload| apply(index, sequence, payload))?;
        tracing::info!(
            parts,
            frames = total - parts,
            "The journal was replayed into the quad index."
        );
        Ok(())
    }
}
