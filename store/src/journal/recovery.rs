//! Opening a journal: finds its end, cuts off what a crash left after it, and replays it.
use super::base::{self, Base};
use super::folder::{JournalFiles, split_segments_at};
use super::segment::{self, ApplyFrame, Found, SegmentReader, StoreId};
use super::{JournalBytes, SyncState, Writer, folder, pack};
use crate::frame::CommitCounts;
use crate::{Corruption, Error, Format, files};
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A journal whose files are listed but whose end is not yet found.
#[derive(Debug)]
pub(crate) struct Recovery {
    folder: PathBuf,
    /// The segments in order: at least one, and none that the base replaces.
    segments: Vec<(u64, PathBuf)>,
    base: Option<Base>,
    pub(crate) id: StoreId,
    /// The format in the header of the newest segment, which no other file exceeds.
    format: Format,
}

/// A journal whose end is known and intact.
#[derive(Debug)]
pub(crate) struct SettledJournal {
    recovery: Recovery,
    /// The sequence of the newest frame.
    pub(crate) newest: u64,
    file: fs::File,
    path: PathBuf,
    length: u64,
    /// The size of the packed segments, in bytes.
    packed: u64,
}

impl Recovery {
    /// Finds the journal in `folder`. If there is none, creates one, or fails if it is `expected` to exist.
    pub(crate) fn find_or_create(folder: &Path, expected: bool) -> Result<Self, Error> {
        files::create_folder(folder)?;
        let JournalFiles { segments: all, bases } = JournalFiles::list_folder(folder, true)?;
        let base = bases.last().map(|(_, newest)| Base::open(newest)).transpose()?;
        let from = base.as_ref().map_or(0, |base| base.end.from);
        let (_, mut segments) = split_segments_at(all, from);
        let missing = |what: &str| {
            let path = folder.to_owned();
            Err(Corruption { path, offset: 0, what: what.to_owned() }.into())
        };
        let (id, format) = match (segments.first(), segments.last()) {
            (Some((first, _)), Some((_, last))) if *first <= from + 1 => {
                let newest = SegmentReader::open(last)?;
                (newest.id, newest.format)
            }
            (Some((first, _)), _) => {
                return missing(&format!("the segments before frame {first} are missing"));
            }
            _ if base.is_some() => return missing("the segments after the base are missing"),
            _ if expected => return missing("the journal is missing, but its index exists"),
            _ => {
                let (id, format) = (new_id(), Format::default());
                let (_, path) = segment::create_segment(folder, &id, 1, format)?;
                segments.push((1, path));
                (id, format)
            }
        };
        if let Some(base) = &base
            && base.id != id
        {
            let what = "the base belongs to another store than the segments";
            return Err(
                Corruption { path: base.path.clone(), offset: 12, what: what.into() }.into()
            );
        }
        Ok(Self { folder: folder.to_owned(), segments, base, id, format })
    }

    /// Returns the newest frame that the base replaces.
    pub(crate) fn base_sequence(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.end.from)
    }

    /// Finds the end of the journal and cuts off what a crash left after it. `checkpointed` is the newest
    /// frame that the index has, so it was synced once. A journal that ends before that frame is refused and
    /// not changed, because only the index has the missing frames.
    pub(crate) fn settle_end(self, checkpointed: u64) -> Result<SettledJournal, Error> {
        self.settle_end_before(checkpointed, u64::MAX)
    }

    /// Works as [`Self::settle_end`], for a journal that this process has written. All frames up to
    /// `acknowledged` must be present. Later ones, whose commits were reported as failed, are cut off.
    pub(crate) fn settle_end_at(self, acknowledged: u64) -> Result<SettledJournal, Error> {
        self.settle_end_before(acknowledged, acknowledged + 1)
    }

    /// Works as [`Self::settle_end`]. Frame `cut` and all later ones are cut off.
    fn settle_end_before(self, checkpointed: u64, cut: u64) -> Result<SettledJournal, Error> {
        let Some((_, path)) = self.segments.last() else {
            return Err(Error::Index("the journal has no segments".into()));
        };
        let path = path.clone();
        let mut segment = SegmentReader::open(&path)?;
        if segment.is_packed() {
            return Err(
                segment.damage_error("the segments after this one, which is full, are missing")
            );
        }
        let packed = pack::packed_bytes(&self.segments)?;
        let mut rewrite_from = segment.offset;
        let mut cut_off = false;
        let damage = loop {
            if segment.next >= cut {
                cut_off = true;
                break None;
            }
            match segment.read_next()? {
                Found::Frame(sequence, _) if sequence <= checkpointed => {
                    rewrite_from = segment.offset;
                }
                Found::Frame(..) => {}
                Found::End => break None,
                Found::Damage(what) => break Some(what),
            }
        };
        let file = files::open_or_create(&path)?;
        let length = segment.offset;
        // A base gets its name only when all frames whose changes it may contain are synced.
        let exact = self.base.as_ref().map_or(0, |base| base.end.exact);
        if let Some(what) = damage {
            if segment.next <= checkpointed.max(exact) || segment.is_damaged()? {
                return Err(segment.damage_error(what));
            }
            tracing::warn!(path = %path.display(), offset = length, what,
                "The end of the journal was incomplete and was cut off. After a crash or a power cut this is \
                 normal, and no acknowledged commit is lost. Otherwise the newest commits are lost.");
            cut_off = true;
        }
        if segment.next <= checkpointed {
            return Err(segment.damage_error(missing_frames(segment.next - 1, checkpointed)));
        }
        if segment.next <= exact {
            return Err(
                segment.damage_error(format!("frame {exact}, which the base needs, is missing"))
            );
        }
        if cut_off {
            files::truncate_file(&file, &path, length)?;
        }
        write_again(&file, &path, rewrite_from, length)
            .map_err(files::io_error("writing", &path))?;
        files::sync_file(&file, &path)?;
        // A process that was killed may have left names that are not durable: of the segment, or of the folder.
        for folder in std::iter::once(&*self.folder).chain(self.folder.parent()) {
            files::sync_folder(folder)?;
        }
        Ok(SettledJournal { newest: segment.next - 1, recovery: self, file, path, length, packed })
    }
}

