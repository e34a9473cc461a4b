//! Packing: replaces a full segment by one with the same frames in a quarter of the disk space.
//!
//! The packed segment is renamed to the old one's name, so one of them always exists. A reader that has the
//! old one open can read it to its end.
use super::parts::{self, PART_BYTES};
use super::recovery::{self, Names};
use super::segment::{self, Found, Segment};
use crate::{Error, files};
use std::path::{Path, PathBuf};

/// Returns the total size of the packed segments, in bytes. They are the oldest.
pub(super) fn packed_bytes(segments: &[(u64, PathBuf)]) -> Result<u64, Error> {
    let mut bytes = 0;
    for (_, path) in segments.get(..first_plain(segments)?).unwrap_or_default() {
        bytes += size(path)?;
    }
    Ok(bytes)
}

/// Packs the full segments, the oldest first. Calls `told` for each with its size before and after, in bytes.
/// An error of `check` ends it. Segments that a base replaces but that could not be removed are skipped.
pub(crate) fn pack(
    folder: &Path,
    check: &dyn Fn() -> Result<(), Error>,
    told: &mut dyn FnMut(u64, u64),
) -> Result<(), Error> {
    let names = Names::of(folder, false)?;
    let from = names.bases.last().map_or(0, |(from, _)| *from);
    let (_, mut segments) = recovery::up_to(names.segments, from);
    // Frames are appended to the newest segment. Those before it are synced.
    segments.pop();
    let plain = first_plain(&segments)?;
    for (_, path) in segments.iter().skip(plain) {
        check()?;
        let before = size(path)?;
        let new = path.with_extension("packed.new");
        let packed = pack_one(path, &new).and_then(|bytes| {
            files::rename(&new, path, folder)?;
            Ok(bytes)
        });
        let after = packed.inspect_err(|_| {
            if let Err(cause) = files::remove(&new, folder) {
                tracing::warn!(%cause, "An unfinished packed segment could not be removed; the next open removes it.");
            }
        })?;
        told(before, after);
    }
    Ok(())
}

/// Returns the number of segments before the first that is not packed.
fn first_plain(segments: &[(u64, PathBuf)]) -> Result<usize, Error> {
    let mut first = segments.len();
    for (at, (_, path)) in segments.iter().enumerate().rev() {
        match Segment::open(path) {
            Ok(segment) if segment.is_packed() => break,
            // A read of a damaged segment reports the position. An open that does not need it continues.
            Ok(_) | Err(Error::Corrupt(_)) => first = at,
            Err(error) => return Err(error),
        }
    }
    Ok(first)
}

fn size(path: &Path) -> Result<u64, Error> {
    Ok(std::fs::metadata(path).map_err(files::fault("reading", path))?.len())
}

/// Writes the frames of a segment, packed, into `new`, syncs it and reads it back. Returns its size in bytes.
fn pack_one(path: &Path, new: &Path) -> Result<u64, Error> {
    let mut from = Segment::open(path)?;
    let file = files::make_anew(new)?;
    let mut packer = parts::packer().map_err(files::fault("packing", new))?;
    let mut at = 0;
    let mut write = |bytes: &[u8]| {
        files::write_at(&file, new, bytes, at).map_err(files::fault("writing", new))?;
        at += bytes.len() as u64;
        Ok::<_, Error>(())
    };
    write(&segment::packed_header(&from.id, from.next))?;
    let mut frames = Vec::new();
    let mut first = from.next;
    loop {
        let frame = read(&mut from)?;
        if let Some((sequence, payload)) = &frame {
            frames.extend(segment::frame(*sequence, payload)?);
        }
        let ended = frame.is_none();
        if frames.len() >= PART_BYTES || (ended && !frames.is_empty()) {
            let payload =
                parts::pack(&mut packer, &frames).map_err(files::fault("packing", new))?;
            write(&segment::part(first, &payload)?)?;
            frames.clear();
            first = from.next;
        }
        if ended {
            break;
        }
    }
    files::sync(&file, new)?;
    drop(file);
    read_back(new, from.next)?;
    Ok(at)
}

/// Reads a packed segment completely. Its content must have the checksums that it had before it was packed.
fn read_back(new: &Path, next: u64) -> Result<(), Error> {
    let mut segment = Segment::open_new(new)?;
    while read(&mut segment)?.is_some() {}
    if segment.next == next {
        return Ok(());
    }
    Err(segment.damage("the packed segment that was read back differs from the one written"))
}

/// Reads the next frame of a segment. Damage is an error.
fn read(segment: &mut Segment) -> Result<Option<(u64, Vec<u8>)>, Error> {
    match segment.read()? {
        Found::Frame(sequence, payload) => Ok(Some((sequence, payload))),
        Found::End => Ok(None),
        Found::Damage(what) => Err(segment.damage(what)),
    }
}
