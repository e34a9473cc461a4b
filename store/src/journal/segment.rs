//! A segment: a header, then frames, or packs of frames. FORMAT.md draws all of it.
use super::parts;
use crate::{Corruption, Error, files, frame};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The newest format of segments known here: that of a packed one.
pub const VERSION: u32 = 2;
/// The format of a segment that holds its frames as they are, and of a base.
const PLAIN: u32 = 1;
/// The most bytes that the payload of a frame may have.
pub(crate) const LARGEST_PAYLOAD: u32 = 256 << 20;
const MAGIC: [u8; 8] = *b"PENSTOCK";
const BASE_MAGIC: [u8; 8] = *b"PENSBASE";
/// A part of a base has at most what a commit has, and what packing it may add.
pub(crate) const LARGEST_PART: u32 = LARGEST_PAYLOAD + (1 << 20);
const HEADER: usize = 40;
pub(crate) const HEADER_BYTES: u64 = HEADER as u64;
const FRAME_HEADER: usize = 16;
const FRAME_HEADER_BYTES: u64 = FRAME_HEADER as u64;
/// What a medium writes whole: pages are made of it.
const SECTOR: usize = 512;
/// How far after a damaged frame's sequence that of a frame behind it can be.
const MOST_IN_FLIGHT: u64 = 1 << 20;

/// What tells the store of a segment from any other.
pub(crate) type StoreId = [u8; 16];

/// The name of the segment whose first frame has that sequence.
pub(crate) fn name(first: u64) -> String {
    format!("{first:020}.journal")
}

/// The first sequence of a segment of that name.
pub(crate) fn first_of(path: &Path) -> Option<u64> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".journal")?;
    (stem.len() == 20).then(|| stem.parse().ok())?
}

fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
    Corruption { path: path.to_owned(), offset, what: what.into() }.into()
}

fn header(magic: [u8; 8], version: u32, id: &StoreId, first: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(&magic);
    header.extend_from_slice(&version.to_le_bytes());
    header.extend_from_slice(id);
    header.extend_from_slice(&first.to_le_bytes());
    header.extend_from_slice(&crc32c::crc32c(&header).to_le_bytes());
    header
}

/// What a base begins with. Its frames are numbered by themselves, from 1.
pub(crate) fn base_header(id: &StoreId) -> Vec<u8> {
    header(BASE_MAGIC, PLAIN, id, 1)
}

/// What a packed segment begins with.
pub(super) fn packed_header(id: &StoreId, first: u64) -> Vec<u8> {
    header(MAGIC, VERSION, id, first)
}

/// Makes a segment without frames, durably. It has its name only once its header is synced.
pub(crate) fn make(folder: &Path, id: &StoreId, first: u64) -> Result<(File, PathBuf), Error> {
    let header = header(MAGIC, PLAIN, id, first);
    let path = folder.join(name(first));
    let new = path.with_extension("new");
    let made = files::make_anew(&new).and_then(|file| {
        files::write_at(&file, &new, &header, 0).map_err(files::fault("writing", &new))?;
        files::sync(&file, &new)?;
        files::rename(&new, &path, folder)?;
        Ok(file)
    });
    if made.is_err() {
        // What is left of it would only take room; the fault that matters is the first.
        let _ = std::fs::remove_file(&new);
    }
    Ok((made?, path))
}

/// The bytes of a frame.
pub(crate) fn frame(sequence: u64, payload: &[u8]) -> Result<Vec<u8>, Error> {
    frame_within(LARGEST_PAYLOAD, sequence, payload)
}

/// The bytes of a frame of a base.
pub(crate) fn part(number: u64, payload: &[u8]) -> Result<Vec<u8>, Error> {
    frame_within(LARGEST_PART, number, payload)
}

fn frame_within(limit: u32, sequence: u64, payload: &[u8]) -> Result<Vec<u8>, Error> {
    let too_large = || Error::TooLarge { bytes: payload.len() as u64, limit: u64::from(limit) };
    let length = u32::try_from(payload.len()).map_err(|_| too_large())?;
    if length > limit {
        return Err(too_large());
    }
    let (length, sequence) = (length.to_le_bytes(), sequence.to_le_bytes());
    let mut bytes = Vec::with_capacity(FRAME_HEADER + payload.len());
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&checksum(&length, &sequence, payload).to_le_bytes());
    bytes.extend_from_slice(&sequence);
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

