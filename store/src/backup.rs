//! Backups: all that is held at one moment, in one file; and the store that is made of one.
//!
//! A backup is a base (FORMAT.md) in which the commits made while it was written stand as parts
//! of their own, so that nothing has to be replayed over it.
use crate::frame::Change;
use crate::journal::{self, Base, NewBase, Parts};
use crate::read::Document;
use crate::store::lock;
use crate::{Error, Store, files};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::PoisonError;

/// How far counters and sequences jump ahead in a restored store: more than a gateway gives away
/// between a backup and the loss of what it was made of.
pub const JUMP: u64 = 1_000_000;

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The sequence of the newest commit in it.
    pub sequence: u64,
    /// Quads written, those that were changed meanwhile more than once.
    pub quads: u64,
    /// Documents written, those that were changed meanwhile more than once.
    pub documents: u64,
}

/// What a backup was restored to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The sequence of the newest commit in the backup.
    pub backed_up: u64,
    /// The sequence after which the restored store goes on.
    pub sequence: u64,
    /// How many counters jumped ahead.
    pub counters: u64,
    /// The documents that [`Store::backup`] was given beside what the store holds.
    pub beside: Vec<Document>,
}

/// The collection of what [`Store::backup`] is given. It is not restored into the store.
const BESIDE: &str = "\0beside";

impl Store {
    /// Writes all that is held at one moment, the one at which it ends, and `beside`: what the
    /// caller wants back from [`restore`]. Commits and reads go on meanwhile; a compaction waits.
    /// What was written counts only when this has succeeded: [`restore`] refuses a part of it.
    pub fn backup(&self, beside: &[Document], out: &mut dyn Write) -> Result<Backup, Error> {
        let inner = self.inner();
        let _turn = inner.turn.lock().unwrap_or_else(PoisonError::into_inner);
        inner.closing.check()?;
        let writer = inner.writer();
        let (id, folder) = (writer.id(), writer.folder().to_owned());
        let before = inner.before(&writer);
        drop(writer);
        let mut parts = Parts::begin(out, Path::new("the backup"), &id)?;
        for (key, value) in beside {
            parts.document(BESIDE, key, value);
        }
        parts.flush()?;
        let exact = inner.write_state(&mut parts, &before)?;
        journal::replay_synced(&folder, &id, before.from, exact, &mut |_, payload| {
            inner.closing.check()?;
            match Change::decode(payload) {
                Ok(change) => parts.commit(payload, &change).map(Ok),
                Err(what) => Ok(Err(what)),
            }
        })?;
        let (end, _) = parts.finish(exact, exact)?;
        Ok(Backup { sequence: exact, quads: end.quads, documents: end.documents })
    }
}

/// Makes a store of a backup, in a folder that has none, or is not there. It is a new epoch: the
/// sequence of commits and every document in the collections `counters` that is a big-endian `u64`
/// are [`JUMP`] ahead of what they were. The first open makes the index.
pub fn restore(dir: &Path, backup: &Path, counters: &[&str]) -> Result<Restored, Error> {
    files::make_folder(dir)?;
    let _lock = lock(dir)?;
    for entry in fs::read_dir(dir).map_err(files::fault("reading", dir))? {
        let path = entry.map_err(files::fault("reading", dir))?.path();
        if path.file_name().is_some_and(|name| name != "lock") {
            return Err(Error::NotEmpty { path: dir.to_owned() });
        }
    }
    let folder = dir.join("journal");
    files::make_folder(&folder)?;
    make(&folder, backup, counters).inspect_err(|_| {
        // What is left would be in the way of the next restore; the first fault is the one to tell.
        let _ = fs::remove_dir_all(&folder);
    })
}

fn make(folder: &Path, backup: &Path, counters: &[&str]) -> Result<Restored, Error> {
    let backed_up = Base::open(backup)?.end.exact;
    let sequence = backed_up.saturating_add(JUMP);
    let id = journal::new_id();
    // A segment without its base is refused by an open; the base's name is what makes them a store.
    journal::make_segment(folder, &id, sequence + 1)?;
    let mut base = NewBase::begin(folder, &id, sequence)?;
    let mut last = BTreeMap::new();
    let mut beside = Vec::new();
    let (_, end) = journal::read_base(backup, &mut |_, payload| {
        let change = match Change::decode(payload) {
            Ok(change) => change,
            Err(what) => return Ok(Err(what)),
        };
        // What stands beside the store has parts of its own.
        if change.documents.first().is_some_and(|(collection, ..)| *collection == BESIDE) {
            let documents = change.documents.iter();
            beside.extend(documents.map(|(_, key, value)| {
                (key.to_vec(), value.map(<[u8]>::to_vec).unwrap_or_default())
            }));
            return Ok(Ok(()));
        }
        for (collection, key, value) in &change.documents {
            if counters.contains(collection) {
                let counter = value.and_then(|value| value.try_into().ok()).map(u64::from_be_bytes);
                last.insert(((*collection).to_owned(), key.to_vec()), counter);
            }
        }
        base.parts.commit(payload, &change).map(Ok)
    })?;
    if end.from != end.exact {
        return Err(Error::NotABackup { path: backup.to_owned() });
    }
    let mut jumped = 0;
    for ((collection, key), counter) in last {
        if let Some(counter) = counter {
            base.parts.document(&collection, &key, &counter.saturating_add(JUMP).to_be_bytes());
            jumped += 1;
        }
    }
    base.finish(sequence, &|| Ok(()))?.publish()?;
    Ok(Restored { backed_up, sequence, counters: jumped, beside })
}
