//! Checkpoints: write the changes in memory to the medium, atomically.
//!
//! A split or a join touches several blocks, and a crash between their writes would harm entries that no
//! replay restores. So all changes are first written to a file of their own, `checkpoint-open`, which is
//! synced. It exists from before the first write to the engine until after the engine's last sync. An open
//! that finds the file writes its content to the engine again. If the file is unreadable, the index must not
//! be used.
use super::blocks::{self, Blocks, WrittenImages};
use super::engine::Engine;
use super::images::{self, ImagesEnd, NewImages};
use super::key::{Shape, damaged_entry, tree};
use super::note::{Note, NoteHead};
use super::run_files::WrittenRuns;
use super::runs::{self, NAMES, Runs};
use super::values::{self, Values};
use super::{Health as _, Index, preserved};
use crate::steps::WriterSteps;
use crate::{DiskFull, Error, files};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Added to the number of each part while the index is built from the parts of a base. An index with such a
/// sequence is unfinished, and the next open discards it.
pub(crate) const LOADING_SEQUENCE: u64 = 1 << 63;

/// A checkpoint needs this multiple of the dirty bytes and [`SPACE_RESERVE_BYTES`] as free disk space. The
/// engine writes whole segments and frees old ones only later.
const SPACE_FACTOR: u64 = 3;
const SPACE_RESERVE_BYTES: u64 = 2 << 20;
/// The minimum number of dirty bytes for a checkpoint that is due only because disk space is low. Many small
/// checkpoints write much more.
const MIN_EARLY_DIRTY_BYTES: usize = 1 << 20;

/// Returns the free disk space, in bytes, that a checkpoint of `dirty` bytes needs.
fn required_free_bytes(dirty: usize) -> u64 {
    dirty as u64 * SPACE_FACTOR + SPACE_RESERVE_BYTES
}

pub(super) fn index_folder(dir: &Path) -> PathBuf {
    dir.join("index")
}

/// Returns the path of the mark: the file of images of a checkpoint that has begun and not finished. It is
/// empty while an index is being discarded.
fn mark_path(dir: &Path) -> PathBuf {
    dir.join("checkpoint-open")
}

/// Returns the path of an unfinished file of images.
fn new_images_path(dir: &Path) -> PathBuf {
    dir.join("checkpoint.new")
}

/// Creates an empty mark, so that a crash leaves an index that is discarded.
pub(super) fn set_mark(dir: &Path) -> Result<(), Error> {
    let path = mark_path(dir);
    let file = files::create_or_truncate(&path)?;
    files::sync_file(&file, &path)?;
    files::sync_folder(dir)
}

/// Removes the mark.
pub(super) fn remove_mark(dir: &Path) -> Result<(), Error> {
    files::remove_durably(&mark_path(dir), dir)
}

/// Returns whether the data directory has an index, damaged or not.
pub(crate) fn index_exists(dir: &Path) -> bool {
    index_folder(dir).exists()
}

/// The index of a data directory.
pub(crate) enum FoundIndex {
    Usable(Box<Index>),
    /// It must be rebuilt, but its files stay until the journal is known to be intact.
    Unusable {
        cause: String,
        /// Whether only its version is the cause, as at the first start after an upgrade.
        is_of_other_version: bool,
        /// The newest frame that it has; 0 if that is unknown.
        checkpointed_sequence: u64,
    },
}

impl FoundIndex {
    /// Returns the newest frame that the index has on the medium, so that it was synced once.
    pub(crate) fn checkpointed_sequence(&self) -> u64 {
        match self {
            Self::Usable(index) => index.checkpointed_sequence(),
            Self::Unusable { checkpointed_sequence, .. } => *checkpointed_sequence,
        }
    }
}

/// Opens the index, or creates an empty one. Finishes an interrupted checkpoint. An index is unusable if it cannot be
/// opened, belongs to another journal, is unfinished, or lacks frames up to `from`, which the base replaced. An index
/// that exists keeps its index of values, or has none; `has_values` is for a new one.
pub(crate) fn find_index(
    dir: &Path,
    store_id: [u8; 16],
    from: u64,
    has_values: bool,
) -> Result<FoundIndex, Error> {
    files::remove_durably(&new_images_path(dir), dir)?;
    files::remove_durably(&preserved::file_path(dir), dir)?;
    let head = Cell::new(None);
    let cause = match try_open(dir, &Note::new(store_id, has_values), Trust::Sealed, &head) {
        Ok(index) => {
            let newest = index.checkpointed_sequence();
            if index.store_id() != store_id {
                "it belongs to another journal".to_owned()
            } else if newest >= LOADING_SEQUENCE {
                "it is unfinished".to_owned()
            } else if newest > 0 && newest < from {
                "it is older than the base of the journal".to_owned()
            } else {
                return Ok(FoundIndex::Usable(Box::new(index)));
            }
        }
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(Error::Index(cause)) => cause,
        Err(error) => error.to_string(),
    };
    let noted = newest_frame(head.get()).filter(|(id, _)| *id == store_id);
    Ok(FoundIndex::Unusable {
        cause,
        is_of_other_version: is_of_other_version(head.get()),
        checkpointed_sequence: noted.map_or(0, |(_, newest)| newest),
    })
}

