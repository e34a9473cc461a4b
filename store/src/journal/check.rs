//! Verifying a journal: reads every byte without changing anything.
use super::base::{self, Base};
use super::recovery::{self, Names, missing_frames};
use super::segment::{Found, Segment, StoreId};
use crate::frame::Change;
use crate::{Corruption, Error};
use std::path::Path;

/// The result of verifying a journal.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// The newest base, which the segments follow; `None` if it is damaged.
    pub(crate) base: Option<Base>,
    pub(crate) id: StoreId,
    /// The sequence of the newest complete frame.
    pub(crate) newest: u64,
    pub(crate) segments: u64,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) faults: Vec<Corruption>,
    /// What the next open cleans up.
    pub(crate) left: Vec<String>,
}

impl Checked {
    /// Records damage. Returns any other error.
    fn take(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Corrupt(fault) => self.faults.push(fault),
            other => return Err(other),
        }
        Ok(())
    }

    fn fault(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        self.faults.push(Corruption { path: path.to_owned(), offset, what: what.into() });
    }
}

/// Verifies the journal in a folder. `index` is the store id of the index and its newest frame.
pub(crate) fn check(folder: &Path, index: Option<(StoreId, u64)>) -> Result<Checked, Error> {
    let mut checked = Checked::default();
    let Names { segments, mut bases } = Names::of(folder, false)?;
    let mut from = 0;
    if let Some((named, path)) = bases.pop() {
        from = named;
        match base(&path) {
            Ok(base) => {
                checked.id = base.id;
                checked.bytes += base.bytes;
                checked.base = Some(base);
            }
            Err(error) => checked.take(error)?,
        }
    }
    let (old, segments) = recovery::up_to(segments, from);
    for (_, path) in bases.into_iter().chain(old) {
        checked.left.push(format!("{} is obsolete; the next open removes it", path.display()));
    }
    let Some((first, path)) = segments.first() else {
        checked.fault(folder, 0, "the journal has no segments");
        return Ok(checked);
    };
    if checked.base.is_none()
        && let Ok(segment) = Segment::open(path)
    {
        checked.id = segment.id;
    }
    if *first > from + 1 {
        checked.fault(folder, 0, format!("the segments before frame {first} are missing"));
    }
    checked.newest = first.saturating_sub(1);
    let exact = checked.base.as_ref().map_or(0, |base| base.end.exact);
    let noted = index.filter(|(id, _)| *id == checked.id).map_or(0, |(_, noted)| noted);
    let last = segments.len().saturating_sub(1);
    for (number, (_, path)) in segments.iter().enumerate() {
        let newest = (number == last).then_some(Newest { noted, exact });
        segment(&mut checked, path, newest).or_else(|error| checked.take(error))?;
    }
    if checked.newest < exact && checked.faults.is_empty() {
        checked.fault(folder, 0, format!("frame {exact}, which the base needs, is missing"));
    }
    Ok(checked)
}

fn base(path: &Path) -> Result<Base, Error> {
    let base = Base::open(path)?;
    base::read_path(path, &mut |_, _| Ok(Ok(())))?;
    Ok(base)
}

/// What is known to be synced in the newest segment. All other segments are synced completely.
#[derive(Debug, Clone, Copy)]
struct Newest {
    /// The newest frame that the index has.
    noted: u64,
    /// The newest frame that the base needs.
    exact: u64,
}

/// Reads a segment. `newest` is only set for the newest segment.
fn segment(checked: &mut Checked, path: &Path, newest: Option<Newest>) -> Result<(), Error> {
    checked.segments += 1;
    let mut segment = Segment::open(path)?;
    let synced = newest.map_or(u64::MAX, |newest| newest.noted.max(newest.exact));
    if segment.id != checked.id {
        checked.fault(path, 12, "the segment belongs to another store");
    }
    if segment.next != checked.newest + 1 {
        checked.fault(path, 28, "the segment before this one is missing or too short");
    }
    loop {
        let offset = segment.offset;
        match segment.read() {
            Ok(Found::Frame(_, payload)) => {
                checked.frames += 1;
                if let Err(what) = Change::decode(&payload) {
                    checked.fault(path, offset, what);
                }
            }
            Ok(Found::End) => {
                if let Some(Newest { noted, .. }) = newest
                    && segment.next <= noted
                {
                    checked.fault(path, offset, missing_frames(segment.next - 1, noted));
                }
                break;
            }
            Ok(Found::Damage(what)) => {
                if segment.next <= synced || segment.is_damaged()? {
                    checked.fault(path, offset, what);
                } else {
                    checked.left.push(format!(
                        "{} is incomplete from byte {offset} on: {what}. A crash or a power cut leaves such an \
                         end, and the next open cuts it off",
                        path.display()
                    ));
                }
                break;
            }
            Err(error) => {
                checked.take(error)?;
                break;
            }
        }
    }
    checked.bytes += segment.offset;
    checked.newest = checked.newest.max(segment.next - 1);
    Ok(())
}
