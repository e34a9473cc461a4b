//! Reading committed data.
use crate::index::{Index, PageCursor};
use crate::read::{Document, DocumentRange, ListedSubject, Pattern, Read, SubjectFilter};
use crate::subject_quads::SubjectQuads;
use crate::{Error, order};
use oxrdf::{NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Quad};
use std::ops::ControlFlow;
use std::sync::RwLockReadGuard;

/// A consistent view of all complete commits. The newest of them may still be syncing, some milliseconds
/// before it is acknowledged.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(crate) index: RwLockReadGuard<'a, Index>,
}

/// The position of a pass over all quads, in the order of the index. The default is the beginning.
#[derive(Debug, Clone, Default)]
pub struct QuadPosition(PageCursor);

impl Reader<'_> {
    /// Returns the sequence of the newest visible commit.
    pub fn sequence(&self) -> u64 {
        self.index.sequence()
    }

    /// Identifies the index that is read. It changes when reopening the store may have cut off commits that
    /// reads had seen. Code that acts on several reads must compare it with [`crate::Transaction::instance`].
    pub fn instance(&self) -> u64 {
        self.index.instance()
    }

    /// Passes the quads from a position on to `visit`, subject by subject, until it breaks. Returns the
    /// position of the quad at which it broke, or `None` at the end.
    ///
    /// Each page may use another reader. Quads that do not change between the first page and the last are
    /// visited once. A quad that changes meanwhile may be visited in its old or new state, not at all, or
    /// twice.
    pub fn visit_quads_from(
        &self,
        position: &QuadPosition,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<Option<QuadPosition>, Error> {
        Ok(self.index.visit_quads_from(&position.0, visit)?.map(QuadPosition))
    }

    /// Reads the quads of a subject returned by [`crate::ReadStore::list_with_ids`], without looking up its
    /// name.
    pub fn read_listed(
        &self,
        subject: &ListedSubject,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        self.index.read_listed(subject, quads)
    }
}

/// The store as it was when a transaction began, without the changes of the [`crate::Transaction`].
#[derive(Debug)]
pub struct PriorState<'a> {
    pub(crate) index: &'a Index,
}

impl Read for Reader<'_> {
    fn read_subject(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        self.index.read_subject(subject, quads)
    }

    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        PriorState { index: &self.index }.quads_about(subject)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        PriorState { index: &self.index }.for_each(pattern, visit)
    }

    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        PriorState { index: &self.index }.list_subjects(filter, after, limit)
    }

    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        PriorState { index: &self.index }.read_document(collection, key)
    }

    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        PriorState { index: &self.index }.read_documents(collection, range)
    }
}

impl Read for PriorState<'_> {
    fn read_subject(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        self.index.read_subject(subject, quads)
    }

    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        let mut found = Vec::new();
        let pattern = Pattern { subject: Some(subject.clone()), ..Pattern::default() };
        self.for_each(&pattern, &mut |quad| {
            found.push(quad);
            ControlFlow::Continue(())
        })?;
        order::sort_quads(&mut found);
        Ok(found)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.index.for_each(pattern, &|_| false, visit)
    }

    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        self.index.visit_subjects(filter, after, &mut |iri, _| {
            found.push(NamedNode::new_unchecked(iri));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.index.read_document(collection, key)
    }

    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        let mut found = Vec::new();
        if range.limit == 0 {
            return Ok(found);
        }
        self.index.visit_documents(collection, range, &mut |document| {
            found.push(document);
            if found.len() < range.limit {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Store};

    #[test]
    fn try_read_returns_none_while_a_commit_is_applied() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let applying = store.inner().lock_index_mut();
        assert!(store.try_read().is_none());
        drop(applying);
        let read = store.try_read().unwrap();
        assert_eq!(read.sequence(), store.try_read().unwrap().sequence());
    }
}
