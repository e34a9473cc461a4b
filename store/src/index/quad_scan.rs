//! The quads of a pattern, one after the other, as codes.
//!
//! It reads the same ranges as [`View::for_each`], but the caller asks for each quad. So it can stop and continue, and
//! decodes only the terms that it needs.
use super::block::Block;
use super::block_source::{BlockSource, Reading};
use super::key::{self, Row, build_key, object, tree};
use super::quads::CodePattern;
use super::{View, damaged_entry};
use crate::Error;
use crate::varint::Input;
use std::ops::Bound;
use std::sync::Arc;

/// The keys of a tree that begin with a prefix, in order.
struct KeyScan<'a> {
    blocks: &'a dyn BlockSource,
    prefix: Vec<u8>,
    /// The first key that may be visited.
    from: Vec<u8>,
    stage: KeyStage,
    /// The current key.
    key: Vec<u8>,
}

enum KeyStage {
    Begin,
    In { block: Arc<Block>, at: usize },
    End,
}

impl<'a> KeyScan<'a> {
    fn new(blocks: &'a dyn BlockSource, prefix: Vec<u8>) -> Self {
        Self { blocks, from: prefix.clone(), prefix, stage: KeyStage::Begin, key: Vec::new() }
    }

    /// Moves to the next key. Returns false at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            match &mut self.stage {
                KeyStage::End => return Ok(false),
                KeyStage::Begin => {
                    let from = self.from.as_slice();
                    let upper = Bound::Included(from);
                    let (_, block) = self.blocks.find_block(upper, from, Reading::Again)?;
                    self.stage = KeyStage::In { block, at: 0 };
                }
                KeyStage::In { block, at } => {
                    if block.read_next(at, &mut self.key).is_some() {
                        if self.key.starts_with(&self.prefix) {
                            if *self.key >= *self.from {
                                return Ok(true);
                            }
                        } else if *self.key > *self.prefix {
                            self.stage = KeyStage::End;
                        }
                        continue;
                    }
                    self.stage = match block.end() {
                        None => KeyStage::End,
                        Some(end) => {
                            let block = self.blocks.load_block(end, Reading::Again)?;
                            self.key.clear();
                            KeyStage::In { block, at: 0 }
                        }
                    };
                }
            }
        }
    }

    /// Returns the current key without the prefix.
    fn rest(&self) -> &[u8] {
        self.key.get(self.prefix.len()..).unwrap_or_default()
    }
}

/// Returns the ids of the graphs that have quads.
pub(crate) fn list_graphs(view: &View<'_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut graphs = Vec::new();
    let mut from = build_key(tree::GS, &[]);
    loop {
        let mut keys = KeyScan::new(view.blocks, build_key(tree::GS, &[]));
        keys.from = from;
        if !keys.advance()? {
            return Ok(graphs);
        }
        let damaged = || damaged_entry("a graph", &keys.key);
        let graph = key::read_number_bytes(&mut Input::new(keys.rest())).ok_or_else(damaged)?;
        graphs.push(graph.to_vec());
        // Behind every subject of this graph: no number begins with this byte.
        from = build_key(tree::GS, &[graph, &[0xff; 10]]);
    }
}

/// The quads of a pattern.
pub(crate) struct QuadScan<'a> {
    blocks: &'a dyn BlockSource,
    sought: CodePattern,
    /// Keys that lead to lists of quads, if the quads are not in one list.
    outer: Option<OuterScan<'a>>,
    /// The list of quads that is being read.
    inner: Option<QuadKeys<'a>>,
}

