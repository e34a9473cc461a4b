//! Checkpoints: what changed in memory goes to the medium, all of it or none that counts.
//!
//! A split or a merge touches several blocks, and a crash between them would harm entries that no
//! replay touches. So what is to be written stands in a file of its own, `checkpoint-open`, synced,
//! from before the first write to the engine until after its last sync. An open that finds it writes
//! it once more; one that cannot be read says that the index is not to be used.
use super::blocks::{self, Blocks, Imaged};
use super::engine::Engine;
use super::images::{End, NewImages};
use super::key::tree;
use super::note::Note;
use super::runs::{self, Runs};
use super::{Index, damaged};
use crate::{Error, files};
use nix::sys::statvfs::statvfs;
use std::fs;
use std::path::{Path, PathBuf};

/// A checkpoint may take so many times the bytes that are dirty in memory, and so many beyond. The
/// engine writes whole segments, and lets go of old ones only afterwards.
const ROOM_FACTOR: u64 = 3;
const ROOM_SPARE: u64 = 2 << 20;

fn folder(dir: &Path) -> PathBuf {
    dir.join("index")
}

fn mark(dir: &Path) -> PathBuf {
    dir.join("checkpoint-open")
}

/// Images in the making.
fn new_images(dir: &Path) -> PathBuf {
    dir.join("checkpoint.new")
}

fn set_mark(dir: &Path) -> Result<(), Error> {
    let path = mark(dir);
    let file = files::make_anew(&path)?;
    files::sync(&file, &path)?;
    files::sync_folder(dir)
}

/// Whether the data directory has an index, sound or not.
pub(crate) fn is_there(dir: &Path) -> bool {
    folder(dir).exists()
}

/// Whether a checkpoint, or the throwing away of the index, has begun and not ended.
pub(crate) fn is_marked(dir: &Path) -> bool {
    mark(dir).exists()
}

/// Opens the index, or makes an empty one. A checkpoint that was cut is finished. An index that does
/// not open, or that belongs to another journal, is thrown away first.
pub(crate) fn open(dir: &Path, store_id: [u8; 16]) -> Result<Index, Error> {
    files::remove(&new_images(dir), dir)?;
    let found = match try_open(dir, store_id, Trust::Sealed) {
        Ok(index) if index.store_id() == store_id => return Ok(index),
        Ok(_) => Error::Index("it belongs to another journal".into()),
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => error,
    };
    tracing::warn!(cause = %found, "The quad index was unusable; it is made again from the journal.");
    discard(dir)?;
    try_open(dir, store_id, Trust::Sealed)
}

/// Stands in for the store's id where no index names it.
const NO_STORE: [u8; 16] = [0; 16];

/// What an index is found to be by who does not want to change it.
pub(crate) enum Inspected {
    /// There is none.
    None,
    /// A checkpoint was cut.
    Unfinished,
    /// It is damaged, and how.
    Unusable(String),
    Open(Box<Index>),
}

/// Opens the index of the data directory as it is.
pub(crate) fn inspect(dir: &Path) -> Result<Inspected, Error> {
    if !is_there(dir) {
        return Ok(Inspected::None);
    }
    if mark(dir).exists() {
        return Ok(Inspected::Unfinished);
    }
    match try_open(dir, NO_STORE, Trust::Nothing) {
        Ok(index) if index.store_id() == NO_STORE => Ok(Inspected::None),
        Ok(index) => Ok(Inspected::Open(Box::new(index))),
        Err(Error::Index(cause)) => Ok(Inspected::Unusable(cause)),
        Err(error) => Err(error),
    }
}

/// What of the engine is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// What it reads from files that are as they were when it was right.
    Sealed,
    /// Nothing without reading all blocks.
    Nothing,
}

