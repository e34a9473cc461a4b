//! A base: the whole state in packed parts, in a file of its own. FORMAT.md describes the bytes.
use super::folder::{base_name, parse_base_name};
use super::frame_reader::FrameReader;
use super::packing::{MAX_PART_BYTES, unpack_part};
use super::parts::{BaseEnd, END_BYTES, PartWriter};
use super::segment::{self, ApplyFrame, Found, SegmentReader, StoreId};
use crate::frame::{self, CommitCounts};
use crate::{Corruption, Error, Format, files};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Bytes after which a base is synced while it is written, so that no commit's sync waits for all of it.
const SYNC_INTERVAL_BYTES: usize = 4 << 20;

/// A complete base.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) path: PathBuf,
    pub(crate) end: BaseEnd,
    pub(crate) bytes: u64,
    pub(crate) format: Format,
    pub(super) id: StoreId,
}

impl Base {
    /// Reads the header and the end of a base.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Self::open_file(&File::open(path).map_err(files::io_error("opening", path))?, path)
    }

    /// Reads the header and the end of a base from an open file.
    pub(crate) fn open_file(file: &File, path: &Path) -> Result<Self, Error> {
        let header = SegmentReader::open_base(file, path)?;
        let bytes = file.metadata().map_err(files::io_error("reading", path))?.len();
        let end = read_end(file, path, bytes)?;
        if parse_base_name(path).is_some_and(|from| from != end.from) {
            return Err(base_damage(
                path,
                bytes,
                "the content of the base does not match its file name",
            ));
        }
        Ok(Self { path: path.to_owned(), end, bytes, format: header.format, id: header.id })
    }

    /// Passes the commits of the parts to `apply`, in order. The inner result says what is wrong with a
    /// commit.
    pub(crate) fn replay_parts(&self, apply: &mut ApplyFrame<'_>) -> Result<(), Error> {
        read_base_file(&self.path, apply).map(drop)
    }
}

fn base_damage(path: &Path, offset: u64, what: &str) -> Error {
    Corruption { path: path.to_owned(), offset, what: what.to_owned() }.into()
}

/// Reads the end of a base, from the end of its file.
fn read_end(file: &File, path: &Path, bytes: u64) -> Result<BaseEnd, Error> {
    const TAIL: usize = 16 + END_BYTES;
    let what = "the base does not end correctly; it was cut or is damaged";
    let at = bytes.checked_sub(TAIL as u64).ok_or_else(|| base_damage(path, bytes, what))?;
    let mut tail = [0; TAIL];
    file.read_exact_at(&mut tail, at).map_err(files::io_error("reading", path))?;
    let end = segment::frame_at(&tail, 0).and_then(BaseEnd::decode);
    end.ok_or_else(|| base_damage(path, at, what))
}

/// Reads a whole base and passes its commits to `apply`. Checks every checksum, commit and count.
pub(crate) fn read_base(
    file: &File,
    path: &Path,
    apply: &mut ApplyFrame<'_>,
) -> Result<(StoreId, BaseEnd), Error> {
    let mut segment = SegmentReader::open_base(file, path)?;
    let mut checked = CheckedPayloads::default();
    loop {
        let offset = segment.offset;
        let (number, payload) = match segment.read_next()? {
            Found::Frame(number, payload) => (number, payload),
            Found::End => return Err(segment.damage_error("the base has no end frame")),
            Found::Damage(what) => return Err(segment.damage_error(what)),
        };
        let end = checked.pass(number, &payload, apply)?;
        if let Some(end) = end.map_err(|what| base_damage(path, offset, what))? {
            return match segment.read_next()? {
                Found::End => Ok((segment.id, end)),
                _ => Err(segment.damage_error(MORE_AFTER_END)),
            };
        }
    }
}

const MORE_AFTER_END: &str = "the base continues after its end frame";

/// Checks the payloads of a base, one after the other.
#[derive(Default)]
struct CheckedPayloads(BaseEnd);

impl CheckedPayloads {
    /// Passes the commit of a part to `apply`. Returns the end instead, if this is it. The inner error says what is wrong
    /// with the payload.
    fn pass(
        &mut self,
        number: u64,
        payload: &[u8],
        apply: &mut ApplyFrame<'_>,
    ) -> Result<Result<Option<BaseEnd>, &'static str>, Error> {
        if let Some(end) = BaseEnd::decode(payload) {
            let agreed = BaseEnd { from: end.from, exact: end.exact, ..self.0 };
            let is_right = end == agreed && end.exact >= end.from;
            let wrong = "the counts in the end frame differ from the content of the base";
            return Ok(is_right.then_some(Some(end)).ok_or(wrong));
        }
        let commit = match unpack_part(payload, Some(frame::COMMIT_KIND)) {
            Ok(commit) => commit,
            Err(what) => return Ok(Err(what)),
        };
        match CommitCounts::read(&commit, &mut |_| {}) {
            Ok(counts) => self.0.add_counts(counts),
            Err(what) => return Ok(Err(what)),
        }
        Ok(apply(number, &commit)?.map(|()| None))
    }
}

