//! A segment: a header, followed by frames or by packs of frames. FORMAT.md describes the bytes.
use super::folder::{parse_segment_name, segment_name};
use super::packing::{MAX_PART_BYTES, unpack_part};
use crate::frame::{self, MAX_PAYLOAD_BYTES};
use crate::{Corruption, Error, Format, files};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"PENSTOCK";
const BASE_MAGIC: [u8; 8] = *b"PENSBASE";
const HEADER_LEN: usize = 40;
pub(crate) const HEADER_BYTES: u64 = HEADER_LEN as u64;
pub(crate) const FRAME_HEADER_LEN: usize = 16;
const SHORT_HEADER: &str = "the header of the file ends too early";
const FRAME_HEADER_BYTES: u64 = FRAME_HEADER_LEN as u64;
/// The size of a sector in bytes. The medium writes sectors atomically; pages consist of them.
const SECTOR_BYTES: usize = 512;
/// The maximum difference between the sequences of a damaged frame and of a frame that is found after it.
const MAX_FRAMES_IN_FLIGHT: u64 = 1 << 20;

/// Distinguishes the store of a segment from others.
pub(crate) type StoreId = [u8; 16];

/// How a file stores its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
enum Layout {
    /// One after the other.
    Frames = 0,
    /// In packs: a packed segment.
    Packs = 1,
}

/// Returns the version in the header of a file: the format in its lower half, the layout in its upper half.
/// The versions of the oldest format are older than this rule.
const fn encode_version(format: Format, layout: Layout) -> u32 {
    match (format, layout) {
        (Format::V2, Layout::Frames) => 1,
        (Format::V2, Layout::Packs) => 2,
        (format, layout) => format.number() | (layout as u32) << 16,
    }
}

/// Returns the format and the layout that a version tells, if this program knows them.
fn decode_version(version: u32) -> Option<(Format, Layout)> {
    Format::ALL
        .into_iter()
        .flat_map(|format| [(format, Layout::Frames), (format, Layout::Packs)])
        .find(|(format, layout)| encode_version(*format, *layout) == version)
}

/// Returns the number of the format that a version tells, if it is newer than this program.
fn newer_format(version: u32) -> Option<u32> {
    let number = version & u32::from(u16::MAX);
    (number > Format::NEWEST.number()).then_some(number)
}

fn corruption_error(path: &Path, offset: u64, what: impl Into<String>) -> Error {
    Corruption { path: path.to_owned(), offset, what: what.into() }.into()
}

fn encode_header(magic: [u8; 8], version: u32, id: &StoreId, first: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_LEN);
    header.extend_from_slice(&magic);
    header.extend_from_slice(&version.to_le_bytes());
    header.extend_from_slice(id);
    header.extend_from_slice(&first.to_le_bytes());
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    header
}

/// A decoded header.
struct Header {
    id: StoreId,
    format: Format,
    layout: Layout,
    first: u64,
}

impl Header {
    fn decode(header: &[u8; HEADER_LEN], path: &Path, magic: [u8; 8]) -> Result<Self, Error> {
        let damaged = |offset, what: &str| corruption_error(path, offset, what);
        if !header.starts_with(&magic) {
            let magic = String::from_utf8_lossy(&magic);
            return Err(damaged(0, &format!("the file does not begin with {magic}")));
        }
        let version = bytes_at(header, 8).map(u32::from_le_bytes).unwrap_or_default();
        if let Some(found) = newer_format(version) {
            let known = Format::NEWEST.number();
            return Err(Error::NewerFormat { path: path.to_owned(), found, known });
        }
        let (covered, sum) = header.split_at(HEADER_LEN - 4);
        if bytes_at(sum, 0).map(u32::from_le_bytes) != Some(crc32c::crc32c(covered)) {
            return Err(damaged(0, "the checksum of the header is wrong"));
        }
        let id = bytes_at(header, 12).unwrap_or_default();
        let first = bytes_at(header, 28).map(u64::from_le_bytes).unwrap_or_default();
        let Some((format, layout)) = decode_version(version) else {
            return Err(damaged(8, &format!("the version {version} does not exist")));
        };
        if layout == Layout::Packs && magic == BASE_MAGIC {
            return Err(damaged(8, "the header of a base has the version of a packed segment"));
        }
        Ok(Self { id, format, layout, first })
    }
}

