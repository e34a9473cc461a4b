//! Finds the fields that a form cannot change, because a MERGE that sends what the view shows would lose stored values.
use super::literal::to_literal;
use crate::list::{List, is_list_node};
use crate::mapping::{Literal, Property, Shape, Value};
use crate::view::{ShownCode, ShownLiteral, find_owning_field, is_stored_absent};
use oxrdf::{LiteralRef, NamedNode, Term, TermRef};
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_store::{Read, SubjectQuads};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Why a field cannot be changed in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockReason {
    /// Several values are stored, and the field shows only one.
    SeveralValues,
    /// Values are stored that the field cannot show.
    UnshownValues,
    /// Values of an array have other datatypes or languages than the field writes.
    OtherDatatypes,
}

/// The fields that cannot be changed in a form, of an object and of the objects nested in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockedFields(HashMap<String, BTreeMap<String, LockReason>>);

impl LockedFields {
    /// Locks the field of this name of the object with this URI.
    pub fn lock(&mut self, uri: &str, field: &str, reason: LockReason) {
        self.0.entry(uri.to_owned()).or_default().insert(field.to_owned(), reason);
    }

    /// Returns why a field of an object is locked; `None` if it is not.
    pub fn find(&self, object: &Json, field: &str) -> Option<LockReason> {
        self.0.get(object_uri(object)?)?.get(field).copied()
    }

    /// Returns the first reason why something in a value is locked; `None` if nothing is.
    pub fn find_inside(&self, value: &Json) -> Option<LockReason> {
        if self.0.is_empty() {
            return None;
        }
        match value {
            Json::Array(elements) => elements.iter().find_map(|element| self.find_inside(element)),
            Json::Object(members) => {
                let own = object_uri(value).and_then(|uri| self.0.get(uri));
                let own = own.and_then(|locked| locked.values().next().copied());
                own.or_else(|| members.iter().find_map(|(_, value)| self.find_inside(value)))
            }
            _ => None,
        }
    }
}

fn object_uri(object: &Json) -> Option<&str> {
    match object.member("uri") {
        Some(Json::String(uri)) => Some(uri),
        _ => None,
    }
}

/// Finds the locked fields of an object of this shape and of the objects nested in it. `view` is its JSON.
///
/// # Errors
/// The errors of the store.
pub fn find_locked_fields(
    read: &dyn Read,
    shape: &Shape,
    view: &Json,
) -> Result<LockedFields, GatewayError> {
    let mut finder = LockFinder { read, seen: HashSet::new(), found: LockedFields::default() };
    finder.examine(shape, view)?;
    Ok(finder.found)
}

struct LockFinder<'r> {
    read: &'r dyn Read,
    /// The objects that were examined, by URI and place in the mapping.
    seen: HashSet<(String, usize)>,
    found: LockedFields,
}

