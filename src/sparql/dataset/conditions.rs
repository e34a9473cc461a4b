//! The conditions that the objects of patterns have to meet, see [`crate::prefilter`].
use super::Dataset;
use super::value_scan::ValueScan;
use super::value_source::{Segment, ValueSource};
use crate::condition::{Condition, Conditions};
use crate::internal_term::{InternalTerm, name_conditions, to_conditions};
use oxrdf::NamedNode;
use penstock_store::TermCode;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;

impl<'s> Dataset<'s> {
    /// Adds a condition for a pattern with this property, or with a variable. Returns the name that takes its place, or that
    /// of the graph.
    pub(crate) fn add_conditions(
        &self,
        condition: Condition,
        property: Option<NamedNode>,
    ) -> NamedNode {
        let mut conditions = self.conditions.borrow_mut();
        let name = name_conditions(conditions.len(), property.as_ref());
        let property = property.map(|property| self.encode(property.into()));
        let (tests, source) = (vec![condition], OnceCell::new());
        conditions.push(Rc::new(Conditions { tests, property, source }));
        name
    }

    /// Adds a condition to those with a name of [`Self::add_conditions`], before patterns are read.
    pub(crate) fn extend_conditions(&self, name: &NamedNode, condition: Condition) {
        if let Some(number) = to_conditions(name)
            && let Some(conditions) = self.conditions.borrow_mut().get_mut(number)
            && let Some(conditions) = Rc::get_mut(conditions)
        {
            conditions.tests.push(condition);
        }
    }

    /// Returns whether a name is one of [`Self::add_conditions`].
    pub(crate) fn has_conditions(&self, name: &NamedNode) -> bool {
        to_conditions(name).is_some_and(|number| number < self.conditions.borrow().len())
    }

    /// Returns the conditions of a pattern, with their name.
    pub(super) fn find_conditions(
        &self,
        predicate: Option<&InternalTerm>,
        graph: Option<&InternalTerm>,
    ) -> Option<(InternalTerm, Rc<Conditions>)> {
        [predicate, graph].into_iter().flatten().find_map(|name| match name {
            InternalTerm::Conditions(number) => {
                let conditions = self.conditions.borrow().get(*number).cloned()?;
                Some((name.clone(), conditions))
            }
            _ => None,
        })
    }

    /// Returns whether a term does not meet one of the conditions.
    pub(super) fn excludes(&self, conditions: &Conditions, term: &InternalTerm) -> bool {
        conditions.tests.iter().any(|condition| {
            condition.excludes(term, || self.decode_number(term), || self.decode_value(term))
        })
    }

    /// Returns the quads of the store that the index of values finds for conditions, if that takes less than reading all.
    pub(super) fn scan_values(
        &self,
        conditions: &Conditions,
        graph: Option<&InternalTerm>,
    ) -> Option<ValueScan<'s>> {
        let Some(InternalTerm::Stored(property)) = &conditions.property else { return None };
        let graph = match graph {
            None => None,
            Some(InternalTerm::Stored(code)) => Some(code.clone()),
            Some(_) => return None,
        };
        let ordered = conditions.tests.iter().find_map(|condition| match condition {
            Condition::IsWithin(bound) => Some((bound.find_source(property)?, bound.clone())),
            _ => None,
        });
        let (source, bound) = if let Some((source, bound)) = ordered {
            (source, Some(bound))
        } else {
            let (of, source) = conditions.source.get_or_init(|| {
                let source = self.find_source(&conditions.tests, property, graph.as_ref());
                (graph.clone(), source)
            });
            (source.clone().filter(|_| *of == graph)?, None)
        };
        Some(ValueScan::new(self.codes, property.clone(), graph, source, bound))
    }

    /// Returns what the index of values reads of a property for conditions, if that takes less than reading all.
    fn find_source(
        &self,
        tests: &[Condition],
        property: &TermCode,
        graph: Option<&TermCode>,
    ) -> Option<Rc<ValueSource>> {
        let sets = tests.iter().filter_map(|condition| match condition {
            Condition::IsIn(values) => Some(Cow::Borrowed(values)),
            _ => None,
        });
        let values = sets.reduce(|one, other| Cow::Owned(one.intersect(&other)))?;
        self.estimate_part_of(property, &values, graph)?;
        let names = values.has_names.then_some(Segment::Names);
        let segments = names.into_iter().chain(values.ranges.iter().cloned().map(Segment::Values));
        Some(Rc::new(ValueSource { segments: segments.collect(), max_entries: usize::MAX }))
    }
}
