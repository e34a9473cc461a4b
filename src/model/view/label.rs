//! The label of an object: the text by which people recognise it.
use super::values::FieldValues;
use crate::mapping::{Field, FieldKind, Mapping, Shape};

/// Returns the label of a Business Object's object with these values. Without one, the object is shown by its URI.
pub fn find_label(mapping: &Mapping, values: &FieldValues<'_>) -> Option<String> {
    read_label(mapping.find_label_field()?, values)
}

/// Returns the label of a nested object with these values.
pub fn find_nested_label(shape: &Shape, values: &FieldValues<'_>) -> Option<String> {
    read_label(shape.find_label_field()?, values)
}

fn read_label((place, field): (usize, &Field), values: &FieldValues<'_>) -> Option<String> {
    let FieldKind::Property(property) = &field.kind else { return None };
    let label = values.collect_shown(place, property).texts().next()?.to_owned();
    (!label.trim().is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;
    use oxrdf::{GraphName, Literal, NamedNode, Quad};

    fn label_of(root: &str, values: &[(&str, &str)]) -> Option<String> {
        let text = format!(
            "type: object\npath: A:.\nprefixes: {{v: 'http://v/'}}\n{root}fields:\n\
             \x20 tags: {{type: array, path: v:tag}}\n\
             \x20 size: {{type: number, path: v:size, required: true}}\n\
             \x20 remark: {{type: string, path: v:remark}}\n\
             \x20 name: {{type: string, path: v:name, required: true}}\n\
             \x20 title: {{type: string, path: v:title, language: en}}\n"
        );
        let mapping = compile(&text).unwrap();
        let node = |iri: &str| NamedNode::new_unchecked(iri);
        let quads: Vec<Quad> = values
            .iter()
            .map(|(property, value)| {
                let value = match *property {
                    "title" => Literal::new_language_tagged_literal_unchecked(*value, "en"),
                    _ => Literal::new_simple_literal(*value),
                };
                let property = node(&format!("http://v/{property}"));
                Quad::new(node("http://x/1"), property, value, GraphName::DefaultGraph)
            })
            .collect();
        find_label(&mapping, &FieldValues::from_quads(&mapping.root, &quads))
    }

    #[test]
    fn the_label_is_the_named_field_or_the_first_required_string() {
        let values = [("tag", "wet"), ("remark", "noisy"), ("name", "Feed pump"), ("title", "P-1")];
        assert_eq!(label_of("", &values).as_deref(), Some("Feed pump"));
        assert_eq!(label_of("label: title\n", &values).as_deref(), Some("P-1"));
        assert_eq!(label_of("label: remark\n", &values).as_deref(), Some("noisy"));
    }

    #[test]
    fn an_object_without_a_text_in_that_field_has_no_label() {
        assert_eq!(label_of("", &[("remark", "noisy")]), None);
        assert_eq!(label_of("label: title\n", &[("title", " "), ("name", "Feed pump")]), None);
    }

    #[test]
    fn without_a_required_string_the_first_string_is_the_label() {
        let mapping =
            |fields: &str| compile(&format!("type: object\npath: A:.\nfields:\n{fields}")).unwrap();
        let label =
            |mapping: &Mapping| mapping.find_label_field().map(|(_, field)| field.name.clone());
        let two = mapping(
            "  a: {type: integer, path: <urn:a>}\n  b: {type: string, path: <urn:b>}\n  c: {type: string, path: <urn:c>}\n",
        );
        assert_eq!(label(&two).as_deref(), Some("b"));
        assert_eq!(label(&mapping("  a: {type: integer, path: <urn:a>, required: true}\n")), None);
    }
}
