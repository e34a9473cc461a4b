//! Compares the values of a field with the stored ones.
use crate::ingest::node::{GivenField, find_language};
use crate::list::is_list_node;
use crate::mapping::Property;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Quad, Term, TermRef};
use penstock_base::json;
use penstock_store::{FastMap, FastSet};
use std::collections::HashSet;

/// Returns whether a stored term is a value. The empty list is none.
pub(super) fn is_value(property: &Property, term: &Term) -> bool {
    !property.is_ordered || term.as_ref() != TermRef::from(rdf::NIL)
}

/// Returns whether the request gives fewer values of a field than are stored. Of an ordered array both have one at most.
pub(super) fn has_fewer_values(
    property: &Property,
    given: Option<&GivenField<'_>>,
    current: &[&Quad],
) -> bool {
    let stored: HashSet<&Term> =
        current.iter().map(|quad| &quad.object).filter(|term| is_value(property, term)).collect();
    match given {
        // An object that is created without a value has the default.
        None => !stored.is_empty() && property.default_value().is_none(),
        Some(given) if property.is_ordered => given.values.is_empty() && !stored.is_empty(),
        Some(given) => given.values.len() < stored.len(),
    }
}

/// Returns whether two values of a `json` field are the same. What other software wrote may have white space.
pub(super) fn is_same_json(one: &Term, other: &Term) -> bool {
    let [one, other] = [one, other].map(|term| match term {
        Term::Literal(literal) if literal.datatype() == rdf::JSON => json::compact(literal.value()),
        _ => None,
    });
    one.is_some() && one == other
}

/// Returns the stored value that contradicts a new one, and the new one: in a field that holds one value, or one text in each
/// language.
pub(super) fn find_conflict<'t>(
    property: &Property,
    current: &[&'t Quad],
    wanted: &'t [Term],
) -> Option<(&'t Term, &'t Term)> {
    let stored = || current.iter().copied().map(|quad| &quad.object);
    let Some(map) = property.value.language_map() else {
        let first = stored().next().filter(|_| !property.is_array)?;
        let other = wanted.iter().find(|term| stored().all(|one| one != *term))?;
        return Some((first, other));
    };
    if map.has_arrays {
        return None;
    }
    let mut first_texts: FastMap<String, &Term> = FastMap::default();
    for term in stored() {
        if let Some(language) = find_language(term) {
            first_texts.entry(language).or_insert(term);
        }
    }
    let terms: FastSet<&Term> = stored().collect();
    wanted.iter().find_map(|term| {
        let first = first_texts.get(&find_language(term)?)?;
        (!terms.contains(term)).then_some((*first, term))
    })
}

/// Returns the object that a single nested object without a URI refers to: the one that its parent links to.
pub(super) fn find_linked_object(current: &[&Quad]) -> Option<NamedNode> {
    current
        .iter()
        .filter_map(|quad| match &quad.object {
            Term::NamedNode(uri) if !is_list_node(uri) => Some(uri),
            _ => None,
        })
        .min()
        .cloned()
}
