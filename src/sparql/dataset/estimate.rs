//! Estimates and counts the quads of a pattern by the statistics of the index.
use super::statistics::{FAR_LOOKUP, Statistics, to_float};
use super::{Dataset, unwrap};
use crate::internal_term::InternalTerm;
use crate::ranges::ValueSet;
use oxrdf::{NamedNode, Term};
use penstock_store::TermCode;
use spareval::QueryableDataset as _;
use std::collections::HashSet;
use std::rc::Rc;

/// The rows of a pattern that are read to estimate how often a subject or an object repeats.
const SAMPLED_ROWS: usize = 128;

/// The maximum mean distance of subjects that are near each other. A block of the index has the quads of several subjects,
/// and the objects that they name take places between them.
const MEAN_NEAR_DISTANCE: u64 = 8;

impl Dataset<'_> {
    /// Estimates the quads that have these terms as subject, predicate and object.
    pub(crate) fn estimate(&self, terms: [Option<Term>; 3]) -> Rc<Statistics> {
        let terms = terms.map(|term| term.map(|term| self.encode(term)));
        let known = self.estimates.patterns.borrow().get(&terms).cloned();
        known.unwrap_or_else(|| {
            let statistics = Rc::new(self.sample(terms.each_ref().map(Option::as_ref)));
            self.estimates.patterns.borrow_mut().insert(terms, statistics.clone());
            statistics
        })
    }

    fn sample(&self, [subject, predicate, object]: [Option<&InternalTerm>; 3]) -> Statistics {
        let (mut sample, added) = self.scan(subject, predicate, object, None);
        let mut rows = to_float(added.len());
        if sample.is_some() {
            rows += self.estimate_stored([subject, predicate, object]);
        }
        if let Some(InternalTerm::Stored(code)) = object
            && code.subject_order().is_none()
        {
            // Without an index of values, finding a sample could read all quads of the predicate.
            sample = None;
        }
        let (mut subjects, mut objects, mut sampled) = (HashSet::new(), HashSet::new(), 0_u64);
        let (mut first, mut last, mut is_ascending) = (None, None, true);
        for quad in sample.into_iter().flatten().take(SAMPLED_ROWS) {
            self.budget.check();
            let [subject, _, object, _] = unwrap(quad);
            let place = subject.subject_order();
            is_ascending &= last <= place;
            (first, last) = (first.or(place), place);
            subjects.insert(subject);
            objects.insert(object);
            sampled += 1;
        }
        let passed = last.unwrap_or(0_u64).saturating_sub(first.unwrap_or(0));
        let is_by_subject = is_ascending && passed <= sampled * MEAN_NEAR_DISTANCE;
        let ratio = |distinct: usize| to_float(sampled.max(1)) / to_float(distinct.max(1));
        Statistics {
            rows,
            rows_per_subject: ratio(subjects.len()),
            rows_per_object: ratio(objects.len()),
            is_by_subject: is_by_subject && sampled > 0,
        }
    }

    /// Counts the triples of the default graph that have these terms as subject, predicate and object.
    pub(crate) fn count_triples(&self, terms: [Option<Term>; 3]) -> u64 {
        let terms = terms.map(|term| term.map(|term| self.encode(term)));
        let [subject, predicate, object] = terms.each_ref().map(Option::as_ref);
        if self.delta.is_some() || self.graphs.default.is_some() {
            let quads = self.internal_quads_for_pattern(subject, predicate, object, Some(None));
            return quads.map(|_| 1).sum();
        }
        let codes = [subject, predicate, object].map(|term| match term {
            None => Some(None),
            Some(InternalTerm::Stored(code)) => Some(Some(code)),
            Some(_) => None,
        });
        let [Some(subject), Some(predicate), Some(object)] = codes else { return 0 };
        let check = &mut || self.budget.check_time();
        unwrap(self.codes.count_triples([subject, predicate, object], check))
    }

    /// Returns whether a triple of the default graph has this term as its subject or object.
    pub(crate) fn has_node(&self, term: Term) -> bool {
        let term = self.encode(term);
        let dataset: &Self = self;
        let has = |subject, object| {
            (&dataset)
                .internal_quads_for_pattern(subject, None, object, Some(None))
                .next()
                .is_some()
        };
        has(Some(&term), None) || has(None, Some(&term))
    }

    /// Estimates the part of a property's quads whose objects are in a set of values; `None` if the index of values does not
    /// find them, or if reading all quads of the property in `graph` takes less. Without a graph, all of them count.
    pub(crate) fn estimate_part(
        &self,
        property: &NamedNode,
        values: &ValueSet,
        graph: Option<&TermCode>,
    ) -> Option<f64> {
        match self.encode(property.clone().into()) {
            InternalTerm::Stored(code) => self.estimate_part_of(&code, values, graph),
            _ => None,
        }
    }

    /// As [`Self::estimate_part`].
    pub(super) fn estimate_part_of(
        &self,
        property: &TermCode,
        values: &ValueSet,
        graph: Option<&TermCode>,
    ) -> Option<f64> {
        if values.has_names && self.has_many_names(property) {
            return None;
        }
        let mut entries = 0.0;
        for range in &values.ranges {
            // Each value of a list is a lookup, and each of many patterns may have the list.
            self.budget.check_time();
            entries += to_float(unwrap(self.codes.estimate_values(property, range))?);
        }
        let all = self.estimate_property(property, None);
        let quads = graph.map_or(all, |graph| self.estimate_property(property, Some(graph)));
        (entries * FAR_LOOKUP <= quads).then(|| entries / all.max(1.0))
    }

    /// Estimates the number of quads of a property, in one graph or in all.
    pub(super) fn estimate_property(&self, property: &TermCode, graph: Option<&TermCode>) -> f64 {
        let key = (property.clone(), graph.cloned());
        let known = self.estimates.properties.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let pattern = [None, Some(property), None, graph];
            let quads = to_float(unwrap(self.codes.estimate_count(pattern)));
            self.estimates.properties.borrow_mut().insert(key, quads);
            quads
        })
    }

    fn estimate_stored(&self, terms: [Option<&InternalTerm>; 3]) -> f64 {
        let codes = terms.map(|term| match term {
            Some(InternalTerm::Stored(code)) => Some(code),
            _ => None,
        });
        match codes {
            [None, Some(property), None] => self.estimate_property(property, None),
            [subject, predicate, object] => {
                let pattern = [subject, predicate, object, None];
                to_float(unwrap(self.codes.estimate_count(pattern)))
            }
        }
    }
}
