//! Changing quads, and finding the quads of a pattern.
//!
//! Each pattern is answered by a range of one tree, with a filter for what the range leaves open. Two ranges
//! are wider than their answer. A literal object is searched among the literals of its predicate; without
//! predicate and subject, among all quads (of its graph).
use super::key::{self, Code, Row, key, object, tree};
use super::{Index, damaged};
use crate::frame::Numbers;
use crate::steps::Steps;
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
struct Pending {
    /// The numbers of both in the frame.
    subject: u32,
    graph: u32,
    count: u64,
}

impl Index {
    pub(super) fn change_quads(
        &mut self,
        terms: &[TermRef<'_>],
        codes: &[Code],
        quads: &[Numbers],
        added: bool,
        steps: &Steps,
    ) -> Result<(), Error> {
        let mut pending = Pending::default();
        for quad in quads {
            steps.step();
            let [subject_number, _, _, graph_number] = *quad;
            let [subject, predicate, object, graph] =
                quad.map(|number| codes.get(number as usize).map(|code| code.0.as_slice()));
            let (Some(subject), Some(predicate), Some(object), Some(graph)) =
                (id(subject), id(predicate), object, id(graph))
            else {
                return Err(damaged("a quad with numbers", &[]));
            };
            let row = Row { subject, predicate, object, graph };
            let changed = if added { self.add(row)? } else { self.take_away(row)? };
            if changed {
                if (subject_number, graph_number) != (pending.subject, pending.graph) {
                    self.count(terms, codes, &pending, added)?;
                    pending = Pending { subject: subject_number, graph: graph_number, count: 0 };
                }
                pending.count += 1;
            }
        }
        self.count(terms, codes, &pending, added)
    }

    fn add(&mut self, row: Row<'_>) -> Result<bool, Error> {
        if !self.blocks.insert(&row.spog(), &[])? {
            return Ok(false);
        }
        self.note.quads += 1;
        if row.is_named() {
            self.blocks.insert(&row.posg(), &[])?;
            let op = row.op();
            if self.blocks.get(&op, |_| ())?.is_none() {
                self.blocks.insert(&op, &[])?;
            }
        } else {
            self.blocks.insert(&row.literal_mark(), &[])?;
            self.count_long(row.object, true)?;
        }
        Ok(true)
    }

    fn take_away(&mut self, row: Row<'_>) -> Result<bool, Error> {
        if !self.blocks.remove(&row.spog())? {
            return Ok(false);
        }
        self.note.quads = self.note.quads.saturating_sub(1);
        if row.is_named() {
            self.blocks.remove(&row.posg())?;
            if !self.blocks.any(&key(tree::POSG, &[row.predicate, row.object]))? {
                self.blocks.remove(&row.op())?;
            }
        } else {
            let mut others = false;
            self.literals(row.subject, row.predicate, &mut |_| {
                others = true;
                Ok(ControlFlow::Break(()))
            })?;
            if !others {
                self.blocks.remove(&row.literal_mark())?;
            }
            self.count_long(row.object, false)?;
        }
        Ok(true)
    }

    fn count(
        &mut self,
        terms: &[TermRef<'_>],
        codes: &[Code],
        pending: &Pending,
        added: bool,
    ) -> Result<(), Error> {
        if pending.count == 0 {
            return Ok(());
        }
        let of = |number: u32| {
            let code = codes.get(number as usize);
            code.ok_or_else(|| damaged("a quad with numbers", &[])).map(Code::id)
        };
        let (subject, graph) = (of(pending.subject)?, of(pending.graph)?);
        let key = key(tree::GS, &[graph, subject]);
        let read = |value: &[u8]| Input::new(value).number();
        let before = self.blocks.get(&key, read)?.flatten().unwrap_or(0);
        let now = if added { before + pending.count } else { before.saturating_sub(pending.count) };
        if now == 0 {
            self.blocks.remove(&key)?;
        } else {
            let mut value = Vec::new();
            varint::put(&mut value, now);
            self.blocks.insert(&key, &value)?;
        }
        // Numbers of terms start at 1, indexes at 0.
        let name = terms.get(pending.subject.saturating_sub(1) as usize).copied();
        if let Some(TermRef::NamedNode(iri)) = name
            && (before == 0 || now == 0)
        {
            let key = self::key(tree::GRAPH_IRI, &[graph, iri.as_str().as_bytes()]);
            let id = Input::new(subject).number().ok_or_else(|| damaged("an id", subject))?;
            if now == 0 { self.runs.remove(&key) } else { self.runs.insert(&key, id) }
        }
        Ok(())
    }

    /// Returns whether the quad exists.
    pub(crate) fn has(&self, spog: &[u8]) -> Result<bool, Error> {
        self.reading(|| Ok(self.blocks.get(spog, |_| ())?.is_some()))
    }

    /// Returns whether some graph has the triple.
    pub(super) fn has_triple(
        &self,
        subject: &[u8],
        predicate: &[u8],
        object: &[u8],
    ) -> Result<bool, Error> {
        self.blocks.any(&key(tree::SPOG, &[subject, predicate, object]))
    }

    /// Passes every quad that matches and is not hidden to `visit`, until it breaks.
    pub(crate) fn for_each(
        &self,
        pattern: &Pattern,
        hidden: &dyn Fn(Row<'_>) -> bool,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.reading(|| {
            let Some(sought) = self.sought(pattern)? else { return Ok(()) };
            let names = Names::new(self);
            self.search(&sought, &mut |row| {
                if !sought.matches(row) || hidden(row) {
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(visit(names.quad(row)?))
            })
        })
    }

    /// Converts a pattern into codes. Returns `None` if no quad has one of its terms.
    fn sought(&self, pattern: &Pattern) -> Result<Option<Sought>, Error> {
        let mut sought = Sought::default();
        if let Some(subject) = &pattern.subject {
            let Some(code) = self.code(subject.as_ref().into())? else { return Ok(None) };
            sought.subject = Some(code.id().to_vec());
        }
        if let Some(predicate) = &pattern.predicate {
            let Some(code) = self.code(predicate.as_ref().into())? else { return Ok(None) };
            sought.predicate = Some(code.id().to_vec());
        }
        if let Some(object) = &pattern.object {
            let Some(code) = self.code(object.as_ref())? else { return Ok(None) };
            sought.object = Some(code);
        }
        if let Some(graph) = &pattern.graph {
            let Some(code) = self.graph_code(graph)? else { return Ok(None) };
            sought.graph = Some(code.id().to_vec());
        }
        Ok(Some(sought))
    }

    pub(super) fn graph_code(&self, graph: &GraphName) -> Result<Option<Code>, Error> {
        match term::of_graph(graph.as_ref()) {
            None => Ok(Some(Code::named(key::DEFAULT_GRAPH))),
            Some(term) => self.code(term),
        }
    }

    /// Visits a range that contains every matching quad, and possibly others.
    fn search(&self, sought: &Sought, visit: &mut VisitRow<'_>) -> Result<(), Error> {
        let named = sought.object.as_ref().filter(|code| code.is_named());
        let none: &[u8] = &[];
        match (&sought.subject, &sought.predicate, named, &sought.graph) {
            (Some(subject), None, Some(object), _) => {
                self.by_object(object, visit, |predicate, visit| {
                    self.by_subject(&[subject, predicate, &object.0], visit)
                })
            }
            (Some(subject), Some(predicate), ..) => {
                let object = sought.object.as_ref().map_or(none, |code| &code.0);
                self.by_subject(&[subject, predicate, object], visit)
            }
            (Some(subject), ..) => self.by_subject(&[subject], visit),
            (None, Some(predicate), Some(object), _) => {
                self.by_predicate(&[predicate, &object.0], visit)
            }
            (None, Some(predicate), None, _) if sought.object.is_some() => {
                self.by_predicate(&[predicate, &[object::ANY_LITERAL]], visit)
            }
            (None, Some(predicate), None, _) => self.by_predicate(&[predicate], visit),
            (None, None, Some(object), _) => self.by_object(object, visit, |predicate, visit| {
                self.by_predicate(&[predicate, &object.0], visit)
            }),
            (None, None, None, Some(graph)) => self.by_graph(graph, visit),
            (None, None, None, None) => self.by_subject(&[], visit),
        }
    }

    fn by_subject(&self, prefix: &[&[u8]], visit: &mut VisitRow<'_>) -> Result<(), Error> {
        self.blocks.scan_prefix(&key(tree::SPOG, prefix), &mut |key, _| {
            visit(Row::from_spog(key).ok_or_else(|| damaged("a quad", key))?)
        })
    }

    /// Visits the quads of a subject and predicate that have a literal as object.
    fn literals(
        &self,
        subject: &[u8],
        predicate: &[u8],
        visit: &mut VisitRow<'_>,
    ) -> Result<(), Error> {
        let prefix = key(tree::SPOG, &[subject, predicate]);
        let mut from = prefix.clone();
        from.push(object::NAMED + 1);
        self.blocks.scan(&from, &mut |key, _| {
            if !key.starts_with(&prefix) {
                return Ok(ControlFlow::Break(()));
            }
            visit(Row::from_spog(key).ok_or_else(|| damaged("a quad", key))?)
        })
    }

    fn by_predicate(&self, prefix: &[&[u8]], visit: &mut VisitRow<'_>) -> Result<(), Error> {
        self.blocks.scan_prefix(&key(tree::POSG, prefix), &mut |key, _| {
            let fault = || damaged("a quad", key);
            let mut input = Input::new(key.get(1..).ok_or_else(fault)?);
            let predicate = key::number(&mut input).ok_or_else(fault)?;
            if input.rest().first() == Some(&object::NAMED) {
                let object = key::code(&mut input).ok_or_else(fault)?;
                let subject = key::number(&mut input).ok_or_else(fault)?;
                let graph = key::number(&mut input).ok_or_else(fault)?;
                return visit(Row { subject, predicate, object, graph });
            }
            input.byte();
            let subject = key::number(&mut input).ok_or_else(fault)?;
            let mut flow = ControlFlow::Continue(());
            self.literals(subject, predicate, &mut |row| {
                flow = visit(row)?;
                Ok(flow)
            })?;
            Ok(flow)
        })
    }

    /// Searches with each predicate of which a named object is a value.
    fn by_object(
        &self,
        object: &Code,
        visit: &mut VisitRow<'_>,
        search: impl Fn(&[u8], &mut VisitRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let prefix = key(tree::OP, &[object.id()]);
        self.blocks.scan_prefix(&prefix, &mut |key, _| {
            let mut flow = ControlFlow::Continue(());
            search(key.get(prefix.len()..).unwrap_or_default(), &mut |row| {
                flow = visit(row)?;
                Ok(flow)
            })?;
            Ok(flow)
        })
    }

    fn by_graph(&self, graph: &[u8], visit: &mut VisitRow<'_>) -> Result<(), Error> {
        let prefix = key(tree::GS, &[graph]);
        self.blocks.scan_prefix(&prefix, &mut |key, _| {
            let subject = key.get(prefix.len()..).unwrap_or_default();
            let mut flow = ControlFlow::Continue(());
            self.by_subject(&[subject], &mut |row| {
                if row.graph == graph {
                    flow = visit(row)?;
                }
                Ok(flow)
            })?;
            Ok(flow)
        })
    }
}

fn id(code: Option<&[u8]>) -> Option<&[u8]> {
    code?.strip_prefix(&[object::NAMED])
}

/// A pattern as codes.
#[derive(Default)]
struct Sought {
    subject: Option<Vec<u8>>,
    predicate: Option<Vec<u8>>,
    object: Option<Code>,
    graph: Option<Vec<u8>>,
}

impl Sought {
    fn matches(&self, row: Row<'_>) -> bool {
        self.subject.as_ref().is_none_or(|subject| *subject == row.subject)
            && self.predicate.as_ref().is_none_or(|predicate| *predicate == row.predicate)
            && self.object.as_ref().is_none_or(|object| object.0 == row.object)
            && self.graph.as_ref().is_none_or(|graph| *graph == row.graph)
    }
}

/// Converts codes into terms. Caches the few names that recur.
pub(super) struct Names<'a> {
    index: &'a Index,
    met: RefCell<Met>,
}

#[derive(Default)]
struct Met {
    subject: Option<(Vec<u8>, NamedOrBlankNode)>,
    predicates: HashMap<Vec<u8>, NamedNode>,
    graphs: HashMap<Vec<u8>, GraphName>,
}

/// The number of cached names above which the cache is cleared.
const MOST_MET: usize = 1_024;

impl<'a> Names<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        Self { index, met: RefCell::default() }
    }

