//! Segments and bases: a line of JSON, which says where the object belongs, and then frames packed with zstd, or a backup
//! of the store. Both are encrypted as a whole.
use super::chain::Checksum;
use super::head::MarkedTime;
use super::secrecy::{BackupKey, DecryptionError, EncryptedWriter, HeadSecret};
use penstock_base::files::PeriodicallySynced;
use penstock_base::hex::encode_hex;
use penstock_resources::export::Doubt;
use penstock_store::{Backup, FrameReader, MAX_ZSTD_WINDOW_LOG, ReadStore};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// The frames that are packed together, in bytes: as much as in the journal.
const PACK_BYTES: usize = 256 << 10;
/// On frames, level 1 packs as well as level 3 in half the time (`store/FORMAT.md`).
const ZSTD_LEVEL: i32 = 1;
/// The maximum length of the first line, in bytes.
const MAX_LINE_BYTES: u64 = 4 << 20;
/// The maximum number of times in a segment, so that its first line stays well below its maximum length.
pub(super) const MAX_POINTS: usize = 10_000;
const VERSION: u32 = 1;
const SEGMENT_KIND: &str = "backup-segment";
const BASE_KIND: &str = "backup-base";

/// The first and the last sequence of a segment.
pub(super) type Segment = (u64, u64);

/// A time at which a frame was the newest: its sequence, the time, and why that may be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PlainPoint")]
pub(super) struct Point {
    pub(super) sequence: u64,
    #[serde(flatten)]
    pub(super) time: MarkedTime,
}

/// A time as it is read. With a flattened member, serde keeps all unknown members in memory first, a hundred times as large
/// as they are in a hostile line.
#[derive(Deserialize)]
struct PlainPoint {
    sequence: u64,
    at: String,
    clock: Option<Doubt>,
}

impl From<PlainPoint> for Point {
    fn from(PlainPoint { sequence, at, clock }: PlainPoint) -> Self {
        Self { sequence, time: MarkedTime { at, clock } }
    }
}

/// The first line of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentLine {
    penstock: String,
    version: u32,
    pub(super) gateway: String,
    pub(super) era: String,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The checksum over the frames of the era before the first.
    pub(super) before: Checksum,
    /// The checksum over those up to the last.
    pub(super) after: Checksum,
    /// In order; the last one is that of the last frame.
    pub(super) points: Vec<Point>,
}

/// The first line of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BaseLine {
    penstock: String,
    version: u32,
    pub(super) gateway: String,
    pub(super) era: String,
    /// The key of the head's HMAC, if it is not derived from the identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<HeadSecret>,
}

/// What all lines have.
#[derive(Deserialize)]
struct Preamble {
    penstock: String,
    version: u32,
}

/// A file that is ready to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FinishedFile {
    pub(super) bytes: u64,
    /// In lowercase hex.
    pub(super) sha256: String,
}

/// Why an object is not what its place says.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    /// It cannot be decrypted.
    #[error(transparent)]
    Encryption(#[from] DecryptionError),
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Io(io::Error),
    /// Its content is wrong.
    #[error("{0}")]
    Wrong(String),
}

impl From<io::Error> for ObjectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Wrong(format!("it is damaged: {error}")),
            io::ErrorKind::UnexpectedEof => Self::Wrong(format!("it ends too early: {error}")),
            _ => Self::Io(error),
        }
    }
}

/// The frames of one range, packed in memory.
pub(super) struct SegmentBuilder {
    before: Checksum,
    after: Checksum,
    first: u64,
    last: u64,
    /// Frames that are not packed yet.
    frames: Vec<u8>,
    packed: Vec<u8>,
    /// The bytes of all frames.
    raw_bytes: u64,
    packer: zstd::bulk::Compressor<'static>,
}

impl SegmentBuilder {
    /// Begins a segment after a frame, up to which `before` is the checksum.
    pub(super) fn begin(after: u64, before: Checksum) -> io::Result<Self> {
        Ok(Self {
            before,
            after: before,
            first: after + 1,
            last: after,
            frames: Vec::new(),
            packed: Vec::new(),
            raw_bytes: 0,
            packer: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
        })
    }

