//! Checkpoints: what changed in memory goes to the medium, all of it or none that counts.
//!
//! A split or a merge touches several blocks, and a crash between them would harm entries that no
//! replay touches. So what is to be written stands in a file of its own, `checkpoint-open`, synced,
//! from before the first write to the engine until after its last sync. An open that finds it writes
//! it once more; one that cannot be read says that the index is not to be used.
use super::blocks::{self, Blocks, Imaged};
use super::engine::Engine;
use super::images::{self, End, NewImages};
use super::key::tree;
use super::note::Note;
use super::runs::{self, Runs};
use super::{Index, damaged};
use crate::steps::Steps;
use crate::store::LOADING;
use crate::{Error, files};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A checkpoint may take so many times the bytes that are dirty in memory, and so many beyond. The
/// engine writes whole segments, and lets go of old ones only afterwards.
const ROOM_FACTOR: u64 = 3;
const ROOM_SPARE: u64 = 2 << 20;
/// Dirty bytes below which no checkpoint is written early: many small ones write much more.
const EARLY_BYTES: usize = 1 << 20;

/// The bytes that must be free on the disk for a checkpoint of so many dirty ones.
fn needed(dirty: usize) -> u64 {
    dirty as u64 * ROOM_FACTOR + ROOM_SPARE
}

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
    /// A checkpoint was cut: the store that it belongs to and the newest frame in it, when it can
    /// be finished.
    Unfinished(Option<([u8; 16], u64)>),
    /// It is damaged, and how.
    Unusable(String),
    Open(Box<Index>),
}

