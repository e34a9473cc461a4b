//! The values of an ordered array, which are a list.
use super::codes::ShownCode;
use super::shown::ShownLiteral;
use super::values::{FieldValues, ShownValues, is_stored_absent};
use crate::list::{List, is_list_node};
use crate::mapping::{Property, Value};
use oxrdf::{NamedNodeRef, Term, TermRef};

impl<'q> FieldValues<'q> {
    /// Returns the list that the field at this index shows, and its first node: by IRI the first list with a value. Calls
    /// `left_out` with each other stored value, and the reason.
    pub(super) fn find_list(
        &self,
        place: usize,
        left_out: &mut dyn FnMut(&'static str, TermRef<'q>),
    ) -> Option<(NamedNodeRef<'q>, &'q List)> {
        let mut heads: Vec<TermRef<'q>> =
            self.values_at(place).iter().map(|(_, term)| *term).collect();
        heads.sort_by_cached_key(TermRef::to_string);
        heads.dedup();
        let mut shown = None;
        for term in heads {
            let list = match (term, self.lists) {
                (TermRef::NamedNode(head), Some(lists)) => {
                    lists.find(head).map(|list| (head, list))
                }
                _ => Err("not a list"),
            };
            match list {
                Ok((_, list)) if list.values().len() == 0 => {}
                Ok(list) if shown.is_none() => shown = Some(list),
                Ok(_) => left_out("another list of a field that shows one", term),
                Err(what) => left_out(what, term),
            }
        }
        shown
    }

    /// Returns the values of the ordered array at this index, in its order.
    pub(super) fn collect_list(
        &self,
        place: usize,
        property: &Property,
        left_out: &mut dyn FnMut(&'static str, TermRef<'q>),
    ) -> ShownValues<'q> {
        let list = self.find_list(place, left_out);
        let values = list.into_iter().flat_map(|(_, list)| list.values()).map(Term::as_ref);
        let shown = ListedValues { property, values, left_out };
        match (&property.codes, &property.value) {
            (Some(codes), value) => {
                ShownValues::Codes(shown.collect(|term| ShownCode::new(codes, value, term)))
            }
            (None, Value::Literal(kind)) => {
                ShownValues::Literals(shown.collect(|term| match term {
                    TermRef::Literal(literal) => Ok(ShownLiteral::new(kind, literal)),
                    _ => Err("not a literal"),
                }))
            }
            (None, Value::Resource | Value::Object(_)) => {
                ShownValues::Iris(shown.collect(|term| match term {
                    TermRef::NamedNode(iri) if !is_list_node(iri) => Ok(iri),
                    _ => Err("not an IRI"),
                }))
            }
        }
    }
}

/// The values of a list.
struct ListedValues<'l, 'q, I> {
    property: &'l Property,
    values: I,
    left_out: &'l mut dyn FnMut(&'static str, TermRef<'q>),
}

impl<'q, I: Iterator<Item = TermRef<'q>>> ListedValues<'_, 'q, I> {
    /// Returns what `show` returns of each value that is shown.
    fn collect<T>(self, show: impl Fn(TermRef<'q>) -> Result<T, &'static str>) -> Vec<T> {
        let mut shown = Vec::new();
        for term in self.values {
            let is_absent = is_stored_absent(self.property, term);
            let value = if is_absent { Err("no value by `absent`") } else { show(term) };
            match value {
                Ok(value) => shown.push(value),
                Err(what) => (self.left_out)(what, term),
            }
        }
        shown
    }
}
