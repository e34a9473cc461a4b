//! Listing subjects in the order of their IRIs, a page at a time.
//!
//! When something that the filter wants is rare, the subjects that have it are collected, tested and
//! sorted. Else the subjects of the graph, or without one the dictionary, both in the order of IRIs,
//! are walked from where the page begins.
use super::key::{Code, key, object, tree};
use super::{Index, damaged};
use crate::varint::Input;
use crate::{Error, SubjectFilter, term};
use oxrdf::NamedNode;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The most subjects that are collected and sorted for a page.
const FEW: usize = 10_000;

struct Wanted {
    graph: Option<Vec<u8>>,
    /// Ids of predicates, and codes of their objects.
    having: Vec<(Vec<u8>, Code)>,
}

impl Index {
    /// Hands the IRIs of the subjects that satisfy `filter`, those after `after`, to `visit` in
    /// code point order until it breaks.
    pub(crate) fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.check()?;
        let Some(wanted) = self.wanted(filter)? else { return Ok(()) };
        if let Some(few) = self.few(&wanted)? {
            return self.sorted(&wanted, few, after, visit);
        }
        self.walked(&wanted, after, visit)
    }

    fn wanted(&self, filter: &SubjectFilter) -> Result<Option<Wanted>, Error> {
        let mut wanted = Wanted { graph: None, having: Vec::new() };
        if let Some(graph) = &filter.graph {
            let Some(code) = self.graph_code(graph)? else { return Ok(None) };
            wanted.graph = Some(code.id().to_vec());
        }
        for (predicate, object) in &filter.having {
            let Some(predicate) = self.code(predicate.as_ref().into())? else { return Ok(None) };
            let Some(object) = self.code(object.as_ref())? else { return Ok(None) };
            wanted.having.push((predicate.id().to_vec(), object));
        }
        Ok(Some(wanted))
    }

    /// Whether the subject has what the filter wants besides its graph.
    fn has_all(&self, wanted: &Wanted, subject: &[u8]) -> Result<bool, Error> {
        for (predicate, object) in &wanted.having {
            if !self.has_triple(subject, predicate, &object.0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn satisfies(&self, wanted: &Wanted, subject: &[u8]) -> Result<bool, Error> {
        let there = match &wanted.graph {
            Some(graph) => self.blocks.get(&key(tree::GS, &[graph, subject]), |_| ())?.is_some(),
            None => self.blocks.any(&key(tree::SPOG, &[subject]))?,
        };
        Ok(there && self.has_all(wanted, subject)?)
    }

    /// The ids of all subjects that have the rarest thing that the filter wants, if they are few.
    fn few(&self, wanted: &Wanted) -> Result<Option<BTreeSet<Vec<u8>>>, Error> {
        let mut narrowest: Option<BTreeSet<Vec<u8>>> = None;
        for (predicate, code) in &wanted.having {
            let object = if code.is_named() { code.0.as_slice() } else { &[object::ANY_LITERAL] };
            let prefix = key(tree::POSG, &[predicate, object]);
            let most = narrowest.as_ref().map_or(FEW, BTreeSet::len);
            let mut found = BTreeSet::new();
            let mut scanned = 0;
            let mut whole = true;
            self.blocks.scan_prefix(&prefix, &mut |key, _| {
                scanned += 1;
                if scanned > most {
                    whole = false;
                    return Ok(ControlFlow::Break(()));
                }
                let rest = key.get(prefix.len()..).unwrap_or_default();
                let subject = super::key::number(&mut Input::new(rest));
                found.insert(subject.ok_or_else(|| damaged("a subject", key))?.to_vec());
                Ok(ControlFlow::Continue(()))
            })?;
            if whole {
                narrowest = Some(found);
            }
        }
        Ok(narrowest)
    }

    fn sorted(
        &self,
        wanted: &Wanted,
        few: BTreeSet<Vec<u8>>,
        after: Option<&str>,
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut named = Vec::new();
        for subject in few {
            let id = Input::new(&subject).number().ok_or_else(|| damaged("an id", &subject))?;
            if let Some(iri) = term::to_predicate(self.name(id)?)
                && after.is_none_or(|after| iri.as_str() > after)
            {
                named.push((iri, subject));
            }
        }
        named.sort_unstable_by(|(a, _), (b, _): &(NamedNode, _)| a.as_str().cmp(b.as_str()));
        for (iri, subject) in named {
            if self.satisfies(wanted, &subject)? && visit(iri.as_str()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn walked(
        &self,
        wanted: &Wanted,
        after: Option<&str>,
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let prefix = match &wanted.graph {
            Some(graph) => key(tree::GRAPH_IRI, &[graph]),
            None => key(tree::NAME_ID, &[&[term::kind::IRI]]),
        };
        let mut from = prefix.clone();
        from.extend_from_slice(after.unwrap_or_default().as_bytes());
        self.runs.scan_prefix(&prefix, &from, &mut |key, id| {
            let name = key.get(prefix.len()..).unwrap_or_default();
            let iri = std::str::from_utf8(name).map_err(|_| damaged("an IRI", name))?;
            if after == Some(iri) {
                return Ok(ControlFlow::Continue(()));
            }
            let subject = Code::named(id);
            let there = match &wanted.graph {
                Some(_) => self.has_all(wanted, subject.id())?,
                None => self.satisfies(wanted, subject.id())?,
            };
            if there { Ok(visit(iri)) } else { Ok(ControlFlow::Continue(())) }
        })
    }
}
