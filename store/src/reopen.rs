//! Opening a poisoned store anew, or one with a damaged index, while its clones stay in use.
//!
//! All that was acknowledged must be found on the medium. What was not is cut off, so that whoever
//! was told of a failure can rely on it: what others keep in memory beside the store stays true.
use crate::index::{self, Index};
use crate::journal::{self, Recovery, Settled, StoreId};
use crate::steps::{Stage, Steps};
use crate::store::{Inner, LOADING, anew, replay};
use crate::{Corruption, Error, Options, Progress, ReadStore};
use std::path::Path;

impl ReadStore {
    /// Opens the store anew if it is poisoned or its index is damaged, for this and all clones. It succeeds
    /// when the cause is gone, and else leaves the store as poisoned as it was. All that was acknowledged is
    /// there afterwards, and nothing of what was not. When the index must be read again or made again, reads
    /// fail with [`Error::Reopening`] until it is; `progress` is told as by [`Store::open`](crate::Store::open).
    ///
    /// A damaged index is kept when the journal is damaged, too, so that it could not be made again.
    pub fn reopen(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), Error> {
        let inner = self.inner();
        let _slot = inner.slot.take_or_borrow();
        inner.closing.check()?;
        let index = inner.index();
        let (id, mut damage) = (index.store_id(), index.damage().map(str::to_owned));
        drop(index);
        if damage.is_some() {
            let (newest, check) = (inner.synced().newest(), || inner.closing.check());
            match journal::read_synced(&inner.journal(), &id, newest, &check) {
                // What it still answers is all there is of that.
                Err(Error::Corrupt(_)) if inner.synced().check().is_err() => damage = None,
                read => read?,
            }
        }
        let makes_anew = damage.is_some();
        let writer = inner.writer();
        if let (Some(cause), Ok(())) = (damage, inner.synced().check()) {
            // Nothing is wrong with the journal: none of those who wait for a sync must fail.
            let newest = inner.index().sequence();
            inner.synced().wait(newest)?;
            inner.synced().poison(&Error::Index(cause));
        }
        if inner.synced().check().is_ok() {
            return Ok(());
        }
        let acknowledged = inner.synced().end();
        let reopening = inner.steps.begin(Stage::Reopening);
        // Whoever wants it is refused from here on, and must not wait for what may take long.
        drop(writer);
        let recovery = Recovery::begin(&inner.journal(), true)?;
        if recovery.id != id {
            let (path, what) = (inner.journal(), "another store is there".to_owned());
            return Err(Corruption { path, offset: 0, what }.into());
        }
        let mut journal = recovery.settle_at(acknowledged)?;
        if makes_anew || !inner.index_is_at(acknowledged) {
            inner.index_mut().close();
            if makes_anew {
                // Not all damage is seen by whoever opens it.
                index::discard(&inner.dir)?;
            }
            let index = index::open(&inner.dir, id)?;
            let (options, steps) = (&inner.options, &inner.steps);
            let index = caught_up(&inner.dir, index, &journal, options, steps, progress)?;
            *inner.index_mut() = index;
        }
        journal.remove_useless()?;
        let mut writer = inner.writer();
        *writer = journal.writer(inner.options.segment_bytes);
        inner.replace_synced(writer.synced());
        drop(reopening);
        drop(writer);
        tracing::info!(
            sequence = acknowledged,
            "The store was opened anew and takes commits again."
        );
        self.tidy();
        Ok(())
    }
}

impl Inner {
    /// Whether the index has just the frames up to that one, in memory and on the medium.
    fn index_is_at(&self, sequence: u64) -> bool {
        let index = self.index();
        index.check().is_ok() && index.sequence() == sequence && !index.is_behind()
    }
}

/// Brings an index up to the end of the journal; one that is of no use is made again.
pub(crate) fn caught_up(
    dir: &Path,
    index: Index,
    journal: &Settled,
    options: &Options,
    steps: &Steps,
    progress: &mut dyn FnMut(Progress),
) -> Result<Index, Error> {
    let id = journal.id();
    let mut index = fit(dir, index, id, journal.base().map_or(0, |base| base.end.from))?;
    match replay(&mut index, journal, options, steps, progress) {
        Err(Error::Index(cause)) => {
            tracing::warn!(
                cause,
                "The quad index was unusable; it is made again from the journal."
            );
            index = anew(dir, index, id)?;
            replay(&mut index, journal, options, steps, progress)?;
        }
        done => done?,
    }
    Ok(index)
}

/// The index, or an empty one when it is unfinished or lacks frames that the base took the place of.
pub(crate) fn fit(dir: &Path, index: Index, id: StoreId, from: u64) -> Result<Index, Error> {
    if index.noted() >= LOADING || (index.noted() < from && index.noted() > 0) {
        tracing::warn!("The quad index was unfinished or too old; it is made again from the base.");
        return anew(dir, index, id);
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Failure, Faults, Operation};
    use crate::{Read as _, Store};
    use oxrdf::{GraphName, NamedNode, Quad};
    use std::time::{Duration, Instant};

    #[test]
    fn a_commit_that_could_not_be_applied_is_cut_though_its_frame_was_synced() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::below(dir.path());
        let open = || Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let store = open();
        let put = |store: &Store, value: u8| {
            // Long enough that another thread syncs it.
            store.transact::<_, Error>(|change| change.put("d", b"key", &vec![value; 20_000]))
        };
        put(&store, 1).unwrap();
        faults.fail_only(Operation::Apply, 1, Failure::Io);
        let failed = put(&store, 2);
        assert!(matches!(failed, Err(Error::Index(_))), "{failed:?}");
        let began = Instant::now();
        while store.inner().synced().newest() < 2 && began.elapsed() < Duration::from_mins(1) {
            std::thread::yield_now();
        }
        assert_eq!(store.inner().synced().newest(), 2, "its frame was not synced");
        store.reopen(&mut |_| {}).unwrap();
        let value = |store: &Store| store.read().document("d", b"key").unwrap().unwrap();
        assert_eq!((value(&store)[0], store.stats().sequence), (1, 1));
        assert_eq!(put(&store, 3).unwrap().1.sequence, 2);
        drop(store);
        assert_eq!(value(&open())[0], 3);
    }

    #[test]
    fn an_index_that_was_found_damaged_is_made_again_though_its_files_are_sound() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let iri = NamedNode::new_unchecked("https://example.org/name");
        let quad = Quad::new(iri.clone(), iri.clone(), iri, GraphName::DefaultGraph);
        store.transact::<_, Error>(|change| change.insert(quad.as_ref())).unwrap();
        store.checkpoint().unwrap();
        store.inner().index().note_damage(&Error::Index("another number of quads".into()));
        let mut total = 0;
        store.reopen(&mut |progress| total = progress.total).unwrap();
        assert_eq!((total, store.stats().quads), (1, 1));
        assert_eq!((store.damage(), store.poisoned()), (None, None));
    }
}
