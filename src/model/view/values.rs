//! The values that the fields of one object show: the quads of each field, as distinct values in order.
use super::belonging::find_owning_field;
use super::codes::ShownCode;
use super::shown::ShownLiteral;
use crate::list::{Lists, is_list_node};
use crate::mapping::{Codes, Property, Shape, Value};
use oxrdf::{NamedNodeRef, Quad, TermRef};
use penstock_base::json::Json;
use penstock_store::SubjectQuads;

/// The values of one object, grouped by the field that they belong to.
#[derive(Debug)]
pub struct FieldValues<'q> {
    /// Each value with the index of its field, sorted by that index.
    owned: Vec<(usize, TermRef<'q>)>,
    /// Values that belong to no field, each with its property.
    unowned: Vec<(NamedNodeRef<'q>, TermRef<'q>)>,
    /// Values that mean no value in their field, each with its index.
    absent: Vec<(usize, TermRef<'q>)>,
    /// The lists of ordered arrays, which have no values without them.
    pub(super) lists: Option<&'q Lists>,
}

/// The values of one field.
#[derive(Debug)]
pub enum ShownValues<'q> {
    /// Literals: numbers ordered by number, everything else by code point. Those of a language map are ordered by language
    /// first, those of an ordered array as the array.
    Literals(Vec<ShownLiteral<'q>>),
    /// IRIs of resources or nested objects, ordered by code point, or as the ordered array.
    Iris(Vec<NamedNodeRef<'q>>),
    /// The values of a field with codes, ordered as literals by what is shown, or as the ordered array.
    Codes(Vec<ShownCode<'q>>),
}

impl<'q> ShownValues<'q> {
    /// Returns the texts of the values, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (literals, iris, codes) = self.as_slices();
        let iris = iris.iter().map(|iri| iri.as_str());
        literals.iter().map(|one| &*one.text).chain(iris).chain(codes.iter().map(ShownCode::text))
    }

    /// Returns the values that are IRIs, in order.
    pub fn iris(&self) -> impl Iterator<Item = NamedNodeRef<'q>> {
        let (_, iris, codes) = self.as_slices();
        iris.iter().copied().chain(codes.iter().filter_map(|code| match code.term {
            TermRef::NamedNode(iri) => Some(iri),
            _ => None,
        }))
    }

    fn as_slices(&self) -> (&[ShownLiteral<'q>], &[NamedNodeRef<'q>], &[ShownCode<'q>]) {
        match self {
            Self::Literals(literals) => (literals, &[], &[]),
            Self::Iris(iris) => (&[], iris, &[]),
            Self::Codes(codes) => (&[], &[], codes),
        }
    }
}

impl<'q> FieldValues<'q> {
    /// Groups the stored properties and values of an object of this shape.
    pub(crate) fn new(
        shape: &Shape,
        about: impl Iterator<Item = (NamedNodeRef<'q>, TermRef<'q>)>,
    ) -> Self {
        let mut owned = Vec::with_capacity(about.size_hint().0);
        let (mut unowned, mut absent) = (Vec::new(), Vec::new());
        for (property, value) in about {
            match find_owning_field(shape, property, value) {
                Some(place) if is_absent_at(shape, place, value) => absent.push((place, value)),
                Some(place) => owned.push((place, value)),
                None => unowned.push((property, value)),
            }
        }
        owned.sort_by_key(|(place, _)| *place);
        Self { owned, unowned, absent, lists: None }
    }

    /// Sets the lists of ordered arrays.
    #[must_use]
    pub fn with_lists(self, lists: &'q Lists) -> Self {
        Self { lists: Some(lists), ..self }
    }

    /// As [`Self::new`], from the quads about an object.
    pub fn from_quads(shape: &Shape, quads: &'q [Quad]) -> Self {
        Self::new(shape, quads.iter().map(|quad| (quad.predicate.as_ref(), quad.object.as_ref())))
    }

    /// As [`Self::new`], from the stored quads of an object.
    pub fn from_subject(shape: &Shape, about: &'q SubjectQuads) -> Self {
        Self::new(shape, about.iter())
    }

    /// Returns the values of the field at this index, unordered.
    pub(super) fn values_at(&self, place: usize) -> &[(usize, TermRef<'q>)] {
        let from = self.owned.partition_point(|(owner, _)| *owner < place);
        let to = self.owned.partition_point(|(owner, _)| *owner <= place);
        self.owned.get(from..to).unwrap_or_default()
    }

    /// Returns whether the field at this index has stored values that mean no value.
    pub(super) fn has_absent(&self, place: usize) -> bool {
        self.absent.iter().any(|(owner, _)| *owner == place)
    }

    /// Returns the values of a property that belong to no field: texts in other languages than those of its fields,
    /// and objects in none of the namespaces of its fields.
    pub(super) fn unowned_values(
        &self,
        property: NamedNodeRef<'_>,
    ) -> impl Iterator<Item = TermRef<'q>> {
        self.unowned.iter().filter(move |(named, _)| *named == property).map(|(_, value)| *value)
    }

    /// Returns all values of the field at this index, even if the field is not an array and shows only the first.
    /// Calls `left_out` with each value that it cannot show, in order, and the reason.
    pub(crate) fn collect_values(
        &self,
        place: usize,
        property: &Property,
        left_out: &mut dyn FnMut(&'static str, TermRef<'q>),
    ) -> ShownValues<'q> {
        let mut absent: Vec<TermRef<'q>> = self
            .absent
            .iter()
            .filter(|(owner, _)| *owner == place)
            .map(|(_, term)| *term)
            .collect();
        absent.sort_by_cached_key(TermRef::to_string);
        absent.dedup();
        for term in absent {
            left_out("no value by `absent`", term);
        }
        if property.is_ordered {
            return self.collect_list(place, property, left_out);
        }
        if let Some(codes) = &property.codes {
            let shown = self.collect_codes(place, codes, &property.value, left_out);
            return ShownValues::Codes(shown);
        }
        if let Some(only) = self.find_only_literal(place, property) {
            return ShownValues::Literals(vec![only]);
        }
        let (mut literals, mut iris, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (_, term) in self.values_at(place) {
            match (term, &property.value) {
                (TermRef::Literal(literal), Value::Literal(kind)) if kind.can_show(*literal) => {
                    literals.push(ShownLiteral::new(kind, *literal));
                }
                (TermRef::NamedNode(iri), Value::Resource | Value::Object(_))
                    if !is_list_node(*iri) =>
                {
                    iris.push(*iri);
                }
                (other, _) => others.push(*other),
            }
        }
        let is_literal = matches!(property.value, Value::Literal(_));
        others.sort_by_cached_key(TermRef::to_string);
        for other in others {
            let what = match other {
                // A language map shows no others.
                TermRef::Literal(text) if is_literal && text.language().is_none() => {
                    "a text without a language"
                }
                TermRef::Literal(_) if is_literal => "in none of the languages of the field",
                _ if is_literal => "not a literal",
                TermRef::NamedNode(_) => "the list of an ordered array",
                _ => "not an IRI",
            };
            left_out(what, other);
        }
        if is_literal {
            literals.sort_unstable();
            // The same value in several graphs, or in several datatypes that look the same here.
            let is_map = property.value.language_map().is_some();
            if is_map {
                literals.sort_by_cached_key(ShownLiteral::language);
            }
            literals.dedup_by(|a, b| {
                a.text == b.text && a.raw == b.raw && (!is_map || a.language() == b.language())
            });
            return ShownValues::Literals(literals);
        }
        iris.sort_unstable();
        iris.dedup();
        ShownValues::Iris(iris)
    }

    /// Returns what the field at this index shows if it has one value, a literal, as most fields do: it needs no sorting.
    /// `None` otherwise, and for codes and ordered arrays.
    pub(crate) fn find_only_literal(
        &self,
        place: usize,
        property: &Property,
    ) -> Option<ShownLiteral<'q>> {
        let Value::Literal(kind) = &property.value else { return None };
        match self.values_at(place) {
            [(_, TermRef::Literal(literal))]
                if !property.is_ordered && property.codes.is_none() && kind.can_show(*literal) =>
            {
                Some(ShownLiteral::without_sort_key(kind, *literal))
            }
            _ => None,
        }
    }

    fn collect_codes(
        &self,
        place: usize,
        codes: &Codes,
        value: &Value,
        left_out: &mut dyn FnMut(&'static str, TermRef<'q>),
    ) -> Vec<ShownCode<'q>> {
        let (mut shown, mut others) = (Vec::new(), Vec::new());
        for (_, term) in self.values_at(place) {
            match ShownCode::new(codes, value, *term) {
                Ok(code) => shown.push(code),
                Err(what) => others.push((what, *term)),
            }
        }
        others.sort_by_cached_key(|(_, term)| term.to_string());
        for (what, term) in others {
            left_out(what, term);
        }
        ShownCode::sort(&mut shown);
        shown
    }

    /// Returns the values that the field at this index shows: only the first if the field is not an array, and of a language
    /// map without arrays the first in each language.
    pub fn collect_shown(&self, place: usize, property: &Property) -> ShownValues<'q> {
        let mut values = self.collect_values(place, property, &mut |_, _| {});
        if let Some(map) = property.value.language_map() {
            if let ShownValues::Literals(literals) = &mut values
                && !map.has_arrays
            {
                literals.dedup_by_key(|text| text.language());
            }
        } else if !property.is_array {
            match &mut values {
                ShownValues::Literals(literals) => literals.truncate(1),
                ShownValues::Iris(iris) => iris.truncate(1),
                ShownValues::Codes(codes) => codes.truncate(1),
            }
        }
        values
    }
}

fn is_absent_at(shape: &Shape, place: usize, term: TermRef<'_>) -> bool {
    shape
        .property_at(place)
        .is_some_and(|property| !property.is_ordered && is_stored_absent(property, term))
}

/// Returns whether a stored value of a field means no value, because `absent` names what the view would show.
pub(crate) fn is_stored_absent(property: &Property, term: TermRef<'_>) -> bool {
    let Some(reading) = property.reading.as_ref().filter(|reading| !reading.absent.is_empty())
    else {
        return false;
    };
    let json = match (&property.codes, &property.value, term) {
        (Some(codes), value, term) => ShownCode::new(codes, value, term).ok().map(|code| code.json),
        (None, Value::Literal(kind), TermRef::Literal(literal)) => {
            Some(ShownLiteral::without_sort_key(kind, literal).to_json())
        }
        (None, Value::Resource, TermRef::NamedNode(iri)) => {
            Some(Json::String(iri.as_str().to_owned()))
        }
        _ => None,
    };
    json.is_some_and(|json| reading.is_absent(&json))
}
