//! Reading, with the same interface for a [`crate::Reader`], a [`crate::Snapshot`] and a [`crate::Transaction`].
use crate::{Error, SubjectQuads, ValueKey, ValueRange, order};
use oxrdf::{
    GraphName, NamedNode, NamedNodeRef, NamedOrBlankNode, NamedOrBlankNodeRef, Quad, Term,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// A quad pattern. `None` matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The subject to match.
    pub subject: Option<NamedOrBlankNode>,
    /// The predicate to match.
    pub predicate: Option<NamedNode>,
    /// The object to match.
    pub object: Option<Term>,
    /// The graph to match; `Some(GraphName::DefaultGraph)` matches only the default graph.
    pub graph: Option<GraphName>,
}

/// A filter for listing subjects. A subject must satisfy every part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectFilter {
    /// The subject has a quad in this graph.
    pub graph: Option<GraphName>,
    /// For each pair, some graph has the quad (subject, predicate, object).
    pub having: Vec<(NamedNode, Term)>,
    /// If there are any, the index of values has the subject under one of these properties and ranges. A listing can also have
    /// other subjects: those that a transaction has changed, and all if too many have such a value, or there is no index of
    /// values.
    pub having_values: Vec<(NamedNode, ValueRange)>,
    /// After this time a listing fails with [`Error::TimedOut`]. It may test many subjects that do not match before it finds one
    /// that does.
    pub deadline: Option<Instant>,
}

/// A subject that was listed, for [`Read::read_listed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSubject {
    /// Its IRI.
    pub iri: NamedNode,
    /// Its id, and the instance of the index that assigned the id.
    pub(crate) id: u64,
    pub(crate) instance: u64,
}

/// The subject is looked up by its IRI when it is read.
impl From<NamedNode> for ListedSubject {
    fn from(iri: NamedNode) -> Self {
        // No index has this instance.
        Self { iri, id: 0, instance: u64::MAX }
    }
}

/// A range of one collection of documents, by key.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentRange<'a> {
    /// Only keys that begin with these bytes.
    pub prefix: &'a [u8],
    /// Only keys after this one, or before it if `reverse`. The key itself is excluded.
    pub after: Option<&'a [u8]>,
    /// Whether to read from the last key to the first.
    pub reverse: bool,
    /// The maximum number of documents; 0 returns none.
    pub limit: usize,
}

/// The callback for each entry of the index of values, with the value's key and the subject.
pub type VisitValue<'v> = dyn FnMut(&ValueKey, NamedOrBlankNode) -> ControlFlow<()> + 'v;

/// A document's key and value.
pub type Document = (Vec<u8>, Vec<u8>);

