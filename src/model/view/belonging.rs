//! Decides which field a stored value belongs to.
//!
//! If only one field names a property, that field gets every value of it, so no value is hidden. A value that the
//! field cannot show causes a warning. Fields that share a property divide its values by datatype and language, and
//! objects by the namespace that contains their URI. If several namespaces contain it, the longest base decides. A text
//! in one language never belongs to a field with another language, because another view may use that language.
use crate::mapping::{FieldKind, Literal, Property, Shape, Value};
use oxrdf::vocab::xsd;
use oxrdf::{LiteralRef, NamedNodeRef, TermRef};

/// Returns the index in `shape.fields` of the field that a property's value belongs to.
pub(crate) fn find_owning_field(
    shape: &Shape,
    property: NamedNodeRef<'_>,
    object: TermRef<'_>,
) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for (place, field) in shape.fields.iter().enumerate() {
        let FieldKind::Property(Property { predicate, value, .. }) = &field.kind else { continue };
        if predicate.as_ref() == property
            && let Some(affinity) = compute_affinity(value, object)
            && best.is_none_or(|(most, _)| affinity > most)
        {
            best = Some((affinity, place));
        }
    }
    best.map(|(_, place)| place)
}

/// Returns how well a value fits a field:
/// - 3 if it fits exactly. If several namespaces contain a URI, the longest prefix fits best: 3 and its length.
/// - 2 if only a related datatype fits
/// - 1 if it is some literal for a string field
/// - 0 if the field takes it only when no other field fits better
/// - `None` if the field never takes it
fn compute_affinity(value: &Value, term: TermRef<'_>) -> Option<usize> {
    let (kind, literal) = match (value, term) {
        (Value::Object(Shape { uri_prefix: Some(prefix), .. }), TermRef::NamedNode(uri)) => {
            return uri.as_str().starts_with(prefix).then_some(3 + prefix.len());
        }
        (Value::Resource | Value::Object(_), TermRef::NamedNode(_)) => return Some(3),
        (Value::Literal(kind), TermRef::Literal(literal)) => (kind, literal),
        _ => return Some(0),
    };
    Some(match kind {
        Literal::Language(tag) => match literal.language() {
            Some(language) if language.eq_ignore_ascii_case(tag) => 3,
            Some(_) => return None,
            None => 0,
        },
        Literal::String if is_plain(literal) => 3,
        Literal::String => 1,
        kind if has_exact_datatype(kind, literal) => 3,
        Literal::Number if is_numeric(literal.datatype()) => 2,
        _ => 0,
    })
}

/// Returns whether a literal has exactly the datatype that a field of this kind writes.
pub(super) fn has_exact_datatype(kind: &Literal, literal: LiteralRef<'_>) -> bool {
    let datatype = literal.datatype();
    match kind {
        Literal::String => true,
        Literal::Typed(named) => datatype == named.as_ref(),
        Literal::Language(tag) => {
            literal.language().is_some_and(|language| language.eq_ignore_ascii_case(tag))
        }
        Literal::Number => datatype == xsd::DECIMAL || datatype == xsd::DOUBLE,
        Literal::Integer => datatype == xsd::INTEGER,
        Literal::Boolean => datatype == xsd::BOOLEAN,
        Literal::Date => datatype == xsd::DATE,
        Literal::DateTime => datatype == xsd::DATE_TIME,
    }
}

fn is_plain(literal: LiteralRef<'_>) -> bool {
    literal.datatype() == xsd::STRING
}

/// Returns whether a datatype is one of the numeric types of XML Schema.
pub(super) fn is_numeric(datatype: NamedNodeRef<'_>) -> bool {
    [
        xsd::DECIMAL,
        xsd::DOUBLE,
        xsd::FLOAT,
        xsd::INTEGER,
        xsd::LONG,
        xsd::INT,
        xsd::SHORT,
        xsd::BYTE,
        xsd::NON_NEGATIVE_INTEGER,
        xsd::NON_POSITIVE_INTEGER,
        xsd::NEGATIVE_INTEGER,
        xsd::POSITIVE_INTEGER,
        xsd::UNSIGNED_LONG,
        xsd::UNSIGNED_INT,
        xsd::UNSIGNED_SHORT,
        xsd::UNSIGNED_BYTE,
    ]
    .contains(&datatype)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::Field;
    use oxrdf::{Literal as Rdf, NamedNode, Term};

    fn shape(kinds: Vec<Literal>) -> Shape {
        let fields = kinds.into_iter().enumerate().map(|(i, kind)| Field {
            name: format!("f{i}"),
            kind: FieldKind::Property(Property {
                predicate: NamedNode::new_unchecked("urn:p"),
                is_array: false,
                required: false,
                value: Value::Literal(kind),
            }),
        });
        Shape::new("N".to_owned(), fields.collect())
    }

    fn owning_field(shape: &Shape, term: &Term) -> Option<usize> {
        find_owning_field(shape, NamedNodeRef::new_unchecked("urn:p"), term.as_ref())
    }

    #[test]
    fn fields_of_one_property_divide_its_values() {
        let shape =
            shape(vec![Literal::String, Literal::Language("en".to_owned()), Literal::Integer]);
        let english = Rdf::new_language_tagged_literal_unchecked("x", "EN").into();
        let german = Rdf::new_language_tagged_literal_unchecked("x", "de").into();
        assert_eq!(owning_field(&shape, &Rdf::new_simple_literal("x").into()), Some(0));
        assert_eq!(owning_field(&shape, &english), Some(1));
        assert_eq!(owning_field(&shape, &german), Some(0));
        assert_eq!(
            owning_field(&shape, &Rdf::new_typed_literal("5", xsd::INTEGER).into()),
            Some(2)
        );
        assert_eq!(owning_field(&shape, &Rdf::new_typed_literal("x", xsd::DATE).into()), Some(0));
    }

    #[test]
    fn the_only_field_of_a_property_gets_all_values_except_other_languages() {
        let number = shape(vec![Literal::Number]);
        assert_eq!(owning_field(&number, &Rdf::new_simple_literal("x").into()), Some(0));
        assert_eq!(owning_field(&number, &NamedNode::new_unchecked("urn:x").into()), Some(0));
        let english = shape(vec![Literal::Language("en".to_owned())]);
        let german = Rdf::new_language_tagged_literal_unchecked("x", "de").into();
        assert_eq!(owning_field(&english, &german), None);
        assert_eq!(owning_field(&english, &Rdf::new_simple_literal("x").into()), Some(0));
    }
}
