//! A mapping as a tree: its fields with their types and properties, as people read them.
use penstock_model::mapping::{Detail, FieldKind, Mapping, Property, Shape, Value};

/// The maximum number of fields of a tree. With aliases, a short text can have very many.
const MAX_NODES: usize = 500;
/// The maximum number of types that are listed.
const MAX_TYPES: usize = 20;
/// The maximum number of characters of a name or an IRI.
const MAX_TEXT_CHARS: usize = 120;

/// The fields of a mapping in the order of the tree.
#[derive(Debug, Default)]
pub struct MappingTree {
    /// The namespace of the root.
    pub namespace: String,
    /// The first types that are written with each object of the root.
    pub types: Vec<String>,
    /// The first fields.
    pub nodes: Vec<TreeNode>,
    /// The number of further fields.
    pub more: usize,
}

/// A field in the tree.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeNode {
    /// The name.
    pub name: String,
    /// The type: `string`, or for nested objects their namespace.
    pub kind: String,
    /// Whether it may have several values.
    pub is_array: bool,
    /// The IRI of its property, shortened with the prefixes of the mapping; empty for the URI.
    pub property: String,
    /// What is special about it: `required`, `key`, `codes`, `label`.
    pub marks: Vec<&'static str>,
    /// Whether fields of nested objects follow.
    pub has_children: bool,
    /// How many levels end after it.
    pub closed_levels: usize,
}

impl MappingTree {
    /// Describes a mapping. The work and the size are bounded for any mapping.
    pub(super) fn new(mapping: &Mapping) -> Self {
        let mut nodes = Vec::new();
        let label = mapping.label.as_deref();
        add_fields(mapping, &mapping.root, label, &mut nodes);
        let types = mapping.root.types.iter().take(MAX_TYPES);
        Self {
            namespace: shorten(mapping.root.namespace.clone()),
            types: types.map(|one| shorten_iri(mapping, one.as_str())).collect(),
            more: count_fields(&mapping.root).saturating_sub(nodes.len()),
            nodes,
        }
    }
}

/// Counts the fields of a shape, with those of nested objects.
pub(super) fn count_fields(shape: &Shape) -> usize {
    let nested = shape.iter_nested().map(|(_, _, nested)| count_fields(nested));
    shape.fields.len() + nested.sum::<usize>()
}

fn add_fields(mapping: &Mapping, shape: &Shape, label: Option<&str>, nodes: &mut Vec<TreeNode>) {
    let key = shape.key_fields().map(|key| key.indexes.clone()).unwrap_or_default();
    for (index, field) in shape.fields.iter().enumerate() {
        if nodes.len() == MAX_NODES {
            return;
        }
        let mut marks = Vec::new();
        marks.extend(field.is_required().then_some("required"));
        marks.extend(key.contains(&index).then_some("key"));
        let has_codes = field.property().is_some_and(|property| property.codes.is_some());
        marks.extend(has_codes.then_some("codes"));
        marks.extend((label == Some(field.name.as_str())).then_some("label"));
        let node = TreeNode {
            name: shorten(field.name.clone()),
            kind: String::new(),
            is_array: false,
            property: String::new(),
            marks,
            has_children: false,
            closed_levels: 0,
        };
        match &field.kind {
            FieldKind::Id => nodes.push(TreeNode { kind: "URI".to_owned(), ..node }),
            FieldKind::Property(Property { predicate, is_array, value, .. }) => {
                nodes.push(TreeNode {
                    kind: shorten(describe_value(value)),
                    is_array: *is_array,
                    property: shorten_iri(mapping, predicate.as_str()),
                    ..node
                });
                if let Value::Object(nested) = value {
                    add_nested_fields(mapping, nested, nodes);
                }
            }
        }
    }
}

/// Adds the fields of the objects that are nested in the last field.
fn add_nested_fields(mapping: &Mapping, nested: &Shape, nodes: &mut Vec<TreeNode>) {
    let length = nodes.len();
    add_fields(mapping, nested, None, nodes);
    if nodes.len() == length {
        return;
    }
    if let Some(parent) = nodes.get_mut(length - 1) {
        parent.has_children = true;
    }
    if let Some(last) = nodes.last_mut() {
        last.closed_levels += 1;
    }
}

fn describe_value(value: &Value) -> String {
    match (value, value.detail()) {
        (Value::Resource, _) => "IRI".to_owned(),
        (_, Detail::Objects(nested)) => format!("object in {}", nested.namespace),
        (_, Detail::Datatype(datatype)) => format!("string of {}", datatype.as_str()),
        (_, Detail::Language(language)) => format!("string in {language}"),
        (_, Detail::None) => value.kind().name.to_owned(),
    }
}

/// Shortens an IRI with the longest prefix of the mapping that fits.
fn shorten_iri(mapping: &Mapping, iri: &str) -> String {
    let fitting = mapping.prefixes.declared().filter(|(_, base)| iri.starts_with(base));
    let longest = fitting.max_by_key(|(_, base)| base.len());
    shorten(longest.map_or_else(
        || iri.to_owned(),
        |(prefix, base)| format!("{prefix}:{}", iri.get(base.len()..).unwrap_or_default()),
    ))
}

/// Shortens a long text.
fn shorten(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::mapping;
    use std::fmt::Write as _;

    #[test]
    fn a_tree_has_the_nested_fields_in_order() {
        let text = "type: object\npath: Pumps:.\ntypes: [<urn:t#Pump>]\nlabel: name\nprefixes: {u: 'urn:', t: 'urn:t#'}\nfields:\n  uri: {type: id}\n  name: {type: string, path: t:name, required: true}\n  parts:\n    type: array\n    path: u:part\n    elements:\n      type: object\n      path: Parts:.\n      fields: {size: {type: integer, path: t:size}}\n";
        let tree = MappingTree::new(&mapping::compile(text).unwrap());
        assert_eq!((tree.namespace.as_str(), tree.more), ("Pumps", 0));
        assert_eq!(tree.types, ["t:Pump"]);
        let shown = tree.nodes.iter().map(|node| {
            (node.name.as_str(), node.kind.as_str(), node.property.as_str(), node.closed_levels)
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                ("uri", "URI", "", 0),
                ("name", "string", "t:name", 0),
                ("parts", "object in Parts", "u:part", 0),
                ("size", "integer", "t:size", 1),
            ]
        );
        assert_eq!(tree.nodes[1].marks, ["required", "label"]);
        assert!(tree.nodes[2].is_array && tree.nodes[2].has_children, "{tree:?}");
    }

    #[test]
    fn a_mapping_with_very_many_fields_has_a_bounded_tree() {
        let mut text = "type: object\npath: Pumps:.\nfields:\n".to_owned();
        for at in 1..MAX_NODES {
            writeln!(text, "  f{at}: {{type: string, path: <urn:f{at}>}}").unwrap();
        }
        text.push_str(
            "  parts:\n    type: object\n    path: <urn:parts>/Parts:.\n    fields: {size: {type: string, path: <urn:size>}}\n",
        );
        let tree = MappingTree::new(&mapping::compile(&text).unwrap());
        assert_eq!((tree.nodes.len(), tree.more), (MAX_NODES, 1));
        let last = tree.nodes.last().unwrap();
        assert_eq!((last.name.as_str(), last.has_children), ("parts", false));
    }
}