/// Describes a journal that ends at frame `newest` although frame `synced` was synced.
pub(super) fn missing_frames(newest: u64, synced: u64) -> String {
    format!(
        "the journal ends at frame {newest}, but frame {synced} had been synced: its newest frames are \
         missing; put the missing part of the journal back"
    )
}

/// Writes existing bytes again. If a sync failed before the process ended, the frames may be in the page
/// cache but not on the medium. Another sync would not write them.
fn write_again(file: &fs::File, path: &Path, from: u64, to: u64) -> std::io::Result<()> {
    let mut bytes = vec![0; 1 << 18];
    let mut at = from;
    while at < to {
        let count = usize::try_from(to - at).unwrap_or(usize::MAX).min(bytes.len());
        let Some(part) = bytes.get_mut(..count) else { break };
        file.read_exact_at(part, at)?;
        files::write_at(file, path, part, at)?;
        at += count as u64;
    }
    Ok(())
}

impl SettledJournal {
    /// Returns the id that distinguishes this store from others.
    pub(crate) fn id(&self) -> StoreId {
        self.recovery.id
    }

    /// Returns the base over which the frames are replayed.
    pub(crate) fn base(&self) -> Option<&Base> {
        self.recovery.base.as_ref()
    }

    /// Removes files that the base replaces, if a crash left some. Segments with a frame after `retained` stay.
    pub(crate) fn remove_obsolete(&self, retained: u64) -> Result<(), Error> {
        folder::remove_obsolete(&self.recovery.folder, retained, &mut 0)
    }

    /// Passes every frame after `after` to `apply`, in order.
    pub(crate) fn replay_after(&self, after: u64, apply: &mut ApplyFrame<'_>) -> Result<(), Error> {
        replay_segments(&self.recovery.segments, &self.recovery.id, after, self.newest, apply)
    }

    /// Returns a writer that continues at the end of the journal.
    pub(crate) fn into_writer(self, segment_bytes: u64) -> Writer {
        let file = Arc::new(self.file);
        let base = self.recovery.base;
        let bytes = JournalBytes {
            all: files::folder_bytes(&self.recovery.folder),
            base: base.as_ref().map_or(0, |base| base.bytes),
            packed: self.packed,
        };
        let synced = SyncState::new(
            file.clone(),
            self.path.clone(),
            self.recovery.format,
            self.newest,
            bytes,
        );
        Writer {
            folder: self.recovery.folder,
            id: self.recovery.id,
            segment_bytes,
            file,
            path: self.path,
            length: self.length,
            synced: Arc::new(synced),
            base_from: base.map_or(0, |base| base.end.from),
        }
    }
}

impl Writer {
    /// Returns the sync state that this writer shares with waiting commits.
    pub(crate) fn sync_state(&self) -> Arc<SyncState> {
        self.synced.clone()
    }
}

