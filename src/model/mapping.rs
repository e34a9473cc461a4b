//! The mapping: the compiled form of a Business Object's YAML `config` (specification, 2.2).
//!
//! A mapping is a finite tree of shapes. `yaml` reads YAML or JSON with the position of every node. `compile` converts
//! the nodes into the tree and reports every error. `path` parses the forms of a path, and `schema` writes the JSON
//! Schema.
//!
//! # The text
//! The root is a definition with `type: object`, a `path` that names the namespace of its objects (`Plant:.`), and
//! `fields`. `prefixes` (`ex: http://example.com/`) is optional and shortens IRIs. Well-known prefixes such as `rdf`
//! and `xsd` need no declaration.
//! Every field is a definition:
//!
//! | `type` | in JSON | in the graph | other keys |
//! |---|---|---|---|
//! | `id` | the object's own URI | the subject | nothing |
//! | `string` | a string | `xsd:string`, or the given `datatype` or `language` | `path`, `required`, `datatype`, `language` |
//! | `number` | a number | `xsd:decimal`; `xsd:double` when it has an exponent | `path`, `required` |
//! | `integer`, `boolean` | a number, a boolean | `xsd:integer`, `xsd:boolean` | `path`, `required` |
//! | `date`, `dateTime` | a string | `xsd:date`, `xsd:dateTime` | `path`, `required` |
//! | `resource` | an IRI as a string | the IRI | `path`, `required` |
//! | `object` | an object | a link to an object of the path's namespace | `path`, `required`, `fields` |
//! | `array` | an array of any other type except `id` | a value or link for each element | `path`, `required`, `elements` |
//!
//! An array without `elements` is an array of strings, and takes `datatype` or `language` itself. Elements with single
//! values may be given by the name of their type (`elements: number`).
//!
//! The property of an array is on the array, on its elements, or on both if they agree. Arrays of arrays are refused,
//! because RDF has no equivalent of the inner ones. The field name `uri` is reserved for the object's own URI.
//!
//! Two fields of one object may share a property if each value belongs to only one of them. The datatype or language
//! decides it for values. For fields of objects the namespace decides it: the URI of an object lies in the namespace of
//! its field.
//!
//! Unknown keys, duplicate keys, tags and further documents are errors and never ignored. An alias (`*name`) is a copy
//! of what its anchor names.
//!
//! # Limits
//! 1 MiB of text, 200,000 values after expansion of aliases, 256 levels of objects (in JSON: 255 levels of brackets),
//! 1,000 namespaces, and 256 characters in the name of a field.

mod compile;
mod path;
mod prefixes;
mod schema;
mod yaml;

pub use compile::compile;
pub use prefixes::Prefixes;
pub use schema::build_json_schema;

use super::namespace;
use oxrdf::NamedNode;
use penstock_base::error::Finding;
use penstock_store::{Error, Read};
use std::collections::HashSet;

/// A compiled mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The shape of the Business Object's own objects.
    pub root: Shape,
    /// The prefixes, which also apply to the conditions of the Business Object.
    pub prefixes: Prefixes,
    /// Warnings about what is valid in the text but probably unintended, each with line and column.
    pub warnings: Vec<Finding>,
}

/// How one kind of object is read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The name of the namespace that mints the identifiers, and whose base names the graph.
    pub namespace: String,
    /// The fields, in the mapping's order, in which they are also written.
    pub fields: Vec<Field>,
    /// The prefix of these objects' URIs. [`Mapping::resolve_namespaces`] sets it if several fields of the parent have
    /// the property that leads here. The URI of each object then determines its field.
    pub uri_prefix: Option<String>,
}

/// One field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name in the JSON.
    pub name: String,
    /// What the field contains.
    pub kind: FieldKind,
}

impl Field {
    /// Returns whether the field contains objects.
    pub fn contains_objects(&self) -> bool {
        matches!(&self.kind, FieldKind::Property(Property { value: Value::Object(_), .. }))
    }
}

/// What a field contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// The object's own URI.
    Id,
    /// The values of a property.
    Property(Property),
}