/// Opens the index of the data directory as it is.
pub(crate) fn inspect(dir: &Path) -> Result<Inspected, Error> {
    if !is_there(dir) {
        return Ok(Inspected::None);
    }
    let mark = mark(dir);
    if mark.exists() {
        let note =
            images::read(&mark, &mut |_| Ok(())).ok().and_then(|end| Note::decode(&end.note));
        let noted = note.map(|(note, _)| (note.store_id, note.sequence));
        return Ok(Inspected::Unfinished(noted.filter(|(_, noted)| *noted < LOADING)));
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
    let (engine, (note, is_counted, runs)) = Engine::open(&folder(dir), |engine, sealed| {
        if cut {
            blocks::write_images(engine, &mark, &name, &Steps::default())?;
        }
        let (note, is_counted) = match engine.get(&name, Note::decode)? {
            None => (Note::new(store_id), true),
            Some(None) => return Err(damaged("the note", &name)),
            Some(Some(decoded)) => decoded,
        };
        let believed = sealed && !cut && trust == Trust::Sealed;
        if !believed && engine.sum_of_all_but(&name)? != note.sum {
            return Err(Error::Index("its blocks do not have their checksum".into()));
        }
        let runs = Runs::open(folder(dir).join("runs"), &note.runs, tree::is_sought)?;
        Ok((note, is_counted, runs))
    })?;
    if cut {
        files::remove(&mark, dir)?;
    }
    let mut index = Index {
        instance: INSTANCES.fetch_add(1, Ordering::Relaxed),
        noted: note.sequence,
        note,
        blocks: Blocks::new(engine, tree::shape),
        runs,
        names: super::names::Names::default(),
        ids: super::names::Ids::default(),
        dir: dir.to_owned(),
        broken: None,
        damage: OnceLock::new(),
        is_behind: AtomicBool::new(false),
        closed: false,
    };
    if !is_counted {
        index.count_documents()?;
    }
    Ok(index)
}

/// How many indexes this process has opened.
static INSTANCES: AtomicU64 = AtomicU64::new(0);

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
    /// Whether a checkpoint is due: `most` bytes are dirty, or so little disk space is free that
    /// there would be too little for a checkpoint of twice as many.
    pub(crate) fn is_checkpoint_due(&self, most: usize) -> bool {
        let dirty = self.dirty_bytes();
        let is_short = |free| (needed(dirty)..needed(2 * dirty)).contains(&free);
        dirty >= most || (dirty >= EARLY_BYTES && self.free().is_ok_and(is_short))
    }

    /// The bytes that are free on the disk of the data directory.
    fn free(&self) -> Result<u64, Error> {
        files::free(&self.dir).map_err(files::fault("asking for the room of", &self.dir))
    }

    /// Finds out whether there is room for [`Index::write_out`]. The engine does not survive a write
    /// that failed, so it had better not begin one; after a failure here nothing has changed.
    pub(crate) fn begin_checkpoint(&self) -> Result<(), Error> {
        self.check()?;
        let (needed, free) = (needed(self.dirty_bytes()), self.free()?);
        if free < needed {
            let full = files::DiskFull { needed, free }.into();
            return Err(files::fault("writing a checkpoint to", &folder(&self.dir))(full));
        }
        Ok(())
    }

    /// Writes what is dirty to the medium. The journal must be synced up to [`Index::sequence`].
    /// Readers may go on meanwhile; [`Index::written`] has to follow before the next change.
    pub(crate) fn write_out(&self, steps: &Steps) -> Result<Written, Error> {
        self.reading(|| {
            if self.noted == self.note.sequence {
                return Ok(Written { note: self.note.clone(), parts: None });
            }
            let written = self.write_images(steps)?;
            let mark = mark(&self.dir);
            blocks::write_images(self.blocks.engine(), &mark, &[tree::NOTE], steps)?;
            files::remove(&mark, &self.dir)?;
            Ok(written)
        })
    }

    /// Writes all that the engine is to have, and what it need not know of. Once this has succeeded
    /// the checkpoint counts.
    fn write_images(&self, steps: &Steps) -> Result<Written, Error> {
        let mut note = self.note.clone();
        let runs = self.runs.write_out(steps)?;
        note.runs = runs.notes();
        let new = new_images(&self.dir);
        let mut images = NewImages::begin(&new)?;
        let imaged = self.blocks.images(&mut images, steps)?;
        note.sum = note.sum.wrapping_add(imaged.change);
        images.finish(&End { note: note.encode(), sum: imaged.sum })?;
        self.is_behind.store(true, Ordering::Release);
        files::rename(&new, &mark(&self.dir), &self.dir)?;
        Ok(Written { note, parts: Some((imaged, runs)) })
    }

    /// What was dirty is on the medium.
    pub(crate) fn written(&mut self, written: Written) {
        self.note = written.note;
        self.noted = self.note.sequence;
        *self.is_behind.get_mut() = false;
        if let Some((imaged, runs)) = written.parts {
            self.blocks.written(imaged);
            self.runs.written(runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::images::Image;
    use super::*;
    use crate::{Options, Pattern, Read as _, Store};
    use oxrdf::{GraphName, Literal, NamedNode, Quad};
    use std::collections::HashSet;
    use std::ops::ControlFlow;

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let (path, to) = {
                let entry = entry.unwrap();
                (entry.path(), to.join(entry.file_name()))
            };
            if path.is_dir() {
                copy(&path, &to);
            } else {
                fs::copy(&path, &to).unwrap();
            }
        }
    }

    /// Opens a store; gives how many frames were replayed.
    fn open(dir: &Path) -> (Store, u64) {
        let mut frames = 0;
        let told = &mut |progress: crate::Progress| frames = progress.total;
        let store = Store::open(dir, Options::default(), told).unwrap();
        (store, frames)
    }

    fn quads(store: &Store) -> HashSet<Quad> {
        let mut found = HashSet::new();
        let visit = &mut |quad| {
            found.insert(quad);
            ControlFlow::Continue(())
        };
        store.read().for_each(&Pattern::default(), visit).unwrap();
        found
    }

    fn quad(subject: usize, field: usize) -> Quad {
        let iri = |name: String| NamedNode::new_unchecked(format!("https://example.org/{name}"));
        let value = Literal::new_simple_literal(format!("{subject} {field} ").repeat(4));
        let subject = iri(format!("{:08x}", subject.wrapping_mul(0x9e37_79b9) & 0xffff_ffff));
        Quad::new(subject, iri(format!("p{field}")), value, GraphName::DefaultGraph)
    }

    fn change(store: &Store, quads: impl Iterator<Item = Quad>, add: bool) {
        store
            .transact::<_, Error>(|change| {
                for quad in quads {
                    let done = if add {
                        change.insert(quad.as_ref())
                    } else {
                        change.remove(quad.as_ref())
                    };
                    assert!(done?);
                }
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn a_checkpoint_that_was_cut_anywhere_is_finished_and_one_with_damaged_images_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = open(dir.path());
        let all = |from: usize, to: usize| (from..to).flat_map(|n| (0..4).map(move |f| quad(n, f)));
        change(&store, all(0, 900), true);
        store.checkpoint().unwrap();
        // Blocks change, are joined, and are new.
        change(&store, all(100, 600), false);
        change(&store, all(900, 1_500), true);
        let expected = quads(&store);
        let inner = store.inner();
        let writer = inner.writer();
        inner.synced().wait(3).unwrap();
        let index = inner.index();
        let _written = index.write_images(&Steps::default()).unwrap();
        let mark = mark(dir.path());
        let mut images_in_all = 0;
        images::read(&mark, &mut |images| {
            images_in_all += images.len();
            Ok(())
        })
        .unwrap();
        assert!(images_in_all > 100, "{images_in_all} are too few to prove a thing");
        for most in [0, 1, images_in_all / 3, images_in_all * 2 / 3, images_in_all] {
            let mut writes = index.blocks.engine().write();
            let mut done = 0;
            let mut packer = super::super::packing::Packer::new();
            images::read(&mark, &mut |images| {
                for (name, image) in images {
                    done += 1;
                    match image {
                        _ if done > most => {}
                        Image::Gone => writes.remove(name)?,
                        Image::Changed(bytes) | Image::Fresh(bytes) => {
                            let mut packed = Vec::new();
                            packer.pack(bytes, &mut packed);
                            writes.insert(name, &packed)?;
                        }
                    }
                }
                Ok(())
            })
            .unwrap();
            writes.finish().unwrap();
            let cut = tempfile::tempdir().unwrap();
            copy(dir.path(), cut.path());
            let (again, frames) = open(cut.path());
            assert_eq!(frames, 0, "{most} written: the checkpoint does not count");
            assert!(quads(&again) == expected, "{most} written: a wrong answer");
            assert!(!super::mark(cut.path()).exists());
            change(&again, all(2_000, 2_010), true);
            drop(again);
            assert_eq!(quads(&open(cut.path()).0).len(), expected.len() + 40);
        }
        // A journal that ends before it is refused, and found by who verifies the store.
        let cut = tempfile::tempdir().unwrap();
        copy(dir.path(), cut.path());
        let segment = cut.path().join("journal/00000000000000000001.journal");
        let bytes = fs::read(&segment).unwrap();
        let frame = u32::from_le_bytes(bytes[40..44].try_into().unwrap()) as usize + 16;
        fs::write(&segment, &bytes[..40 + frame]).unwrap();
        let verified = crate::verify(cut.path(), &mut |_| {}).unwrap();
        assert!(verified.faults[0].contains("put the missing part"), "{verified:?}");
        let refused = Store::open(cut.path(), Options::default(), &mut |_| {});
        assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
        let whole = fs::read(&mark).unwrap();
        for tenth in 0..10 {
            let at = whole.len() * tenth / 10;
            let cut = tempfile::tempdir().unwrap();
            copy(dir.path(), cut.path());
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(super::mark(cut.path()), bytes).unwrap();
            let (again, frames) = open(cut.path());
            assert_eq!(frames, 3, "byte {at}: the index is made again");
            assert!(quads(&again) == expected, "byte {at}: a wrong answer");
        }
        drop(index);
        drop(writer);
    }
}
