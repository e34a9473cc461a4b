//! Verifying a journal: reads every byte without changing anything.
use super::base::{self, Base};
use super::folder::{JournalFiles, split_segments_at};
use super::recovery::missing_frames;
use super::segment::{Found, SegmentReader, StoreId};
use crate::frame::CommitCounts;
use crate::{Corruption, Error, Format};
use std::path::Path;

/// The result of verifying a journal.
#[derive(Debug, Default)]
pub(crate) struct CheckedJournal {
    /// The newest base, which the segments follow; `None` if there is none or it is damaged.
    pub(crate) base: Option<Base>,
    pub(crate) id: StoreId,
    /// The newest format in a header.
    pub(crate) format: Format,
    /// The sequence of the newest complete frame.
    pub(crate) newest: u64,
    pub(crate) segments: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) damage: Vec<Corruption>,
    /// What the next open cleans up.
    pub(crate) leftovers: Vec<String>,
}

impl CheckedJournal {
    /// Records damage. Returns any other error.
    fn record_damage(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Corrupt(damage) => self.damage.push(damage),
            other => return Err(other),
        }
        Ok(())
    }

    fn add_damage(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        self.damage.push(Corruption { path: path.to_owned(), offset, what: what.into() });
    }
}

/// Verifies the journal in a folder. `index` is the store id of the index and its newest frame.
pub(crate) fn check_journal(
    folder: &Path,
    index: Option<(StoreId, u64)>,
) -> Result<CheckedJournal, Error> {
    let mut checked = CheckedJournal::default();
    let JournalFiles { segments, mut bases } = JournalFiles::list_folder(folder, false)?;
    let mut from = 0;
    if let Some((named, path)) = bases.pop() {
        from = named;
        match check_base(&path) {
            Ok(base) => {
                checked.id = base.id;
                checked.format = base.format;
                checked.bytes += base.bytes;
                checked.base = Some(base);
            }
            Err(error) => checked.record_damage(error)?,
        }
    }
    let (old, segments) = split_segments_at(segments, from);
    for (_, path) in bases {
        checked.leftovers.push(format!("{} is obsolete; the next open removes it", path.display()));
    }
    for (_, path) in old {
        checked.leftovers.push(format!(
            "{} is replaced by the base; the next open removes it, unless the continuous backup has not sent it yet",
            path.display()
        ));
    }
    let Some((first, path)) = segments.first() else {
        checked.add_damage(folder, 0, "the journal has no segments");
        return Ok(checked);
    };
    if checked.base.is_none()
        && let Ok(segment) = SegmentReader::open(path)
    {
        checked.id = segment.id;
    }
    if *first > from + 1 {
        checked.add_damage(folder, 0, format!("the segments before frame {first} are missing"));
    }
    checked.newest = first.saturating_sub(1);
    let exact = checked.base.as_ref().map_or(0, |base| base.end.exact);
    let noted = index.filter(|(id, _)| *id == checked.id).map_or(0, |(_, noted)| noted);
    let last = segments.len().saturating_sub(1);
    for (number, (_, path)) in segments.iter().enumerate() {
        let newest = (number == last).then_some(SyncedInNewest { checkpointed: noted, exact });
        check_segment(&mut checked, path, newest).or_else(|error| checked.record_damage(error))?;
    }
    if checked.newest < exact && checked.damage.is_empty() {
        checked.add_damage(folder, 0, format!("frame {exact}, which the base needs, is missing"));
    }
    Ok(checked)
}

fn check_base(path: &Path) -> Result<Base, Error> {
    let base = Base::open(path)?;
    base::read_base_file(path, &mut |_, _| Ok(Ok(())))?;
    Ok(base)
}

/// What is known to be synced in the newest segment. All other segments are synced completely.
#[derive(Debug, Clone, Copy)]
struct SyncedInNewest {
    /// The newest frame that the index has.
    checkpointed: u64,
    /// The newest frame that the base needs.
    exact: u64,
}

/// Reads a segment. `newest` is only set for the newest segment.
fn check_segment(
    checked: &mut CheckedJournal,
    path: &Path,
    newest: Option<SyncedInNewest>,
) -> Result<(), Error> {
    checked.segments += 1;
    let mut segment = SegmentReader::open(path)?;
    if newest.is_some() && segment.format < checked.format {
        let what = format!(
            "the newest segment has format {}, and a file before it has format {}; put the segments after it back",
            segment.format, checked.format
        );
        checked.add_damage(path, 8, what);
    }
    checked.format = checked.format.max(segment.format);
    let synced = newest.map_or(u64::MAX, |newest| newest.checkpointed.max(newest.exact));
    if segment.id != checked.id {
        checked.add_damage(path, 12, "the segment belongs to another store");
    }
    if segment.next != checked.newest + 1 {
        checked.add_damage(path, 28, "the segment before this one is missing or too short");
    }
    loop {
        let offset = segment.offset;
        match segment.read_next() {
            Ok(Found::Frame(_, payload)) => {
                checked.frames += 1;
                if let Err(what) = CommitCounts::read(&payload, &mut |_| {}) {
                    checked.add_damage(path, offset, what);
                }
            }
            Ok(Found::End) => {
                if let Some(SyncedInNewest { checkpointed: noted, .. }) = newest
                    && segment.next <= noted
                {
                    checked.add_damage(path, offset, missing_frames(segment.next - 1, noted));
                }
                break;
            }
            Ok(Found::Damage(what)) => {
                if segment.next <= synced || segment.is_damaged()? {
                    checked.add_damage(path, offset, what);
                } else {
                    checked.leftovers.push(format!(
                        "{} is incomplete from byte {offset} on: {what}. A crash or a power cut leaves such an \
                         end, and the next open cuts it off",
                        path.display()
                    ));
                }
                break;
            }
            Err(error) => {
                checked.record_damage(error)?;
                break;
            }
        }
    }
    checked.bytes += segment.offset;
    checked.newest = checked.newest.max(segment.next - 1);
    Ok(())
}
