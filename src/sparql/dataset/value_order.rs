//! Reading the objects of a property in the order of SPARQL, see [`crate::value::Value`].
//!
//! The index has the values of a class in one order, which is that of SPARQL for most classes, and the classes follow each
//! other as they do in SPARQL. All values of the other classes are read.
use super::statistics::{FAR_LOOKUP, to_float};
use super::value_scan::MIN_BATCH_ENTRIES;
use super::value_source::{Segment, ValueSource, is_in_order};
use super::{Dataset, unwrap};
use crate::condition::Bound;
use crate::internal_term::InternalTerm;
use crate::ranges::ValueSet;
use oxrdf::NamedNode;
use penstock_store::{TermCode, ValueClass, ValueRange};
use std::rc::Rc;

/// The number of IRIs and blank nodes that may be read before the first literal.
const MAX_NAMES: usize = 64;
/// The part of a property's quads that may be read as entries of the index of values, before the rest is read without it.
const MAX_PART: f64 = 0.0625;
/// The number of entries that may always be read.
const MIN_ENTRIES: usize = 256;

impl Dataset<'_> {
    /// Prepares to read a property in the order of a bound, in one graph or in all: all of its objects, or those of a set.
    /// Returns false if the index of values does not have them in this order, or if much of it would be read.
    pub(crate) fn prepare_order(
        &self,
        property: &NamedNode,
        values: Option<&ValueSet>,
        graph: Option<&TermCode>,
        bound: &Bound,
    ) -> bool {
        let InternalTerm::Stored(property) = self.encode(property.clone().into()) else {
            return false;
        };
        let source = self.find_order(&property, values, graph, bound);
        let is_found = source.is_some();
        bound.set_source(source.map(|source| (property, Rc::new(source))));
        is_found
    }

    fn find_order(
        &self,
        property: &TermCode,
        values: Option<&ValueSet>,
        graph: Option<&TermCode>,
        bound: &Bound,
    ) -> Option<ValueSource> {
        let quads = self.estimate_property(property, graph);
        if self.delta.is_some() || to_float(bound.rows()) * FAR_LOOKUP > quads {
            return None;
        }
        let is_descending = bound.is_descending();
        let max_entries = to_count(quads * MAX_PART).max(MIN_ENTRIES);
        let mut segments = Vec::new();
        let has_names = values.is_none_or(|values| values.has_names);
        if has_names && !is_descending {
            if self.has_many_names(property) {
                return None;
            }
            segments.push(Segment::Names);
        }
        // In the order of SPARQL.
        let mut classes = ValueClass::ALL;
        if is_descending {
            classes.reverse();
        }
        // What the segments are expected to leave, and what of them is read.
        let (mut left, mut read) = (bound.rows(), 0_usize);
        for class in classes {
            let range = match values {
                None => ValueRange::of_class(class),
                Some(values) => match values.ranges.iter().find(|range| range.class() == class) {
                    Some(range) => range.clone(),
                    None => continue,
                },
            };
            if left > 0 {
                let count = unwrap(self.codes.estimate_values(property, &range))?;
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                if count == 0 {
                    continue;
                }
                // Some have equal values and different keys (PT1H, PT60M). Within a batch, these keep their order.
                if class == ValueClass::Other && count > MIN_BATCH_ENTRIES {
                    return None;
                }
                read =
                    read.saturating_add(if is_in_order(class) { count.min(left) } else { count });
                left = left.saturating_sub(count);
                if read > max_entries {
                    return None;
                }
            }
            segments.push(Segment::Values(range));
        }
        if has_names && is_descending {
            if left > 0 {
                return None;
            }
            segments.push(Segment::Names);
        }
        Some(ValueSource { segments, max_entries })
    }

    /// Returns whether a property has more than [`MAX_NAMES`] quads with IRIs and blank nodes, which come before literals.
    pub(super) fn has_many_names(&self, property: &TermCode) -> bool {
        let quads = self.codes.scan_codes([None, Some(property), None, None]);
        let objects = quads.map(|quad| {
            let [_, _, object, _] = unwrap(quad);
            object
        });
        let names = objects.take_while(|object| object.subject_order().is_some());
        names.take(MAX_NAMES + 1).count() > MAX_NAMES
    }
}

/// Returns the whole part of a count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
fn to_count(count: f64) -> usize {
    count as usize
}