fn checksum(length: &[u8], sequence: &[u8], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(length), sequence), payload)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// A segment read from its start.
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) id: StoreId,
    reader: BufReader<File>,
    /// Where the next frame begins.
    pub(crate) offset: u64,
    length: u64,
    /// The sequence that the next frame must have.
    pub(crate) next: u64,
    /// The most bytes that a payload may have.
    largest: u32,
    /// The pack that is being read; nothing when the frames stand in the file as they are.
    pack: Option<Pack>,
}

/// Frames that were packed together.
#[derive(Default)]
struct Pack {
    /// Where it stands in the file.
    offset: u64,
    frames: Vec<u8>,
    /// How many of the bytes were read.
    read: usize,
}

/// What stands where a frame is expected.
pub(crate) enum Found {
    /// The frame of the sequence that was expected.
    Frame(u64, Vec<u8>),
    /// The end of the file.
    End,
    /// No frame, and why.
    Damage(String),
}

impl Segment {
    /// Opens a segment and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let segment = Self::open_new(path)?;
        if Some(segment.next) == first_of(path) {
            return Ok(segment);
        }
        Err(corrupt(path, 28, "the first sequence is not the one of the file's name"))
    }

    /// Opens a segment that does not have its name yet.
    pub(super) fn open_new(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(files::fault("opening", path))?;
        Self::of(file, path, MAGIC, LARGEST_PAYLOAD)
    }

    /// Whether its frames are packed: such a segment is full, and nothing is appended to it.
    pub(super) fn is_packed(&self) -> bool {
        self.pack.is_some()
    }

    /// Reads the header of a base.
    pub(crate) fn of_base(file: &File, path: &Path) -> Result<Self, Error> {
        let file = file.try_clone().map_err(files::fault("reading", path))?;
        let base = Self::of(file, path, BASE_MAGIC, LARGEST_PART)?;
        if base.next == 1 { Ok(base) } else { Err(corrupt(path, 28, "a base begins with part 1")) }
    }

    fn of(mut file: File, path: &Path, magic: [u8; 8], largest: u32) -> Result<Self, Error> {
        file.rewind().map_err(files::fault("reading", path))?;
        let length = file.metadata().map_err(files::fault("reading", path))?.len();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut header = [0; HEADER];
        if length < HEADER_BYTES {
            return Err(corrupt(path, length, "the header of the file ends too early"));
        }
        reader.read_exact(&mut header).map_err(files::fault("reading", path))?;
        let damaged = |offset, what: &str| corrupt(path, offset, what);
        if !header.starts_with(&magic) {
            let magic = String::from_utf8_lossy(&magic);
            return Err(damaged(0, &format!("the file does not begin with {magic}")));
        }
        let version = number(&header, 8).map(u32::from_le_bytes).unwrap_or_default();
        let known = if magic == MAGIC { VERSION } else { PLAIN };
        if version > known {
            return Err(Error::NewerFormat { path: path.to_owned(), found: version, known });
        }
        let (covered, sum) = header.split_at(HEADER - 4);
        if number(sum, 0).map(u32::from_le_bytes) != Some(crc32c::crc32c(covered)) {
            return Err(damaged(0, "the header does not have its checksum"));
        }
        let id = number(&header, 12).unwrap_or_default();
        let first = number(&header, 28).map(u64::from_le_bytes).unwrap_or_default();
        let path = path.to_owned();
        let pack = (version > PLAIN).then(Pack::default);
        let largest = if pack.is_some() { LARGEST_PART } else { largest };
        Ok(Self { path, id, reader, offset: HEADER_BYTES, length, next: first, largest, pack })
    }

    /// The next frame.
    pub(crate) fn read(&mut self) -> Result<Found, Error> {
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

    /// The next frame of a packed segment.
    fn read_packed(&mut self, pack: &mut Pack) -> Result<Found, Error> {
        while pack.read == pack.frames.len() {
            let offset = self.offset;
            match self.read_frame()? {
                Found::Frame(_, payload) => match parts::unpack(&payload, None) {
                    Ok(frames) => *pack = Pack { offset, frames, read: 0 },
                    Err(what) => return Err(corrupt(&self.path, offset, what)),
                },
                other => return Ok(other),
            }
        }
        let sequence = number(&pack.frames, pack.read + 8).map(u64::from_le_bytes);
        let payload = frame_at(&pack.frames, pack.read).filter(|_| sequence == Some(self.next));
        let Some(payload) = payload.map(<[u8]>::to_vec) else {
            let what = format!("the pack does not have frame {} where it should", self.next);
            return Err(corrupt(&self.path, pack.offset, what));
        };
        pack.read += FRAME_HEADER + payload.len();
        Ok(Found::Frame(self.next, payload))
    }

    /// The frame, or the pack, at the place in the file.
    fn read_frame(&mut self) -> Result<Found, Error> {
        let left = self.length - self.offset;
        if left == 0 {
            return Ok(Found::End);
        }
        if left < FRAME_HEADER_BYTES {
            return Ok(Found::Damage("the header of a frame ends too early".into()));
        }
        let mut header = [0; FRAME_HEADER];
        self.reader.read_exact(&mut header).map_err(files::fault("reading", &self.path))?;
        let length = number(&header, 0).map(u32::from_le_bytes).unwrap_or_default();
        let sum = number(&header, 4).map(u32::from_le_bytes).unwrap_or_default();
        let sequence = number(&header, 8).map(u64::from_le_bytes).unwrap_or_default();
        if length > self.largest || u64::from(length) > left - FRAME_HEADER_BYTES {
            return Ok(Found::Damage(format!(
                "a frame of {length} bytes does not fit into the {} that are left",
                left - FRAME_HEADER_BYTES
            )));
        }
        let mut payload = vec![0; length as usize];
        self.reader.read_exact(&mut payload).map_err(files::fault("reading", &self.path))?;
        if checksum(&length.to_le_bytes(), &sequence.to_le_bytes(), &payload) != sum {
            return Ok(Found::Damage(format!("frame {} does not have its checksum", self.next)));
        }
        if sequence != self.next {
            return Err(corrupt(
                &self.path,
                self.offset,
                format!("frame {sequence} stands where {} is expected", self.next),
            ));
        }
        self.offset += FRAME_HEADER_BYTES + u64::from(length);
        Ok(Found::Frame(sequence, payload))
    }

    /// Makes an [`Error::Corrupt`] of what is at the place of the next frame.
    pub(crate) fn damage(&self, what: impl Into<String>) -> Error {
        corrupt(&self.path, self.offset, what)
    }

    /// Whether what is at the place of the next frame is more than a crash leaves of a write: a frame
    /// behind it says that the damaged one had been synced, or none of its bytes is missing. A crash
    /// leaves whole pages of a write out, in any order, and what is left out reads as zeros.
    pub(crate) fn is_damaged(&self) -> Result<bool, Error> {
        let fault = || files::fault("reading", &self.path);
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left];
        self.reader.get_ref().read_exact_at(&mut bytes, self.offset).map_err(fault())?;
        let mut found = false;
        for at in 1..left.saturating_sub(FRAME_HEADER) {
            let Some(sequence) = number(&bytes, at + 8).map(u64::from_le_bytes) else { break };
            if sequence <= self.next || sequence - self.next > MOST_IN_FLIGHT {
                continue;
            }
            if let Some(payload) = frame_at(&bytes, at)
                && let Some(unsynced) = frame::unsynced(payload)
            {
                let is_first = !std::mem::replace(&mut found, true);
                let before = bytes.get(..at).unwrap_or_default();
                if sequence.saturating_sub(unsynced) > self.next
                    || (is_first && is_all_there(before, self.offset))
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Whether no sector of a file has only zeros among these bytes, which stand at that place.
fn is_all_there(bytes: &[u8], offset: u64) -> bool {
    let rest_of_sector = SECTOR - usize::try_from(offset % SECTOR as u64).unwrap_or_default();
    let (first, others) = bytes.split_at(rest_of_sector.min(bytes.len()));
    std::iter::once(first)
        .chain(others.chunks(SECTOR))
        .all(|part| part.iter().any(|byte| *byte != 0))
}

/// The payload of the frame at a place, if there is a whole one.
pub(crate) fn frame_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let length: [u8; 4] = number(bytes, at)?;
    let sum = number(bytes, at + 4).map(u32::from_le_bytes)?;
    let sequence: [u8; 8] = number(bytes, at + 8)?;
    let start = at + FRAME_HEADER;
    let payload = bytes.get(start..start.checked_add(u32::from_le_bytes(length) as usize)?)?;
    (checksum(&length, &sequence, payload) == sum).then_some(payload)
}
