//! Reading quads as codes, without their terms: for joins, which compare terms and decode few of them.
use crate::index::{CodedPattern, CodedQuad, DEFAULT_GRAPH, QuadScan, TermCode};
use crate::{Error, Snapshot, term};
use oxrdf::{GraphName, GraphNameRef, Term, TermRef};

impl TermCode {
    /// The code of the default graph, which is not a term.
    pub const DEFAULT_GRAPH: Self = Self::from_id(DEFAULT_GRAPH);
}

impl Snapshot {
    /// Returns the code of a term; `None` if no quad can have it.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn find_code(&self, term: TermRef<'_>) -> Result<Option<TermCode>, Error> {
        let code = self.view().find_code(term)?;
        code.map(|code| TermCode::from_object(&code.0)).transpose()
    }

    /// Returns the code of a graph; `None` if no quad can be in it.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn find_graph_code(&self, graph: GraphNameRef<'_>) -> Result<Option<TermCode>, Error> {
        match term::graph_to_term(graph) {
            None => Ok(Some(TermCode::DEFAULT_GRAPH)),
            Some(term) => self.find_code(term),
        }
    }

    /// Returns the term of a code of this snapshot.
    ///
    /// # Errors
    /// As all reads of a snapshot; [`Error::Index`] for a code of another store.
    pub fn decode_code(&self, code: &TermCode) -> Result<Term, Error> {
        self.view().decode_code(code)
    }

    /// Returns the graph of a code of this snapshot.
    ///
    /// # Errors
    /// As [`Self::decode_code`].
    pub fn decode_graph(&self, code: &TermCode) -> Result<GraphName, Error> {
        if *code == TermCode::DEFAULT_GRAPH {
            return Ok(GraphName::DefaultGraph);
        }
        let term = self.decode_code(code)?;
        term::to_graph(term).ok_or_else(|| Error::Index("a graph is a literal".into()))
    }

    /// Returns the quads that match a pattern. Quads that differ only in the graph follow each other, unless the pattern
    /// names a graph and neither subject, predicate nor object.
    pub fn scan_codes(&self, pattern: CodedPattern<'_>) -> CodedQuads<'_> {
        CodedQuads(QuadScan::new(&self.view(), pattern))
    }

    /// Estimates the number of quads that match a pattern, from about 16 blocks. It is exact if the index selects at most
    /// 128 quads for the pattern. For a subject with thousands of values it is a lower bound.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn estimate_count(&self, pattern: CodedPattern<'_>) -> Result<u64, Error> {
        self.view().estimate_count(pattern)
    }

    /// Estimates the number of different objects of a predicate. Each literal counts, even if others are equal.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn estimate_distinct_objects(&self, predicate: &TermCode) -> Result<u64, Error> {
        predicate.id().map_or(Ok(0), |id| self.view().estimate_distinct_objects(id))
    }
}

/// The quads of a pattern, from [`Snapshot::scan_codes`].
pub struct CodedQuads<'a>(Option<QuadScan<'a>>);

impl Iterator for CodedQuads<'_> {
    type Item = Result<CodedQuad, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.as_mut()?.next_quad().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}
