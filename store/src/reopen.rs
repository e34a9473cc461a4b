//! Reopening a poisoned store, or one with a damaged index, while its clones stay in use.
//!
//! All acknowledged commits must be found on the medium. Other commits are cut off, so that clients can rely
//! on a reported failure. What callers derived from acknowledged commits and keep in memory stays valid.
use crate::index::{self, Health as _};
use crate::journal::{self, Recovery};
use crate::replay::{ReplayContext, catch_up};
use crate::steps::Stage;
use crate::store::StoreInner;
use crate::{Corruption, Error, Progress, ReadStore};

impl ReadStore {
    /// Reopens the store if it is poisoned or its index is damaged, for this and all clones. If the cause
    /// persists, it fails and the store stays poisoned. Afterwards all acknowledged commits are present, and
    /// no others.
    ///
    /// While the index is read again or rebuilt, reads fail with [`Error::Reopening`]. `progress` is called
    /// as by [`Store::open`](crate::Store::open).
    ///
    /// A damaged index is kept if the journal is damaged too, because it could not be rebuilt.
    pub fn reopen(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
        let inner = self.inner();
        let _slot = inner.slot.take_or_borrow();
        inner.closing.check_not_closing()?;
        let index = inner.lock_index();
        let (id, mut damage) = (index.store_id(), index.first_damage().map(str::to_owned));
        drop(index);
        if damage.is_some() {
            let (newest, check) =
                (inner.sync_state().newest_synced(), || inner.closing.check_not_closing());
            match journal::read_synced(&inner.journal_folder(), &id, newest, &check) {
                // The index still answers some reads, and it is the only copy of that data.
                Err(error)
                    if error.is_unreadable() && inner.sync_state().check_writable().is_err() =>
                {
                    damage = None;
                }
                read => read?,
            }
        }
        let is_rebuilt = damage.is_some();
        let writer = inner.lock_writer();
        if let (Some(cause), Ok(())) = (damage, inner.sync_state().check_writable()) {
            // The journal is intact, so waiting commits must not fail.
            let newest = inner.lock_index().sequence();
            inner.sync_state().wait_synced(newest)?;
            inner.sync_state().poison(&Error::Index(cause));
        }
        if inner.sync_state().check_writable().is_ok() {
            return Ok(());
        }
        let acknowledged = inner.sync_state().stop_acknowledging();
        let reopening = inner.steps.enter_stage(Stage::Reopening);
        // From here on, new commits are refused. They must not wait for the lock during a long recovery.
        drop(writer);
        let recovery = Recovery::find_or_create(&inner.journal_folder(), true)?;
        if recovery.id != id {
            let (path, what) = (
                inner.journal_folder(),
                "the journal in this folder belongs to another store; put the original one back"
                    .to_owned(),
            );
            return Err(Corruption { path, offset: 0, what }.into());
        }
        let journal = recovery.settle_end_at(acknowledged)?;
        if is_rebuilt || !inner.index_is_at(acknowledged) {
            inner.lock_index_mut().close();
            if is_rebuilt {
                // Opening the index does not detect all kinds of damage.
                index::discard_index(&inner.dir)?;
                // Not before: if that fails, the next attempt must discard the index too.
                inner.lock_index_mut().forget_damage();
            }
            let (options, steps) = (&inner.options, &inner.steps);
            let from = journal.base().map_or(0, |base| base.end.from);
            let found = index::find_index(&inner.dir, id, from, options.value_index)?;
            let context = ReplayContext { dir: &inner.dir, options, steps };
            let index = catch_up(context, found, &journal, progress)?;
            *inner.lock_index_mut() = index;
        }
        journal.remove_obsolete(inner.retained.after())?;
        let mut writer = inner.lock_writer();
        *writer = journal.into_writer(inner.options.segment_bytes);
        inner.replace_sync_state(writer.sync_state());
        drop(reopening);
        drop(writer);
        tracing::info!(sequence = acknowledged, "Reopened the store; it accepts commits again.");
        self.start_maintenance();
        Ok(())
    }
}

impl StoreInner {
    /// Returns whether the index has exactly the frames up to `sequence`, in memory and on the medium.
    fn index_is_at(&self, sequence: u64) -> bool {
        let index = self.lock_index();
        index.check_usable().is_ok() && index.sequence() == sequence && !index.is_behind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Failure, Faults, Operation};
    use crate::{Options, Read as _, Store};
    use oxrdf::{GraphName, NamedNode, Quad};
    use std::time::{Duration, Instant};

