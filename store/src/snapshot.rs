//! The state after one commit, while commits continue.
use crate::index::{
    Block, BlockSource, FrozenIndex, Health, Index, Name, Reading, RecentBlocks, View,
};
use crate::index_lock::IndexReadGuard;
use crate::read::{
    Document, DocumentRange, ListedSubject, Pattern, Read, SubjectFilter, VisitValue, read_through,
};
use crate::subject_quads::SubjectQuads;
use crate::{Error, LostCause, QuadPosition, ReadStore, ValueRange, files};
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, NamedOrBlankNodeRef, Quad};
use parking_lot::{Mutex, MutexGuard};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The state after one commit. However long it is read, it blocks no commit, and no commit changes it. It keeps the
/// store open.
///
/// It keeps the earlier content of what commits change meanwhile, first in memory and then in a file. So drop it when it
/// is no longer read. If that fails, reads fail with [`Error::SnapshotLost`]; after the store was reopened, with
/// [`Error::Reopening`].
#[derive(Debug)]
pub struct Snapshot {
    store: ReadStore,
    frozen: FrozenIndex,
    recent: Mutex<RecentBlocks>,
}

impl ReadStore {
    /// Returns the state after the newest commit. This waits for no transaction and no checkpoint, only while a commit is
    /// being applied.
    ///
    /// # Errors
    /// [`Error::Reopening`] or [`Error::Index`] if the index cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let frozen = self.inner().lock_index().open_snapshot()?;
        Ok(Snapshot { store: self.clone(), frozen, recent: Mutex::default() })
    }
}

impl Snapshot {
    /// Returns the sequence of the newest commit in this state.
    pub fn sequence(&self) -> u64 {
        self.frozen.sequence
    }

    /// Identifies the index that is read: see [`crate::Reader::instance`].
    pub fn instance(&self) -> u64 {
        self.frozen.instance
    }

    /// Returns why the state could not be kept, if so.
    pub fn lost_cause(&self) -> Option<LostCause> {
        self.frozen.preserved.lost_cause()
    }

    /// Passes the quads from a position on to `visit`: see [`crate::Reader::visit_quads_from`].
    pub fn visit_quads_from(
        &self,
        position: &QuadPosition,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<Option<QuadPosition>, Error> {
        Ok(self.view().visit_quads_from(&position.0, visit)?.map(QuadPosition))
    }

    /// Works as [`Read::list_subjects`], for [`Read::read_listed`].
    pub fn list_with_ids(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, Error> {
        self.view().list_by_iri(filter, after, limit)
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            blocks: self,
            runs: &self.frozen.runs,
            values: self.frozen.values.as_ref(),
            names: &self.frozen.names,
            health: self,
            instance: self.frozen.instance,
            sequence: self.frozen.sequence,
        }
    }

    /// Returns a preserved block, or else the current one.
    fn read_block<T>(
        &self,
        preserved: impl Fn() -> Result<Option<T>, Error>,
        current: impl FnOnce(&Index) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(found) = preserved()? {
            return Ok(found);
        }
        let index = self.lock_index()?;
        preserved()?.map_or_else(|| current(&index), Ok)
    }

    /// Returns a block that was read before, unless the snapshot ended.
    fn find_recent(&self, upper: Bound<&[u8]>, key: &[u8]) -> Option<(Name, Arc<Block>)> {
        self.inject_loss();
        let found = self.lock_recent().find(upper, key)?;
        self.lost_cause().is_none().then_some(found)
    }

    fn lock_recent(&self) -> MutexGuard<'_, RecentBlocks> {
        self.recent.lock()
    }

    /// Locks the index that the snapshot belongs to.
    fn lock_index(&self) -> Result<IndexReadGuard<'_>, Error> {
        let index = self.store.inner().lock_index();
        if index.instance() != self.frozen.instance {
            return Err(Error::Reopening);
        }
        index.check_usable()?;
        Ok(index)
    }
}

impl Snapshot {
    /// Ends the snapshot if a test planned that.
    fn inject_loss(&self) {
        if files::is_snapshot_loss_injected(&self.store.inner().dir) {
            self.frozen.preserved.end_early(LostCause::Io);
        }
    }
}

/// A preserved block never changes, so it is read without locking the index. Otherwise the index is locked for one block
/// at a time, and a commit may have changed the block before.
impl BlockSource for Snapshot {
    fn find_block(
        &self,
        upper: Bound<&[u8]>,
        key: &[u8],
        reading: Reading,
    ) -> Result<(Name, Arc<Block>), Error> {
        if let Some(found) = self.find_recent(upper, key) {
            return Ok(found);
        }
        let preserved = || self.frozen.preserved.find_block(upper, key);
        let current = |index: &Index| index.blocks().find_block(upper, key, reading);
        let found = self.read_block(preserved, current)?;
        self.lock_recent().insert(&found);
        Ok(found)
    }

    fn load_block(&self, name: &[u8], reading: Reading) -> Result<Arc<Block>, Error> {
        if let Some((_, block)) = self.find_recent(Bound::Included(name), name) {
            return Ok(block);
        }
        let preserved = || self.frozen.preserved.load_block(name);
        let current = |index: &Index| index.blocks().load_block(name, reading);
        let block = self.read_block(preserved, current)?;
        self.lock_recent().insert(&(name.into(), block.clone()));
        Ok(block)
    }
}

impl Health for Snapshot {
    fn check_usable(&self) -> Result<(), Error> {
        self.lock_index().map(drop)
    }

    fn record_damage(&self, error: &Error) {
        if let Ok(index) = self.lock_index() {
            index.record_damage(error);
        }
    }
}

impl Read for Snapshot {
    read_through!(self => &self.view());
}

#[cfg(test)]
mod tests;
