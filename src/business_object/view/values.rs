//! What the fields of one object show: which quads belong to each, and its values in order, each once.
use super::belonging::owner;
use super::shown::Shown;
use crate::business_object::mapping::{Property, Shape, Value};
use oxrdf::{NamedNode, Quad, Term};

/// The quads about one object, each with the place of the field that it belongs to.
#[derive(Debug)]
pub(crate) struct Owned<'q>(Vec<(usize, &'q Quad)>);

/// The values of one field.
#[derive(Debug)]
pub(crate) enum Values<'q> {
    /// Literals, ordered by number where they are numbers, else by code point.
    Literals(Vec<Shown<'q>>),
    /// IRIs, by code point: resources, or the objects nested there.
    Iris(Vec<&'q NamedNode>),
}

impl<'q> Owned<'q> {
    /// Of the quads about an object of this shape.
    pub(crate) fn new(shape: &Shape, quads: &'q [Quad]) -> Self {
        Self(quads.iter().filter_map(|quad| Some((owner(shape, quad)?, quad))).collect())
    }

    /// All values of the field at this place, though a field that is no array shows the first alone. What
    /// it cannot show goes to `left_out`, with why.
    pub(crate) fn values(
        &self,
        place: usize,
        property: &Property,
        left_out: &mut dyn FnMut(&'static str, &'q Term),
    ) -> Values<'q> {
        let terms = self.0.iter().filter(|(owner, _)| *owner == place).map(|(_, q)| &q.object);
        if let Value::Literal(kind) = &property.value {
            let mut shown = Vec::new();
            for term in terms {
                match term {
                    Term::Literal(literal) => shown.push(Shown::new(kind, literal.as_ref())),
                    other => left_out("no literal", other),
                }
            }
            shown.sort_unstable();
            // One value in several graphs, or in several datatypes that look the same here.
            shown.dedup_by(|a, b| a.text == b.text && a.raw == b.raw);
            return Values::Literals(shown);
        }
        let mut iris = Vec::new();
        for term in terms {
            match term {
                Term::NamedNode(iri) => iris.push(iri),
                other => left_out("no IRI", other),
            }
        }
        iris.sort_unstable();
        iris.dedup();
        Values::Iris(iris)
    }

    /// What the field at this place shows: of a field that is no array the first value alone.
    pub(crate) fn shown(&self, place: usize, property: &Property) -> Values<'q> {
        let mut values = self.values(place, property, &mut |_, _| {});
        if !property.many {
            match &mut values {
                Values::Literals(literals) => literals.truncate(1),
                Values::Iris(iris) => iris.truncate(1),
            }
        }
        values
    }
}
