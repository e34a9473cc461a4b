//! Reading quads as codes, without their terms: for joins, which compare terms and decode few of them.
use crate::index::{Code, CodePattern, DEFAULT_GRAPH, QuadScan, Row, View, list_graphs};
use crate::varint::{self, Input};
use crate::{Error, Snapshot, Transaction, term};
use oxrdf::{GraphName, GraphNameRef, Term, TermRef};
use std::sync::Arc;

/// A term as the index encodes it. Within one snapshot, two codes are equal if and only if the terms are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TermCode(CodeKind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CodeKind {
    /// The id of an IRI, a blank node or the default graph.
    Id(u64),
    Literal(Arc<[u8]>),
}

/// A quad as codes: subject, predicate, object and graph.
pub type CodedQuad = [TermCode; 4];

/// A pattern of codes. `None` matches everything.
pub type CodedPattern<'p> = [Option<&'p TermCode>; 4];

impl TermCode {
    /// The code of the default graph, which is not a term.
    pub const DEFAULT_GRAPH: Self = Self(CodeKind::Id(DEFAULT_GRAPH));

    fn from_id(id: &[u8]) -> Result<Self, Error> {
        let id = Input::new(id).read_number();
        id.map(|id| Self(CodeKind::Id(id))).ok_or_else(|| Error::Index("an id is damaged".into()))
    }

    fn from_code(code: &[u8]) -> Result<Self, Error> {
        match code.split_first() {
            Some((&crate::index::NAMED, id)) => Self::from_id(id),
            _ => Ok(Self(CodeKind::Literal(code.into()))),
        }
    }

    fn to_code(&self) -> Code {
        match &self.0 {
            CodeKind::Id(id) => Code::from_id(*id),
            CodeKind::Literal(bytes) => Code(bytes.to_vec()),
        }
    }

    /// Returns the id as it is in keys; `None` for a literal.
    fn to_id(&self) -> Option<Vec<u8>> {
        let CodeKind::Id(id) = self.0 else { return None };
        let mut bytes = Vec::with_capacity(9);
        varint::write_number(&mut bytes, id);
        Some(bytes)
    }
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
        code.map(|code| TermCode::from_code(&code.0)).transpose()
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
        self.0.decode_code(&code.to_code())
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

    /// Returns the codes of the graphs that have quads, with that of the default graph.
    ///
    /// # Errors
    /// As all reads of a snapshot.
    pub fn list_graphs(&self) -> Result<Vec<TermCode>, Error> {
        list_graphs(&self.0)?.iter().map(|id| TermCode::from_id(id)).collect()
    }

    /// Returns the quads that match a pattern. Quads that differ only in the graph follow each other, unless the pattern
    /// names a graph and neither subject, predicate nor object.
    pub fn scan_codes(&self, pattern: CodedPattern<'_>) -> CodedQuads<'a> {
        let [subject, predicate, object, graph] = pattern;
        let ids = [subject, predicate, graph].map(|code| code.map(TermCode::to_id));
        // A literal is never a subject, predicate or graph.
        let is_possible = ids.iter().all(|id| !matches!(id, Some(None)));
        let [subject, predicate, graph] = ids.map(Option::flatten);
        let object = object.map(TermCode::to_code);
        let sought = CodePattern { subject, predicate, object, graph };
        CodedQuads(is_possible.then(|| QuadScan::new(&self.0, sought)))
    }
}

/// The quads of a pattern, from [`Snapshot::scan_codes`].
pub struct CodedQuads<'a>(Option<QuadScan<'a>>);

impl Iterator for CodedQuads<'_> {
    type Item = Result<CodedQuad, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let scan = self.0.as_mut()?;
        match scan.advance() {
            Ok(true) => Some(scan.row().and_then(to_codes)),
            Ok(false) => {
                self.0 = None;
                None
            }
            Err(error) => {
                self.0 = None;
                Some(Err(error))
            }
        }
    }
}

fn to_codes(row: Row<'_>) -> Result<CodedQuad, Error> {
    Ok([
        TermCode::from_id(row.subject)?,
        TermCode::from_id(row.predicate)?,
        TermCode::from_code(row.object)?,
        TermCode::from_id(row.graph)?,
    ])
}
