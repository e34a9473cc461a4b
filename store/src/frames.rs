//! The frames of the journal as bytes, for a copy of the journal elsewhere; and the frames that stay until they are
//! copied.
use crate::journal;
use crate::store::StoreInner;
use crate::{Error, ReadStore};

impl ReadStore {
    /// Returns the sequence of the newest commit that is synced, and that reopening the store keeps. It waits while a
    /// commit is applied.
    pub fn newest_durable(&self) -> u64 {
        let kept = self.inner().sync_state().newest_kept();
        // A frame can be synced before it is applied. If that fails, reopening cuts it off.
        kept.min(self.inner().lock_index().sequence())
    }

    /// Returns the sequence of the oldest frame in the journal. With an empty journal it is that of the next commit.
    pub fn oldest_frame(&self) -> Result<u64, Error> {
        let inner = self.inner();
        let first = journal::first_segment(&inner.journal_folder())?;
        Ok(first.unwrap_or_else(|| inner.lock_index().sequence() + 1))
    }

    /// Passes the frames after `after`, up to `newest`, to `visit` in order: each sequence, and the bytes of the whole
    /// frame as they are in the journal. Commits, packing and compaction continue meanwhile, so the frames must be
    /// retained ([`Self::retain_frames_after`]) and durable ([`Self::newest_durable`]).
    ///
    /// # Errors
    /// [`Error::FramesReplaced`] if the journal no longer has the first of them.
    pub fn read_frames(
        &self,
        after: u64,
        newest: u64,
        visit: &mut impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if newest <= after {
            return Ok(());
        }
        let inner = self.inner();
        let oldest = self.oldest_frame()?;
        if oldest > after + 1 {
            return Err(Error::FramesReplaced { sequence: after + 1, oldest });
        }
        let (folder, id) = (inner.journal_folder(), inner.lock_index().store_id());
        journal::replay_synced(&folder, &id, after, newest, &mut |sequence, payload| {
            inner.closing.check_not_closing()?;
            visit(sequence, &journal::encode_frame(sequence, payload)?)?;
            Ok(Ok(()))
        })
    }

    /// Lets the next frame begin a new segment of the journal. [`Self::read_frames`] reads a segment from its begin, so
    /// frames that follow one that cannot be read are readable only in another segment.
    pub fn end_segment(&self) -> Result<(), Error> {
        let inner = self.inner();
        let mut writer = inner.lock_writer_if_writable()?;
        let newest = inner.lock_index().sequence();
        writer.end_segment(newest)
    }

    /// Returns the bytes of the journal after a frame. Of packed segments it counts the packed bytes.
    pub fn bytes_after(&self, sequence: u64) -> Result<u64, Error> {
        journal::bytes_after(&self.inner().journal_folder(), sequence)
    }

    /// Returns the bytes of segments that a base replaces, and that stay only because they are retained.
    pub fn retained_bytes(&self) -> Result<u64, Error> {
        journal::replaced_bytes(&self.inner().journal_folder())
    }

    /// Keeps the frames after this sequence in the journal, or with `None` no others than the store itself needs.
    /// Removes those that are not needed any more, unless a long pass over the store runs: the next call or compaction
    /// removes them then.
    pub fn retain_frames_after(&self, after: Option<u64>) -> Result<(), Error> {
        let inner = self.inner();
        inner.retained.keep_after(after);
        let Some(_slot) = inner.slot.try_take() else { return Ok(()) };
        let mut removed = 0;
        let done =
            journal::remove_obsolete(&inner.journal_folder(), inner.retained.after(), &mut removed);
        inner.sync_state().record_removal(removed);
        done
    }
}

impl StoreInner {
    /// Removes the files that the newest base replaces, but for retained frames. Returns the number of bytes freed. The
    /// next compaction or open removes what remains.
    pub(crate) fn remove_obsolete(&self) -> u64 {
        let mut removed = 0;
        let folder = self.journal_folder();
        if let Err(cause) = journal::remove_obsolete(&folder, self.retained.after(), &mut removed) {
            tracing::warn!(%cause,
                "Some files that a new base of the journal replaces could not be removed; the next compaction or \
                 open removes them.");
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameReader, Options, Store};
    use std::io;

    fn put(store: &Store, number: u64) {
        let change = |change: &mut crate::Transaction<'_>| {
            change.put_document("d", b"key", &number.to_be_bytes())?;
            change.put_document("d", &number.to_be_bytes(), &[7; 300])
        };
        store.transact::<_, Error>(change).unwrap();
    }

    fn frames(store: &Store, after: u64) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        let mut found = Vec::new();
        store.read_frames(after, store.newest_durable(), &mut |sequence, frame| {
            found.push((sequence, frame.to_vec()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn retained_frames_outlive_packing_compaction_and_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let options = |retain_after| Options {
            segment_bytes: 2_000,
            background_maintenance: false,
            retain_after,
            ..Options::default()
        };
        let open = |retained| Store::open(dir.path(), options(retained), &mut |_| {}).unwrap();
        let store = open(Some(10));
        for number in 0..40 {
            put(&store, number);
        }
        let expected = frames(&store, 10).unwrap();
        assert_eq!((expected.len(), expected[0].0), (30, 11));
        store.pack_segments().unwrap();
        store.compact_journal().unwrap();
        assert_eq!(frames(&store, 10).unwrap(), expected);
        assert!(store.oldest_frame().unwrap() <= 11);
        drop(store);
        let store = open(Some(10));
        assert_eq!(frames(&store, 10).unwrap(), expected);
        store.retain_frames_after(Some(30)).unwrap();
        assert!(matches!(frames(&store, 10), Err(Error::FramesReplaced { sequence: 11, .. })));
        assert_eq!(frames(&store, 30).unwrap(), expected[20..]);
        let bytes = store.stats().journal_bytes;
        store.retain_frames_after(None).unwrap();
        assert!(store.stats().journal_bytes < bytes);
        assert!(matches!(frames(&store, 30), Err(Error::FramesReplaced { .. })));
        put(&store, 40);
        assert_eq!(frames(&store, 40).unwrap().len(), 1);
    }

    #[test]
    fn frames_after_one_that_cannot_be_read_are_readable_in_another_segment() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { background_maintenance: false, ..Options::default() };
        let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        (0..3).for_each(|number| put(&store, number));
        let path = dir.path().join("journal/00000000000000000001.journal");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[60] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        for _ in 0..2 {
            store.end_segment().unwrap();
        }
        (3..5).for_each(|number| put(&store, number));
        assert!(frames(&store, 2).unwrap_err().is_unreadable());
        let read: Vec<u64> = frames(&store, 3).unwrap().iter().map(|(at, _)| *at).collect();
        assert_eq!(read, [4, 5]);
    }

    #[test]
    fn frames_are_read_from_a_stream_and_damage_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        (0..3).for_each(|number| put(&store, number));
        let expected = frames(&store, 0).unwrap();
        let bytes: Vec<u8> = expected.iter().flat_map(|(_, frame)| frame.clone()).collect();
        let read = |bytes: &[u8]| {
            let mut reader = FrameReader::new(bytes);
            std::iter::from_fn(|| reader.read_frame().transpose()).collect::<io::Result<Vec<_>>>()
        };
        assert_eq!(read(&bytes).unwrap(), expected);
        for at in 0..bytes.len() {
            let mut harmed = bytes.clone();
            harmed[at] ^= 1;
            assert!(read(&harmed).is_err(), "byte {at}");
        }
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
    }
}
