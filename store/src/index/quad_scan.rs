//! The quads of a pattern, one after the other, as codes.
//!
//! The caller asks for each quad. So it can stop and continue, and decodes only the terms that it needs. A pattern with a
//! subject and a predicate, or with a predicate and a named object, is read without an allocation.
use super::View;
use super::key::{self, KeyBuffer, damaged_entry, object, tree};
use super::key_scan::{KeyScan, build_prefix};
use super::literal_subjects::LiteralSubjects;
use super::term_code::{CodedPattern, CodedQuad, TermCode};
use crate::Error;
use crate::varint::{self, Input};

/// Returns the ids of the graphs that have quads.
pub(crate) fn list_graphs(view: &View<'_>) -> Result<Vec<u64>, Error> {
    let mut graphs = Vec::new();
    let all = build_prefix(tree::GS, &[], None);
    let prefix_bytes = all.1;
    let mut keys = KeyScan::new(view.blocks, all);
    while keys.advance()? {
        let graph = keys.read_number()?;
        graphs.push(graph);
        let (next, _) = build_prefix(tree::GS, &[graph + 1], None);
        keys.seek((next, prefix_bytes))?;
    }
    Ok(graphs)
}

/// A quad as in a key of a tree of quads.
pub(super) struct CodedRow<'a> {
    pub(super) subject: u64,
    pub(super) predicate: u64,
    /// The code of the object.
    pub(super) object: &'a [u8],
    pub(super) graph: u64,
}

impl<'a> CodedRow<'a> {
    /// Decodes a key of the tree of all quads, or of the one by predicate and object.
    pub(super) fn from_key(key: &'a [u8]) -> Option<Self> {
        let (tree, rest) = key.split_first()?;
        let mut input = Input::new(rest);
        let first = input.read_number()?;
        if *tree == tree::SPOG {
            let predicate = input.read_number()?;
            let object = key::read_code_bytes(&mut input)?;
            let graph = input.read_number()?;
            return input.is_empty().then_some(Self { subject: first, predicate, object, graph });
        }
        let object = key::read_code_bytes(&mut input)?;
        let subject = input.read_number()?;
        let graph = input.read_number()?;
        input.is_empty().then_some(Self { subject, predicate: first, object, graph })
    }

    pub(super) fn is_literal(&self) -> bool {
        self.object.first() != Some(&object::NAMED)
    }

    /// Returns the quad's key in the tree of all quads.
    pub(super) fn to_spog_key(&self) -> Vec<u8> {
        let mut key = key::build_numbered_key(tree::SPOG, &[self.subject, self.predicate]);
        key.extend_from_slice(self.object);
        varint::write_number(&mut key, self.graph);
        key
    }

    fn to_quad(&self) -> Result<CodedQuad, Error> {
        Ok([
            TermCode::from_id(self.subject),
            TermCode::from_id(self.predicate),
            TermCode::from_object(self.object)?,
            TermCode::from_id(self.graph),
        ])
    }
}

/// A pattern of codes. `None` matches everything.
#[derive(Debug, Default)]
pub(super) struct Sought {
    pub(super) subject: Option<u64>,
    pub(super) predicate: Option<u64>,
    pub(super) object: Option<TermCode>,
    pub(super) graph: Option<u64>,
}

impl Sought {
    /// Converts a pattern. Returns `None` if no quad can match it.
    pub(super) fn new([subject, predicate, object, graph]: CodedPattern<'_>) -> Option<Self> {
        let id = |code: Option<&TermCode>| code.map_or(Some(None), |code| code.id().map(Some));
        Some(Self {
            subject: id(subject)?,
            predicate: id(predicate)?,
            object: object.cloned(),
            graph: id(graph)?,
        })
    }

    /// Returns the object if it is not a literal.
    pub(super) fn named_object(&self) -> Option<&TermCode> {
        self.object.as_ref().filter(|code| code.id().is_some())
    }

    /// Compares what a range does not select.
    pub(super) fn matches(&self, row: &CodedRow<'_>) -> bool {
        let literal = self.object.as_ref().and_then(TermCode::literal);
        self.graph.is_none_or(|graph| graph == row.graph)
            && literal.is_none_or(|literal| literal == row.object)
    }
}

/// Keys that lead to lists of quads.
enum OuterScan<'a> {
    /// The predicates of a named object.
    Predicates(KeyScan<'a>),
    /// The subjects of a graph.
    Subjects(KeyScan<'a>),
    /// The quads of a predicate with named objects, and then the subjects of those with literals.
    Objects(KeyScan<'a>),
    /// The predicates and subjects that may have a literal.
    Literal(Box<LiteralSubjects<'a>>),
}

impl OuterScan<'_> {
    /// Moves to the next key. Returns false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        match self {
            Self::Predicates(keys) | Self::Subjects(keys) | Self::Objects(keys) => keys.advance(),
            Self::Literal(subjects) => subjects.advance(),
        }
    }
}

/// The quads of a pattern.
pub(crate) struct QuadScan<'a> {
    sought: Sought,
    /// Keys that lead to lists of quads, if the quads are not in one list.
    outer: Option<Box<OuterScan<'a>>>,
    /// The list of quads that is being read, if one was found.
    inner: KeyScan<'a>,
    is_in_list: bool,
}

impl<'a> QuadScan<'a> {
    /// Begins to read the quads that match a pattern of codes. Returns `None` if none can.
    pub(crate) fn of_codes(view: &View<'a>, pattern: CodedPattern<'_>) -> Option<Self> {
        Sought::new(pattern).map(|sought| Self::new(view, sought))
    }

