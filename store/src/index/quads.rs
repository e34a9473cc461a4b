//! Changing quads, and finding the quads of a pattern.
//!
//! Each pattern is answered by scanning a range of a tree and filtering out quads that do not match ([`QuadScan`]).
//! Without an index of values, patterns with a literal object but no subject scan much more than they return: all literals
//! of the predicate or, without a predicate, all quads (of the graph).
use super::block_source::ReadEntries as _;
use super::key::{self, Code, KeyBuffer, Row, build_key, damaged_entry, object, tree};
use super::key_scan::KeyScan;
use super::quad_scan::{CodedRow, QuadScan, Sought};
use super::term_code::TermCode;
use super::{Index, View, values};
use crate::frame::QuadNumbers;
use crate::steps::WriterSteps;
use crate::varint::{self, Input};
use crate::{Error, FastMap, FastSet, Pattern, term};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, TermRef};
use std::ops::ControlFlow;

/// The number of quads of a subject and graph that were added or removed but are not yet counted in the
/// index.
#[derive(Default)]
struct PendingCount {
    /// The numbers of the subject and the graph in the frame.
    subject: u32,
    graph: u32,
    count: u64,
}

/// The keys of values of a subject and predicate of which quads were removed. Other literals may have the same keys.
#[derive(Default)]
struct PendingValues {
    /// The numbers of the subject and the predicate in the frame.
    subject: u32,
    predicate: u32,
    keys: Vec<Vec<u8>>,
}

