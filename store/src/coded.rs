//! Reading quads as codes, without their terms: for joins, which compare terms and decode few of them.
use crate::index::{
    CodedPattern, CodedQuad, DEFAULT_GRAPH, QuadScan, TermCode, ValueScan, View, list_graphs,
};
use crate::{Error, Snapshot, Transaction, ValueKey, ValueRange};
use oxrdf::{Term, TermRef};

impl TermCode {
    /// The code of the default graph, which is not a term.
    pub const DEFAULT_GRAPH: Self = Self::from_id(DEFAULT_GRAPH);
}

/// Reads a state of the store as codes.
#[derive(Clone, Copy)]
pub struct CodeReader<'a>(View<'a>);

impl Snapshot {
    /// Returns the reader of codes.
    pub fn codes(&self) -> CodeReader<'_> {
        CodeReader(self.view())
    }
}

impl Transaction<'_> {
    /// Returns the reader of codes for the state before this transaction.
    pub fn prior_codes(&self) -> CodeReader<'_> {
        CodeReader(self.index_view())
    }
}

impl<'a> CodeReader<'a> {
    /// Returns the code of a term; `None` if no quad can have it.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn find_code(&self, term: TermRef<'_>) -> Result<Option<TermCode>, Error> {
        let code = self.0.find_code(term)?;
        code.map(|code| TermCode::from_object(&code.0)).transpose()
    }

    /// Returns the term of a code of this snapshot.
    ///
    /// # Errors
    /// As all reads of a snapshot; [`Error::Index`] for a code of another store.
    pub fn decode_code(&self, code: &TermCode) -> Result<Term, Error> {
        self.0.decode_code(code)
    }

    /// Returns the codes of the graphs that have quads, with that of the default graph.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn list_graphs(&self) -> Result<Vec<TermCode>, Error> {
        Ok(list_graphs(&self.0)?.into_iter().map(TermCode::from_id).collect())
    }

    /// Returns the quads that match a pattern. Quads that differ only in the graph follow each other, unless the pattern
    /// names a graph and neither subject, predicate nor object. If it only names a predicate, or a graph beside it, quads with
    /// IRIs and blank nodes as objects come before those with literals.
    pub fn scan_codes(&self, pattern: CodedPattern<'_>) -> CodedQuads<'a> {
        CodedQuads(QuadScan::of_codes(&self.0, pattern))
    }

    /// Counts the triples that have these terms as subject, predicate and object: quads that differ only in the graph count
    /// once. Calls `check` now and then.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn count_triples(
        &self,
        terms: [Option<&TermCode>; 3],
        check: &mut dyn FnMut(),
    ) -> Result<u64, Error> {
        self.0.count_triples(terms, check)
    }

    /// Estimates the number of quads that match a pattern, from about 16 blocks. It is exact if the index selects at most
    /// 128 quads for the pattern. For a subject with thousands of values it is a lower bound.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn estimate_count(&self, pattern: CodedPattern<'_>) -> Result<u64, Error> {
        self.0.estimate_count(pattern)
    }

    /// Estimates the number of different objects of a predicate. Each literal counts, even if others are equal.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn estimate_distinct_objects(&self, predicate: &TermCode) -> Result<u64, Error> {
        predicate.id().map_or(Ok(0), |id| self.0.estimate_distinct_objects(id))
    }
}

impl<'a> CodeReader<'a> {
    /// Works as [`crate::Read::visit_values`], as an iterator over the codes of subjects. `None` without an index of values.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn scan_values(
        &self,
        property: &TermCode,
        range: &ValueRange,
        reverse: bool,
    ) -> Result<Option<CodedValues<'a>>, Error> {
        let scan = property.id().map(|id| self.0.scan_values(id, range, reverse));
        Ok(scan.transpose()?.flatten().map(CodedValues))
    }

    /// Estimates the number of entries of a range: see [`crate::Read::estimate_values`].
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn estimate_values(
        &self,
        property: &TermCode,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        property.id().map_or(Ok(None), |id| self.0.estimate_values(id, range))
    }
}

/// The subjects of a range of values with the keys of their values, from [`CodeReader::scan_values`].
pub struct CodedValues<'a>(ValueScan<'a>);

impl Iterator for CodedValues<'_> {
    type Item = Result<(ValueKey, TermCode), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.next_entry().transpose()?;
        Some(next.map(|(key, subject)| (key, TermCode::from_id(subject))))
    }
}

/// The quads of a pattern, from [`Snapshot::scan_codes`].
pub struct CodedQuads<'a>(Option<QuadScan<'a>>);

impl CodedQuads<'_> {
    /// Returns the next quad, as the iterator does. Calls `check` for each quad before it that the index selects and that
    /// does not match: there may be as many as the predicate has.
    pub fn next_with_checks(
        &mut self,
        check: &mut dyn FnMut(),
    ) -> Option<Result<CodedQuad, Error>> {
        let next = self.0.as_mut()?.next_quad(check).transpose();
        if !matches!(next, Some(Ok(_))) {
            self.0 = None;
        }
        next
    }
}

impl Iterator for CodedQuads<'_> {
    type Item = Result<CodedQuad, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_with_checks(&mut || {})
    }
}