    /// Begins to read the quads that match a pattern.
    pub(super) fn new(view: &View<'a>, sought: Sought) -> Self {
        let Sought { subject, predicate, object, graph } = &sought;
        let scan = |key| KeyScan::new(view.blocks, key);
        let mut list = None;
        let literal = object.as_ref().filter(|object| object.id().is_none());
        let outer = match (*subject, *predicate, sought.named_object(), *graph) {
            (None, predicate, None, _)
                if let Some(literal) = literal.filter(|_| view.values.is_some()) =>
            {
                let subjects = LiteralSubjects::new(*view, predicate, literal.clone());
                Some(OuterScan::Literal(Box::new(subjects)))
            }
            (Some(subject), Some(predicate), ..) => {
                list = Some(build_prefix(tree::SPOG, &[subject, predicate], object.as_ref()));
                None
            }
            (_, None, Some(object), _) => {
                let key = build_prefix(tree::OP, &[object.id().unwrap_or_default()], None);
                Some(OuterScan::Predicates(scan(key)))
            }
            (Some(subject), ..) => {
                list = Some(build_prefix(tree::SPOG, &[subject], None));
                None
            }
            (None, Some(predicate), Some(object), _) => {
                list = Some(build_prefix(tree::POSG, &[predicate], Some(object)));
                None
            }
            (None, Some(predicate), None, _) => {
                let (mut key, mut bytes) = build_prefix(tree::POSG, &[predicate], None);
                if object.is_some() {
                    key.extend(&[object::ANY_LITERAL]);
                    bytes = key.len();
                }
                Some(OuterScan::Objects(scan((key, bytes))))
            }
            (None, None, None, Some(graph)) => {
                Some(OuterScan::Subjects(scan(build_prefix(tree::GS, &[graph], None))))
            }
            (None, None, None, None) => {
                list = Some(build_prefix(tree::SPOG, &[], None));
                None
            }
        };
        let is_in_list = list.is_some();
        let list = list.unwrap_or_else(|| build_prefix(tree::SPOG, &[], None));
        Self { outer: outer.map(Box::new), inner: scan(list), is_in_list, sought }
    }

    /// Returns the next quad; `None` at the end. Calls `check` for each one that does not match.
    pub(crate) fn next_quad(
        &mut self,
        check: &mut dyn FnMut(),
    ) -> Result<Option<CodedQuad>, Error> {
        while self.advance()? {
            let row = self.row()?;
            if self.sought.matches(&row) {
                return row.to_quad().map(Some);
            }
            check();
        }
        Ok(None)
    }

    /// Returns whether a quad of the ranges matches the pattern.
    pub(super) fn matches(&self, row: &CodedRow<'_>) -> bool {
        self.sought.matches(row)
    }

    /// Returns the graph of the current quad if it matches the pattern.
    pub(super) fn find_match(&self) -> Result<Option<u64>, Error> {
        let row = self.row()?;
        Ok(self.sought.matches(&row).then_some(row.graph))
    }

    /// Moves to the next quad of the ranges of the pattern, which may not match it. Returns false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if self.is_in_list {
                if self.inner.advance()? {
                    return Ok(true);
                }
                self.is_in_list = false;
            }
            let Some(outer) = self.outer.as_deref_mut() else { return Ok(false) };
            if !outer.advance()? {
                return Ok(false);
            }
            if !self.find_list()? {
                return Ok(true);
            }
        }
    }

    /// Returns the current quad. There is one after [`Self::advance`] returned true.
    pub(super) fn row(&self) -> Result<CodedRow<'_>, Error> {
        let key = self.key();
        CodedRow::from_key(key).ok_or_else(|| damaged_entry("a quad", key))
    }

    /// Returns the key of the current quad.
    pub(super) fn key(&self) -> &[u8] {
        match self.outer.as_deref() {
            Some(OuterScan::Objects(objects)) if !self.is_in_list => objects.key(),
            _ => self.inner.key(),
        }
    }

    /// Moves to the list of the current outer key. Returns false if that key is a quad.
    fn find_list(&mut self) -> Result<bool, Error> {
        let Some(outer) = self.outer.as_deref() else { return Ok(false) };
        let object = self.sought.object.as_ref();
        let list = match outer {
            OuterScan::Predicates(predicates) => {
                match (predicates.read_number()?, self.sought.subject) {
                    (predicate, Some(subject)) => {
                        build_prefix(tree::SPOG, &[subject, predicate], object)
                    }
                    (predicate, None) => build_prefix(tree::POSG, &[predicate], object),
                }
            }
            OuterScan::Subjects(subjects) => {
                build_prefix(tree::SPOG, &[subjects.read_number()?], None)
            }
            OuterScan::Objects(objects) => {
                let Some((predicate, subject)) = read_literal_mark(objects.key())? else {
                    return Ok(false);
                };
                first_literal(subject, predicate)
            }
            OuterScan::Literal(subjects) => {
                let (predicate, subject) = subjects.current();
                first_literal(subject, predicate)
            }
        };
        self.inner.seek(list)?;
        self.is_in_list = true;
        Ok(true)
    }
}

/// Works as [`KeyBuffer::first_literal`].
pub(super) fn first_literal(subject: u64, predicate: u64) -> (KeyBuffer, usize) {
    varint::encode_number(subject, |subject| {
        varint::encode_number(predicate, |predicate| KeyBuffer::first_literal(subject, predicate))
    })
}

/// Returns the predicate and the subject of a key for literals; `None` for a quad with a named object.
fn read_literal_mark(key: &[u8]) -> Result<Option<(u64, u64)>, Error> {
    let damaged = || damaged_entry("a quad", key);
    let mut input = Input::new(key.get(1..).ok_or_else(damaged)?);
    let predicate = input.read_number().ok_or_else(damaged)?;
    if input.read_byte() == Some(object::NAMED) {
        return Ok(None);
    }
    Ok(Some((predicate, input.read_number().ok_or_else(damaged)?)))
}
