//! The store: commits go to the journal, then to the index; reads come from the index.
use crate::frame::Change;
use crate::index::{self, Index};
use crate::journal::{Recovery, Settled, Synced, Writer};
use crate::transaction::Changes;
use crate::{Commit, Error, Options, Progress, Reader, Stats, Transaction, files};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Frames between two tidings of a replay.
const TELL_EVERY: u64 = 1_024;

/// A durable set of quads and documents. Cheap to clone; all clones are one store, which closes
/// with a checkpoint when the last of them is dropped.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Taken first of all locks, by whoever changes anything.
    writer: Mutex<Writer>,
    /// Written to only under `writer`.
    index: RwLock<Index>,
    synced: Arc<Synced>,
    write_back_bytes: usize,
    /// Keeps other processes out; dropped last.
    _lock: File,
}

impl Store {
    /// Opens the store in `dir`, making it when there is none, and replays what the index lacks,
    /// telling `progress` from time to time.
    #[expect(clippy::needless_pass_by_value, reason = "options may come to hold more than numbers")]
    pub fn open(
        dir: &Path,
        options: Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Error> {
        files::make_folder(dir)?;
        let lock = lock(dir)?;
        let recovery = Recovery::begin(&dir.join("journal"), index::is_there(dir))?;
        let mut index = index::open(dir, recovery.id)?;
        let journal = recovery.settle(index.noted())?;
        if index.noted() > journal.newest {
            tracing::error!(
                index = index.noted(),
                journal = journal.newest,
                "The journal ended before the quad index, which is made again from it."
            );
            index = anew(dir, index, &journal)?;
        }
        match replay(&mut index, &journal, &options, progress) {
            Err(Error::Index(cause)) => {
                tracing::warn!(
                    cause,
                    "The quad index was unusable; it is made again from the journal."
                );
                index = anew(dir, index, &journal)?;
                replay(&mut index, &journal, &options, progress)?;
            }
            done => done?,
        }
        let writer = journal.writer(options.segment_bytes);
        let inner = Inner {
            synced: writer.synced(),
            writer: Mutex::new(writer),
            index: RwLock::new(index),
            write_back_bytes: options.write_back_bytes,
            _lock: lock,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A view of all whole commits. Keep it briefly: commits wait while it lives, also one of the
    /// same thread, which would wait forever.
    pub fn read(&self) -> Reader<'_> {
        Reader { index: self.inner.index.read().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Runs `change` alone among the writers and commits what it did as one frame. Returns once the
    /// frame is synced, and when nothing changed, once all that `change` could have seen is. When
    /// `change` fails, nothing of it remains.
    ///
    /// After [`Error::Io`], [`Error::Poisoned`] or [`Error::Index`] it is unknown until the store
    /// is opened anew whether the commit is there; it is never there in part.
    pub fn transact<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Commit), E> {
        let mut writer = self.inner.writer();
        self.inner.synced.check()?;
        self.inner.make_room(&writer)?;
        let mut transaction = Transaction::new(self.read().index);
        let value = change(&mut transaction)?;
        let changes = transaction.into_changes()?;
        let sequence = self.inner.commit(&mut writer, &changes)?;
        drop(writer);
        self.inner.synced.wait(sequence)?;
        Ok((value, Commit { sequence, added: changes.added, removed: changes.removed }))
    }

    /// Writes what waits in memory to the index and syncs it, so that the next open is quick.
    pub fn checkpoint(&self) -> Result<(), Error> {
        let writer = self.inner.writer();
        self.inner.synced.check()?;
        self.inner.checkpoint(&writer)
    }

    /// What the store holds and uses now.
    pub fn stats(&self) -> Stats {
        let index = self.read().index;
        Stats {
            sequence: index.sequence(),
            quads: index.quads(),
            journal_bytes: self.inner.synced.journal_bytes(),
            index_bytes: index.bytes_on_disk(),
            write_back_bytes: index.dirty_bytes() as u64,
        }
    }
}

impl Inner {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the frame of the changes and applies it. Gives the sequence to wait for.
    fn commit(&self, writer: &mut Writer, changes: &Changes) -> Result<u64, Error> {
        let newest = self.index.read().unwrap_or_else(PoisonError::into_inner).sequence();
        if changes.is_empty() {
            return Ok(newest);
        }
        let sequence = newest + 1;
        let payload = changes.payload(newest - self.synced.newest());
        let change = Change::decode(&payload)
            .map_err(|what| Error::Index(format!("the commit makes no frame: {what}")))?;
        writer.append(sequence, &payload)?;
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.apply(sequence, &change).inspect_err(|error| self.synced.poison(error))?;
        Ok(sequence)
    }

    fn make_room(&self, writer: &MutexGuard<'_, Writer>) -> Result<(), Error> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let full = index.dirty_bytes() >= self.write_back_bytes;
        drop(index);
        if full { self.checkpoint(writer) } else { Ok(()) }
    }

    /// Readers go on while a checkpoint is written; the writer's lock keeps commits out.
    fn checkpoint(&self, _writer: &MutexGuard<'_, Writer>) -> Result<(), Error> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        // An index must not be ahead of its journal after a power cut.
        self.synced.wait(index.sequence())?;
        index.write_out().inspect_err(|error| self.synced.poison(error))?;
        drop(index);
        self.index.write().unwrap_or_else(PoisonError::into_inner).written();
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let writer = self.writer();
        if self.synced.check().is_ok()
            && let Err(cause) = self.checkpoint(&writer)
        {
            tracing::warn!(%cause, "The last checkpoint failed; the next open replays the journal.");
        }
    }
}

fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = files::open_or_make(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(files::fault("locking", &path)(error)),
    }
}

/// An empty index in place of one that is of no use.
fn anew(dir: &Path, index: Index, journal: &Settled) -> Result<Index, Error> {
    drop(index);
    index::discard(dir)?;
    index::open(dir, journal.id())
}

fn replay(
    index: &mut Index,
    journal: &Settled,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let noted = index.noted();
    let total = journal.newest - noted;
    if total == 0 {
        return Ok(());
    }
    let mut done = 0;
    progress(Progress { done, total });
    journal.replay(noted, &mut |sequence, payload| {
        let change = match Change::decode(payload) {
            Ok(change) => change,
            Err(what) => return Ok(Err(what)),
        };
        index.apply(sequence, &change)?;
        if index.dirty_bytes() >= options.write_back_bytes {
            index.write_out()?;
            index.written();
        }
        done += 1;
        if done.is_multiple_of(TELL_EVERY) || done == total {
            progress(Progress { done, total });
        }
        Ok(Ok(()))
    })?;
    tracing::info!(frames = total, "The journal was replayed into the quad index.");
    Ok(())
}
