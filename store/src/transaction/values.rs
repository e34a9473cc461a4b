//! The index of values with the changes of a transaction.
use super::Transaction;
use crate::index::ValueScan;
use crate::read::{Pattern, Read, VisitValue};
use crate::{Error, ValueClass, ValueKey, ValueRange, term};
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, TermRef};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A subject with changed quads, and the key of a value that it may have.
struct ChangedSubject {
    key: ValueKey,
    /// Its id in the index, if it has one.
    id: Option<u64>,
    subject: NamedOrBlankNode,
}

fn order_keys(one: &ValueKey, other: &ValueKey, reverse: bool) -> Ordering {
    if reverse { other.cmp(one) } else { one.cmp(other) }
}

impl Transaction<'_> {
    /// Passes the subjects of a range to `visit`: see [`Read::visit_values`].
    pub(super) fn visit_merged_values(
        &self,
        property: NamedNodeRef<'_>,
        (range, reverse): (&ValueRange, bool),
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error> {
        self.steps.count_step();
        let view = self.index.view();
        if view.values.is_none() {
            return Ok(false);
        }
        let mut changed = self.changed_values(property, (range, reverse))?.into_iter().peekable();
        let id = view.find_code(property.into())?.and_then(|code| code.to_number());
        let scan = id.map(|id| view.scan_values(id, range, reverse)).transpose()?;
        let mut scan = scan.flatten();
        let mut next_entry = || scan.as_mut().map_or(Ok(None), ValueScan::next_entry);
        let property = property.into_owned();
        let mut stored = next_entry()?;
        loop {
            self.steps.count_step();
            // A subject with changed quads is looked at, whatever the index has.
            let order = match (stored, changed.peek()) {
                (None, None) => return Ok(true),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((key, id)), Some(changed)) => order_keys(&key, &changed.key, reverse)
                    .then_with(|| id.cmp(&changed.id.unwrap_or(u64::MAX))),
            };
            let flow = match (order, stored) {
                (Ordering::Less, Some((key, id))) => {
                    visit(&key, view.track_damage(|| view.load_subject(id))?)
                }
                _ => match changed.next() {
                    Some(next) if self.has_value(&property, range.class(), &next)? => {
                        visit(&next.key, next.subject)
                    }
                    _ => ControlFlow::Continue(()),
                },
            };
            if flow.is_break() {
                return Ok(true);
            }
            if order.is_le() {
                stored = next_entry()?;
            }
        }
    }

    /// Estimates the number of entries of a range: see [`Read::estimate_values`].
    pub(super) fn estimate_merged_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        let stored = Read::estimate_values(&self.index.view(), property, range)?;
        let changed = match self.terms.find_number(property.into())? {
            Some(property) => self.quads.find_values(property, range, &self.terms).len() as u64,
            None => 0,
        };
        Ok(stored.map(|stored| stored + changed))
    }

    /// Returns the values in a range of the subjects with changed quads of a property, in the order of a scan.
    fn changed_values(
        &self,
        property: NamedNodeRef<'_>,
        (range, reverse): (&ValueRange, bool),
    ) -> Result<Vec<ChangedSubject>, Error> {
        let Some(property) = self.terms.find_number(property.into())? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for (key, number) in self.quads.find_values(property, range, &self.terms) {
            self.steps.count_step();
            let Some(term) = self.terms.term_for(number) else { continue };
            let Some(subject) = term::to_subject(term.into_owned()) else { continue };
            let id = self.index.view().find_code(term)?.and_then(|code| code.to_number());
            found.push(ChangedSubject { key, id, subject });
        }
        // New subjects will have greater ids.
        let id = |changed: &ChangedSubject| changed.id.unwrap_or(u64::MAX);
        found.sort_by(|one, other| {
            order_keys(&one.key, &other.key, reverse).then_with(|| id(one).cmp(&id(other)))
        });
        Ok(found)
    }

    /// Returns whether the subject of changed quads has a literal of the property with the value's key.
    fn has_value(
        &self,
        property: &NamedNode,
        class: ValueClass,
        changed: &ChangedSubject,
    ) -> Result<bool, Error> {
        let pattern = Pattern {
            subject: Some(changed.subject.clone()),
            predicate: Some(property.clone()),
            ..Pattern::default()
        };
        let mut found = false;
        self.for_each(&pattern, &mut |quad| {
            found = match quad.object.as_ref() {
                TermRef::Literal(literal) => ValueKey::of(literal) == (class, changed.key),
                _ => false,
            };
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }
}
