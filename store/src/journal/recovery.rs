//! Opening a journal: finding its end, cutting what a crash left behind it, replaying it.
use super::base::{self, Base};
use super::segment::{self, Found, Segment, StoreId};
use super::{Bytes, Synced, Writer, pack};
use crate::frame::Change;
use crate::{Corruption, Error, files};
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A journal of which only the names and the id are known yet.
#[derive(Debug)]
pub(crate) struct Recovery {
    folder: PathBuf,
    /// In order; at least one, and none that the base makes useless.
    segments: Vec<(u64, PathBuf)>,
    base: Option<Base>,
    /// What the base has taken the place of.
    useless: Vec<PathBuf>,
    pub(crate) id: StoreId,
}

/// A journal whose end is known and sound.
#[derive(Debug)]
pub(crate) struct Settled {
    recovery: Recovery,
    /// The sequence of the newest frame.
    pub(crate) newest: u64,
    file: fs::File,
    path: PathBuf,
    length: u64,
    /// Bytes of the segments that are packed.
    packed: u64,
}

impl Recovery {
    /// Finds the journal in `folder`, or makes one unless `expected` says that one must be there.
    pub(crate) fn begin(folder: &Path, expected: bool) -> Result<Self, Error> {
        files::make_folder(folder)?;
        let Names { segments: all, bases } = Names::of(folder, true)?;
        let mut useless: Vec<PathBuf> = Vec::new();
        let base = match bases.split_last() {
            None => None,
            Some(((_, newest), older)) => {
                useless.extend(older.iter().map(|(_, path)| path.clone()));
                Some(Base::open(newest)?)
            }
        };
        let from = base.as_ref().map_or(0, |base| base.end.from);
        let (old, mut segments) = up_to(all, from);
        useless.extend(old.into_iter().map(|(_, path)| path));
        let missing = |what: &str| {
            let path = folder.to_owned();
            Err(Corruption { path, offset: 0, what: what.to_owned() }.into())
        };
        let id = match (segments.first(), segments.last()) {
            (Some((first, _)), Some((_, last))) if *first <= from + 1 => Segment::open(last)?.id,
            (Some((first, _)), _) => {
                return missing(&format!("the segments before frame {first} are missing"));
            }
            _ if base.is_some() => return missing("the segments behind the base are missing"),
            _ if expected => return missing("the journal is missing while its index is there"),
            _ => {
                let id = new_id();
                let (_, path) = segment::make(folder, &id, 1)?;
                segments.push((1, path));
                id
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
        Ok(Self { folder: folder.to_owned(), segments, base, useless, id })
    }

    /// The newest frame that the base has taken the place of.
    pub(crate) fn from(&self) -> u64 {
        self.base.as_ref().map_or(0, |base| base.end.from)
    }

    /// Finds the end of the journal and cuts what a crash left behind it. `noted` is the newest
    /// frame that the index has, so that it was synced once: a journal that ends before it is
    /// refused and left as it is, since only the index has what was in the missing frames.
    pub(crate) fn settle(self, noted: u64) -> Result<Settled, Error> {
        self.settle_before(noted, u64::MAX)
    }

    /// The same for a journal of this process: all frames up to `acknowledged` must be there, and
    /// those behind it, which failed for whoever made them, are cut off.
    pub(crate) fn settle_at(self, acknowledged: u64) -> Result<Settled, Error> {
        self.settle_before(acknowledged, acknowledged + 1)
    }

    fn settle_before(self, noted: u64, cut: u64) -> Result<Settled, Error> {
        let Some((_, path)) = self.segments.last() else {
            return Err(Error::Index("a journal without segments".into()));
        };
        let path = path.clone();
        let mut segment = Segment::open(&path)?;
        if segment.is_packed() {
            return Err(segment.damage("the segments behind this one, which is full, are missing"));
        }
        let packed = pack::packed_bytes(&self.segments)?;
        let mut unsure = segment.offset;
        let mut cut_off = false;
        let damage = loop {
            if segment.next >= cut {
                cut_off = true;
                break None;
            }
            match segment.read()? {
                Found::Frame(sequence, _) if sequence <= noted => unsure = segment.offset,
                Found::Frame(..) => {}
                Found::End => break None,
                Found::Damage(what) => break Some(what),
            }
        };
        let file = files::open_or_make(&path)?;
        let length = segment.offset;
        // No base gets its name before all frames that it may hold something of are synced.
        let exact = self.base.as_ref().map_or(0, |base| base.end.exact);
        if let Some(what) = damage {
            if segment.next <= noted.max(exact) || segment.is_damaged()? {
                return Err(segment.damage(what));
            }
            tracing::warn!(path = %path.display(), offset = length, what,
                "The end of the journal was not whole and was cut off. A crash or a power cut leaves such an \
                 end, of commits that were not acknowledged; without one, the newest commits are lost.");
            cut_off = true;
        }
        if segment.next <= noted {
            return Err(segment.damage(missing_frames(segment.next - 1, noted)));
        }
        if segment.next <= exact {
            return Err(segment.damage(format!("frame {exact}, which the base needs, is missing")));
        }
        if cut_off {
            files::cut(&file, &path, length)?;
        }
        write_again(&file, &path, unsure, length).map_err(files::fault("writing", &path))?;
        files::sync(&file, &path)?;
        Ok(Settled { newest: segment.next - 1, recovery: self, file, path, length, packed })
    }
}

/// What is wrong with a journal that ends at frame `newest` although frame `noted` was synced.
pub(super) fn missing_frames(newest: u64, noted: u64) -> String {
    format!(
        "the journal ends at frame {newest}, but frame {noted} had been synced: its newest frames are \
         missing; put the missing part of the journal back"
    )
}

/// Writes what is there once more. A sync that failed before the process ended may have left
/// frames that are read from memory and are not on the medium, and a further sync would not write
/// them.
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

/// What a replay calls for each frame, with its sequence and payload. The inner result says what
/// is wrong with the payload.
pub(crate) type Apply<'a> = dyn FnMut(u64, &[u8]) -> Result<Result<(), &'static str>, Error> + 'a;

impl Settled {
    /// What tells the store of this journal from any other.
    pub(crate) fn id(&self) -> StoreId {
        self.recovery.id
    }

    /// What the frames are to be replayed over.
    pub(crate) fn base(&self) -> Option<&Base> {
        self.recovery.base.as_ref()
    }

    /// Removes what the base has taken the place of, if a crash has left any of it.
    pub(crate) fn remove_useless(&mut self) -> Result<(), Error> {
        for path in self.recovery.useless.drain(..) {
            files::remove(&path, &self.recovery.folder)?;
        }
        Ok(())
    }

    /// Hands every frame after `noted` to `apply`, in order.
    pub(crate) fn replay(&self, noted: u64, apply: &mut Apply<'_>) -> Result<(), Error> {
        replay(&self.recovery.segments, &self.recovery.id, noted, self.newest, apply)
    }

    /// Goes on writing where the journal ends.
    pub(crate) fn writer(self, segment_bytes: u64) -> Writer {
        let file = Arc::new(self.file);
        let base = self.recovery.base;
        let bytes = Bytes {
            all: files::size_of(&self.recovery.folder),
            base: base.as_ref().map_or(0, |base| base.bytes),
            packed: self.packed,
        };
        let synced = Synced::new(file.clone(), self.path.clone(), self.newest, bytes);
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
    /// What those who wait for a sync share with this writer.
    pub(crate) fn synced(&self) -> Arc<Synced> {
        self.synced.clone()
    }
}

/// Hands the frames after `after` and up to `newest`, which are there, to `apply`, in order.
fn replay(
    segments: &[(u64, PathBuf)],
    id: &StoreId,
    after: u64,
    newest: u64,
    apply: &mut Apply<'_>,
) -> Result<(), Error> {
    let begin = segments.partition_point(|(first, _)| *first <= after + 1).saturating_sub(1);
    let mut expected = None;
    for (first, path) in segments.iter().skip(begin).filter(|(first, _)| *first <= newest) {
        let mut segment = Segment::open(path)?;
        if segment.id != *id {
            return Err(segment.damage("the segment belongs to another store"));
        }
        if expected.map_or(*first > after + 1, |expected| expected != segment.next) {
            return Err(segment.damage("the segment before this one is missing or too short"));
        }
        while segment.next <= newest {
            let offset = segment.offset;
            match segment.read()? {
                Found::Frame(sequence, payload) if sequence > after => {
                    if let Err(what) = apply(sequence, &payload)? {
                        let path = path.clone();
                        return Err(Corruption { path, offset, what: what.into() }.into());
                    }
                }
                Found::Frame(..) => {}
                Found::End => break,
                Found::Damage(what) => return Err(segment.damage(what)),
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

/// Hands the frames after `after` and up to `newest`, which are synced, to `apply`, while others
/// are appended behind them.
pub(crate) fn replay_synced(
    folder: &Path,
    id: &StoreId,
    after: u64,
    newest: u64,
    apply: &mut Apply<'_>,
) -> Result<(), Error> {
    replay(&Names::of(folder, false)?.segments, id, after, newest, apply)
}

/// Reads all that an index is made of, up to a frame that is synced. Fails where it is damaged, or
/// `check` says so.
pub(crate) fn read_synced(
    folder: &Path,
    id: &StoreId,
    newest: u64,
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let names = Names::of(folder, false)?;
    let mut after = 0;
    if let Some((from, path)) = names.bases.last() {
        base::read_path(path, &mut |_, _| check().map(Ok))?;
        after = *from;
    }
    replay(&names.segments, id, after, newest, &mut |_, payload| {
        check()?;
        Ok(Change::decode(payload).map(drop))
    })
}

/// Segments and bases of a folder, each in order of the sequence that its name has.
pub(crate) struct Names {
    pub(crate) segments: Vec<(u64, PathBuf)>,
    pub(crate) bases: Vec<(u64, PathBuf)>,
}

impl Names {
    /// Lists a folder, and if asked removes what was in the making when a crash came.
    pub(crate) fn of(folder: &Path, tidy: bool) -> Result<Self, Error> {
        let mut names = Self { segments: Vec::new(), bases: Vec::new() };
        for entry in fs::read_dir(folder).map_err(files::fault("reading", folder))? {
            let path = entry.map_err(files::fault("reading", folder))?.path();
            if let Some(first) = segment::first_of(&path) {
                names.segments.push((first, path));
            } else if let Some(from) = base::from_of(&path) {
                names.bases.push((from, path));
            } else if tidy && path.extension().is_some_and(|extension| extension == "new") {
                files::remove(&path, folder)?;
            }
        }
        names.segments.sort_unstable();
        names.bases.sort_unstable();
        Ok(names)
    }
}

type Segments = Vec<(u64, PathBuf)>;

/// The segments that have no frame after `from`, and the others. The newest is always among the
/// others.
pub(super) fn up_to(mut segments: Segments, from: u64) -> (Segments, Segments) {
    let kept = segments.partition_point(|(first, _)| *first <= from + 1).saturating_sub(1);
    let others = segments.split_off(kept);
    (segments, others)
}

/// The id of a new store.
pub(crate) fn new_id() -> StoreId {
    let mut id = StoreId::default();
    // Every hasher state of the standard library is seeded from the operating system's randomness.
    for half in id.chunks_exact_mut(8) {
        let number = RandomState::new().hash_one(std::process::id());
        half.copy_from_slice(&number.to_le_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two frames, of which the first is harmed afterwards. `unsynced` is what the second says
    /// about the frames before it.
    fn damaged_before(unsynced: u8, harm: fn(&mut [u8])) -> Result<Settled, Error> {
        let dir = tempfile::tempdir().unwrap();
        let settled = Recovery::begin(dir.path(), false)?.settle(0)?;
        let path = settled.path.clone();
        let mut writer = settled.writer(1 << 20);
        writer.append(1, &[b"\x01\x00".as_slice(), &[7; 2_000]].concat())?;
        writer.append(2, &[1, unsynced, 0, 0])?;
        let mut bytes = fs::read(&path).unwrap();
        harm(&mut bytes);
        fs::write(&path, bytes).unwrap();
        Recovery::begin(dir.path(), true)?.settle(0)
    }

    /// The sector in the midst of the first frame, as if it had not been written.
    fn tear(bytes: &mut [u8]) {
        bytes[512..1024].fill(0);
    }

    fn flip(bytes: &mut [u8]) {
        bytes[600] ^= 1;
    }

    #[test]
    fn a_frame_that_was_in_flight_when_it_was_lost_is_cut_with_those_behind_it() {
        assert_eq!(damaged_before(1, tear).unwrap().newest, 0);
    }

    #[test]
    fn a_frame_that_was_synced_when_the_next_was_written_is_not_cut() {
        for harm in [tear, flip] {
            let settled = damaged_before(0, harm);
            assert!(matches!(settled, Err(Error::Corrupt(place)) if place.offset == 40));
        }
    }

    #[test]
    fn a_frame_of_which_nothing_is_missing_is_not_cut_though_it_may_not_have_been_synced() {
        let settled = damaged_before(1, flip);
        assert!(matches!(settled, Err(Error::Corrupt(place)) if place.offset == 40));
    }
}