/// Keys that lead to lists of quads.
enum OuterScan<'a> {
    /// The predicates of a named object.
    Predicates(KeyScan<'a>),
    /// The subjects of a graph.
    Subjects(KeyScan<'a>),
    /// The quads of a predicate with named objects, and then the subjects of those with literals.
    Objects(KeyScan<'a>),
}

/// Keys that are quads.
enum QuadKeys<'a> {
    Spog(KeyScan<'a>),
    Posg(KeyScan<'a>),
}

impl<'a> QuadKeys<'a> {
    fn keys(&mut self) -> &mut KeyScan<'a> {
        match self {
            Self::Spog(keys) | Self::Posg(keys) => keys,
        }
    }

    fn row(&self) -> Option<Row<'_>> {
        match self {
            Self::Spog(keys) => Row::from_spog(&keys.key),
            Self::Posg(keys) => Row::from_posg(&keys.key),
        }
    }
}

impl<'a> QuadScan<'a> {
    /// Begins to read the quads that match a pattern.
    pub(crate) fn new(view: &View<'a>, sought: CodePattern) -> Self {
        let blocks = view.blocks;
        let CodePattern { subject, predicate, object, graph } = &sought;
        let named = object.as_ref().filter(|code| code.is_named());
        let keys = |tree: u8, parts: &[&[u8]]| KeyScan::new(blocks, build_key(tree, parts));
        let (mut outer, mut inner) = (None, None);
        match (subject, predicate, named, graph) {
            (Some(subject), Some(predicate), ..) => {
                let object = object.as_ref().map_or(&[][..], |code| &code.0);
                inner = Some(QuadKeys::Spog(keys(tree::SPOG, &[subject, predicate, object])));
            }
            (_, None, Some(object), _) => {
                outer = Some(OuterScan::Predicates(keys(tree::OP, &[object.id()])));
            }
            (Some(subject), ..) => inner = Some(QuadKeys::Spog(keys(tree::SPOG, &[subject]))),
            (None, Some(predicate), Some(object), _) => {
                inner = Some(QuadKeys::Posg(keys(tree::POSG, &[predicate, &object.0])));
            }
            (None, Some(predicate), None, _) => {
                let literals: &[u8] = if object.is_some() { &[object::ANY_LITERAL] } else { &[] };
                outer = Some(OuterScan::Objects(keys(tree::POSG, &[predicate, literals])));
            }
            (None, None, None, Some(graph)) => {
                outer = Some(OuterScan::Subjects(keys(tree::GS, &[graph])));
            }
            (None, None, None, None) => inner = Some(QuadKeys::Spog(keys(tree::SPOG, &[]))),
        }
        Self { blocks, sought, outer, inner }
    }

    /// Moves to the next quad. Returns false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if let Some(inner) = &mut self.inner {
                if inner.keys().advance()? {
                    if self.is_match()? {
                        return Ok(true);
                    }
                    continue;
                }
                self.inner = None;
            }
            if !self.advance_outer()? {
                return Ok(false);
            }
            if self.inner.is_none() && self.is_match()? {
                return Ok(true);
            }
        }
    }

    /// Moves to the next list of quads, or to the next quad with a named object. Returns false at the end.
    fn advance_outer(&mut self) -> Result<bool, Error> {
        let blocks = self.blocks;
        let keys = |tree: u8, parts: &[&[u8]]| KeyScan::new(blocks, build_key(tree, parts));
        match &mut self.outer {
            None => return Ok(false),
            Some(OuterScan::Predicates(predicates)) => {
                if !predicates.advance()? {
                    return Ok(false);
                }
                let (predicate, sought) = (predicates.rest(), &self.sought);
                let object = sought.object.as_ref().map_or(&[][..], |code| &code.0);
                self.inner = Some(match &sought.subject {
                    Some(subject) => {
                        QuadKeys::Spog(keys(tree::SPOG, &[subject, predicate, object]))
                    }
                    None => QuadKeys::Posg(keys(tree::POSG, &[predicate, object])),
                });
            }
            Some(OuterScan::Subjects(subjects)) => {
                if !subjects.advance()? {
                    return Ok(false);
                }
                self.inner = Some(QuadKeys::Spog(keys(tree::SPOG, &[subjects.rest()])));
            }
            Some(OuterScan::Objects(objects)) => {
                if !objects.advance()? {
                    return Ok(false);
                }
                let damaged = || damaged_entry("a quad", &objects.key);
                let mut input = Input::new(objects.key.get(1..).ok_or_else(damaged)?);
                let predicate = key::read_number_bytes(&mut input).ok_or_else(damaged)?;
                if input.read_byte() != Some(object::NAMED) {
                    let subject = key::read_number_bytes(&mut input).ok_or_else(damaged)?;
                    let mut literals = keys(tree::SPOG, &[subject, predicate]);
                    literals.from.push(object::NAMED + 1);
                    self.inner = Some(QuadKeys::Spog(literals));
                }
            }
        }
        Ok(true)
    }

    fn is_match(&self) -> Result<bool, Error> {
        Ok(self.sought.matches_row(self.row()?))
    }

    /// Returns the current quad. There is one after [`Self::advance`] returned true.
    pub(crate) fn row(&self) -> Result<Row<'_>, Error> {
        let row = match (&self.inner, &self.outer) {
            (Some(inner), _) => inner.row(),
            (None, Some(OuterScan::Objects(objects))) => Row::from_posg(&objects.key),
            (None, _) => None,
        };
        row.ok_or_else(|| damaged_entry("a quad", &[]))
    }
}