impl LockFinder<'_> {
    fn examine(&mut self, shape: &Shape, view: &Json) -> Result<(), GatewayError> {
        let Some(uri) = object_uri(view) else { return Ok(()) };
        let Ok(name) = NamedNode::new(uri) else { return Ok(()) };
        if !self.seen.insert((uri.to_owned(), std::ptr::from_ref(shape).addr())) {
            return Ok(());
        }
        let mut quads = SubjectQuads::default();
        self.read.read_subject(name.as_ref().into(), &mut quads)?;
        let owned = quads.iter().filter_map(|(predicate, term)| {
            Some((find_owning_field(shape, predicate, term)?, term))
        });
        let mut stored: HashMap<usize, HashSet<TermRef<'_>>> = HashMap::new();
        for (place, term) in owned {
            stored.entry(place).or_default().insert(term);
        }
        for (place, field, property) in shape.iter_properties() {
            let reason = match stored.get(&place) {
                Some(terms) => self.find_reason(property, terms)?,
                None => None,
            };
            if let Some(reason) = reason {
                self.found.lock(uri, &field.name, reason);
            }
            let uris = stored.get(&place).into_iter().flatten();
            if let Some(reason) = self.find_member_reason(property, uris)? {
                self.found.lock(uri, &field.name, reason);
            }
            if let Some(value) = field.value_in(view) {
                self.examine_value(property, value)?;
            }
        }
        Ok(())
    }

    /// Finds the locked fields of the objects in the value of a field.
    fn examine_value(&mut self, property: &Property, value: &Json) -> Result<(), GatewayError> {
        let Some(inner) = property.value.shape() else { return Ok(()) };
        match (inner.map_member(), value) {
            (Some(map), Json::Object(members)) => {
                members.iter().try_for_each(|(_, one)| match map.value {
                    Some((_, value)) => self.examine_value(value, one),
                    None => self.examine(inner, one),
                })
            }
            (None, Json::Array(elements)) => {
                elements.iter().try_for_each(|one| self.examine(inner, one))
            }
            (_, one) => self.examine(inner, one),
        }
    }

    /// Returns why a map of values is locked: a change sends the members that differ, and each replaces its values.
    fn find_member_reason<'t>(
        &self,
        map: &Property,
        uris: impl IntoIterator<Item = &'t TermRef<'t>>,
    ) -> Result<Option<LockReason>, GatewayError> {
        let Some((shape, member)) = map.map() else { return Ok(None) };
        let Some((place, value)) = member.value else { return Ok(None) };
        let mut quads = SubjectQuads::default();
        for uri in uris {
            let TermRef::NamedNode(uri) = uri else { continue };
            self.read.read_subject((*uri).into(), &mut quads)?;
            let own = quads.iter().filter(|(predicate, term)| {
                find_owning_field(shape, *predicate, *term) == Some(place)
            });
            let terms: HashSet<TermRef<'_>> = own.map(|(_, term)| term).collect();
            let mut reason = self.find_reason(value, &terms)?;
            if reason.is_none() && value.map().is_some() {
                let terms: Vec<TermRef<'_>> = terms.into_iter().collect();
                reason = self.find_member_reason(value, &terms)?;
            }
            if reason.is_some() {
                return Ok(reason);
            }
        }
        Ok(None)
    }

    /// Returns why a field with these stored values is locked. Those of an ordered array are the first nodes of lists.
    fn find_reason(
        &self,
        property: &Property,
        stored: &HashSet<TermRef<'_>>,
    ) -> Result<Option<LockReason>, GatewayError> {
        if !property.is_ordered {
            return Ok(find_reason(property, stored));
        }
        let mut lists = Vec::new();
        for term in stored {
            let list = match term {
                TermRef::NamedNode(head) => List::read(self.read, head.into_owned())?.ok(),
                _ => None,
            };
            let Some(list) = list else { return Ok(Some(LockReason::UnshownValues)) };
            if list.values().len() > 0 {
                lists.push(list);
            }
        }
        if lists.len() > 1 {
            return Ok(Some(LockReason::SeveralValues));
        }
        let values = lists.iter().flat_map(List::values).map(Term::as_ref).collect();
        Ok(find_reason(property, &values))
    }
}

/// Returns why a field with these values is locked.
fn find_reason(property: &Property, stored: &HashSet<TermRef<'_>>) -> Option<LockReason> {
    if let Some(map) = property.value.language_map() {
        // A change sends the languages that differ, and nothing else is removed.
        let mut languages = HashSet::new();
        let mut tags = stored.iter().filter_map(|term| match term {
            TermRef::Literal(literal) => Some(literal.language()?.to_ascii_lowercase()),
            _ => None,
        });
        let has_several = tags.any(|tag| !languages.insert(tag));
        return (has_several && !map.has_arrays).then_some(LockReason::SeveralValues);
    }
    let is_shown = |term: &TermRef<'_>| match (&property.codes, &property.value) {
        (Some(codes), value) => ShownCode::new(codes, value, *term).is_ok(),
        (None, Value::Literal(_)) => term.is_literal(),
        (None, Value::Resource | Value::Object(_)) => {
            matches!(term, TermRef::NamedNode(iri) if !is_list_node(*iri))
        }
    };
    if !stored.iter().all(|term| is_shown(term) && !is_stored_absent(property, *term)) {
        return Some(LockReason::UnshownValues);
    }
    if !property.is_array {
        return (stored.len() > 1).then_some(LockReason::SeveralValues);
    }
    // A change of one element sends all of them.
    let Value::Literal(kind) = &property.value else { return None };
    let has_code = |term: &TermRef<'_>| {
        let codes = property.codes.as_ref().and_then(|codes| codes.list());
        codes.is_some_and(|codes| codes.has_value(&property.value, *term))
    };
    let stays = |term: &TermRef<'_>| match term {
        TermRef::Literal(literal) => has_code(term) || is_sent_alike(property, kind, *literal),
        _ => true,
    };
    (!stored.iter().all(stays)).then_some(LockReason::OtherDatatypes)
}