impl Index {
    pub(super) fn change_quads(
        &mut self,
        terms: &[TermRef<'_>],
        codes: &[Code],
        quads: &[QuadNumbers],
        added: bool,
        steps: &WriterSteps,
    ) -> Result<(), Error> {
        let mut pending = PendingCount::default();
        let mut pending_values = PendingValues::default();
        for quad in quads {
            steps.count_step();
            let [subject_number, predicate_number, object_number, graph_number] = *quad;
            let [subject, predicate, object, graph] =
                quad.map(|number| codes.get(number as usize).map(|code| code.0.as_slice()));
            let (Some(subject), Some(predicate), Some(object), Some(graph)) =
                (named_term_id(subject), named_term_id(predicate), object, named_term_id(graph))
            else {
                return Err(damaged_entry("a quad with numbers", &[]));
            };
            let row = Row { subject, predicate, object, graph };
            let changed = if added { self.add_row(row)? } else { self.remove_row(row)? };
            if changed {
                if let Some(values) = &mut self.values
                    && let Some(TermRef::Literal(literal)) = term_of(terms, object_number)
                {
                    let key = values::value_key(predicate, literal, subject);
                    if added {
                        values.change(&key, false);
                    } else {
                        if (subject_number, predicate_number)
                            != (pending_values.subject, pending_values.predicate)
                        {
                            self.remove_pending_values(codes, &mut pending_values)?;
                            (pending_values.subject, pending_values.predicate) =
                                (subject_number, predicate_number);
                        }
                        pending_values.keys.push(key);
                    }
                }
                if (subject_number, graph_number) != (pending.subject, pending.graph) {
                    self.apply_pending_count(terms, codes, &pending, added)?;
                    pending =
                        PendingCount { subject: subject_number, graph: graph_number, count: 0 };
                }
                pending.count += 1;
            }
        }
        self.remove_pending_values(codes, &mut pending_values)?;
        self.apply_pending_count(terms, codes, &pending, added)
    }

    /// Removes the keys of values that no other literal of the subject and predicate has. Additions of the frame were
    /// applied before.
    fn remove_pending_values(
        &mut self,
        codes: &[Code],
        pending: &mut PendingValues,
    ) -> Result<(), Error> {
        let mut keys = std::mem::take(&mut pending.keys);
        let id = |number: u32| codes.get(number as usize).map(Code::id);
        let (Some(subject), Some(predicate)) = (id(pending.subject), id(pending.predicate)) else {
            return Err(damaged_entry("a quad with numbers", &[]));
        };
        if keys.is_empty() {
            return Ok(());
        }
        keys.sort_unstable();
        keys.dedup();
        let first = KeyBuffer::first_literal(subject, predicate);
        let prefix_bytes = first.1;
        let mut others = KeyScan::new(&self.blocks, first);
        while others.advance()? {
            let rest = others.key().get(prefix_bytes..).unwrap_or_default();
            let code = key::read_code_bytes(&mut Input::new(rest));
            let code = code.ok_or_else(|| damaged_entry("a quad", others.key()))?;
            if let Term::Literal(literal) = self.view().decode_term(code)? {
                let kept = values::value_key(predicate, literal.as_ref(), subject);
                if let Ok(at) = keys.binary_search(&kept) {
                    keys.remove(at);
                }
            }
        }
        if let Some(values) = &mut self.values {
            for key in &keys {
                values.change(key, true);
            }
        }
        Ok(())
    }

    fn add_row(&mut self, row: Row<'_>) -> Result<bool, Error> {
        if !self.blocks.insert(&row.spog_key(), &[])? {
            return Ok(false);
        }
        self.note.quads += 1;
        if row.is_named() {
            self.blocks.insert(&row.posg_key(), &[])?;
            let op = row.op_key();
            if self.blocks.get(&op, |_| ())?.is_none() {
                self.blocks.insert(&op, &[])?;
            }
        } else {
            self.blocks.insert(&row.literal_mark_key(), &[])?;
            self.adjust_long_count(row.object, true)?;
        }
        Ok(true)
    }

    fn remove_row(&mut self, row: Row<'_>) -> Result<bool, Error> {
        if !self.blocks.remove(&row.spog_key())? {
            return Ok(false);
        }
        self.note.quads = self.note.quads.saturating_sub(1);
        if row.is_named() {
            self.blocks.remove(&row.posg_key())?;
            if !self.blocks.contains_prefix(&build_key(tree::POSG, &[row.predicate, row.object]))? {
                self.blocks.remove(&row.op_key())?;
            }
        } else {
            let first = KeyBuffer::first_literal(row.subject, row.predicate);
            if !KeyScan::new(&self.blocks, first).advance()? {
                self.blocks.remove(&row.literal_mark_key())?;
            }
            self.adjust_long_count(row.object, false)?;
        }
        Ok(true)
    }

    fn apply_pending_count(
        &mut self,
        terms: &[TermRef<'_>],
        codes: &[Code],
        pending: &PendingCount,
        added: bool,
    ) -> Result<(), Error> {
        if pending.count == 0 {
            return Ok(());
        }
        let of = |number: u32| {
            let code = codes.get(number as usize);
            code.ok_or_else(|| damaged_entry("a quad with numbers", &[])).map(Code::id)
        };
        let (subject, graph) = (of(pending.subject)?, of(pending.graph)?);
        let key = build_key(tree::GS, &[graph, subject]);
        let read = |value: &[u8]| Input::new(value).read_number();
        let before = self.blocks.get(&key, read)?.flatten().unwrap_or(0);
        let now = if added { before + pending.count } else { before.saturating_sub(pending.count) };
        if now == 0 {
            self.blocks.remove(&key)?;
        } else {
            let mut value = Vec::new();
            varint::write_number(&mut value, now);
            self.blocks.insert(&key, &value)?;
        }
        if let Some(TermRef::NamedNode(iri)) = term_of(terms, pending.subject)
            && (before == 0 || now == 0)
        {
            let key = build_key(tree::GRAPH_IRI, &[graph, iri.as_str().as_bytes()]);
            let id =
                Input::new(subject).read_number().ok_or_else(|| damaged_entry("an id", subject))?;
            if now == 0 { self.runs.remove(&key) } else { self.runs.insert(&key, id) }
        }
        Ok(())
    }
}

impl View<'_> {
    /// Returns whether the quad exists.
    pub(crate) fn has_quad(&self, spog: &[u8]) -> Result<bool, Error> {
        self.track_damage(|| Ok(self.blocks.get(spog, |_| ())?.is_some()))
    }

    /// Returns whether some graph has the triple.
    pub(super) fn has_triple(
        &self,
        subject: &[u8],
        predicate: &[u8],
        object: &[u8],
    ) -> Result<bool, Error> {
        self.blocks.contains_prefix(&build_key(tree::SPOG, &[subject, predicate, object]))
    }

    /// Passes every quad that matches to `visit`, until it breaks. Leaves out those whose keys in the tree of all quads are
    /// in `removed`.
    pub(crate) fn for_each(
        &self,
        pattern: &Pattern,
        removed: &FastSet<Vec<u8>>,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.track_damage(|| {
            let Some(sought) = self.compile_pattern(pattern)? else { return Ok(()) };
            let mut names = TermResolver::of_pattern(*self, pattern, &sought);
            let mut scan = QuadScan::new(self, sought);
            while scan.advance()? {
                let row = scan.row()?;
                if !scan.matches(&row)
                    || !removed.is_empty() && removed.contains(&row.to_spog_key())
                {
                    continue;
                }
                if visit(names.resolve_quad(&row)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Converts a pattern into codes. Returns `None` if no quad has one of its terms.
    fn compile_pattern(&self, pattern: &Pattern) -> Result<Option<Sought>, Error> {
        let find_id = |term: TermRef<'_>| self.find_code(term).map(|code| code?.to_number());
        let mut sought = Sought::default();
        if let Some(subject) = &pattern.subject {
            let Some(id) = find_id(subject.as_ref().into())? else { return Ok(None) };
            sought.subject = Some(id);
        }
        if let Some(predicate) = &pattern.predicate {
            let Some(id) = find_id(predicate.as_ref().into())? else { return Ok(None) };
            sought.predicate = Some(id);
        }
        if let Some(object) = &pattern.object {
            let Some(code) = self.find_code(object.as_ref())? else { return Ok(None) };
            sought.object = Some(TermCode::from_object(&code.0)?);
        }
        if let Some(graph) = &pattern.graph {
            let Some(code) = self.graph_code(graph)? else { return Ok(None) };
            sought.graph = code.to_number();
        }
        Ok(Some(sought))
    }

    pub(super) fn graph_code(&self, graph: &GraphName) -> Result<Option<Code>, Error> {
        match term::graph_to_term(graph.as_ref()) {
            None => Ok(Some(Code::from_id(key::DEFAULT_GRAPH))),
            Some(term) => self.find_code(term),
        }
    }
}

/// Returns the term of a number. Numbers start at 1, indexes at 0.
pub(super) fn term_of<'t>(terms: &[TermRef<'t>], number: u32) -> Option<TermRef<'t>> {
    terms.get((number as usize).checked_sub(1)?).copied()
}

fn named_term_id(code: Option<&[u8]>) -> Option<&[u8]> {
    code?.strip_prefix(&[object::NAMED])
}

/// Converts codes into terms. Caches the few names that recur.
pub(super) struct TermResolver<'a> {
    index: View<'a>,
    subject: Option<(u64, NamedOrBlankNode)>,
    predicates: FastMap<u64, NamedNode>,
    /// The object, if all quads have the same.
    object: Option<Term>,
    graphs: FastMap<u64, GraphName>,
}

/// The number of cached names above which the cache is cleared.
const MAX_RESOLVED_NAMES: usize = 1_024;

impl<'a> TermResolver<'a> {
    pub(super) fn new(index: View<'a>) -> Self {
        let (predicates, graphs) = (FastMap::default(), FastMap::default());
        Self { index, subject: None, predicates, object: None, graphs }
    }

    /// Creates a resolver for the quads of a pattern, whose terms it knows.
    fn of_pattern(index: View<'a>, pattern: &Pattern, sought: &Sought) -> Self {
        let mut resolver = Self::new(index);
        resolver.subject = sought.subject.zip(pattern.subject.clone());
        resolver.predicates.extend(sought.predicate.zip(pattern.predicate.clone()));
        resolver.object.clone_from(&pattern.object);
        resolver.graphs.extend(sought.graph.zip(pattern.graph.clone()));
        resolver
    }

    pub(super) fn resolve_quad(&mut self, row: &CodedRow<'_>) -> Result<Quad, Error> {
        let damaged = |what, id: u64| damaged_entry(what, &id.to_be_bytes());
        let subject = match &self.subject {
            Some((id, subject)) if *id == row.subject => subject.clone(),
            _ => {
                let subject = self.index.load_subject(row.subject)?;
                self.subject = Some((row.subject, subject.clone()));
                subject
            }
        };
        let predicate = if let Some(predicate) = self.predicates.get(&row.predicate) {
            predicate.clone()
        } else {
            let predicate = term::to_predicate(self.index.load_name(row.predicate)?)
                .ok_or_else(|| damaged("a predicate", row.predicate))?;
            if self.predicates.len() >= MAX_RESOLVED_NAMES {
                self.predicates.clear();
            }
            self.predicates.insert(row.predicate, predicate.clone());
            predicate
        };
        let graph_name = if let Some(graph) = self.graphs.get(&row.graph) {
            graph.clone()
        } else {
            let graph = if row.graph == key::DEFAULT_GRAPH {
                GraphName::DefaultGraph
            } else {
                term::to_graph(self.index.load_name(row.graph)?)
                    .ok_or_else(|| damaged("a graph", row.graph))?
            };
            if self.graphs.len() >= MAX_RESOLVED_NAMES {
                self.graphs.clear();
            }
            self.graphs.insert(row.graph, graph.clone());
            graph
        };
        let object = match &self.object {
            Some(object) => object.clone(),
            None => self.index.decode_term(row.object)?,
        };
        Ok(Quad { subject, predicate, object, graph_name })
    }
}
