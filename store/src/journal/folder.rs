//! The files of a journal: their names, and which ones a base replaces.
use crate::{Error, files};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the file name of the segment whose first frame has this sequence.
pub(super) fn segment_name(first: u64) -> String {
    format!("{first:020}.journal")
}

/// Returns the first sequence of a segment, from its file name.
pub(super) fn parse_segment_name(path: &Path) -> Option<u64> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".journal")?;
    (stem.len() == 20).then(|| stem.parse().ok())?
}

/// Returns the file name of a base over which the frames after `from` are replayed.
pub(super) fn base_name(from: u64) -> String {
    format!("{from:020}.base")
}

/// Returns the sequence in the file name of a base.
pub(super) fn parse_base_name(path: &Path) -> Option<u64> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".base")?;
    (stem.len() == 20).then(|| stem.parse().ok())?
}

/// The segments and bases of a folder, each ordered by the sequence in its name.
pub(super) struct JournalFiles {
    pub(super) segments: Vec<(u64, PathBuf)>,
    pub(super) bases: Vec<(u64, PathBuf)>,
}

impl JournalFiles {
    /// Lists a folder. With `clean_up`, removes unfinished files that a crash left.
    pub(super) fn list_folder(folder: &Path, clean_up: bool) -> Result<Self, Error> {
        let mut names = Self { segments: Vec::new(), bases: Vec::new() };
        for entry in fs::read_dir(folder).map_err(files::io_error("reading", folder))? {
            let path = entry.map_err(files::io_error("reading", folder))?.path();
            if let Some(first) = parse_segment_name(&path) {
                names.segments.push((first, path));
            } else if let Some(from) = parse_base_name(&path) {
                names.bases.push((from, path));
            } else if clean_up && path.extension().is_some_and(|extension| extension == "new") {
                files::remove_durably(&path, folder)?;
            }
        }
        names.segments.sort_unstable();
        names.bases.sort_unstable();
        Ok(names)
    }
}

type Segments = Vec<(u64, PathBuf)>;

/// Splits segments into those without a frame after `from`, and the others. The newest is always among the
/// others.
pub(super) fn split_segments_at(mut segments: Segments, from: u64) -> (Segments, Segments) {
    let kept = segments.partition_point(|(first, _)| *first <= from + 1).saturating_sub(1);
    let others = segments.split_off(kept);
    (segments, others)
}

/// The frames that stay in the journal although a base replaces them.
#[derive(Debug)]
pub(crate) struct Retained(AtomicU64);

impl Retained {
    /// Keeps the frames after this sequence, or none.
    pub(crate) fn new(after: Option<u64>) -> Self {
        Self(AtomicU64::new(after.unwrap_or(u64::MAX)))
    }

    /// Keeps from now on the frames after this sequence, or none.
    pub(crate) fn keep_after(&self, after: Option<u64>) {
        self.0.store(after.unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Returns the sequence after which all frames stay; the greatest number if none does.
    pub(crate) fn after(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Removes the files that the newest base replaces, the oldest first, and adds their bytes to `removed`. Segments with
/// a frame after `retained` stay.
pub(crate) fn remove_obsolete(
    folder: &Path,
    retained: u64,
    removed: &mut u64,
) -> Result<(), Error> {
    let mut names = JournalFiles::list_folder(folder, false)?;
    let Some((from, _)) = names.bases.pop() else { return Ok(()) };
    let (mut old, _) = split_segments_at(names.segments, from.min(retained));
    old.append(&mut names.bases);
    if !old.is_empty() {
        // The name of the base must be durable first. It is not if an earlier sync failed.
        files::sync_folder(folder)?;
    }
    for (_, old) in old {
        let bytes = fs::metadata(&old).map_or(0, |data| data.len());
        files::remove_durably(&old, folder)?;
        *removed += bytes;
    }
    Ok(())
}

/// Returns the first sequence of the oldest segment.
pub(crate) fn first_segment(folder: &Path) -> Result<Option<u64>, Error> {
    let names = JournalFiles::list_folder(folder, false)?;
    Ok(names.segments.first().map(|(first, _)| *first))
}

/// Returns the bytes of the segments that the newest base replaces.
pub(crate) fn replaced_bytes(folder: &Path) -> Result<u64, Error> {
    let names = JournalFiles::list_folder(folder, false)?;
    let from = names.bases.last().map_or(0, |(from, _)| *from);
    let (old, _) = split_segments_at(names.segments, from);
    Ok(old.iter().map(|(_, path)| fs::metadata(path).map_or(0, |data| data.len())).sum())
}
