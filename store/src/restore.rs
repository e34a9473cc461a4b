//! A new store from a base and frames, in a folder that gets its name only when all of it is synced.
use crate::backup::Backup;
use crate::data_dir::{DirLock, UNFINISHED_FOLDER, lock_data_dir};
use crate::frame::CommitCounts;
use crate::index::LOADING_SEQUENCE;
use crate::journal::{self, BaseEnd, FRAME_HEADER_LEN, NewBase};
use crate::{Corruption, Error, Format, files};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The greatest sequence of a commit in a backup. Sequences jump ahead at each restore, and from
/// [`LOADING_SEQUENCE`] on they are those of an unfinished index.
const MAX_SEQUENCE: u64 = LOADING_SEQUENCE / 2;

/// The maximum memory of counters in bytes. A gateway has some thousands, of 100 to 200 bytes.
const MAX_COUNTER_BYTES: usize = if cfg!(test) { 16 << 10 } else { 128 << 20 };
/// The memory of a counter but for its name.
const COUNTER_OVERHEAD_BYTES: usize = 100;

/// How far the counters and sequences of a restored store jump ahead. It is more than a gateway uses between
/// a backup and the loss of its data.
pub const SEQUENCE_JUMP: u64 = 1_000_000;

/// The key of a document in each collection of counters: where a counter begins that is not there yet. A counter, or what
/// it counts, may be newer than the backup, and may have been lost with numbers that were issued.
pub const NEW_COUNTERS: &[u8] = b"";

/// What a restore knows before it reads anything.
#[derive(Debug, Clone, Copy)]
pub struct NewStorePlan {
    /// The format of the store, which no restored record exceeds.
    pub format: Format,
    /// The sequence of the newest commit that will be restored.
    pub sequence: u64,
    /// How far the sequence of commits and the counters jump ahead.
    pub jump: u64,
}

/// The result of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The content of the backup.
    pub backup: Backup,
    /// The sequence after which the restored store continues.
    pub sequence: u64,
    /// The number of counters that jumped ahead.
    pub counters: u64,
}

/// A store that is being restored. If this is dropped, its content is removed, and no open succeeds until a restore does.
pub struct NewStore<'a> {
    dir: PathBuf,
    folder: UnfinishedFolder,
    plan: NewStorePlan,
    base: NewBase,
    /// The collections whose documents are counters.
    counters: &'a [&'a str],
    /// The last value of each document in them; `None` if it is no counter or was deleted.
    last: BTreeMap<(String, Vec<u8>), Option<u64>>,
    /// About their memory.
    counter_bytes: usize,
    restored: Backup,
    lock: DirLock,
}

/// A complete and synced store that does not have its name yet. If this is dropped, it is removed as [`NewStore`] is.
#[derive(Debug)]
pub struct UnpublishedStore {
    dir: PathBuf,
    folder: UnfinishedFolder,
    restored: Restored,
    _lock: DirLock,
}

/// The folder of an unfinished restore. If the restore fails, it stays, empty, so that no open begins a new store where
/// somebody expects the restored one.
#[derive(Debug)]
struct UnfinishedFolder {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // Best effort: no open accepts an unfinished restore, and the first error is the one to report.
            let _ = empty_folder(&self.path);
        }
    }
}

/// Removes the content of a folder, which itself exists at every moment.
fn empty_folder(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(files::io_error("reading", folder))? {
        let path = entry.map_err(files::io_error("reading", folder))?.path();
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(files::io_error("removing", &path))?;
    }
    Ok(())
}

/// Locks an empty directory, and creates the folder of an unfinished restore in it.
fn prepare(dir: &Path) -> Result<(DirLock, UnfinishedFolder), Error> {
    files::create_folder(dir)?;
    let lock = lock_data_dir(dir)?;
    for entry in fs::read_dir(dir).map_err(files::io_error("reading", dir))? {
        let path = entry.map_err(files::io_error("reading", dir))?.path();
        if path.file_name().is_some_and(|name| name != "lock" && name != UNFINISHED_FOLDER) {
            return Err(Error::NotEmpty { path: dir.to_owned() });
        }
    }
    let path = dir.join(UNFINISHED_FOLDER);
    if path.exists() {
        // Without the folder, an open would begin an empty store. The process that created it may not have synced it.
        files::sync_folder(dir)?;
        empty_folder(&path)?;
    }
    files::create_folder(&path)?;
    Ok((lock, UnfinishedFolder { path, is_kept: false }))
}

