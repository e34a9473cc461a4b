//! Packing: replaces a full segment by one with the same frames in a quarter of the disk space.
//!
//! The packed segment is renamed to the old one's name, so one of them always exists. A reader that has the
//! old one open can read it to its end.
use super::folder::{JournalFiles, split_segments_at};
use super::packing::{PART_BYTES, new_packer, pack_part};
use super::segment::{self, Found, SegmentReader};
use crate::{Error, files};
use std::path::{Path, PathBuf};

/// Returns the total size of the packed segments, in bytes. They are the oldest.
pub(super) fn packed_bytes(segments: &[(u64, PathBuf)]) -> Result<u64, Error> {
    let mut bytes = 0;
    for (_, path) in segments.get(..count_packed(segments)?).unwrap_or_default() {
        bytes += file_bytes(path)?;
    }
    Ok(bytes)
}

/// Packs the full segments, the oldest first: those before `current`, to which frames are appended. Calls `report`
/// for each with its size before and after, in bytes. An error of `check` ends it. Segments that a base replaces but
/// that could not be removed are skipped.
pub(crate) fn pack_segments(
    folder: &Path,
    current: &Path,
    check: &dyn Fn() -> Result<(), Error>,
    report: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let names = JournalFiles::list_folder(folder, false)?;
    let from = names.bases.last().map_or(0, |(from, _)| *from);
    let (_, mut segments) = split_segments_at(names.segments, from);
    // The newest name can be that of a segment whose creation fails. Then frames continue in the one before it.
    segments.retain(|(_, path)| path.as_path() < current);
    let plain = count_packed(&segments)?;
    for (_, path) in segments.iter().skip(plain) {
        check()?;
        let before = file_bytes(path)?;
        let new = path.with_extension("packed.new");
        let packed = pack_segment(path, &new).and_then(|bytes| {
            files::rename_durably(&new, path, folder)?;
            Ok(bytes)
        });
        let after = packed.inspect_err(|_| {
            if let Err(cause) = files::remove_durably(&new, folder) {
                tracing::warn!(%cause, "An unfinished packed segment could not be removed; the next open removes it.");
            }
        })?;
        report(before, after);
    }
    Ok(())
}

/// Returns the number of segments before the first that is not packed.
fn count_packed(segments: &[(u64, PathBuf)]) -> Result<usize, Error> {
    let mut first = segments.len();
    for (at, (_, path)) in segments.iter().enumerate().rev() {
        match SegmentReader::open(path) {
            Ok(segment) if segment.is_packed() => break,
            Err(error) if !error.is_unreadable() => return Err(error),
            // Damage is not reported here: a read of the segment reports it with its position, and an open that
            // does not read the segment continues.
            Ok(_) | Err(_) => first = at,
        }
    }
    Ok(first)
}

fn file_bytes(path: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(path).map_err(files::io_error("reading", path))?.len())
}

/// Writes the frames of a segment, packed, into `new`, syncs it and reads it back. Returns its size in bytes.
fn pack_segment(path: &Path, new: &Path) -> Result<u64, Error> {
    let mut from = SegmentReader::open(path)?;
    let file = files::create_or_truncate(new)?;
    let mut packer = new_packer().map_err(files::io_error("packing", new))?;
    let mut at = 0;
    let mut write = |bytes: &[u8]| {
        files::write_at(&file, new, bytes, at).map_err(files::io_error("writing", new))?;
        at += bytes.len() as u64;
        Ok::<_, Error>(())
    };
    write(&segment::packed_header(&from.id, from.next, from.format))?;
    let mut frames = Vec::new();
    let mut first = from.next;
    loop {
        let frame = read_frame(&mut from)?;
        if let Some((sequence, payload)) = &frame {
            frames.extend(segment::encode_frame(*sequence, payload)?);
        }
        let ended = frame.is_none();
        if frames.len() >= PART_BYTES || (ended && !frames.is_empty()) {
            let payload =
                pack_part(&mut packer, &frames).map_err(files::io_error("packing", new))?;
            write(&segment::encode_part(first, &payload)?)?;
            frames.clear();
            first = from.next;
        }
        if ended {
            break;
        }
    }
    files::sync_file(&file, new)?;
    drop(file);
    verify_packed(new, from.next)?;
    Ok(at)
}

/// Reads a packed segment completely. Its content must have the checksums that it had before it was packed.
fn verify_packed(new: &Path, next: u64) -> Result<(), Error> {
    let mut segment = SegmentReader::open_new(new)?;
    while read_frame(&mut segment)?.is_some() {}
    if segment.next == next {
        return Ok(());
    }
    Err(segment.damage_error("the packed segment that was read back differs from the one written"))
}

/// Reads the next frame of a segment. Damage is an error.
fn read_frame(segment: &mut SegmentReader) -> Result<Option<(u64, Vec<u8>)>, Error> {
    match segment.read_next()? {
        Found::Frame(sequence, payload) => Ok(Some((sequence, payload))),
        Found::End => Ok(None),
        Found::Damage(what) => Err(segment.damage_error(what)),
    }
}