    /// Adds the next frame.
    pub(super) fn add_frame(&mut self, sequence: u64, frame: &[u8]) -> io::Result<()> {
        self.after.add_frame(frame);
        self.last = sequence;
        self.raw_bytes += frame.len() as u64;
        self.frames.extend_from_slice(frame);
        if self.frames.len() >= PACK_BYTES { self.pack() } else { Ok(()) }
    }

    fn pack(&mut self) -> io::Result<()> {
        if !self.frames.is_empty() {
            self.packed.extend(self.packer.compress(&self.frames)?);
            self.frames.clear();
        }
        Ok(())
    }

    pub(super) fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Writes the object into a file.
    pub(super) fn write(
        mut self,
        path: &Path,
        key: &BackupKey,
        (gateway, era): (&str, &str),
        points: Vec<Point>,
    ) -> io::Result<(SegmentLine, FinishedFile)> {
        self.pack()?;
        let line = SegmentLine {
            penstock: SEGMENT_KIND.to_owned(),
            version: VERSION,
            gateway: gateway.to_owned(),
            era: era.to_owned(),
            first: self.first,
            last: self.last,
            before: self.before,
            after: self.after,
            points,
        };
        let mut out = begin_object(path, key, &line)?;
        out.write_all(&self.packed)?;
        Ok((line, finish_object(out)?))
    }
}

/// Writes a base into a file: the state of the store after its newest commit.
pub(super) fn write_base(
    store: &ReadStore,
    path: &Path,
    key: &BackupKey,
    (gateway, era): (&str, &str),
    secret: Option<&HeadSecret>,
) -> Result<(Backup, FinishedFile), penstock_store::Error> {
    let io_error =
        |source| penstock_store::Error::Io { action: "writing", path: path.to_owned(), source };
    let line = BaseLine {
        penstock: BASE_KIND.to_owned(),
        version: VERSION,
        gateway: gateway.to_owned(),
        era: era.to_owned(),
        secret: secret.cloned(),
    };
    let mut out = begin_object(path, key, &line).map_err(io_error)?;
    let backup = store.write_durable_backup(&mut out)?;
    Ok((backup, finish_object(out).map_err(io_error)?))
}

/// Counts and hashes what is written to a file.
struct HashedFile {
    file: PeriodicallySynced,
    digest: Context,
    bytes: u64,
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn begin_object(
    path: &Path,
    key: &BackupKey,
    line: &impl Serialize,
) -> io::Result<EncryptedWriter<HashedFile>> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = PeriodicallySynced::new(crate::uploads::create_private_file(path)?);
    let mut out = key.encrypt(HashedFile { file, digest: Context::new(&SHA256), bytes: 0 })?;
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n")?;
    Ok(out)
}

fn finish_object(out: EncryptedWriter<HashedFile>) -> io::Result<FinishedFile> {
    let mut file = out.finish()?;
    file.flush()?;
    Ok(FinishedFile { bytes: file.bytes, sha256: encode_hex(file.digest.finish().as_ref()) })
}

/// An object that is being read, after its first line.
pub(super) struct OpenedObject<'a, L> {
    pub(super) line: L,
    pub(super) content: BufReader<Box<dyn Read + 'a>>,
}

/// Reads the first line of an object.
fn open_object<'a, L: for<'d> Deserialize<'d>>(
    input: impl Read + 'a,
    key: &BackupKey,
    kind: &str,
) -> Result<OpenedObject<'a, L>, ObjectError> {
    let mut content = BufReader::with_capacity(1 << 16, key.decrypt(input)?);
    let mut line = Vec::new();
    content.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    let wrong = |error: serde_json::Error| {
        ObjectError::Wrong(format!("it does not begin with a line about a {kind}: {error}"))
    };
    let preamble: Preamble = serde_json::from_slice(&line).map_err(wrong)?;
    if preamble.penstock != kind {
        return Err(ObjectError::Wrong(format!("it is a {:?} and no {kind}", preamble.penstock)));
    }
    if preamble.version > VERSION {
        let found = preamble.version;
        return Err(ObjectError::Wrong(format!(
            "it has version {found}, and this version of Penstock knows version {VERSION}"
        )));
    }
    Ok(OpenedObject { line: serde_json::from_slice(&line).map_err(wrong)?, content })
}

