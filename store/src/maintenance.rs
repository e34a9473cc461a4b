//! Background maintenance: packs full segments, and compacts a journal that is largely obsolete. It runs in a
//! thread of its own, for which no commit waits.
use crate::Error;
use crate::journal;
use crate::store::StoreInner;
use std::time::Duration;

/// The delay before a failed attempt is retried.
const RETRY_DELAY: Duration = Duration::from_mins(1);

impl StoreInner {
    /// Maintains the journal while there is something to do and the store is not closing.
    pub(crate) fn maintain(&self) {
        while self.needs_maintenance() && self.closing.check_not_closing().is_ok() {
            if let Err(cause) = self.run_maintenance() {
                if matches!(cause, Error::Closing) {
                    return;
                }
                tracing::warn!(%cause,
                    "Packing or compacting the journal failed; nothing is lost. The store retries in 60 s.");
                self.closing.wait_for_closing(RETRY_DELAY);
            }
        }
    }

    /// Returns whether a segment should be packed or the journal compacted.
    pub(crate) fn needs_maintenance(&self) -> bool {
        let synced = self.sync_state();
        synced.check_writable().is_ok() && (synced.needs_packing() || self.needs_compaction())
    }

    /// Returns whether the journal should be compacted. If nothing was removed or changed, the journal takes
    /// less disk space than the index, and a new base would not be smaller.
    fn needs_compaction(&self) -> bool {
        let bytes = self.sync_state().bytes();
        bytes.packed > self.options.compact_bytes.max(bytes.base / 2)
            && bytes.packed + bytes.base > self.index_bytes()
    }

    fn run_maintenance(&self) -> Result<(), Error> {
        match self.pack_segments() {
            Err(Error::Corrupt(place)) => {
                tracing::error!(%place,
                    "A segment of the journal is damaged. Replacing it by a new base from the index, which has all \
                     of its content.");
                self.compact_journal()?;
                // If the medium keeps failing, bases must not fill it.
                self.closing.wait_for_closing(RETRY_DELAY);
                Ok(())
            }
            Ok(()) if self.needs_compaction() => self.compact_journal(),
            done => done,
        }
    }

    /// Packs the full segments.
    pub(crate) fn pack_segments(&self) -> Result<(), Error> {
        let _slot = self.slot.take();
        let synced = self.sync_state();
        synced.check_writable()?;
        synced.begin_packing();
        let check = || self.closing.check_not_closing().and_then(|()| synced.check_writable());
        let packed =
            journal::pack_segments(&self.journal_folder(), &check, &mut |before, after| {
                synced.record_packed(before, after);
            });
        packed.inspect_err(|_| synced.record_packing_failure())
    }
}
