//! Changes of accepted data, each of which breaks a mapping or keeps to it.
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal as RdfLiteral, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_model::mapping::{FieldKind, Literal, Property, Shape, Value};

/// Changed data.
pub(crate) struct Change {
    /// What is changed.
    pub(crate) what: String,
    /// All quads after it.
    pub(crate) quads: Vec<Quad>,
    /// Whether they keep to the mapping.
    pub(crate) is_valid: bool,
}

/// Lists changes of an object and of the objects nested in it.
pub(crate) fn list_changes(
    shape: &Shape,
    subject: &NamedNode,
    quads: &[Quad],
    is_root: bool,
    changes: &mut Vec<Change>,
) {
    let editor = Editor { shape, subject, quads, is_root };
    for field in &shape.fields {
        let FieldKind::Property(property) = &field.kind else { continue };
        editor.change_values(&field.name, property, changes);
        let Value::Object(nested) = &property.value else { continue };
        for quad in quads.iter().filter(|quad| editor.belongs(property, quad)) {
            let Term::NamedNode(uri) = &quad.object else { continue };
            if quads.iter().any(|quad| is_about(quad, uri)) {
                list_changes(nested, uri, quads, false, changes);
            }
        }
    }
    for class in &shape.types {
        let is_type = |quad: &Quad| {
            is_about(quad, subject)
                && quad.predicate == rdf::TYPE
                && quad.object == Term::from(class.clone())
        };
        editor.remove(&format!("{subject} without the type {class}"), &is_type, changes);
    }
}

fn is_about(quad: &Quad, subject: &NamedNode) -> bool {
    matches!(&quad.subject, NamedOrBlankNode::NamedNode(node) if node == subject)
}

struct Editor<'a> {
    shape: &'a Shape,
    subject: &'a NamedNode,
    quads: &'a [Quad],
    is_root: bool,
}

impl Editor<'_> {
    /// Returns whether a quad is a value of a field of the object.
    fn belongs(&self, property: &Property, quad: &Quad) -> bool {
        is_about(quad, self.subject)
            && quad.predicate == property.predicate
            && match (&property.value, &quad.object) {
                (Value::Literal(Literal::Language(tag)), Term::Literal(literal)) => {
                    literal.language() == Some(tag)
                }
                (Value::Literal(Literal::LanguageMap(_)), Term::Literal(literal)) => {
                    literal.language().is_some()
                }
                (Value::Literal(_), Term::Literal(literal)) => literal.language().is_none(),
                _ => true,
            }
    }

    fn change_values(&self, name: &str, property: &Property, changes: &mut Vec<Change>) {
        let own = |quad: &Quad| self.belongs(property, quad);
        let what = format!("{} {name:?} ({})", self.subject, property.predicate);
        if property.required {
            self.remove(&format!("{what} without a value"), &own, changes);
        }
        let first = self.quads.iter().find(|quad| own(quad));
        // ShEx cannot count the texts in each language.
        let holds_one = !property.is_array && property.value.language_map().is_none();
        if let (true, Some(first)) = (holds_one, first) {
            let second = second_value(&property.value, &first.object);
            self.add(&format!("{what} with two values"), property, second, false, changes);
        }
        let untyped = NamedNode::new_unchecked("urn:wrong");
        let wrong: Term = RdfLiteral::new_typed_literal("x", untyped.clone()).into();
        self.add(&format!("{what} of another datatype"), property, wrong, false, changes);
        if let Value::Literal(_) = &property.value {
            self.add(&format!("{what} with an IRI"), property, untyped.into(), false, changes);
        }
        let Value::Literal(Literal::Language(_)) = &property.value else { return };
        let english: Term = RdfLiteral::new_language_tagged_literal_unchecked("x", "en").into();
        if self.is_root {
            let what = format!("{what} in one more language");
            self.add(&what, property, english.clone(), true, changes);
        }
        if property.required {
            let before = changes.len();
            self.remove(&format!("{what} in another language"), &own, changes);
            for change in changes.iter_mut().skip(before) {
                change.quads.push(self.create_quad(property, english.clone()));
            }
        }
    }

    fn create_quad(&self, property: &Property, value: Term) -> Quad {
        let graph = NamedNode::new_unchecked("urn:changed");
        Quad::new(self.subject.clone(), property.predicate.clone(), value, graph)
    }

    fn add(
        &self,
        what: &str,
        property: &Property,
        value: Term,
        is_valid: bool,
        changes: &mut Vec<Change>,
    ) {
        let mut quads = self.quads.to_vec();
        quads.push(self.create_quad(property, value));
        changes.push(Change { what: what.to_owned(), quads, is_valid });
    }

    /// Removes quads, unless that makes the object a mere reference.
    fn remove(&self, what: &str, is_removed: &dyn Fn(&Quad) -> bool, changes: &mut Vec<Change>) {
        let quads: Vec<Quad> =
            self.quads.iter().filter(|quad| !is_removed(quad)).cloned().collect();
        let has_value = |quad: &Quad| {
            is_about(quad, self.subject)
                && self.shape.fields.iter().any(|field| match &field.kind {
                    FieldKind::Property(property) => property.predicate == quad.predicate,
                    FieldKind::Id => false,
                })
        };
        if quads.len() < self.quads.len() && (self.is_root || quads.iter().any(has_value)) {
            changes.push(Change { what: what.to_owned(), quads, is_valid: false });
        }
    }
}

/// Returns another value of the same type.
fn second_value(value: &Value, first: &Term) -> Term {
    let typed = |text: &str, datatype| RdfLiteral::new_typed_literal(text, datatype).into();
    match value {
        Value::Resource | Value::Object(_) => NamedNode::new_unchecked("urn:second").into(),
        Value::Literal(Literal::String | Literal::Scalar) => RdfLiteral::from("second one").into(),
        Value::Literal(Literal::Typed(datatype)) => typed("second one", datatype.as_ref()),
        Value::Literal(Literal::Json) => typed("[\"second one\"]", rdf::JSON),
        Value::Literal(Literal::LanguageMap(_)) => {
            RdfLiteral::new_language_tagged_literal_unchecked("second one", "en").into()
        }
        Value::Literal(Literal::Language(tag)) => {
            RdfLiteral::new_language_tagged_literal_unchecked("second one", tag).into()
        }
        Value::Literal(Literal::Number) => typed("99.25", xsd::DECIMAL),
        Value::Literal(Literal::Integer) => typed("99", xsd::INTEGER),
        Value::Literal(Literal::Boolean) => {
            let is_true = *first == Term::from(RdfLiteral::from(true));
            RdfLiteral::from(!is_true).into()
        }
        Value::Literal(Literal::Date) => typed("1999-01-01", xsd::DATE),
        Value::Literal(Literal::DateTime) => typed("1999-01-01T00:00:00Z", xsd::DATE_TIME),
    }
}