/// Returns what `visit` passes to its function, at most `limit`. Reads nothing if that is 0.
pub(crate) fn collect_first<T>(
    limit: usize,
    visit: impl FnOnce(&mut dyn FnMut(T) -> ControlFlow<()>) -> Result<(), Error>,
) -> Result<Vec<T>, Error> {
    let mut found = Vec::new();
    if limit > 0 {
        visit(&mut |one| {
            found.push(one);
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found)
}

/// The read operations of a reader, a snapshot and a transaction.
pub trait Read {
    /// Reads the quads of a subject into `quads`, replacing its content.
    fn read_subject(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        quads.clear();
        for quad in &self.quads_about(&subject.into_owned())? {
            if !quads.wants(quad.predicate.as_ref()) {
                continue;
            }
            quads.set_predicate(quad.predicate.as_ref());
            quads.set_graph(quad.graph_name.as_ref());
            quads.push(quad.object.as_ref());
        }
        Ok(())
    }

    /// Returns the quads of a subject in all graphs, without duplicates, ordered by predicate, object and
    /// graph.
    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        self.matching_quads(&Pattern { subject: Some(subject.clone()), ..Pattern::default() })
    }

    /// Returns the quads that match a pattern, without duplicates, ordered by predicate, object and graph.
    fn matching_quads(&self, pattern: &Pattern) -> Result<Vec<Quad>, Error> {
        let mut found = Vec::new();
        self.for_each(pattern, &mut |quad| {
            found.push(quad);
            ControlFlow::Continue(())
        })?;
        order::sort_quads(&mut found);
        Ok(found)
    }

    /// Passes every matching quad to `visit` until it breaks. The order is unspecified.
    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// Works as [`Self::for_each`], and also passes the quads of subjects that [`Self::is_hidden`] leaves out, so that the caller
    /// can limit how many it passes.
    fn for_each_with_hidden(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.for_each(pattern, visit)
    }

    /// Returns the IRIs of the subjects that satisfy `filter`, in code point order: at most `limit`, starting
    /// after `after`. Blank nodes are excluded. A page can cost more than its length, because subjects that do
    /// not match may have to be tested too, until the deadline of the filter. It can have subjects that
    /// [`Self::is_hidden`] leaves out, so that the caller can limit how many it passes.
    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error>;

    /// Lists the subjects that satisfy `filter`, as [`Self::list_subjects`] does, in the order in which [`Self::read_listed`]
    /// reads them fastest: at most `limit`, and none only at the end. `after` is the last one of the page before, of the same
    /// state.
    fn list_to_read(
        &self,
        filter: &SubjectFilter,
        after: Option<&ListedSubject>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, Error> {
        let found = self.list_subjects(filter, after.map(|after| after.iri.as_str()), limit)?;
        Ok(found.into_iter().map(ListedSubject::from).collect())
    }

    /// Returns whether a reader that sees only a part of the graph does not see this subject.
    fn is_hidden(&self, _: NamedOrBlankNodeRef<'_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Reads the quads of a listed subject into `quads`, replacing its content.
    fn read_listed(&self, subject: &ListedSubject, quads: &mut SubjectQuads) -> Result<(), Error> {
        self.read_subject(subject.iri.as_ref().into(), quads)
    }

    /// Returns the value of a document.
    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Returns documents of a collection as (key, value), in key order.
    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error>;

    /// Passes each subject that may have a literal of this property in the range to `visit`, in the order of values or in
    /// reverse. Subjects with the same key come in ascending order of their ids, in both directions. A subject comes once for
    /// each of its keys. Only as much is read as `visit` takes.
    ///
    /// Returns false, without a call, if there is no index of values.
    fn visit_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
        reverse: bool,
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error>;

    /// Estimates the number of entries of the range; `None` if there is no index of values. Small numbers are exact.
    fn estimate_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error>;

    /// Returns whether some quad matches.
    fn any(&self, pattern: &Pattern) -> Result<bool, Error> {
        let mut found = false;
        self.for_each(pattern, &mut |_| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

/// The methods of [`Read`] for a type that reads through another one. The module imports the types of [`Read`].
macro_rules! read_through {
    ($this:ident => $inner:expr) => {
        fn read_subject(
            &$this,
            subject: NamedOrBlankNodeRef<'_>,
            quads: &mut SubjectQuads,
        ) -> Result<(), Error> {
            Read::read_subject($inner, subject, quads)
        }

        fn quads_about(
            &$this,
            subject: &NamedOrBlankNode,
        ) -> Result<Vec<Quad>, Error> {
            Read::quads_about($inner, subject)
        }

        fn for_each(
            &$this,
            pattern: &Pattern,
            visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
        ) -> Result<(), Error> {
            Read::for_each($inner, pattern, visit)
        }

        fn for_each_with_hidden(
            &$this,
            pattern: &Pattern,
            visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
        ) -> Result<(), Error> {
            Read::for_each_with_hidden($inner, pattern, visit)
        }

        fn list_subjects(
            &$this,
            filter: &SubjectFilter,
            after: Option<&str>,
            limit: usize,
        ) -> Result<Vec<NamedNode>, Error> {
            Read::list_subjects($inner, filter, after, limit)
        }

        fn list_to_read(
            &$this,
            filter: &SubjectFilter,
            after: Option<&ListedSubject>,
            limit: usize,
        ) -> Result<Vec<ListedSubject>, Error> {
            Read::list_to_read($inner, filter, after, limit)
        }

        fn is_hidden(&$this, subject: NamedOrBlankNodeRef<'_>) -> Result<bool, Error> {
            Read::is_hidden($inner, subject)
        }

        fn read_listed(
            &$this,
            subject: &ListedSubject,
            quads: &mut SubjectQuads,
        ) -> Result<(), Error> {
            Read::read_listed($inner, subject, quads)
        }

        fn read_document(
            &$this,
            collection: &str,
            key: &[u8],
        ) -> Result<Option<Vec<u8>>, Error> {
            Read::read_document($inner, collection, key)
        }

        fn read_documents(
            &$this,
            collection: &str,
            range: DocumentRange<'_>,
        ) -> Result<Vec<Document>, Error> {
            Read::read_documents($inner, collection, range)
        }

        fn visit_values(
            &$this,
            property: NamedNodeRef<'_>,
            range: &ValueRange,
            reverse: bool,
            visit: &mut VisitValue<'_>,
        ) -> Result<bool, Error> {
            Read::visit_values($inner, property, range, reverse, visit)
        }

        fn estimate_values(
            &$this,
            property: NamedNodeRef<'_>,
            range: &ValueRange,
        ) -> Result<Option<u64>, Error> {
            Read::estimate_values($inner, property, range)
        }

        fn any(&$this, pattern: &Pattern) -> Result<bool, Error> {
            Read::any($inner, pattern)
        }
    };
}
pub(crate) use read_through;

impl<R: Read + ?Sized> Read for &R {
    read_through!(self => *self);
}