/// Opens an index that was just created or built, as [`find_index`] does.
pub(crate) fn open_index(dir: &Path, store_id: [u8; 16], has_values: bool) -> Result<Index, Error> {
    match find_index(dir, store_id, 0, has_values)? {
        FoundIndex::Usable(index) => Ok(*index),
        FoundIndex::Unusable { cause, .. } => Err(Error::Index(cause)),
    }
}

/// The store id and the newest frame of a finished index, if they are known.
pub(crate) type NewestFrame = Option<([u8; 16], u64)>;

fn newest_frame(head: Option<NoteHead>) -> NewestFrame {
    let head = head.filter(|head| head.sequence < LOADING_SEQUENCE)?;
    Some((head.store_id, head.sequence))
}

fn is_of_other_version(head: Option<NoteHead>) -> bool {
    head.and_then(NoteHead::describe_other_version).is_some()
}

/// The store id that an inspection passes to [`try_open`]. Only an empty index gets it.
const NO_STORE_ID: [u8; 16] = [0; 16];

/// The state of an index that was inspected without changing it.
pub(crate) enum InspectedIndex {
    /// There is no index.
    None,
    /// A checkpoint was interrupted.
    Unfinished,
    /// The index is of another version.
    OtherVersion,
    /// The index is damaged; the text says how.
    Unusable(String),
    Open(Box<Index>),
}

/// Opens the index of the data directory without changing it. After an interrupted checkpoint, the newest frame is the
/// one that the index has once the checkpoint is finished.
pub(crate) fn inspect_index(dir: &Path) -> Result<(InspectedIndex, NewestFrame), Error> {
    if !index_exists(dir) {
        return Ok((InspectedIndex::None, None));
    }
    let (mark, head) = (mark_path(dir), Cell::new(None));
    let found = if mark.exists() {
        let end = images::read_images(&mark, &mut |_| Ok(()));
        head.set(end.ok().and_then(|end| NoteHead::decode(&end.note)));
        InspectedIndex::Unfinished
    } else {
        match try_open(dir, &Note::new(NO_STORE_ID, false), Trust::Nothing, &head) {
            Ok(index) if index.store_id() == NO_STORE_ID => InspectedIndex::None,
            Ok(index) => InspectedIndex::Open(Box::new(index)),
            Err(Error::Index(_)) if is_of_other_version(head.get()) => InspectedIndex::OtherVersion,
            Err(Error::Index(cause)) => InspectedIndex::Unusable(cause),
            Err(error) => return Err(error),
        }
    };
    Ok((found, newest_frame(head.get())))
}

/// Whether the data of the engine can be trusted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The files are unchanged since they were last verified.
    Sealed,
    /// All blocks must be read and verified.
    Nothing,
}

/// Opens an index. A new one gets this note. `head` gets the beginning of the note of another one, also if that cannot
/// be used.
fn try_open(
    dir: &Path,
    new: &Note,
    trust: Trust,
    head: &Cell<Option<NoteHead>>,
) -> Result<Index, Error> {
    let name = [tree::NOTE];
    let mark = mark_path(dir);
    let interrupted = mark.exists();
    if interrupted {
        tracing::warn!("Found an interrupted checkpoint; finishing it.");
    }
    // Damage in the engine's files may go unnoticed, and make it return older data.
    let (engine, (note, runs, values)) = Engine::open(&index_folder(dir), |engine, sealed| {
        if interrupted {
            blocks::apply_images(engine, &mark, &name, &WriterSteps::default())?;
        }
        let decode = |bytes: &[u8]| (NoteHead::decode(bytes), Note::decode(bytes));
        let note = match engine.get(&name, decode)? {
            None => new.clone(),
            Some((found, decoded)) => {
                head.set(found);
                if let Some(what) = found.and_then(NoteHead::describe_other_version) {
                    return Err(Error::Index(what));
                }
                decoded.ok_or_else(|| damaged_entry("the note", &name))?
            }
        };
        let is_trusted = sealed && !interrupted && trust == Trust::Sealed;
        if !is_trusted && engine.checksum_sum_except(&name)? != note.checksum_sum {
            return Err(Error::Index("the checksum of the index's blocks is wrong".into()));
        }
        let runs = Runs::open(index_folder(dir).join(runs::FOLDER), &NAMES, &note.runs)?;
        let values = note.values.as_deref();
        let values = values.map(|runs| Values::open(index_folder(dir).join(values::FOLDER), runs));
        Ok((note, runs, values.transpose()?))
    })?;
    if interrupted {
        files::remove_durably(&mark, dir)?;
    }
    Ok(Index {
        instance: INSTANCES.fetch_add(1, Ordering::Relaxed),
        checkpointed_sequence: note.sequence,
        note,
        blocks: Blocks::new(engine, Shape::of_tree),
        runs,
        values,
        names: Arc::default(),
        dir: dir.to_owned(),
        unusable_cause: None,
        damage: OnceLock::new(),
        is_behind: AtomicBool::new(false),
        closed: false,
    })
}

