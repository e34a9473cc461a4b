//! Changing quads, and finding the quads of a pattern.
//!
//! Each pattern is answered by scanning a range of a tree and filtering out quads that do not match. Patterns
//! with a literal object but no subject scan much more than they return: all literals of the predicate or,
//! without a predicate, all quads (of the graph).
use super::block_source::ReadEntries as _;
use super::key::{self, Code, Row, build_key, object, tree};
use super::{Index, View, damaged_entry};
use crate::frame::QuadNumbers;
use crate::steps::WriterSteps;
use crate::varint::{self, Input};
use crate::{Error, Pattern, term};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, TermRef};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The callback of a search. It gets each quad as codes.
type VisitRow<'v> = dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, Error> + 'v;

/// The number of quads of a subject and graph that were added or removed but are not yet counted in the
/// index.
#[derive(Default)]
struct PendingCount {
    /// The numbers of the subject and the graph in the frame.
    subject: u32,
    graph: u32,
    count: u64,
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
        for quad in quads {
            steps.count_step();
            let [subject_number, _, _, graph_number] = *quad;
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
                if (subject_number, graph_number) != (pending.subject, pending.graph) {
                    self.apply_pending_count(terms, codes, &pending, added)?;
                    pending =
                        PendingCount { subject: subject_number, graph: graph_number, count: 0 };
                }
                pending.count += 1;
            }
        }
        self.apply_pending_count(terms, codes, &pending, added)
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
            let mut others = false;
            self.view().search_literals(row.subject, row.predicate, &mut |_| {
                others = true;
                Ok(ControlFlow::Break(()))
            })?;
            if !others {
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
        // Numbers of terms start at 1, indexes at 0.
        let name = terms.get(pending.subject.saturating_sub(1) as usize).copied();
        if let Some(TermRef::NamedNode(iri)) = name
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

    /// Passes every quad that matches and is not hidden to `visit`, until it breaks.
    pub(crate) fn for_each(
        &self,
        pattern: &Pattern,
        hidden: &dyn Fn(Row<'_>) -> bool,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.track_damage(|| {
            let Some(sought) = self.compile_pattern(pattern)? else { return Ok(()) };
            let names = TermResolver::new(*self);
            self.search_range(&sought, &mut |row| {
                if !sought.matches_row(row) || hidden(row) {
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(visit(names.resolve_quad(row)?))
            })
        })
    }

    /// Converts a pattern into codes. Returns `None` if no quad has one of its terms.
    pub(crate) fn compile_pattern(&self, pattern: &Pattern) -> Result<Option<CodePattern>, Error> {
        let mut sought = CodePattern::default();
        if let Some(subject) = &pattern.subject {
            let Some(code) = self.find_code(subject.as_ref().into())? else { return Ok(None) };
            sought.subject = Some(code.id().to_vec());
        }
        if let Some(predicate) = &pattern.predicate {
            let Some(code) = self.find_code(predicate.as_ref().into())? else { return Ok(None) };
            sought.predicate = Some(code.id().to_vec());
        }
        if let Some(object) = &pattern.object {
            let Some(code) = self.find_code(object.as_ref())? else { return Ok(None) };
            sought.object = Some(code);
        }
        if let Some(graph) = &pattern.graph {
            let Some(code) = self.graph_code(graph)? else { return Ok(None) };
            sought.graph = Some(code.id().to_vec());
        }
        Ok(Some(sought))
    }

    pub(super) fn graph_code(&self, graph: &GraphName) -> Result<Option<Code>, Error> {
        match term::graph_to_term(graph.as_ref()) {
            None => Ok(Some(Code::from_id(key::DEFAULT_GRAPH))),
            Some(term) => self.find_code(term),
        }
    }

    /// Visits a range that contains every matching quad, and possibly others.
    fn search_range(&self, sought: &CodePattern, visit: &mut VisitRow<'_>) -> Result<(), Error> {
        let named = sought.object.as_ref().filter(|code| code.is_named());
        let none: &[u8] = &[];
        match (&sought.subject, &sought.predicate, named, &sought.graph) {
            (Some(subject), None, Some(object), _) => {
                self.search_by_object(object, visit, |predicate, visit| {
                    self.search_by_subject(&[subject, predicate, &object.0], visit)
                })
            }
            (Some(subject), Some(predicate), ..) => {
                let object = sought.object.as_ref().map_or(none, |code| &code.0);
                self.search_by_subject(&[subject, predicate, object], visit)
            }
            (Some(subject), ..) => self.search_by_subject(&[subject], visit),
            (None, Some(predicate), Some(object), _) => {
                self.search_by_predicate(&[predicate, &object.0], visit)
            }
            (None, Some(predicate), None, _) if sought.object.is_some() => {
                self.search_by_predicate(&[predicate, &[object::ANY_LITERAL]], visit)
            }
            (None, Some(predicate), None, _) => self.search_by_predicate(&[predicate], visit),
            (None, None, Some(object), _) => {
                self.search_by_object(object, visit, |predicate, visit| {
                    self.search_by_predicate(&[predicate, &object.0], visit)
                })
            }
            (None, None, None, Some(graph)) => self.search_by_graph(graph, visit),
            (None, None, None, None) => self.search_by_subject(&[], visit),
        }
    }

    fn search_by_subject(&self, prefix: &[&[u8]], visit: &mut VisitRow<'_>) -> Result<(), Error> {
        self.blocks.scan_prefix(&build_key(tree::SPOG, prefix), &mut |key, _| {
            visit(Row::from_spog(key).ok_or_else(|| damaged_entry("a quad", key))?)
        })
    }

    /// Visits the quads of a subject and predicate that have a literal as object.
    fn search_literals(
        &self,
        subject: &[u8],
        predicate: &[u8],
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Error> {
        let prefix = build_key(tree::SPOG, &[subject, predicate]);
        let mut from = prefix.clone();
        from.push(object::NAMED + 1);
        self.blocks.scan(&from, &mut |key, _| {
            if !key.starts_with(&prefix) {
                return Ok(ControlFlow::Break(()));
            }
            visit(Row::from_spog(key).ok_or_else(|| damaged_entry("a quad", key))?)
        })
    }

    fn search_by_predicate(&self, prefix: &[&[u8]], visit: &mut VisitRow<'_>) -> Result<(), Error> {
        self.blocks.scan_prefix(&build_key(tree::POSG, prefix), &mut |key, _| {
            let damaged = || damaged_entry("a quad", key);
            let mut input = Input::new(key.get(1..).ok_or_else(damaged)?);
            let predicate = key::read_number_bytes(&mut input).ok_or_else(damaged)?;
            if input.rest().first() == Some(&object::NAMED) {
                let object = key::read_code_bytes(&mut input).ok_or_else(damaged)?;
                let subject = key::read_number_bytes(&mut input).ok_or_else(damaged)?;
                let graph = key::read_number_bytes(&mut input).ok_or_else(damaged)?;
                return visit(Row { subject, predicate, object, graph });
            }
            input.read_byte();
            let subject = key::read_number_bytes(&mut input).ok_or_else(damaged)?;
            let mut flow = ControlFlow::Continue(());
            self.search_literals(subject, predicate, &mut |row| {
                flow = visit(row)?;
                Ok(flow)
            })?;
            Ok(flow)
        })
    }

    /// Calls `search` with each predicate that has the named object as a value.
    fn search_by_object(
        &self,
        object: &Code,
        visit: &mut VisitRow<'_>,
        search: impl Fn(&[u8], &mut VisitRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let prefix = build_key(tree::OP, &[object.id()]);
        self.blocks.scan_prefix(&prefix, &mut |key, _| {
            let mut flow = ControlFlow::Continue(());
            search(key.get(prefix.len()..).unwrap_or_default(), &mut |row| {
                flow = visit(row)?;
                Ok(flow)
            })?;
            Ok(flow)
        })
    }

    fn search_by_graph(&self, graph: &[u8], visit: &mut VisitRow<'_>) -> Result<(), Error> {
        let prefix = build_key(tree::GS, &[graph]);
        self.blocks.scan_prefix(&prefix, &mut |key, _| {
            let subject = key.get(prefix.len()..).unwrap_or_default();
            let mut flow = ControlFlow::Continue(());
            self.search_by_subject(&[subject], &mut |row| {
                if row.graph == graph {
                    flow = visit(row)?;
                }
                Ok(flow)
            })?;
            Ok(flow)
        })
    }
}

fn named_term_id(code: Option<&[u8]>) -> Option<&[u8]> {
    code?.strip_prefix(&[object::NAMED])
}

/// A pattern as codes. Subject, predicate and graph are ids.
#[derive(Debug, Default)]
pub(crate) struct CodePattern {
    pub(crate) subject: Option<Vec<u8>>,
    pub(crate) predicate: Option<Vec<u8>>,
    pub(crate) object: Option<Code>,
    pub(crate) graph: Option<Vec<u8>>,
}

impl CodePattern {
    pub(super) fn matches_row(&self, row: Row<'_>) -> bool {
        self.subject.as_ref().is_none_or(|subject| *subject == row.subject)
            && self.predicate.as_ref().is_none_or(|predicate| *predicate == row.predicate)
            && self.object.as_ref().is_none_or(|object| object.0 == row.object)
            && self.graph.as_ref().is_none_or(|graph| *graph == row.graph)
    }
}

/// Converts codes into terms. Caches the few names that recur.
pub(super) struct TermResolver<'a> {
    index: View<'a>,
    resolved: RefCell<ResolvedNames>,
}

#[derive(Default)]
struct ResolvedNames {
    subject: Option<(Vec<u8>, NamedOrBlankNode)>,
    predicates: HashMap<Vec<u8>, NamedNode>,
    graphs: HashMap<Vec<u8>, GraphName>,
}

/// The number of cached names above which the cache is cleared.
const MAX_RESOLVED_NAMES: usize = 1_024;

impl<'a> TermResolver<'a> {
    pub(super) fn new(index: View<'a>) -> Self {
        Self { index, resolved: RefCell::default() }
    }

    fn resolve_name(&self, id: &[u8]) -> Result<oxrdf::Term, Error> {
        let id = Input::new(id).read_number().ok_or_else(|| damaged_entry("an id", id))?;
        self.index.load_name(id)
    }

    pub(super) fn resolve_quad(&self, row: Row<'_>) -> Result<Quad, Error> {
        let resolved = &mut *self.resolved.borrow_mut();
        let subject = match &resolved.subject {
            Some((id, subject)) if id == row.subject => subject.clone(),
            _ => {
                let subject = term::to_subject(self.resolve_name(row.subject)?)
                    .ok_or_else(|| damaged_entry("a subject", row.subject))?;
                resolved.subject = Some((row.subject.to_vec(), subject.clone()));
                subject
            }
        };
        let predicate = if let Some(predicate) = resolved.predicates.get(row.predicate) {
            predicate.clone()
        } else {
            let predicate = term::to_predicate(self.resolve_name(row.predicate)?)
                .ok_or_else(|| damaged_entry("a predicate", row.predicate))?;
            if resolved.predicates.len() >= MAX_RESOLVED_NAMES {
                resolved.predicates.clear();
            }
            resolved.predicates.insert(row.predicate.to_vec(), predicate.clone());
            predicate
        };
        let graph_name = if let Some(graph) = resolved.graphs.get(row.graph) {
            graph.clone()
        } else {
            let graph = if Input::new(row.graph).read_number() == Some(key::DEFAULT_GRAPH) {
                GraphName::DefaultGraph
            } else {
                term::to_graph(self.resolve_name(row.graph)?)
                    .ok_or_else(|| damaged_entry("a graph", row.graph))?
            };
            if resolved.graphs.len() >= MAX_RESOLVED_NAMES {
                resolved.graphs.clear();
            }
            resolved.graphs.insert(row.graph.to_vec(), graph.clone());
            graph
        };
        Ok(Quad { subject, predicate, object: self.index.decode_term(row.object)?, graph_name })
    }
}