impl<'a> NewStore<'a> {
    /// Begins a store in `dir`, which must be empty or missing. A document in the collections `counters` that is a
    /// big-endian `u64` jumps ahead, and so does where further ones begin: [`NEW_COUNTERS`].
    pub fn begin(dir: &Path, plan: NewStorePlan, counters: &'a [&'a str]) -> Result<Self, Error> {
        Self::create(dir, prepare(dir)?, plan, counters)
    }

    fn create(
        dir: &Path,
        (lock, folder): (DirLock, UnfinishedFolder),
        plan: NewStorePlan,
        counters: &'a [&'a str],
    ) -> Result<Self, Error> {
        let (id, sequence) = (journal::new_id(), plan.sequence.saturating_add(plan.jump));
        if sequence >= LOADING_SEQUENCE {
            let what =
                format!("its newest commit would get the number {sequence}, which cannot be");
            return Err(Corruption { path: dir.to_owned(), offset: 0, what }.into());
        }
        journal::make_segment(&folder.path, &id, sequence + 1, plan.format)?;
        let base = NewBase::begin(&folder.path, &id, sequence, plan.format)?;
        let (last, restored) = (BTreeMap::new(), Backup { sequence: 0, quads: 0, documents: 0 });
        Ok(Self {
            dir: dir.to_owned(),
            folder,
            plan,
            base,
            counters,
            last,
            counter_bytes: 0,
            restored,
            lock,
        })
    }

    /// Adds the base that a stream has, as [`ReadStore::write_backup`](crate::ReadStore::write_backup) wrote it. Errors
    /// name it `path`.
    pub fn add_base(&mut self, input: &mut dyn Read, path: &Path) -> Result<Backup, Error> {
        let (format, end) =
            journal::read_base_stream(input, path, &mut |_, payload| self.add_commit(payload))?;
        if format > self.plan.format {
            let (found, known) = (format.number(), self.plan.format.number());
            return Err(Error::NewerFormat { path: path.to_owned(), found, known });
        }
        self.record_base(&end, path)
    }

    fn record_base(&mut self, end: &BaseEnd, path: &Path) -> Result<Backup, Error> {
        self.restored = summarize_end(end, path)?;
        Ok(self.restored)
    }

    /// Adds the frame that follows the newest one, as it was in the journal. A frame that the base has is skipped.
    /// Errors name the place `path`.
    pub fn add_frame(&mut self, sequence: u64, frame: &[u8], path: &Path) -> Result<(), Error> {
        let damaged = |what: &str| {
            Error::from(Corruption { path: path.to_owned(), offset: 0, what: what.to_owned() })
        };
        if sequence <= self.restored.sequence {
            return Ok(());
        }
        if sequence != self.restored.sequence + 1 || sequence > self.plan.sequence {
            return Err(damaged(&format!(
                "found frame {sequence} after frame {}",
                self.restored.sequence
            )));
        }
        if journal::frame_at(frame, 0).is_none() {
            return Err(damaged(&format!("the checksum of frame {sequence} is wrong")));
        }
        let payload = frame.get(FRAME_HEADER_LEN..).unwrap_or_default();
        self.add_commit(payload)?.map_err(damaged)?;
        self.restored.sequence = sequence;
        Ok(())
    }

    fn add_commit(&mut self, payload: &[u8]) -> Result<Result<(), &'static str>, Error> {
        let (counters, last, bytes) = (self.counters, &mut self.last, &mut self.counter_bytes);
        let read = CommitCounts::read(payload, &mut |(collection, key, value)| {
            if !counters.contains(&collection) || *bytes > MAX_COUNTER_BYTES {
                return;
            }
            let number = value.and_then(|value| value.try_into().ok());
            let name = (collection.to_owned(), key.to_vec());
            let added_bytes = COUNTER_OVERHEAD_BYTES + collection.len() + key.len();
            if last.insert(name, number.map(u64::from_be_bytes)).is_none() {
                *bytes += added_bytes;
            }
        });
        let counts = match read {
            Ok(_) if self.counter_bytes > MAX_COUNTER_BYTES => {
                return Ok(Err("the backup has more counters than a gateway"));
            }
            Ok(counts) => counts,
            Err(what) => return Ok(Err(what)),
        };
        self.restored.quads += counts.quads;
        self.restored.documents += counts.documents;
        self.base.parts.write_commit(payload, counts).map(Ok)
    }

    /// Returns the sequence of the newest commit that was added.
    pub fn sequence(&self) -> u64 {
        self.restored.sequence
    }

    /// Completes and syncs the store. Only its name is missing then.
    ///
    /// # Errors
    /// The errors of the disk, and [`Error::Corrupt`] if the newest commit of the plan was not added.
    pub fn finish(mut self) -> Result<UnpublishedStore, Error> {
        let (backup, plan) = (self.restored, self.plan);
        if backup.sequence != plan.sequence {
            let what =
                format!("it ends at commit {} in place of {}", backup.sequence, plan.sequence);
            let path = self.folder.path.clone();
            return Err(Corruption { path, offset: 0, what }.into());
        }
        for collection in self.counters {
            let name = ((*collection).to_owned(), NEW_COUNTERS.to_vec());
            self.last.entry(name).or_insert(Some(0));
        }
        let mut counters = 0;
        for ((collection, key), counter) in std::mem::take(&mut self.last) {
            if let Some(counter) = counter {
                let value = counter.saturating_add(plan.jump).to_be_bytes();
                self.base.parts.add_document(&collection, &key, &value);
                counters += u64::from(key != NEW_COUNTERS);
            }
        }
        let sequence = plan.sequence.saturating_add(plan.jump);
        self.base.finish(sequence, &|| Ok(()))?.publish()?;
        let restored = Restored { backup, sequence, counters };
        Ok(UnpublishedStore { dir: self.dir, folder: self.folder, restored, _lock: self.lock })
    }
}