/// The number of indexes opened by this process.
static INSTANCES: AtomicU64 = AtomicU64::new(0);

/// Deletes the index. The mark remains after a crash, so that a partly deleted index is never used.
pub(crate) fn discard_index(dir: &Path) -> Result<(), Error> {
    set_mark(dir)?;
    let folder = index_folder(dir);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(files::io_error("removing", &folder))?;
        files::sync_folder(dir)?;
    }
    remove_mark(dir)
}

/// The result of writing a checkpoint, for [`Index::mark_written`].
#[must_use]
pub(crate) struct WrittenCheckpoint {
    note: Note,
    parts: Option<WrittenParts>,
}

/// What a checkpoint wrote.
struct WrittenParts {
    images: WrittenImages,
    runs: WrittenRuns,
    values: Option<WrittenRuns>,
}

impl Index {
    /// Returns whether a checkpoint is due. Either `most` bytes are dirty, or the free disk space would not
    /// suffice for a checkpoint of twice the dirty bytes.
    pub(crate) fn is_checkpoint_due(&self, most: usize) -> bool {
        let dirty = self.dirty_bytes();
        let is_short =
            |free| (required_free_bytes(dirty)..required_free_bytes(2 * dirty)).contains(&free);
        dirty >= most
            || (dirty >= MIN_EARLY_DIRTY_BYTES && self.free_disk_bytes().is_ok_and(is_short))
    }

    /// Returns the free disk space of the data directory, in bytes.
    fn free_disk_bytes(&self) -> Result<u64, Error> {
        files::free_bytes(&self.dir)
            .map_err(files::io_error("checking the free disk space of", &self.dir))
    }

    /// Checks that there is enough disk space for [`Index::write_checkpoint`]. The engine does not survive a
    /// failed write, so the checkpoint must not start without space. A failure here changes nothing.
    pub(crate) fn check_checkpoint_space(&self) -> Result<(), Error> {
        self.check_usable()?;
        let (needed, free) = (required_free_bytes(self.dirty_bytes()), self.free_disk_bytes()?);
        if free < needed {
            let full = DiskFull { needed, free }.into();
            return Err(files::io_error("writing a checkpoint to", &index_folder(&self.dir))(full));
        }
        Ok(())
    }

    /// Writes all changes to the medium. The journal must be synced up to [`Index::sequence`]. Readers may
    /// continue meanwhile. [`Index::mark_written`] must follow before the next change.
    pub(crate) fn write_checkpoint(&self, steps: &WriterSteps) -> Result<WrittenCheckpoint, Error> {
        self.view().track_damage(|| {
            if self.checkpointed_sequence == self.note.sequence {
                return Ok(WrittenCheckpoint { note: self.note.clone(), parts: None });
            }
            let written = self.write_images(steps)?;
            let mark = mark_path(&self.dir);
            blocks::apply_images(self.blocks.engine(), &mark, &[tree::NOTE], steps)?;
            files::remove_durably(&mark, &self.dir)?;
            Ok(written)
        })
    }

    /// Writes all changes into the file of images, and names and values into runs. Once this succeeds, the
    /// checkpoint counts.
    fn write_images(&self, steps: &WriterSteps) -> Result<WrittenCheckpoint, Error> {
        let mut note = self.note.clone();
        let runs = self.runs.write_changes(steps)?;
        note.runs = runs.to_notes();
        let values = self.values.as_ref().map(|values| values.write_changes(steps)).transpose()?;
        note.values = values.as_ref().map(WrittenRuns::to_notes);
        let new = new_images_path(&self.dir);
        let mut images = NewImages::begin(&new)?;
        let imaged = self.blocks.write_dirty(&mut images, steps)?;
        note.checksum_sum = note.checksum_sum.wrapping_add(imaged.change);
        images.finish(&ImagesEnd { note: note.encode(), sum: imaged.sum })?;
        self.is_behind.store(true, Ordering::Release);
        files::rename_durably(&new, &mark_path(&self.dir), &self.dir)?;
        let parts = WrittenParts { images: imaged, runs, values };
        Ok(WrittenCheckpoint { note, parts: Some(parts) })
    }

