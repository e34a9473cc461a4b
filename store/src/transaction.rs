//! A change in the making. PLACEHOLDER held in memory.
use crate::Error;
use crate::read::{DocumentRange, Pattern, Read, SubjectFilter};
use crate::store::State;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, QuadRef};
use std::ops::ControlFlow;

/// A change in the making: reads see the store with the change applied.
#[derive(Debug)]
pub struct Transaction<'a> {
    pub(crate) store: std::marker::PhantomData<&'a ()>,
    pub(crate) state: State,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    pub(crate) documents: u64,
}

impl Transaction<'_> {
    /// Adds a quad; `false` when it is there already.
    pub fn insert(&mut self, quad: QuadRef<'_>) -> Result<bool, Error> {
        let new = self.state.quads.insert(quad.into_owned());
        self.added += u64::from(new);
        Ok(new)
    }

    /// Removes a quad; `false` when it is not there.
    pub fn remove(&mut self, quad: QuadRef<'_>) -> Result<bool, Error> {
        let old = self.state.quads.remove(&quad.into_owned());
        self.removed += u64::from(old);
        Ok(old)
    }

    /// Puts a document in place of the one with the same key.
    pub fn put(&mut self, collection: &str, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.documents += 1;
        self.state.documents.insert((collection.to_owned(), key.to_vec()), value.to_vec());
        Ok(())
    }

    /// Deletes a document, if it is there.
    pub fn delete(&mut self, collection: &str, key: &[u8]) -> Result<(), Error> {
        self.documents += 1;
        self.state.documents.remove(&(collection.to_owned(), key.to_vec()));
        Ok(())
    }

    /// The sequence of the frame that this change will be.
    pub fn sequence(&self) -> u64 {
        self.state.sequence + 1
    }
}

impl Read for Transaction<'_> {
    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        self.state.quads_about(subject)
    }
    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.state.for_each(pattern, visit)
    }
    fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        self.state.subjects(filter, after, limit)
    }
    fn document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.state.document(collection, key)
    }
    fn documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        self.state.documents(collection, range)
    }
}