impl UnpublishedStore {
    /// Returns what the store has.
    pub fn restored(&self) -> Restored {
        self.restored
    }

    /// Gives the store its name. From then on it can be opened.
    pub fn publish(mut self) -> Result<Restored, Error> {
        let journal = self.dir.join("journal");
        files::rename_durably(&self.folder.path, &journal, &self.dir).inspect_err(|_| {
            // It may have the name although the sync failed. Then it would be opened, and no restore could be repeated.
            let _ = files::rename_durably(&journal, &self.folder.path, &self.dir);
        })?;
        self.folder.is_kept = true;
        Ok(self.restored)
    }
}

/// Returns what a backup with this end has.
pub(crate) fn summarize_end(end: &BaseEnd, path: &Path) -> Result<Backup, Error> {
    if end.from != end.exact {
        return Err(Error::NotABackup { path: path.to_owned() });
    }
    if end.exact > MAX_SEQUENCE {
        let what = format!("its newest commit has the number {}, which cannot be", end.exact);
        return Err(Corruption { path: path.to_owned(), offset: 0, what }.into());
    }
    Ok(Backup { sequence: end.exact, quads: end.quads, documents: end.documents })
}

/// Restores the backup in a file into `dir`. See [`BackupFile::restore_into`](crate::BackupFile::restore_into).
pub(crate) fn restore_file(
    (file, path): (&File, &Path),
    dir: &Path,
    jump: u64,
    counters: &[&str],
) -> Result<Restored, Error> {
    let prepared = prepare(dir)?;
    let found = journal::Base::open_file(file, path)?;
    let (format, sequence) = (found.format, summarize_end(&found.end, path)?.sequence);
    let plan = NewStorePlan { format, sequence, jump };
    let mut store = NewStore::create(dir, prepared, plan, counters)?;
    let (_, end) = journal::read_base(file, path, &mut |_, payload| store.add_commit(payload))?;
    store.record_base(&end, path)?;
    store.finish()?.publish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    #[test]
    fn more_counters_than_a_gateway_has_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            Store::open(&dir.path().join("store"), Options::default(), &mut |_| {}).unwrap();
        let restore = |numbers: std::ops::Range<u64>| {
            let put = |change: &mut crate::Transaction<'_>| {
                let mut numbers = numbers.clone();
                numbers.try_for_each(|number| {
                    change.put_document("counters", &number.to_be_bytes(), &number.to_be_bytes())
                })
            };
            store.transact::<_, Error>(put).unwrap();
            let mut backup = Vec::new();
            store.write_backup(&mut backup).unwrap();
            let to = dir.path().join(numbers.end.to_string());
            let plan = NewStorePlan { format: Format::NEWEST, sequence: 2, jump: 1 };
            let mut new = NewStore::begin(&to, plan, &["counters"]).unwrap();
            let added = new.add_base(&mut backup.as_slice(), Path::new("backup"));
            (added.map(|backup| backup.documents), new.last.len())
        };
        let (added, count) = restore(0..100);
        assert_eq!((added.unwrap(), count), (100, 100));
        let (added, count) = restore(100..10_000);
        assert!(added.unwrap_err().to_string().contains("more counters"));
        assert!(count < 200, "{count}");
    }
}