fn try_open(dir: &Path, store_id: [u8; 16], trust: Trust) -> Result<Index, Error> {
    let name = [tree::NOTE];
    let mark = mark(dir);
    let cut = mark.exists();
    if cut {
        tracing::warn!("A checkpoint was cut, and is finished now.");
    }
    // An engine that finds damage may pass over it, and answer with what was there before.
    let (engine, (note, runs)) = Engine::open(&folder(dir), |engine, sealed| {
        if cut {
            blocks::write_images(engine, &mark, &name)?;
        }
        let note = match engine.get(&name, Note::decode)? {
            None => Note::new(store_id),
            Some(None) => return Err(damaged("the note", &name)),
            Some(Some(note)) => note,
        };
        let believed = sealed && !cut && trust == Trust::Sealed;
        if !believed && engine.sum_of_all_but(&name)? != note.sum {
            return Err(Error::Index("its blocks do not have their checksum".into()));
        }
        let runs = Runs::open(folder(dir).join("runs"), &note.runs, tree::is_sought)?;
        Ok((note, runs))
    })?;
    if cut {
        files::remove(&mark, dir)?;
    }
    Ok(Index {
        noted: note.sequence,
        note,
        blocks: Blocks::new(engine, tree::shape),
        runs,
        dir: dir.to_owned(),
        broken: None,
        closed: false,
    })
}

/// Throws the index away. A crash on the way leaves the mark, so that nobody uses what is left.
pub(crate) fn discard(dir: &Path) -> Result<(), Error> {
    set_mark(dir)?;
    let folder = folder(dir);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(files::fault("removing", &folder))?;
        files::sync_folder(dir)?;
    }
    files::remove(&mark(dir), dir)
}

/// What a checkpoint wrote; [`Index::written`] takes it.
#[must_use]
pub(crate) struct Written {
    note: Note,
    parts: Option<(Imaged, runs::Written)>,
}

impl Index {
    /// Finds out whether there is room for [`Index::write_out`]. The engine does not survive a write
    /// that failed, so it had better not begin one; after a failure here nothing has changed.
    pub(crate) fn begin_checkpoint(&self) -> Result<(), Error> {
        self.check()?;
        let needed = self.dirty_bytes() as u64 * ROOM_FACTOR + ROOM_SPARE;
        let failed =
            |error: nix::Error| files::fault("asking for the room of", &self.dir)(error.into());
        let room = statvfs(&self.dir).map_err(failed)?;
        if room.blocks_available().saturating_mul(room.fragment_size()) < needed {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(files::fault("writing a checkpoint to", &folder(&self.dir))(full));
        }
        Ok(())
    }

    /// Writes what is dirty to the medium. The journal must be synced up to [`Index::sequence`].
    /// Readers may go on meanwhile; [`Index::written`] has to follow before the next change.
    pub(crate) fn write_out(&self) -> Result<Written, Error> {
        self.check()?;
        let mut note = self.note.clone();
        if self.noted == self.note.sequence {
            return Ok(Written { note, parts: None });
        }
        let runs = self.runs.write_out()?;
        note.runs = runs.notes();
        let new = new_images(&self.dir);
        let mut images = NewImages::begin(&new)?;
        let imaged = self.blocks.images(&mut images)?;
        note.sum = note.sum.wrapping_add(imaged.change);
        images.finish(&End { note: note.encode(), sum: imaged.sum })?;
        let mark = mark(&self.dir);
        files::rename(&new, &mark, &self.dir)?;
        // From here on the checkpoint counts.
        blocks::write_images(self.blocks.engine(), &mark, &[tree::NOTE])?;
        files::remove(&mark, &self.dir)?;
        Ok(Written { note, parts: Some((imaged, runs)) })
    }

    /// What was dirty is on the medium.
    pub(crate) fn written(&mut self, written: Written) {
        self.note = written.note;
        self.noted = self.note.sequence;
        if let Some((imaged, runs)) = written.parts {
            self.blocks.written(imaged);
            self.runs.written(runs);
        }
    }
}