    fn name(&self, id: &[u8]) -> Result<oxrdf::Term, Error> {
        let id = Input::new(id).number().ok_or_else(|| damaged("an id", id))?;
        self.index.name(id)
    }

    pub(super) fn quad(&self, row: Row<'_>) -> Result<Quad, Error> {
        let met = &mut *self.met.borrow_mut();
        let subject = match &met.subject {
            Some((id, subject)) if id == row.subject => subject.clone(),
            _ => {
                let subject = term::to_subject(self.name(row.subject)?)
                    .ok_or_else(|| damaged("a subject", row.subject))?;
                met.subject = Some((row.subject.to_vec(), subject.clone()));
                subject
            }
        };
        let predicate = if let Some(predicate) = met.predicates.get(row.predicate) {
            predicate.clone()
        } else {
            let predicate = term::to_predicate(self.name(row.predicate)?)
                .ok_or_else(|| damaged("a predicate", row.predicate))?;
            if met.predicates.len() >= MOST_MET {
                met.predicates.clear();
            }
            met.predicates.insert(row.predicate.to_vec(), predicate.clone());
            predicate
        };
        let graph_name = if let Some(graph) = met.graphs.get(row.graph) {
            graph.clone()
        } else {
            let graph = if Input::new(row.graph).number() == Some(key::DEFAULT_GRAPH) {
                GraphName::DefaultGraph
            } else {
                term::to_graph(self.name(row.graph)?)
                    .ok_or_else(|| damaged("a graph", row.graph))?
            };
            if met.graphs.len() >= MOST_MET {
                met.graphs.clear();
            }
            met.graphs.insert(row.graph.to_vec(), graph.clone());
            graph
        };
        Ok(Quad { subject, predicate, object: self.index.term(row.object)?, graph_name })
    }
}