/// Works as [`read_base`], on a stream. Errors name it `path`. Returns the format of the store.
pub(crate) fn read_base_stream(
    input: &mut dyn Read,
    path: &Path,
    apply: &mut ApplyFrame<'_>,
) -> Result<(Format, BaseEnd), Error> {
    let format = segment::read_base_header(input, path)?;
    let mut frames = FrameReader::with_limit(input, MAX_PART_BYTES, segment::HEADER_BYTES);
    let mut checked = CheckedPayloads::default();
    let mut number = 0;
    loop {
        number += 1;
        let offset = frames.offset();
        let damaged = |what: &str| base_damage(path, offset, what);
        let frame = frames.read_frame().map_err(|error| unread_frame(error, path, offset))?;
        let (found, frame) = frame.ok_or_else(|| damaged("the base has no end frame"))?;
        if found != number {
            return Err(damaged("the parts of the base are not in order"));
        }
        let payload = frame.get(segment::FRAME_HEADER_LEN..).unwrap_or_default();
        if let Some(end) = checked.pass(number, payload, apply)?.map_err(damaged)? {
            let offset = frames.offset();
            return match frames.read_frame() {
                Ok(None) => Ok((format, end)),
                Err(error) if error.kind() != io::ErrorKind::InvalidData => {
                    Err(unread_frame(error, path, offset))
                }
                _ => Err(base_damage(path, offset, MORE_AFTER_END)),
            };
        }
    }
}

/// Converts the error of a stream. One that breaks off is not damaged.
fn unread_frame(error: io::Error, path: &Path, offset: u64) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData => base_damage(path, offset, &error.to_string()),
        _ => files::io_error("reading", path)(error),
    }
}

/// Works as [`read_base`], on the file at `path`.
pub(super) fn read_base_file(
    path: &Path,
    apply: &mut ApplyFrame<'_>,
) -> Result<(StoreId, BaseEnd), Error> {
    read_base(&File::open(path).map_err(files::io_error("opening", path))?, path, apply)
}

/// A base that is being written, under a temporary name.
pub(crate) struct NewBase {
    folder: PathBuf,
    new: PathBuf,
    pub(crate) parts: PartWriter<PeriodicallySynced>,
    from: u64,
    format: Format,
}

/// A file that is synced at intervals while it is written.
pub(crate) struct PeriodicallySynced {
    file: File,
    path: PathBuf,
    unsynced: usize,
}

impl Write for PeriodicallySynced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = files::write_some(&mut self.file, &self.path, bytes)?;
        self.unsynced += written;
        if self.unsynced >= SYNC_INTERVAL_BYTES {
            files::sync_data(&self.file, &self.path)?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl NewBase {
    pub(crate) fn begin(
        folder: &Path,
        id: &StoreId,
        from: u64,
        format: Format,
    ) -> Result<Self, Error> {
        let new = folder.join(format!("{}.new", base_name(from)));
        let file = files::create_or_truncate(&new)?;
        let parts = PartWriter::begin(
            PeriodicallySynced { file, path: new.clone(), unsynced: 0 },
            &new,
            id,
            format,
        );
        let parts = parts.inspect_err(|_| remove_unfinished(&new, folder))?;
        Ok(Self { folder: folder.to_owned(), new, parts, from, format })
    }

    /// Ends the base, syncs it, and reads it back completely. Afterwards only the rename is missing. An error
    /// of `check` ends it early.
    pub(crate) fn finish(
        self,
        exact: u64,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<UnpublishedBase, Error> {
        let Self { folder, new, parts, from, format } = self;
        let done = (|| {
            let (end, out) = parts.finish(from, exact)?;
            files::sync_file(&out.file, &new)?;
            drop(out);
            let (id, found) = read_base_file(&new, &mut |_, _| check().map(Ok))?;
            if found != end {
                return Err(base_damage(
                    &new,
                    0,
                    "the base that was read back differs from the one written",
                ));
            }
            let bytes = std::fs::metadata(&new).map_err(files::io_error("reading", &new))?.len();
            Ok(Base { path: folder.join(base_name(from)), end, bytes, format, id })
        })();
        match done {
            Ok(base) => Ok(UnpublishedBase { folder, new, base }),
            Err(error) => {
                remove_unfinished(&new, &folder);
                Err(error)
            }
        }
    }

    /// Discards the unfinished base.
    pub(crate) fn discard(self) {
        drop(self.parts);
        remove_unfinished(&self.new, &self.folder);
    }
}

/// A base that was read back but does not have its name yet.
pub(crate) struct UnpublishedBase {
    folder: PathBuf,
    new: PathBuf,
    pub(crate) base: Base,
}

impl UnpublishedBase {
    /// Renames the base to its name, durably.
    pub(crate) fn publish(self) -> Result<Base, Error> {
        files::rename_durably(&self.new, &self.base.path, &self.folder)
            .inspect_err(|_| remove_unfinished(&self.new, &self.folder))?;
        Ok(self.base)
    }

    /// Discards the base.
    pub(crate) fn discard(self) {
        remove_unfinished(&self.new, &self.folder);
    }
}

/// Removes an unfinished base. The next open would remove it too.
fn remove_unfinished(new: &Path, folder: &Path) {
    if let Err(cause) = files::remove_durably(new, folder) {
        tracing::warn!(%cause, "An unfinished base could not be removed; the next open removes it.");
    }
}
