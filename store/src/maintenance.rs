//! Background maintenance: packs full segments, and compacts a journal that is largely obsolete. It runs in a
//! thread of its own, for which no commit waits.
use crate::store::StoreInner;
use crate::{Error, files, journal};
use std::time::Duration;

/// The delay before a failed attempt is retried. It doubles with each failure, because an attempt can write the whole state
/// before it fails.
const RETRY_DELAY: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 60_000 });
/// The maximum number of delays before an attempt.
const MAX_DELAYS: u32 = 60;
/// The number of delays after which a compaction that the disk had no space for is retried, even if no more is free.
const MAX_DELAYS_WITHOUT_SPACE: u32 = if cfg!(test) { 6_000 } else { 60 };

impl StoreInner {
    /// Maintains the journal while there is something to do and the store is not closing.
    pub(crate) fn maintain(&self) {
        let mut failures = 0;
        while self.needs_maintenance() && self.closing.check_not_closing().is_ok() {
            let free = files::free_bytes(&self.dir).unwrap_or_default();
            let Err(cause) = self.run_maintenance() else {
                failures = 0;
                continue;
            };
            if matches!(cause, Error::Closing) {
                return;
            }
            if cause.is_disk_full() {
                tracing::warn!(%cause,
                    "The disk has no space to pack or compact the journal; nothing is lost. The store retries when more \
                     is free, and in an hour.");
                // A compaction without enough space fills the disk before it fails.
                let clearly_more = free.saturating_add(free / 8);
                let enough = clearly_more.saturating_add(self.options.segment_bytes);
                self.wait_and_pack(MAX_DELAYS_WITHOUT_SPACE, enough);
            } else {
                failures += 1;
                let delays = count_delays(failures);
                tracing::warn!(%cause, delay_seconds = (RETRY_DELAY * delays).as_secs(),
                    "Packing or compacting the journal failed; nothing is lost. The store retries after this delay.");
                self.wait_and_pack(delays, u64::MAX);
            }
        }
    }

    /// Waits for this number of delays, or until this many bytes of the disk are free. Segments are packed meanwhile, which
    /// takes little space and frees more: otherwise a compaction that keeps failing would fill the disk with them.
    fn wait_and_pack(&self, delays: u32, enough_bytes: u64) {
        let mut can_pack = true;
        for _ in 0..delays {
            self.closing.wait_for_closing(RETRY_DELAY);
            let has_more = files::free_bytes(&self.dir).is_ok_and(|free| free >= enough_bytes);
            if has_more || self.closing.check_not_closing().is_err() {
                return;
            }
            let synced = self.sync_state();
            if can_pack && synced.needs_packing() && synced.check_writable().is_ok() {
                // The next attempt reports why.
                let has_failed = self.pack_segments().is_err_and(|error| !error.is_disk_full());
                can_pack = !has_failed;
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
            Err(cause) if cause.is_unreadable() => {
                tracing::error!(%cause,
                    "A segment of the journal is damaged or cannot be read. Replacing it by a new base from the \
                     index, which has all of its content.");
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
        let (folder, current) = (self.journal_folder(), synced.current_segment());
        let packed = journal::pack_segments(&folder, &current, &check, &mut |before, after| {
            synced.record_packed(before, after);
        });
        packed.inspect_err(|_| synced.record_packing_failure())
    }
}

/// Returns the number of delays to wait after this number of failures in a row.
fn count_delays(failures: u32) -> u32 {
    let doublings = failures.saturating_sub(1).min(MAX_DELAYS.ilog2() + 1);
    (1_u32 << doublings).min(MAX_DELAYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Failure, Faults, Operation};
    use crate::{Options, Store};
    use std::thread;

    /// Maintains a store until the creation of a file finds no disk space, and for some time after that. Returns whether
    /// it was compacted.
    fn is_compacted_without_space(store: &Store, faults: &Faults, nth_create: u64) -> bool {
        faults.fail_nth_of(Operation::Create, nth_create, Failure::DiskFull);
        let base_bytes = thread::scope(|scope| {
            let maintaining = scope.spawn(|| store.inner().maintain());
            while faults.first_failure().is_none() && !maintaining.is_finished() {
                thread::yield_now();
            }
            thread::sleep(20 * RETRY_DELAY);
            let base_bytes = store.stats().base_bytes;
            store.inner().closing.begin_closing();
            base_bytes
        });
        assert!(faults.first_failure().is_some());
        base_bytes > 0
    }

    #[test]
    fn failed_attempts_are_retried_at_growing_intervals() {
        assert_eq!([1, 2, 3, 6, 7, u32::MAX].map(count_delays), [1, 2, 4, 32, 60, 60]);
    }

    #[test]
    fn segments_are_packed_while_a_failed_compaction_waits() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let options =
            Options { segment_bytes: 1_000, background_maintenance: false, ..Options::default() };
        let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        let put = |value: u8| {
            store
                .transact::<_, Error>(|change| change.put_document("d", b"key", &[value; 2_000]))
                .unwrap();
        };
        (0..2).for_each(put);
        assert!(store.inner().sync_state().needs_packing());
        store.inner().wait_and_pack(1, u64::MAX);
        assert!(!store.inner().sync_state().needs_packing());
        (2..4).for_each(put);
        // A packing that fails is not retried after each delay.
        faults.fail_nth_of(Operation::Create, 1, Failure::Io);
        store.inner().wait_and_pack(5, u64::MAX);
        assert_eq!(faults.operation_count(), 1);
        assert!(store.inner().sync_state().needs_packing());
    }

    #[test]
    fn a_damaged_segment_is_not_replaced_by_a_base_before_there_is_space() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let options =
            Options { segment_bytes: 1_000, background_maintenance: false, ..Options::default() };
        let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        for value in 0..4 {
            store
                .transact::<_, Error>(|change| change.put_document("d", b"key", &[value; 2_000]))
                .unwrap();
        }
        let path = dir.path().join("journal/00000000000000000001.journal");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[1_000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        // The files of a packed segment, a new segment and a base.
        assert!(!is_compacted_without_space(&store, &faults, 3), "it was retried");
    }

    #[test]
    fn a_compaction_without_space_is_not_retried_before_there_is_more() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let options = Options {
            segment_bytes: 200_000,
            compact_bytes: 1,
            background_maintenance: false,
            ..Options::default()
        };
        let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        let mut random = 1_u64;
        // Each document replaces the one before, until the journal takes more than the index.
        while !store.inner().needs_compaction() {
            let noise = std::iter::repeat_with(|| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                random.to_be_bytes()[0]
            });
            let noise: Vec<u8> = noise.take(100_000).collect();
            store
                .transact::<_, Error>(|change| change.put_document("d", b"noise", &noise))
                .unwrap();
            store.pack_segments().unwrap();
        }
        assert!(!is_compacted_without_space(&store, &faults, 1), "it was retried");
    }
}
