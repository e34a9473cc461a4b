//! Decides which field a stored value belongs to.
//!
//! If only one field names a property, that field gets every value of it, so no value is hidden. A value that the
//! field cannot show causes a warning. Fields that share a property divide its values by datatype and language, and
//! objects by the namespace that contains their URI. If several namespaces contain it, the longest base decides. A text
//! in one language never belongs to a field with another language, because another view may use that language.
use crate::mapping::{Property, Shape, Value};
use oxrdf::{NamedNodeRef, TermRef};

/// Returns the index in `shape.fields` of the field that a property's value belongs to.
pub(crate) fn find_owning_field(
    shape: &Shape,
    property: NamedNodeRef<'_>,
    object: TermRef<'_>,
) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for (place, _, Property { predicate, value, .. }) in shape.iter_properties() {
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
/// - 2 if only a related datatype fits, or for a text of a language map, so that another field with its language gets it
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
    if kind.has_type_of(literal) {
        Some(if value.language_map().is_some() { 2 } else { 3 })
    } else if value.language().is_some() && literal.language().is_some() {
        None
    } else {
        Some((kind.kind().rate_datatype)(literal.datatype()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{Field, FieldKind, LanguageMap, Literal};
    use oxrdf::vocab::xsd;
    use oxrdf::{Literal as Rdf, NamedNode, Term};

    fn shape(kinds: Vec<Literal>) -> Shape {
        let fields = kinds.into_iter().enumerate().map(|(i, kind)| {
            let predicate = NamedNode::new_unchecked("urn:p");
            let property = Property::new(predicate, Value::Literal(kind));
            Field::new(format!("f{i}"), FieldKind::Property(property))
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
    fn a_language_map_has_the_languages_of_no_other_field() {
        let map = |languages: &[&str]| {
            let languages = languages.iter().map(|tag| (*tag).to_owned()).collect();
            Literal::LanguageMap(LanguageMap { languages, has_arrays: false })
        };
        let text = |tag: &str| Rdf::new_language_tagged_literal_unchecked("x", tag).into();
        let english = || Literal::Language("en".to_owned());
        for kinds in [vec![map(&[]), english()], vec![english(), map(&[])]] {
            let map = usize::from(kinds[0] == english());
            let shape = shape(kinds);
            assert_eq!(owning_field(&shape, &text("en")), Some(1 - map));
            assert_eq!(owning_field(&shape, &text("de")), Some(map));
        }
        let with_string = shape(vec![Literal::String, map(&["de"])]);
        assert_eq!(owning_field(&with_string, &text("de")), Some(1));
        assert_eq!(owning_field(&with_string, &text("fr")), Some(0));
        let only = shape(vec![map(&["de"])]);
        assert_eq!(owning_field(&only, &text("fr")), Some(0), "it is left out with a warning");
        assert_eq!(owning_field(&only, &Rdf::new_simple_literal("x").into()), Some(0));
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