/// Opens a segment. Its line must agree with its place.
pub(super) fn open_segment<'a>(
    input: impl Read + 'a,
    key: &BackupKey,
    (gateway, era): (&str, &str),
    (first, last): Segment,
) -> Result<OpenedObject<'a, SegmentLine>, ObjectError> {
    let opened: OpenedObject<'a, SegmentLine> = open_object(input, key, SEGMENT_KIND)?;
    let line = &opened.line;
    check_place((&line.gateway, &line.era), (gateway, era))?;
    if (line.first, line.last) != (first, last) {
        return Err(ObjectError::Wrong(format!(
            "its line says frames {} to {}; it was moved",
            line.first, line.last
        )));
    }
    Ok(opened)
}

/// Opens a base. Its line must agree with its place.
pub(super) fn open_base<'a>(
    input: impl Read + 'a,
    key: &BackupKey,
    (gateway, era): (&str, &str),
) -> Result<OpenedObject<'a, BaseLine>, ObjectError> {
    let opened: OpenedObject<'a, BaseLine> = open_object(input, key, BASE_KIND)?;
    check_place((&opened.line.gateway, &opened.line.era), (gateway, era))?;
    Ok(opened)
}

fn check_place(found: (&str, &str), expected: (&str, &str)) -> Result<(), ObjectError> {
    if found == expected {
        return Ok(());
    }
    Err(ObjectError::Wrong(format!(
        "its line says era {} of gateway {:?}; it was copied from there",
        found.1, found.0
    )))
}

impl OpenedObject<'_, SegmentLine> {
    /// Passes each frame to `visit`, with its sequence and the checksum of the era up to it. Checks the order of the frames,
    /// their checksums, and at the end the checksum of the era.
    pub(super) fn read_frames<E: From<ObjectError>>(
        self,
        visit: &mut impl FnMut(u64, &[u8], Checksum) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = self.line;
        let mut unpacked = zstd::Decoder::with_buffer(self.content).map_err(ObjectError::from)?;
        unpacked.window_log_max(MAX_ZSTD_WINDOW_LOG).map_err(ObjectError::from)?;
        let mut frames = FrameReader::new(unpacked);
        let mut checksum = line.before;
        for expected in line.first..=line.last {
            let frame = frames.read_frame().map_err(ObjectError::from)?;
            let Some((sequence, frame)) = frame.filter(|(sequence, _)| *sequence == expected)
            else {
                let what = format!("it does not have frame {expected} at its place");
                return Err(ObjectError::Wrong(what).into());
            };
            checksum.add_frame(&frame);
            visit(sequence, &frame, checksum)?;
        }
        if frames.read_frame().map_err(ObjectError::from)?.is_some() {
            return Err(ObjectError::Wrong("it continues after its last frame".to_owned()).into());
        }
        if checksum != line.after {
            let what = "its frames do not have the checksum that its line says";
            return Err(ObjectError::Wrong(what.to_owned()).into());
        }
        Ok(())
    }
}

/// Removes a file that is not needed any more.
pub(super) fn discard_file(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "A file of the backup could not be removed.");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_comes_back_and_its_unknown_members_are_not_kept() {
        for clock in [None, Some(Doubt::Behind)] {
            let time = MarkedTime { at: "2026-01-01T00:00:00Z".to_owned(), clock };
            let point = Point { sequence: 7, time };
            let text = serde_json::to_string(&point).unwrap();
            assert_eq!(serde_json::from_str::<Point>(&text).unwrap(), point);
            // Half of a pair of code units is an error only in a text that is kept.
            let more = text.replace('{', r#"{"more":["\ud800"],"#);
            assert_eq!(serde_json::from_str::<Point>(&more).unwrap(), point);
        }
    }
}
