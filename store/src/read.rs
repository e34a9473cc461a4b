//! Reading: the same from a [`crate::Reader`] and inside a [`crate::Transaction`].
use crate::{About, Error};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Quad, Term};
use std::ops::ControlFlow;

/// A quad pattern: what is `None` matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The subject to match.
    pub subject: Option<NamedOrBlankNode>,
    /// The predicate to match.
    pub predicate: Option<NamedNode>,
    /// The object to match.
    pub object: Option<Term>,
    /// The graph to match; `Some(GraphName::DefaultGraph)` is the default graph alone.
    pub graph: Option<GraphName>,
}

/// Which subjects to list: those that satisfy every part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectFilter {
    /// The subject has a quad in this graph.
    pub graph: Option<GraphName>,
    /// For each pair, some graph holds (subject, predicate, object).
    pub having: Vec<(NamedNode, Term)>,
}

/// A subject as a listing found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its IRI.
    pub iri: NamedNode,
    /// Its id, and the index that it is one of.
    pub(crate) id: u64,
    pub(crate) instance: u64,
}

/// A range of one collection of documents, by key.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentRange<'a> {
    /// Only keys that begin with these bytes.
    pub prefix: &'a [u8],
    /// Only keys after this one (before it, when `reverse`); the key itself is left out.
    pub after: Option<&'a [u8]>,
    /// From the last key to the first.
    pub reverse: bool,
    /// At most so many; 0 is none.
    pub limit: usize,
}

/// A document's key and value.
pub type Document = (Vec<u8>, Vec<u8>);

/// What both a reader and a transaction can read.
pub trait Read {
    /// What is stored about a subject, in place of what `about` held.
    fn about(&self, subject: NamedOrBlankNodeRef<'_>, about: &mut About) -> Result<(), Error> {
        about.clear();
        for quad in &self.quads_about(&subject.into_owned())? {
            about.set_predicate(quad.predicate.as_ref());
            about.set_graph(quad.graph_name.as_ref());
            about.push(quad.object.as_ref());
        }
        Ok(())
    }

    /// All quads about a subject, in every graph, each once; ordered by predicate, then object, then graph.
    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error>;

    /// Hands every quad that matches to `visit`, until it breaks. The order is unspecified.
    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// The IRIs of the subjects that satisfy `filter`, in code point order, those after `after`, at
    /// most `limit`. Blank nodes are left out. Costs about as much as the page is long.
    fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error>;

    /// One document.
    fn document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Documents of a collection in key order, as (key, value).
    fn documents(&self, collection: &str, range: DocumentRange<'_>)
    -> Result<Vec<Document>, Error>;

    /// Whether some quad matches.
    fn any(&self, pattern: &Pattern) -> Result<bool, Error> {
        let mut found = false;
        self.for_each(pattern, &mut |_| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}
