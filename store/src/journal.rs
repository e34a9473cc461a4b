//! The journal: every commit as one checksummed frame, in order, in segments.
mod base;
mod check;
mod folder;
mod frame_reader;
#[cfg(test)]
mod fuzz;
mod pack;
mod packing;
mod parts;
mod recovery;
mod segment;
mod sync;

pub(crate) use base::{Base, NewBase, UnpublishedBase, read_base, read_base_stream};
pub(crate) use check::{CheckedJournal, check_journal};
pub(crate) use folder::{Retained, first_segment, remove_obsolete, replaced_bytes};
pub use frame_reader::FrameReader;
pub(crate) use pack::pack_segments;
pub use packing::MAX_ZSTD_WINDOW_LOG;
pub(crate) use parts::{BaseEnd, PartWriter};
pub(crate) use recovery::{
    Recovery, SettledJournal, bytes_after, new_id, read_synced, replay_synced,
};
pub(crate) use segment::{
    ApplyFrame, FRAME_HEADER_LEN, StoreId, create_segment as make_segment, encode_frame, frame_at,
};
pub(crate) use sync::{JournalBytes, SyncState, SyncThread};

use crate::{Error, Format, files};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Appends frames. There is only one, and its holder is the only writer.
#[derive(Debug)]
pub(crate) struct Writer {
    folder: PathBuf,
    id: StoreId,
    segment_bytes: u64,
    file: Arc<File>,
    path: PathBuf,
    /// The offset of the next frame, in bytes.
    length: u64,
    synced: Arc<SyncState>,
    /// The newest frame that the base replaces.
    base_from: u64,
}

impl Writer {
    /// Appends a frame without syncing it: [`SyncState::wait_synced`] does that.
    ///
    /// What a failed write may have left in the file is cut off, so that no frame ever follows it. If the cut
    /// fails too, or if the cause was not a lack of disk space, the store is poisoned.
    pub(crate) fn append_frame(&mut self, sequence: u64, payload: &[u8]) -> Result<(), Error> {
        let frame = encode_frame(sequence, payload)?;
        self.write_frame(sequence, &frame).inspect_err(|error| {
            let cut = files::truncate_file(&self.file, &self.path, self.length);
            if let Err(cause) = &cut {
                tracing::warn!(path = %self.path.display(), %cause,
                    "A partly written frame could not be cut off; the next open cuts it off.");
            }
            if cut.is_err() || !error.is_disk_full() {
                self.synced.poison(error);
            }
        })
    }

    /// Raises the format of the journal to at least `format`, before frame `sequence` is appended: a new
    /// segment begins, whose header tells the format.
    ///
    /// Afterwards the format may be raised even if this or the append fails. A lower one is never in the header
    /// of a segment with a frame that requires this one.
    pub(crate) fn raise_format(&mut self, sequence: u64, format: Format) -> Result<(), Error> {
        if self.synced.format() >= format {
            return Ok(());
        }
        self.roll_segment(sequence, format).inspect_err(|error| {
            if !error.is_disk_full() {
                self.synced.poison(error);
            }
        })?;
        tracing::info!(%format, "Raised the format of the store. Older versions of Penstock refuse it from now on.");
        Ok(())
    }

    fn write_frame(&mut self, sequence: u64, frame: &[u8]) -> Result<(), Error> {
        if self.length >= self.segment_bytes && self.length > segment::HEADER_BYTES {
            self.roll_segment(sequence, self.synced.format())?;
        }
        files::write_at(&self.file, &self.path, frame, self.length)
            .map_err(files::io_error("writing", &self.path))?;
        self.length += frame.len() as u64;
        self.synced.record_append(sequence, frame.len() as u64);
        Ok(())
    }

    /// Returns the id that distinguishes this store from others.
    pub(crate) fn id(&self) -> StoreId {
        self.id
    }

    /// Returns the folder of the journal.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Begins a base that replaces all frames up to `newest`, the newest one. Returns `None` if such a base
    /// exists. The next frame begins a new segment.
    pub(crate) fn begin_base(&mut self, newest: u64) -> Result<Option<NewBase>, Error> {
        if newest == self.base_from {
            return Ok(None);
        }
        self.end_segment(newest)?;
        NewBase::begin(&self.folder, &self.id, newest, self.synced.format()).map(Some)
    }

