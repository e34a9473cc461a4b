//! Reading committed data.
use crate::index::{PageCursor, View};
use crate::index_lock::IndexReadGuard;
use crate::read::{
    Document, DocumentRange, ListedSubject, Pattern, Read, SubjectFilter, VisitValue,
    collect_first, read_through,
};
use crate::subject_quads::SubjectQuads;
use crate::{Error, FastSet, ValueRange};
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, NamedOrBlankNodeRef, Quad};
use std::ops::ControlFlow;

/// A consistent view of all complete commits. The newest of them may still be syncing, some milliseconds
/// before it is acknowledged.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(crate) index: IndexReadGuard<'a>,
}

/// The position of a pass over all quads, in the order of the index. The default is the beginning.
#[derive(Debug, Clone, Default)]
pub struct QuadPosition(pub(crate) PageCursor);

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
        Ok(self.index.view().visit_quads_from(&position.0, visit)?.map(QuadPosition))
    }
}

impl Read for Reader<'_> {
    read_through!(self => &self.index.view());
}

impl Read for View<'_> {
    fn read_subject(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        self.read_subject(subject, quads)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.for_each(pattern, &FastSet::default(), visit)
    }

    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        collect_first(limit, |found| {
            self.visit_subjects(filter, after, &mut |iri, _| found(NamedNode::new_unchecked(iri)))
        })
    }

    fn list_to_read(
        &self,
        filter: &SubjectFilter,
        after: Option<&ListedSubject>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, Error> {
        self.list_to_read(filter, after, limit)
    }

    fn read_listed(&self, subject: &ListedSubject, quads: &mut SubjectQuads) -> Result<(), Error> {
        self.read_listed(subject, quads)
    }

    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.read_document(collection, key)
    }

    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        collect_first(range.limit, |found| self.visit_documents(collection, range, found))
    }

    fn visit_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
        reverse: bool,
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error> {
        self.visit_values(property, (range, reverse), visit)
    }

    fn estimate_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        if self.values.is_none() {
            return Ok(None);
        }
        let property = self.find_code(property.into())?.and_then(|code| code.to_number());
        property.map_or(Ok(Some(0)), |property| self.estimate_values(property, range))
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