/// Passes the frames after `after`, up to `newest`, to `apply` in order. All of them must exist.
fn replay_segments(
    segments: &[(u64, PathBuf)],
    id: &StoreId,
    after: u64,
    newest: u64,
    apply: &mut ApplyFrame<'_>,
) -> Result<(), Error> {
    let begin = segments.partition_point(|(first, _)| *first <= after + 1).saturating_sub(1);
    let mut expected = None;
    for (first, path) in segments.iter().skip(begin).filter(|(first, _)| *first <= newest) {
        let mut segment = SegmentReader::open(path)?;
        if segment.id != *id {
            return Err(segment.damage_error("the segment belongs to another store"));
        }
        if expected.map_or(*first > after + 1, |expected| expected != segment.next) {
            return Err(segment.damage_error("the segment before this one is missing or too short"));
        }
        while segment.next <= newest {
            let offset = segment.offset;
            match segment.read_next()? {
                Found::Frame(sequence, payload) if sequence > after => {
                    if let Err(what) = apply(sequence, &payload)? {
                        let path = path.clone();
                        return Err(Corruption { path, offset, what: what.into() }.into());
                    }
                }
                Found::Frame(..) => {}
                Found::End => break,
                Found::Damage(what) => return Err(segment.damage_error(what)),
            }
        }
        expected = Some(segment.next);
    }
    if expected.is_some_and(|next| next <= newest) {
        let (path, offset) = segments.last().map(|(_, path)| (path.clone(), 0)).unwrap_or_default();
        let what = format!("frame {newest} is missing");
        return Err(Corruption { path, offset, what }.into());
    }
    Ok(())
}

/// Passes the frames after `after`, up to `newest`, to `apply` in order. All of them are synced. Newer frames
/// may be appended meanwhile.
pub(crate) fn replay_synced(
    folder: &Path,
    id: &StoreId,
    after: u64,
    newest: u64,
    apply: &mut ApplyFrame<'_>,
) -> Result<(), Error> {
    replay_segments(&JournalFiles::list_folder(folder, false)?.segments, id, after, newest, apply)
}

/// Returns the bytes of all frames after `after`; of packed segments, the packed bytes.
pub(crate) fn bytes_after(folder: &Path, after: u64) -> Result<u64, Error> {
    let (_, segments) =
        split_segments_at(JournalFiles::list_folder(folder, false)?.segments, after);
    let mut bytes = 0;
    for (first, path) in segments {
        let mut from = 0;
        if first <= after {
            let mut segment = SegmentReader::open(&path)?;
            while segment.next <= after && matches!(segment.read_next()?, Found::Frame(..)) {}
            from = segment.offset;
        }
        let length = fs::metadata(&path).map_err(files::io_error("reading", &path))?.len();
        bytes += length.saturating_sub(from);
    }
    Ok(bytes)
}

/// Reads all that an index is built from: the newest base, and the frames after it up to the synced frame
/// `newest`. Fails if any of it is damaged, or if `check` fails.
pub(crate) fn read_synced(
    folder: &Path,
    id: &StoreId,
    newest: u64,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let names = JournalFiles::list_folder(folder, false)?;
    let mut after = 0;
    if let Some((from, path)) = names.bases.last() {
        base::read_base_file(path, &mut |_, _| check().map(Ok))?;
        after = *from;
    }
    replay_segments(&names.segments, id, after, newest, &mut |_, payload| {
        check()?;
        Ok(CommitCounts::read(payload, &mut |_| {}).map(drop))
    })
}

/// Returns a random id for a new store.
pub(crate) fn new_id() -> StoreId {
    let mut id = StoreId::default();
    // The standard library seeds each hasher state with randomness from the operating system.
    for half in id.chunks_exact_mut(8) {
        let number = RandomState::new().hash_one(std::process::id());
        half.copy_from_slice(&number.to_le_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates two frames and then damages the first with `harm`. `unsynced` is the number of unsynced
    /// frames that the second frame states.
    fn damaged_before(unsynced: u8, harm: fn(&mut [u8])) -> Result<SettledJournal, Error> {
        let dir = tempfile::tempdir().unwrap();
        let settled = Recovery::find_or_create(dir.path(), false)?.settle_end(0)?;
        let path = settled.path.clone();
        let mut writer = settled.into_writer(1 << 20);
        writer.append_frame(1, &[b"\x01\x00".as_slice(), &[7; 2_000]].concat())?;
        writer.append_frame(2, &[1, unsynced, 0, 0])?;
        let mut bytes = fs::read(&path).unwrap();
        harm(&mut bytes);
        fs::write(&path, bytes).unwrap();
        Recovery::find_or_create(dir.path(), true)?.settle_end(0)
    }

    /// Zeroes the sector in the middle of the first frame, as if it had not been written.
    fn tear(bytes: &mut [u8]) {
        bytes[512..1024].fill(0);
    }

    fn flip(bytes: &mut [u8]) {
        bytes[600] ^= 1;
    }

    #[test]
    fn a_frame_lost_before_its_sync_is_cut_off_with_those_after_it() {
        assert_eq!(damaged_before(1, tear).unwrap().newest, 0);
    }

    #[test]
    fn a_frame_synced_before_the_next_was_written_is_not_cut_off() {
        for harm in [tear, flip] {
            let settled = damaged_before(0, harm);
            assert!(matches!(settled, Err(Error::Corrupt(place)) if place.offset == 40));
        }
    }

    #[test]
    fn a_damaged_frame_without_missing_sectors_is_not_cut_off() {
        let settled = damaged_before(1, flip);
        assert!(matches!(settled, Err(Error::Corrupt(place)) if place.offset == 40));
    }
}