/// Returns whether an ingestion of what the view shows writes the same literal. The language of a text is the same in
/// upper and lower case.
fn is_sent_alike(property: &Property, kind: &Literal, literal: LiteralRef<'_>) -> bool {
    let mut shown = ShownLiteral::without_sort_key(kind, literal).to_json();
    if let Some(reading) = &property.reading {
        let Ok(read) = reading.read(kind.kind(), shown) else { return false };
        shown = read.json;
    }
    to_literal(kind, shown).is_ok_and(|written| {
        written.value() == literal.value()
            && written.datatype() == literal.datatype()
            && written.language().map(str::to_ascii_lowercase)
                == literal.language().map(str::to_ascii_lowercase)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::mapping::compile;
    use crate::testing::{Fixture, insert_quad};
    use oxrdf::Literal as Term;
    use oxrdf::vocab::xsd;
    use penstock_base::json;

    const MAPPING: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:name>}
  marks: {type: array, path: <urn:mark>}
  flows: {type: array, path: <urn:flow>, elements: {type: number}}
  place: {type: object, path: <urn:place>/Place:., fields: {room: {type: string, path: <urn:room>}}}
";

    fn find_locked(added: &[(&str, &str, Term)]) -> LockedFields {
        let fixture = Fixture::new(compile(MAPPING).unwrap().root);
        let object = r#"{"uri":"urn:p:1","name":"Feed","marks":["a","b"],"flows":[1.50,2],"place":{"uri":"urn:p:2","room":"R1"}}"#;
        fixture.send(Mode::Add, object).unwrap();
        for (subject, predicate, value) in added {
            insert_quad(&fixture.store, subject, predicate, value.clone(), "urn:g");
        }
        let (view, _) = fixture.view_with_warnings("urn:p:1");
        let view = json::parse(view.as_bytes(), 20).unwrap();
        let root = &fixture.business_object.mapping.root;
        find_locked_fields(&fixture.store.read(), root, &view).unwrap()
    }

    #[test]
    fn nothing_that_an_ingestion_wrote_is_locked() {
        assert_eq!(find_locked(&[]), LockedFields::default());
    }

    #[test]
    fn fields_that_would_lose_values_are_locked() {
        let locked = find_locked(&[
            ("urn:p:1", "urn:name", Term::new_simple_literal("Other")),
            ("urn:p:1", "urn:mark", Term::new_language_tagged_literal_unchecked("c", "de")),
            ("urn:p:1", "urn:flow", Term::new_typed_literal("3", xsd::INTEGER)),
            ("urn:p:2", "urn:room", Term::new_simple_literal("R2")),
        ]);
        let mut expected = LockedFields::default();
        expected.lock("urn:p:1", "name", LockReason::SeveralValues);
        expected.lock("urn:p:1", "marks", LockReason::OtherDatatypes);
        expected.lock("urn:p:1", "flows", LockReason::OtherDatatypes);
        expected.lock("urn:p:2", "room", LockReason::SeveralValues);
        assert_eq!(locked, expected);
        let parse = |text: &str| json::parse(text.as_bytes(), 20).unwrap();
        let object = parse(r#"{"uri":"urn:p:1","place":[{"uri":"urn:p:2"}]}"#);
        assert_eq!(locked.find(&object, "name"), Some(LockReason::SeveralValues));
        assert_eq!(locked.find(&object, "place"), None);
        let places = parse(r#"[{"x":{"uri":"urn:p:2"}}]"#);
        assert_eq!(locked.find_inside(&places), Some(LockReason::SeveralValues));
        assert_eq!(locked.find_inside(&parse(r#"[{"uri":"urn:p:3"}]"#)), None);
    }

    #[test]
    fn a_field_is_locked_by_values_that_it_cannot_show() {
        let locked = find_locked(&[("urn:p:1", "urn:place", Term::new_simple_literal("here"))]);
        let mut expected = LockedFields::default();
        expected.lock("urn:p:1", "place", LockReason::UnshownValues);
        assert_eq!(locked, expected);
    }
}