    /// Records that the changes are on the medium.
    pub(crate) fn mark_written(&mut self, written: WrittenCheckpoint) {
        self.note = written.note;
        self.checkpointed_sequence = self.note.sequence;
        *self.is_behind.get_mut() = false;
        if let Some(parts) = written.parts {
            self.blocks.mark_written(parts.images);
            self.runs.mark_written(parts.runs);
            if let (Some(values), Some(written)) = (&mut self.values, parts.values) {
                values.mark_written(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::images::Image;
    use super::*;
    use crate::journal::Recovery;
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

    /// Opens a store. Returns it with the number of frames that were replayed.
    fn open(dir: &Path) -> (Store, u64) {
        let mut frames = 0;
        let count = &mut |progress: crate::Progress| frames = progress.total;
        let store = Store::open(dir, Options::default(), count).unwrap();
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
    fn an_index_that_was_only_written_by_another_version_is_not_reported_as_damaged() {
        let dir = tempfile::tempdir().unwrap();
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/index-4"), dir.path());
        let id = Recovery::find_or_create(&dir.path().join("journal"), true).unwrap().id;
        let find = || match find_index(dir.path(), id, 0, true).unwrap() {
            FoundIndex::Unusable { cause, is_of_other_version, checkpointed_sequence } => {
                (cause, is_of_other_version, checkpointed_sequence)
            }
            FoundIndex::Usable(_) => panic!("it is of version 4"),
        };
        assert_eq!(find(), ("it has version 4 in place of 8".to_owned(), true, 5));
        fs::write(mark_path(dir.path()), b"no images").unwrap();
        let (cause, is_of_other_version, _) = find();
        assert!(!is_of_other_version, "{cause}");
    }

    #[test]
    fn an_interrupted_checkpoint_is_finished_and_damaged_images_lead_to_a_rebuild() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = open(dir.path());
        let all = |from: usize, to: usize| (from..to).flat_map(|n| (0..4).map(move |f| quad(n, f)));
        change(&store, all(0, 900), true);
        store.checkpoint().unwrap();
        // These commits change, join and create blocks.
        change(&store, all(100, 600), false);
        change(&store, all(900, 1_500), true);
        let expected = quads(&store);
        let inner = store.inner();
        let writer = inner.lock_writer();
        inner.sync_state().wait_synced(3).unwrap();
        let index = inner.lock_index();
        let _written = index.write_images(&WriterSteps::default()).unwrap();
        let mark = mark_path(dir.path());
        let mut images_in_all = 0;
        images::read_images(&mark, &mut |images| {
            images_in_all += images.len();
            Ok(())
        })
        .unwrap();
        assert!(images_in_all > 100, "only {images_in_all} images: too few for this test");
        for most in [0, 1, images_in_all / 3, images_in_all * 2 / 3, images_in_all] {
            let mut writes = index.blocks.engine().begin_writes();
            let mut done = 0;
            let mut packer = super::super::packing::Packer::new();
            images::read_images(&mark, &mut |images| {
                for (name, image) in images {
                    done += 1;
                    match image {
                        _ if done > most => {}
                        Image::Deleted => writes.remove(name)?,
                        Image::Changed(bytes) | Image::New(bytes) => {
                            let mut packed = Vec::new();
                            packer.pack_block(bytes, &mut packed);
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
            assert!(!mark_path(cut.path()).exists());
            change(&again, all(2_000, 2_010), true);
            drop(again);
            assert_eq!(quads(&open(cut.path()).0).len(), expected.len() + 40);
        }
        // A journal that ends before it is refused, and verification finds the same.
        let cut = tempfile::tempdir().unwrap();
        copy(dir.path(), cut.path());
        let segment = cut.path().join("journal/00000000000000000001.journal");
        let bytes = fs::read(&segment).unwrap();
        let frame = u32::from_le_bytes(bytes[40..44].try_into().unwrap()) as usize + 16;
        fs::write(&segment, &bytes[..40 + frame]).unwrap();
        let verified = crate::verify_store(cut.path(), &mut |_| {}).unwrap();
        assert!(verified.damage[0].contains("put the missing part"), "{verified:?}");
        let refused = Store::open(cut.path(), Options::default(), &mut |_| {});
        assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
        let whole = fs::read(&mark).unwrap();
        for tenth in 0..10 {
            let at = whole.len() * tenth / 10;
            let cut = tempfile::tempdir().unwrap();
            copy(dir.path(), cut.path());
            let mut bytes = whole.clone();
            bytes[at] ^= 4;
            fs::write(mark_path(cut.path()), bytes).unwrap();
            let (again, frames) = open(cut.path());
            assert_eq!(frames, 3, "byte {at}: the index must be rebuilt");
            assert!(quads(&again) == expected, "byte {at}: a wrong answer");
        }
        drop(index);
        drop(writer);
    }
}