    #[test]
    fn reopening_cuts_off_a_commit_that_was_synced_but_not_applied() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let open = || Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let store = open();
        let put = |store: &Store, value: u8| {
            // Long enough that another thread syncs it.
            store.transact::<_, Error>(|change| {
                change.put_document("d", b"key", &vec![value; 20_000])
            })
        };
        put(&store, 1).unwrap();
        faults.fail_nth_of(Operation::Apply, 1, Failure::Io);
        let failed = put(&store, 2);
        assert!(matches!(failed, Err(Error::Index(_))), "{failed:?}");
        let began = Instant::now();
        while store.inner().sync_state().newest_synced() < 2
            && began.elapsed() < Duration::from_mins(1)
        {
            std::thread::yield_now();
        }
        assert_eq!(store.inner().sync_state().newest_synced(), 2, "its frame was not synced");
        store.reopen(&mut |_| {}).unwrap();
        let value = |store: &Store| store.read().read_document("d", b"key").unwrap().unwrap();
        assert_eq!((value(&store)[0], store.stats().sequence), (1, 1));
        assert_eq!(put(&store, 3).unwrap().1.sequence, 2);
        drop(store);
        assert_eq!(value(&open())[0], 3);
    }

    #[test]
    fn a_poisoned_store_is_reopened_with_a_damaged_index_and_an_unreadable_segment() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let options =
            Options { segment_bytes: 100, background_maintenance: false, ..Options::default() };
        let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
        let put = |value: u8| {
            store.transact::<_, Error>(|change| change.put_document("d", b"key", &[value; 200]))
        };
        for value in 1..=2 {
            put(value).unwrap();
        }
        let segment = dir.path().join("journal/00000000000000000001.journal");
        std::fs::remove_file(&segment).unwrap();
        // Reading a folder fails, as reading a bad sector does.
        std::fs::create_dir_all(segment.join("x".repeat(100))).unwrap();
        store.inner().lock_index().record_damage(&Error::Index("damaged".into()));
        assert!(store.reopen(&mut |_| {}).unwrap_err().is_unreadable());
        assert_eq!(store.poison_cause(), None);
        faults.fail_nth_of(Operation::Sync, 1, Failure::Io);
        assert!(put(3).is_err() && store.poison_cause().is_some());
        store.reopen(&mut |_| {}).unwrap();
        assert_eq!(store.poison_cause(), None);
        put(4).unwrap();
        assert_eq!(store.read().read_document("d", b"key").unwrap().unwrap(), [4; 200]);
    }

    #[test]
    fn reopening_rebuilds_an_index_marked_as_damaged_even_if_its_files_are_intact() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let iri = NamedNode::new_unchecked("https://example.org/name");
        let quad = Quad::new(iri.clone(), iri.clone(), iri, GraphName::DefaultGraph);
        store.transact::<_, Error>(|change| change.insert(quad.as_ref())).unwrap();
        store.checkpoint().unwrap();
        store.inner().lock_index().record_damage(&Error::Index("another number of quads".into()));
        let mut total = 0;
        store.reopen(&mut |progress| total = progress.total).unwrap();
        assert_eq!((total, store.stats().quads), (1, 1));
        assert_eq!((store.index_damage(), store.poison_cause()), (None, None));
    }

    #[test]
    fn a_damaged_index_is_rebuilt_although_the_first_attempt_found_no_disk_space() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        store.transact::<_, Error>(|change| change.put_document("d", b"key", b"value")).unwrap();
        store.checkpoint().unwrap();
        store.inner().lock_index().record_damage(&Error::Index("another value".into()));
        // The first file that is opened for writing is the newest segment.
        faults.fail_nth_of(Operation::Create, 2, Failure::DiskFull);
        assert!(store.reopen(&mut |_| {}).unwrap_err().is_disk_full());
        assert!(faults.first_failure().unwrap().1.ends_with("checkpoint-open"));
        let mut total = 0;
        store.reopen(&mut |progress| total = progress.total).unwrap();
        assert_eq!(total, 1, "the index was not rebuilt");
        assert_eq!((store.index_damage(), store.poison_cause()), (None, None));
    }
}
