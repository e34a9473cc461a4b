//! Reading what is committed.
use crate::about::About;
use crate::index::{Cursor, Index};
use crate::read::{Document, DocumentRange, Listed, Pattern, Read, SubjectFilter};
use crate::{Error, order};
use oxrdf::{NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Quad};
use std::ops::ControlFlow;
use std::sync::RwLockReadGuard;

/// A view of all whole commits at one moment. The newest of them may be in the midst of their
/// sync, some milliseconds before they are acknowledged.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(crate) index: RwLockReadGuard<'a, Index>,
}

/// Where in the order of the index a pass over all quads goes on; the default is its beginning.
#[derive(Debug, Clone, Default)]
pub struct Place(Cursor);

impl Reader<'_> {
    /// The sequence of the newest commit seen.
    pub fn sequence(&self) -> u64 {
        self.index.sequence()
    }

    /// Identifies the index that is read. It changes when reopening the store may have cut off commits that
    /// reads had seen: what acts on several reads compares it with [`crate::Transaction::instance`].
    pub fn instance(&self) -> u64 {
        self.index.instance()
    }

    /// Hands the quads from a place on to `visit`, subject by subject, until it breaks; gives the
    /// place of the quad at which it broke, or nothing when there are no more. The next page may be
    /// another reader's: what no commit touches from the first page to the last comes once, and what
    /// one touches may come, as it was or as it is, or not; a quad even twice.
    pub fn quads_from(
        &self,
        place: &Place,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<Option<Place>, Error> {
        Ok(self.index.quads_from(&place.0, visit)?.map(Place))
    }

    /// What is stored about a subject that [`crate::ReadStore::listed`] found, without a look for its name.
    pub fn about_listed(&self, subject: &Listed, about: &mut About) -> Result<(), Error> {
        self.index.about_listed(subject, about)
    }
}

/// The store as it was when a transaction began: what a [`crate::Transaction`] has changed does not show.
#[derive(Debug)]
pub struct Before<'a> {
    pub(crate) index: &'a Index,
}

impl Read for Reader<'_> {
    fn about(&self, subject: NamedOrBlankNodeRef<'_>, about: &mut About) -> Result<(), Error> {
        self.index.about(subject, about)
    }

    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        Before { index: &self.index }.quads_about(subject)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        Before { index: &self.index }.for_each(pattern, visit)
    }

    fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        Before { index: &self.index }.subjects(filter, after, limit)
    }

    fn document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Before { index: &self.index }.document(collection, key)
    }

    fn documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        Before { index: &self.index }.documents(collection, range)
    }
}

impl Read for Before<'_> {
    fn about(&self, subject: NamedOrBlankNodeRef<'_>, about: &mut About) -> Result<(), Error> {
        self.index.about(subject, about)
    }

    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        let mut found = Vec::new();
        let pattern = Pattern { subject: Some(subject.clone()), ..Pattern::default() };
        self.for_each(&pattern, &mut |quad| {
            found.push(quad);
            ControlFlow::Continue(())
        })?;
        order::sort(&mut found);
        Ok(found)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.index.for_each(pattern, &|_| false, visit)
    }

    fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        self.index.subjects(filter, after, &mut |iri, _| {
            found.push(NamedNode::new_unchecked(iri));
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }

    fn document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.index.document(collection, key)
    }

    fn documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        let mut found = Vec::new();
        if range.limit == 0 {
            return Ok(found);
        }
        self.index.documents(collection, range, &mut |document| {
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
    fn who_does_not_want_to_wait_gets_nothing_while_a_commit_is_applied() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let applying = store.inner().index_mut();
        assert!(store.try_read().is_none());
        drop(applying);
        let read = store.try_read().unwrap();
        assert_eq!(read.sequence(), store.try_read().unwrap().sequence());
    }
}