    /// Lets the frame after `newest`, the newest one, begin a new segment.
    pub(crate) fn end_segment(&mut self, newest: u64) -> Result<(), Error> {
        if self.length > segment::HEADER_BYTES {
            self.roll_segment(newest + 1, self.synced.format())?;
        }
        Ok(())
    }

    /// Removes a segment that could not be created, because of `cause`. Frames continue in the current segment,
    /// so the new one must not exist too.
    fn remove_failed_segment(&self, first: u64, cause: &Error) {
        let path = self.folder.join(folder::segment_name(first));
        let mut left = vec![path.with_extension("new")];
        if path != self.path {
            left.push(path);
        } else if !self.has_its_name() {
            self.synced.poison(cause);
        }
        for left in left {
            if let Err(error) = files::remove_durably(&left, &self.folder) {
                self.synced.poison(&error);
            }
        }
    }

    /// Returns whether the current segment still has its name. A segment without frames has the name of the next
    /// one, which replaces it.
    fn has_its_name(&self) -> bool {
        let (Ok(current), Ok(named)) = (self.file.metadata(), std::fs::metadata(&self.path)) else {
            return false;
        };
        (current.dev(), current.ino()) == (named.dev(), named.ino())
    }

    /// Publishes a base. [`remove_obsolete`] removes the files that it replaces.
    pub(crate) fn publish_base(&mut self, base: UnpublishedBase) -> Result<Base, Error> {
        let base = base.publish()?;
        self.base_from = base.end.from;
        Ok(base)
    }

    /// Begins a new segment. Only the newest segment ever has frames that are not synced. If the current one has
    /// no frames, the new one replaces it.
    fn roll_segment(&mut self, first: u64, format: Format) -> Result<(), Error> {
        self.synced.wait_synced(first - 1)?;
        let made = segment::create_segment(&self.folder, &self.id, first, format);
        let (file, path) = made.inspect_err(|error| self.remove_failed_segment(first, error))?;
        let added = if path == self.path { 0 } else { segment::HEADER_BYTES };
        self.file = Arc::new(file);
        self.path = path;
        self.length = segment::HEADER_BYTES;
        self.synced.record_roll(self.file.clone(), self.path.clone(), format, added);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(folder: &Path) -> Writer {
        let recovery = Recovery::find_or_create(folder, false).unwrap();
        recovery.settle_end(0).unwrap().into_writer(1 << 20)
    }

    /// Appends to a file that accepts no bytes.
    fn append_to(writer: &mut Writer, file: File) -> Error {
        let real = std::mem::replace(&mut writer.file, Arc::new(file));
        let error = writer.append_frame(2, b"\x01\x00lost").unwrap_err();
        assert!(matches!(error, Error::Io { action: "writing", .. }), "{error}");
        assert_eq!(real.metadata().unwrap().len(), writer.length);
        writer.file = real;
        error
    }

    #[test]
    fn a_failed_write_poisons_and_leaves_no_frame() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        writer.append_frame(1, b"\x01\x00whole").unwrap();
        writer.synced.wait_synced(1).unwrap();
        let read_only = File::open(&writer.path).unwrap();
        assert!(!append_to(&mut writer, read_only).is_disk_full());
        assert!(matches!(writer.synced.check_writable(), Err(Error::Poisoned { .. })));
    }

    #[test]
    fn a_write_that_cannot_be_cut_off_poisons_even_if_the_disk_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        writer.append_frame(1, b"\x01\x00whole").unwrap();
        // It accepts no bytes, and its length cannot be set.
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(append_to(&mut writer, full).is_disk_full());
        assert!(matches!(writer.synced.check_writable(), Err(Error::Poisoned { .. })));
    }

    #[test]
    fn a_failed_sync_fails_all_waiting_commits() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        writer.append_frame(1, b"\x01\x00frame").unwrap();
        // A socket can be opened as a file but cannot be synced.
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(socket));
        writer.synced.record_roll(Arc::new(file), writer.path.clone(), Format::default(), 0);
        assert!(matches!(writer.synced.wait_synced(1), Err(Error::Io { action: "syncing", .. })));
        assert!(matches!(writer.synced.wait_synced(1), Err(Error::Io { action: "syncing", .. })));
        assert!(matches!(writer.synced.check_writable(), Err(Error::Poisoned { .. })));
    }
}
