//! The values that the fields of one object show: the quads of each field, as distinct values in order.
use super::belonging::find_owning_field;
use super::shown::ShownLiteral;
use crate::mapping::{Property, Shape, Value};
use oxrdf::{NamedNodeRef, Quad, TermRef};
use penstock_store::SubjectQuads;

/// The values of one object, grouped by the field that they belong to.
#[derive(Debug)]
pub struct FieldValues<'q> {
    /// Each value with the index of its field, sorted by that index.
    owned: Vec<(usize, TermRef<'q>)>,
    /// Values that belong to no field, each with its property.
    unowned: Vec<(NamedNodeRef<'q>, TermRef<'q>)>,
}

/// The values of one field.
#[derive(Debug)]
pub enum ShownValues<'q> {
    /// Literals: numbers ordered by number, everything else by code point.
    Literals(Vec<ShownLiteral<'q>>),
    /// IRIs of resources or nested objects, ordered by code point.
    Iris(Vec<NamedNodeRef<'q>>),
}

impl ShownValues<'_> {
    /// Returns the texts of the values, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (literals, iris): (&[ShownLiteral<'_>], &[NamedNodeRef<'_>]) = match self {
            Self::Literals(literals) => (literals, &[]),
            Self::Iris(iris) => (&[], iris),
        };
        literals.iter().map(|one| &*one.text).chain(iris.iter().map(|iri| iri.as_str()))
    }
}

impl<'q> FieldValues<'q> {
    /// Groups the stored properties and values of an object of this shape.
    pub(crate) fn new(
        shape: &Shape,
        about: impl Iterator<Item = (NamedNodeRef<'q>, TermRef<'q>)>,
    ) -> Self {
        let mut owned = Vec::with_capacity(about.size_hint().0);
        let mut unowned = Vec::new();
        for (property, value) in about {
            match find_owning_field(shape, property, value) {
                Some(place) => owned.push((place, value)),
                None => unowned.push((property, value)),
            }
        }
        owned.sort_by_key(|(place, _)| *place);
        Self { owned, unowned }
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
        let (mut literals, mut iris, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (_, term) in self.values_at(place) {
            match (term, &property.value) {
                (TermRef::Literal(literal), Value::Literal(kind)) => {
                    literals.push(ShownLiteral::new(kind, *literal));
                }
                (TermRef::NamedNode(iri), Value::Resource | Value::Object(_)) => iris.push(*iri),
                (other, _) => others.push(*other),
            }
        }
        let is_literal = matches!(property.value, Value::Literal(_));
        others.sort_by_cached_key(TermRef::to_string);
        for other in others {
            left_out(if is_literal { "not a literal" } else { "not an IRI" }, other);
        }
        if is_literal {
            literals.sort_unstable();
            // The same value in several graphs, or in several datatypes that look the same here.
            literals.dedup_by(|a, b| a.text == b.text && a.raw == b.raw);
            return ShownValues::Literals(literals);
        }
        iris.sort_unstable();
        iris.dedup();
        ShownValues::Iris(iris)
    }

    /// Returns the values that the field at this index shows: only the first if the field is not an array.
    pub fn collect_shown(&self, place: usize, property: &Property) -> ShownValues<'q> {
        let mut values = self.collect_values(place, property, &mut |_, _| {});
        if !property.is_array {
            match &mut values {
                ShownValues::Literals(literals) => literals.truncate(1),
                ShownValues::Iris(iris) => iris.truncate(1),
            }
        }
        values
    }
}