/// The values of one property of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The property's IRI.
    pub predicate: NamedNode,
    /// Whether the field is a JSON array.
    pub is_array: bool,
    /// Whether an object without a value here is refused.
    pub required: bool,
    /// The type of each value.
    pub value: Value,
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An IRI, as a JSON string.
    Resource,
    /// A literal.
    Literal(Literal),
    /// A nested object, which is linked to its parent.
    Object(Shape),
}

/// The type of a literal, and its form in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// `xsd:string`, as a JSON string.
    String,
    /// Any other datatype named with `datatype`, as a JSON string.
    Typed(NamedNode),
    /// `rdf:langString` with the tag named with `language` (lower case), as a JSON string.
    Language(String),
    /// `xsd:decimal`, or with an exponent `xsd:double`, as a JSON number.
    Number,
    /// `xsd:integer`, as a JSON number.
    Integer,
    /// `xsd:boolean`, as `true` or `false`.
    Boolean,
    /// `xsd:date`, as a JSON string.
    Date,
    /// `xsd:dateTime`, as a JSON string.
    DateTime,
}

impl Mapping {
    /// Creates a mapping without a text, and so without prefixes.
    pub fn new(root: Shape) -> Self {
        Self { root, prefixes: Prefixes::default(), warnings: Vec::new() }
    }

    /// Returns every namespace that the mapping names, each once, the root's first.
    pub fn namespaces(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect_namespaces(&mut names, &mut HashSet::new());
        names
    }

    /// Looks up the namespaces that decide between fields of objects with the same property. Without it, such objects
    /// belong to the first of these fields. It needs to run only once, because the base of a namespace does not change
    /// while a mapping names it.
    pub fn resolve_namespaces(&mut self, read: &impl Read) -> Result<(), Error> {
        self.root.resolve_namespaces(read)
    }
}

impl Shape {
    /// Returns the field with this name.
    pub fn find_field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns whether the member of this name is the object's own URI: `uri`, or a field of type `id`.
    pub fn is_id(&self, name: &str) -> bool {
        name == "uri" || self.find_field(name).is_some_and(|field| field.kind == FieldKind::Id)
    }

    /// Replaces the IRIs for which `rewrite` returns another one, here and in nested shapes. The datatypes of literals
    /// stay.
    pub(crate) fn rewrite_iris(&mut self, rewrite: &impl Fn(&str) -> Option<String>) {
        // Names every member, so that a new one with IRIs is not forgotten.
        let Self { namespace: _, fields, uri_prefix: _ } = self;
        for Field { name: _, kind } in fields {
            let FieldKind::Property(property) = kind else { continue };
            let Property { predicate, is_array: _, required: _, value } = property;
            if let Some(iri) = rewrite(predicate.as_str()) {
                *predicate = NamedNode::new_unchecked(iri);
            }
            if let Value::Object(nested) = value {
                nested.rewrite_iris(rewrite);
            }
        }
    }

    fn resolve_namespaces(&mut self, read: &impl Read) -> Result<(), Error> {
        let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
        for (predicate, _) in self.iter_nested_mut() {
            if !seen.insert(predicate.clone()) {
                shared.insert(predicate.clone());
            }
        }
        for (predicate, nested) in self.iter_nested_mut() {
            if shared.contains(predicate) {
                let namespace = namespace::get(read, &nested.namespace)?;
                nested.uri_prefix = namespace.map(|namespace| namespace.identifier_prefix());
            }
            nested.resolve_namespaces(read)?;
        }
        Ok(())
    }

    /// Returns the shapes of nested objects, each with the property that leads to it.
    fn iter_nested_mut(&mut self) -> impl Iterator<Item = (&NamedNode, &mut Self)> {
        self.fields.iter_mut().filter_map(|field| match &mut field.kind {
            FieldKind::Property(Property { predicate, value: Value::Object(nested), .. }) => {
                Some((&*predicate, nested))
            }
            _ => None,
        })
    }

    fn collect_namespaces<'a>(&'a self, names: &mut Vec<&'a str>, seen: &mut HashSet<&'a str>) {
        if seen.insert(&self.namespace) {
            names.push(&self.namespace);
        }
        for field in &self.fields {
            if let FieldKind::Property(Property { value: Value::Object(shape), .. }) = &field.kind {
                shape.collect_namespaces(names, seen);
            }
        }
    }
}
