//! The journal: every commit as one checksummed frame, in order, in segments.
mod base;
mod check;
#[cfg(test)]
mod fuzz;
mod pack;
mod parts;
mod recovery;
mod segment;
mod sync;

pub(crate) use base::{Base, NewBase, UnpublishedBase, read_base};
pub(crate) use check::{CheckedJournal, check_journal};
pub(crate) use pack::pack_segments;
pub(crate) use parts::{BaseEnd, PartWriter};
pub(crate) use recovery::{
    ApplyFrame, Recovery, SettledJournal, new_id, read_synced, replay_synced,
};
/// The newest version of the journal's format. The program writes it, and reads it and older ones
/// (FORMAT.md).
pub use segment::VERSION as FORMAT;
pub(crate) use segment::{StoreId, create_segment as make_segment};
pub(crate) use sync::{JournalBytes, SyncState, SyncThread};

use crate::{Error, files};
use std::fs::File;
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
        let frame = segment::encode_frame(sequence, payload)?;
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

    fn write_frame(&mut self, sequence: u64, frame: &[u8]) -> Result<(), Error> {
        if self.length >= self.segment_bytes && self.length > segment::HEADER_BYTES {
            self.roll_segment(sequence)?;
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
        if self.length > segment::HEADER_BYTES {
            self.roll_segment(newest + 1)?;
        }
        NewBase::begin(&self.folder, &self.id, newest).map(Some)
    }

    /// Removes a segment that could not be created. Frames continue in the segment before it, so the new one
    /// must not exist too.
    fn remove_failed_segment(&self, first: u64) {
        let path = self.folder.join(segment::segment_name(first));
        for left in [path.with_extension("new"), path] {
            if let Err(error) = files::remove_durably(&left, &self.folder) {
                self.synced.poison(&error);
            }
        }
    }

    /// Publishes a base. [`Base::remove_older`] removes the files that it replaces.
    pub(crate) fn publish_base(&mut self, base: UnpublishedBase) -> Result<Base, Error> {
        let base = base.publish()?;
        self.base_from = base.end.from;
        Ok(base)
    }

    /// Begins a new segment. Only the newest segment ever has frames that are not synced.
    fn roll_segment(&mut self, first: u64) -> Result<(), Error> {
        self.synced.wait_synced(first - 1)?;
        let made = segment::create_segment(&self.folder, &self.id, first);
        let (file, path) = made.inspect_err(|_| self.remove_failed_segment(first))?;
        self.file = Arc::new(file);
        self.path = path;
        self.length = segment::HEADER_BYTES;
        self.synced.record_roll(self.file.clone(), self.path.clone(), segment::HEADER_BYTES);
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
        writer.synced.record_roll(Arc::new(file), writer.path.clone(), 0);
        assert!(matches!(writer.synced.wait_synced(1), Err(Error::Io { action: "syncing", .. })));
        assert!(matches!(writer.synced.wait_synced(1), Err(Error::Poisoned { .. })));
        assert!(matches!(writer.synced.check_writable(), Err(Error::Poisoned { .. })));
    }
}