/// Reads the header of a base from a stream. Returns the format of its store.
pub(super) fn read_base_header(input: &mut dyn Read, path: &Path) -> Result<Format, Error> {
    let mut header = [0; HEADER_LEN];
    input.read_exact(&mut header).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => corruption_error(path, 0, SHORT_HEADER),
        _ => files::io_error("reading", path)(error),
    })?;
    let header = Header::decode(&header, path, BASE_MAGIC)?;
    if header.first == 1 { Ok(header.format) } else { Err(wrong_first_part(path)) }
}

fn wrong_first_part(path: &Path) -> Error {
    corruption_error(path, 28, "the first part of the base is not number 1")
}

/// Returns the header of a base. The parts of a base have their own numbers, from 1.
pub(crate) fn base_header(id: &StoreId, format: Format) -> Vec<u8> {
    encode_header(BASE_MAGIC, encode_version(format, Layout::Frames), id, 1)
}

/// Returns the header of a packed segment.
pub(super) fn packed_header(id: &StoreId, first: u64, format: Format) -> Vec<u8> {
    encode_header(MAGIC, encode_version(format, Layout::Packs), id, first)
}

/// Creates a segment without frames, durably. It is renamed to its name only after its header is synced.
pub(crate) fn create_segment(
    folder: &Path,
    id: &StoreId,
    first: u64,
    format: Format,
) -> Result<(File, PathBuf), Error> {
    let header = encode_header(MAGIC, encode_version(format, Layout::Frames), id, first);
    let path = folder.join(segment_name(first));
    let new = path.with_extension("new");
    let made = files::create_or_truncate(&new).and_then(|file| {
        files::write_at(&file, &new, &header, 0).map_err(files::io_error("writing", &new))?;
        files::sync_file(&file, &new)?;
        files::rename_durably(&new, &path, folder)?;
        Ok(file)
    });
    if made.is_err() {
        // Best effort: leftovers only take disk space, and the first error is the one to report.
        let _ = std::fs::remove_file(&new);
    }
    Ok((made?, path))
}

/// Encodes a frame.
pub(crate) fn encode_frame(sequence: u64, payload: &[u8]) -> Result<Vec<u8>, Error> {
    encode_frame_within(MAX_PAYLOAD_BYTES, sequence, payload)
}

/// Encodes a frame of a base.
pub(crate) fn encode_part(number: u64, payload: &[u8]) -> Result<Vec<u8>, Error> {
    encode_frame_within(MAX_PART_BYTES, number, payload)
}

fn encode_frame_within(limit: u32, sequence: u64, payload: &[u8]) -> Result<Vec<u8>, Error> {
    let too_large = || Error::TooLarge { bytes: payload.len() as u64, limit: u64::from(limit) };
    let length = u32::try_from(payload.len()).map_err(|_| too_large())?;
    if length > limit {
        return Err(too_large());
    }
    let (length, sequence) = (length.to_le_bytes(), sequence.to_le_bytes());
    let mut bytes = Vec::with_capacity(FRAME_HEADER_LEN + payload.len());
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&frame_checksum(&length, &sequence, payload).to_le_bytes());
    bytes.extend_from_slice(&sequence);
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

fn frame_checksum(length: &[u8], sequence: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(length), sequence), payload)
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Reads a segment from its start.
pub(crate) struct SegmentReader {
    pub(crate) path: PathBuf,
    pub(crate) id: StoreId,
    pub(crate) format: Format,
    reader: BufReader<File>,
    /// The offset of the next frame, in bytes.
    pub(crate) offset: u64,
    length: u64,
    /// The sequence that the next frame must have.
    pub(crate) next: u64,
    /// The maximum length of a payload, in bytes.
    max_payload_bytes: u32,
    /// The pack that is being read; `None` if the file has unpacked frames.
    pack: Option<Pack>,
}

/// Frames that were packed together.
#[derive(Default)]
struct Pack {
    /// Its offset in the file.
    offset: u64,
    frames: Vec<u8>,
    /// The number of bytes that were read.
    read: usize,
}

/// What was found in place of the next frame.
pub(crate) enum Found {
    /// The frame with the expected sequence, and its payload.
    Frame(u64, Vec<u8>),
    /// The end of the file.
    End,
    /// No valid frame; the text says why.
    Damage(String),
}

/// The callback of a replay. It gets each frame's sequence and payload. The inner result says what is wrong
/// with the payload.
pub(crate) type ApplyFrame<'a> =
    dyn FnMut(u64, &[u8]) -> Result<Result<(), &'static str>, Error> + 'a;

