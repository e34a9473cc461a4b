//! The shapes of these tests, and what only they do with the fixture.
use crate::ingest::{Answer, Mode};
use crate::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use crate::testing::{Fixture, insert_quad};
use oxrdf::{NamedNode, Term};
use penstock_base::error::{ErrorClass, GatewayError, Place};

impl Fixture {
    pub(super) fn add(&self, data: &str) -> Answer {
        self.send(Mode::Add, data).unwrap()
    }

    /// Sends data that must be refused, and checks that nothing was stored. Returns the pointers of the findings.
    pub(super) fn expect_refusal(&self, mode: Mode, data: &str, kind: ErrorClass) -> Vec<String> {
        let (before, sequence) = (self.quads(), self.store.stats().sequence);
        let error = self.send(mode, data).unwrap_err();
        assert_eq!(error.class, kind, "{error}");
        assert!(error.detail.starts_with("Ingestion failed: "), "{}", error.detail);
        assert!(!error.detail.contains(" null"), "{}", error.detail);
        assert_eq!(self.quads(), before);
        assert_eq!(self.store.stats().sequence, sequence);
        pointers(&error)
    }

    pub(super) fn insert(&self, s: &str, p: &str, o: impl Into<Term>, g: &str) {
        insert_quad(&self.store, s, p, o, g);
    }
}

pub(super) fn pointers(error: &GatewayError) -> Vec<String> {
    error
        .findings
        .iter()
        .map(|finding| match &finding.place {
            Place::Pointer(pointer) => pointer.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}

pub(super) fn shape(namespace: &str, fields: Vec<Field>) -> Shape {
    Shape::new(namespace.to_owned(), fields)
}

pub(super) fn field(name: &str, value: Value) -> Field {
    let predicate = NamedNode::new_unchecked(format!("http://p/{name}"));
    let property = Property::new(predicate, value);
    Field::new(name, FieldKind::Property(property))
}

pub(super) fn string(name: &str) -> Field {
    field(name, Value::Literal(Literal::String))
}

pub(super) fn number(name: &str) -> Field {
    field(name, Value::Literal(Literal::Number))
}

pub(super) fn many(mut field: Field) -> Field {
    if let FieldKind::Property(property) = &mut field.kind {
        property.is_array = true;
    }
    field
}

pub(super) fn required(mut field: Field) -> Field {
    if let FieldKind::Property(property) = &mut field.kind {
        property.required = true;
    }
    field
}

/// A machine: name, weight, tags, a single motor (with a maker) and an array of parts.
pub(super) fn machine() -> Shape {
    let maker = shape("Maker", vec![string("name")]);
    let motor = shape(
        "Motor",
        vec![string("name"), number("power"), field("maker", Value::Object(maker.clone()))],
    );
    let part =
        shape("Part", vec![string("name"), number("weight"), field("maker", Value::Object(maker))]);
    shape(
        "Machine",
        vec![
            Field::new("id", FieldKind::Id),
            string("name"),
            number("weight"),
            many(string("tags")),
            field("site", Value::Resource),
            field("motor", Value::Object(motor)),
            many(field("parts", Value::Object(part))),
        ],
    )
}
