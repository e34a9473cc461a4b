//! Checkpoints: what changed in memory goes to the medium, all of it or none that counts.
//!
//! A split or a merge touches several blocks, and a crash between them would harm entries that no
//! replay touches. So a mark stands in the data directory, synced, from before the first write of
//! a checkpoint until after its last sync, and an index that is found under a mark is not used.
use super::blocks::Blocks;
use super::engine::Engine;
use super::key::tree;
use super::note::Note;
use super::{Index, damaged};
use crate::{Error, files};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(dir: &Path) -> PathBuf {
    dir.join("index")
}

fn mark(dir: &Path) -> PathBuf {
    dir.join("checkpoint-open")
}

fn set_mark(dir: &Path) -> Result<(), Error> {
    let path = mark(dir);
    let file = files::make_anew(&path)?;
    file.sync_all().map_err(files::fault("syncing", &path))?;
    files::sync_folder(dir)
}

/// Whether the data directory has an index, sound or not.
pub(crate) fn is_there(dir: &Path) -> bool {
    folder(dir).exists()
}

/// Opens the index, or makes an empty one. An index that a checkpoint left unfinished, or that
/// does not open, or that belongs to another journal, is thrown away first.
pub(crate) fn open(dir: &Path, store_id: [u8; 16]) -> Result<Index, Error> {
    if mark(dir).exists() {
        tracing::warn!("a checkpoint was cut; the quad index is made again from the journal");
        discard(dir)?;
    }
    let found = match try_open(dir, store_id) {
        Ok(index) if index.store_id() == store_id => return Ok(index),
        Ok(_) => Error::Index("it belongs to another journal".into()),
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => error,
    };
    tracing::error!(cause = %found, "the quad index is unusable; it is made again from the journal");
    discard(dir)?;
    try_open(dir, store_id)
}

fn try_open(dir: &Path, store_id: [u8; 16]) -> Result<Index, Error> {
    let engine = Engine::open(&folder(dir))?;
    let name = [tree::NOTE];
    let note = match engine.get(&name, Note::decode)? {
        None => Note::new(store_id),
        Some(None) => return Err(damaged("the note", &name)),
        Some(Some(note)) => note,
    };
    Ok(Index {
        noted: note.sequence,
        note,
        blocks: Blocks::new(engine, tree::shape),
        dir: dir.to_owned(),
        broken: None,
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

impl Index {
    /// Writes what is dirty to the medium. The journal must be synced up to [`Index::sequence`].
    /// Readers may go on meanwhile; [`Index::written`] has to follow before the next change.
    pub(crate) fn write_out(&self) -> Result<(), Error> {
        self.check()?;
        if self.noted == self.note.sequence {
            return Ok(());
        }
        set_mark(&self.dir)?;
        self.blocks.write_out((&[tree::NOTE], &self.note.encode()))?;
        files::remove(&mark(&self.dir), &self.dir)
    }

    /// What was dirty is on the medium.
    pub(crate) fn written(&mut self) {
        self.noted = self.note.sequence;
        self.blocks.written();
    }
}