impl SegmentReader {
    /// Opens a segment and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let segment = Self::open_new(path)?;
        if Some(segment.next) == parse_segment_name(path) {
            return Ok(segment);
        }
        Err(corruption_error(path, 28, "the first sequence does not match the file name"))
    }

    /// Opens a segment that does not have its final name yet.
    pub(super) fn open_new(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(files::io_error("opening", path))?;
        Self::read_header(file, path, MAGIC, MAX_PAYLOAD_BYTES)
    }

    /// Returns whether its frames are packed. A packed segment is full, and never appended to.
    pub(super) fn is_packed(&self) -> bool {
        self.pack.is_some()
    }

    /// Reads the header of a base.
    pub(crate) fn open_base(file: &File, path: &Path) -> Result<Self, Error> {
        let file = file.try_clone().map_err(files::io_error("reading", path))?;
        let base = Self::read_header(file, path, BASE_MAGIC, MAX_PART_BYTES)?;
        if base.next == 1 { Ok(base) } else { Err(wrong_first_part(path)) }
    }

    fn read_header(
        mut file: File,
        path: &Path,
        magic: [u8; 8],
        largest: u32,
    ) -> Result<Self, Error> {
        file.rewind().map_err(files::io_error("reading", path))?;
        let length = file.metadata().map_err(files::io_error("reading", path))?.len();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut header = [0; HEADER_LEN];
        if length < HEADER_BYTES {
            return Err(corruption_error(path, length, SHORT_HEADER));
        }
        reader.read_exact(&mut header).map_err(files::io_error("reading", path))?;
        let Header { id, format, layout, first } = Header::decode(&header, path, magic)?;
        let path = path.to_owned();
        let pack = (layout == Layout::Packs).then(Pack::default);
        let largest = if pack.is_some() { MAX_PART_BYTES } else { largest };
        Ok(Self {
            path,
            id,
            format,
            reader,
            offset: HEADER_BYTES,
            length,
            next: first,
            max_payload_bytes: largest,
            pack,
        })
    }

    /// Reads the next frame.
    pub(crate) fn read_next(&mut self) -> Result<Found, Error> {
        let found = match self.pack.take() {
            None => self.read_frame()?,
            Some(mut pack) => {
                let found = self.read_packed(&mut pack);
                self.pack = Some(pack);
                found?
            }
        };
        if let Found::Frame(..) = found {
            self.next += 1;
        }
        Ok(found)
    }

    /// Reads the next frame of a packed segment.
    fn read_packed(&mut self, pack: &mut Pack) -> Result<Found, Error> {
        while pack.read == pack.frames.len() {
            let offset = self.offset;
            match self.read_frame()? {
                Found::Frame(_, payload) => match unpack_part(&payload, None) {
                    Ok(frames) => *pack = Pack { offset, frames, read: 0 },
                    Err(what) => return Err(corruption_error(&self.path, offset, what)),
                },
                other => return Ok(other),
            }
        }
        let sequence = bytes_at(&pack.frames, pack.read + 8).map(u64::from_le_bytes);
        let payload = frame_at(&pack.frames, pack.read).filter(|_| sequence == Some(self.next));
        let Some(payload) = payload.map(<[u8]>::to_vec) else {
            let what = format!("the pack does not contain frame {} at its position", self.next);
            return Err(corruption_error(&self.path, pack.offset, what));
        };
        pack.read += FRAME_HEADER_LEN + payload.len();
        Ok(Found::Frame(self.next, payload))
    }

    /// Reads the frame or pack at the current offset of the file.
    fn read_frame(&mut self) -> Result<Found, Error> {
        let left = self.length - self.offset;
        if left == 0 {
            return Ok(Found::End);
        }
        if left < FRAME_HEADER_BYTES {
            return Ok(Found::Damage("the header of a frame ends too early".into()));
        }
        let mut header = [0; FRAME_HEADER_LEN];
        self.reader.read_exact(&mut header).map_err(files::io_error("reading", &self.path))?;
        let length = bytes_at(&header, 0).map(u32::from_le_bytes).unwrap_or_default();
        let sum = bytes_at(&header, 4).map(u32::from_le_bytes).unwrap_or_default();
        let sequence = bytes_at(&header, 8).map(u64::from_le_bytes).unwrap_or_default();
        if length > self.max_payload_bytes || u64::from(length) > left - FRAME_HEADER_BYTES {
            return Ok(Found::Damage(format!(
                "a frame of {length} bytes does not fit into the remaining {} bytes",
                left - FRAME_HEADER_BYTES
            )));
        }
        let mut payload = vec![0; length as usize];
        self.reader.read_exact(&mut payload).map_err(files::io_error("reading", &self.path))?;
        if frame_checksum(&length.to_le_bytes(), &sequence.to_le_bytes(), &payload) != sum {
            return Ok(Found::Damage(format!("the checksum of frame {} is wrong", self.next)));
        }
        if sequence != self.next {
            return Err(corruption_error(
                &self.path,
                self.offset,
                format!("found frame {sequence} instead of frame {}", self.next),
            ));
        }
        self.offset += FRAME_HEADER_BYTES + u64::from(length);
        Ok(Found::Frame(sequence, payload))
    }

    /// Returns an [`Error::Corrupt`] for the position of the next frame.
    pub(crate) fn damage_error(&self, what: impl Into<String>) -> Error {
        corruption_error(&self.path, self.offset, what)
    }

    /// Returns whether the bytes at the next frame's position are damaged, and not left by an interrupted
    /// write. They are damaged if a later frame says that this one had been synced, or if a later frame
    /// exists and no sector before it is missing. A crash leaves out whole pages of a write, in any order,
    /// and left-out pages read as zeros.
    pub(crate) fn is_damaged(&self) -> Result<bool, Error> {
        let read_error = || files::io_error("reading", &self.path);
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left];
        self.reader.get_ref().read_exact_at(&mut bytes, self.offset).map_err(read_error())?;
        let mut found = false;
        for at in 1..left.saturating_sub(FRAME_HEADER_LEN) {
            let Some(sequence) = bytes_at(&bytes, at + 8).map(u64::from_le_bytes) else { break };
            if sequence <= self.next || sequence - self.next > MAX_FRAMES_IN_FLIGHT {
                continue;
            }
            if let Some(payload) = frame_at(&bytes, at)
                && let Some(unsynced) = frame::read_unsynced_frames(payload)
            {
                let is_first = !std::mem::replace(&mut found, true);
                let before = bytes.get(..at).unwrap_or_default();
                if sequence.saturating_sub(unsynced) > self.next
                    || (is_first && has_all_sectors(before, self.offset))
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Returns whether every sector of the file among these bytes has a byte other than zero. `offset` is their
/// position in the file.
fn has_all_sectors(bytes: &[u8], offset: u64) -> bool {
    let rest_of_sector =
        SECTOR_BYTES - usize::try_from(offset % SECTOR_BYTES as u64).unwrap_or_default();
    let (first, others) = bytes.split_at(rest_of_sector.min(bytes.len()));
    std::iter::once(first)
        .chain(others.chunks(SECTOR_BYTES))
        .all(|part| part.iter().any(|byte| *byte != 0))
}

/// Returns the payload of the frame at an offset, if it is complete.
pub(crate) fn frame_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length: [u8; 4] = bytes_at(bytes, at)?;
    let sum = bytes_at(bytes, at + 4).map(u32::from_le_bytes)?;
    let sequence: [u8; 8] = bytes_at(bytes, at + 8)?;
    let start = at + FRAME_HEADER_LEN;
    let payload = bytes.get(start..start.checked_add(u32::from_le_bytes(length) as usize)?)?;
    (frame_checksum(&length, &sequence, payload) == sum).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_tells_one_format_and_one_layout() {
        let mut versions = Vec::new();
        for format in Format::ALL {
            for layout in [Layout::Frames, Layout::Packs] {
                let version = encode_version(format, layout);
                assert_eq!(decode_version(version), Some((format, layout)));
                assert_eq!(newer_format(version), None);
                assert!(!versions.contains(&version));
                versions.push(version);
                // A program that knows only the formats before this one refuses it, whatever the layout.
                assert!(format == Format::V2 || version > 2);
            }
        }
        for unknown in [0, 1 | 1 << 16, 2 | 1 << 16, 3 | 2 << 16] {
            assert_eq!((decode_version(unknown), newer_format(unknown)), (None, None));
        }
        for layout in 0..3 {
            let next = Format::NEWEST.number() + 1;
            assert_eq!(newer_format(next | layout << 16), Some(next));
        }
    }
}
