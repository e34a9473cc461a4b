//! The mapping: the compiled form of a Business Object's YAML `config` (specification, 2.2).
//!
//! A mapping is a finite tree of shapes. `yaml` reads YAML or JSON with the position of every node. `compile` converts
//! the nodes into the tree and reports every error. `path` parses the forms of a path. `kind` has what is known of each
//! type of values. `group` knows the objects in the JSON that have no node, and `map` those whose names are data. `schema`
//! writes the JSON Schema, and `shapes` writes SHACL and ShEx. `example` builds an object that the mapping accepts.
//! `document` says where the objects are in what senders send.
//!
//! # The text
//! The root is a definition with `type: object`, a `path` that names the namespace of its objects (`Plant:.`), and
//! `fields`. `prefixes` (`ex: http://example.com/`) is optional and shortens IRIs. Well-known prefixes such as `rdf`
//! and `xsd` need no declaration. `label: name` is optional and names the field by which people recognise an object.
//! Every field is a definition:
//!
//! | `type` | in JSON | in the graph | other keys |
//! |---|---|---|---|
//! | `id` | the object's own URI | the subject | nothing |
//! | `string` | a string | `xsd:string`, or the given `datatype` or `language` | `path`, `required`, `datatype`, `language`, `values` |
//! | `number` | a number | `xsd:decimal`; `xsd:double` when it has an exponent | `path`, `required` |
//! | `integer` | a number | `xsd:integer` | `path`, `required`, `values` |
//! | `boolean` | a boolean | `xsd:boolean` | `path`, `required` |
//! | `date`, `dateTime` | a string | `xsd:date`, `xsd:dateTime` | `path`, `required` |
//! | `resource` | an IRI as a string | the IRI | `path`, `required`, `base`, `values` |
//! | `scalar` | a string, a number or a boolean | `xsd:string`, `xsd:integer`, `xsd:decimal`, `xsd:double` or `xsd:boolean` | `path`, `required` |
//! | `json` | any value | `rdf:JSON` | `path`, `required` |
//! | `languageMap` | an object whose names are language tags | `rdf:langString` for each text | `path`, `required`, `languages`, `elements: array` |
//! | `object` | an object | a link to an object of the path's namespace | `path`, `required`, `fields`, `key`, `keyScope`, `types` |
//! | `array` | an array of any other type except `id` | a value or link for each element | `path`, `required`, `elements`, `ordered` |
//! | `map` | an object whose member names are data | a link to an object for each member | `path`, `required`, `key`, `elements` |
//! | `group` | an object | nothing: its fields are fields of the object around it | `fields` |
//!
//! An array without `elements` is an array of strings, and takes `datatype` or `language` itself. Elements with single
//! values may be given by the name of their type (`elements: number`).
//!
//! `ordered: true` keeps the order of an array and what it has twice: it is one value, an RDF list, and the only field of
//! its property.
//!
//! The property of an array is on the array, on its elements, or on both if they agree. Arrays of arrays are refused,
//! because RDF has no equivalent of the inner ones. The field name `uri` is reserved for the object's own URI.
//!
//! Two fields of one object may share a property if each value belongs to only one of them. The datatype or language
//! decides it for values. For fields of objects the namespace decides it: the URI of an object lies in the namespace of
//! its field.
//!
//! What senders may write besides the canonical form of a value (`accept`, `timeZone`, `absent`, `default`) is in `reading`.
//!
//! The root, and every object in it, takes `key` (the fields whose values identify it) and `types` (the `rdf:type`s that are
//! written with it), a nested object also `keyScope: parent`. `unknownFields: ignore` at the root accepts objects with
//! fields that the mapping does not have. `items` at the root and `outer` on a field are for documents around the objects.
//!
//! Unknown keys, duplicate keys, tags and further documents are errors and never ignored. An alias (`*name`) is a copy
//! of what its anchor names.
//!
//! # Limits
//! 1 MiB of text, 200,000 values after expansion of aliases, 256 levels of objects (in JSON: 255 levels of brackets),
//! 1,000 namespaces, and 256 characters in the name of a field.

mod codes;
mod compile;
mod document;
mod example;
mod group;
mod kind;
mod language_map;
mod map;
mod path;
mod prefixes;
mod reading;
mod schema;
mod shapes;
pub(crate) mod yaml;

pub use codes::{CodeList, Codes};
pub(crate) use codes::{code_text, expand_code};
pub use compile::compile;
pub(crate) use document::find_inner;
pub use document::{DocumentForm, Outer, Step};
pub use example::build_example;
use group::FieldGroup;
pub use group::{Entry, Level};
pub(crate) use kind::find_kind;
pub use kind::{
    CODE_SCALAR, Detail, Form, KINDS, Kind, Literal, Scalar, Value, list_scalars, parse_scalar,
};
pub use language_map::{LanguageMap, format_language_tag};
pub use map::{MEMBER_KEY, MapMember};
pub use prefixes::Prefixes;
pub(crate) use reading::ReadValue;
pub use reading::{AcceptedForm, FormName, ListedValue, Reading, UnixUnit};
pub use schema::build_json_schema;
pub use shapes::{ShapeSource, build_shacl, write_shex};

use super::namespace;
use oxrdf::{GraphName, NamedNode};
use penstock_base::error::Finding;
use penstock_base::json::Json;
use penstock_rdf::compare::ValueOrder;
use penstock_store::{Error, Format, Read};
use std::collections::HashSet;

/// A compiled mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The shape of the Business Object's own objects.
    pub root: Shape,
    /// The prefixes, which also apply to the conditions of the Business Object.
    pub prefixes: Prefixes,
    /// What happens with fields of an object that the mapping does not have.
    pub unknown_fields: UnknownFields,
    /// The name of the field that `label` names: a single string of the root.
    pub label: Option<String>,
    /// Where the objects are in documents, if they are not the documents themselves.
    pub document: Option<Box<DocumentForm>>,
    /// Warnings about what is valid in the text but probably unintended, each with line and column.
    pub warnings: Vec<Finding>,
    /// The format that a store needs for the keys and types of the text.
    store_format: Format,
}

/// What happens with fields of an object that the mapping does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownFields {
    /// The object is refused.
    #[default]
    Reject,
    /// They are left out, with a warning.
    Ignore,
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
    /// Which fields identify an object.
    pub key: KeyDefinition,
    /// The types that are written with each object.
    pub types: Vec<NamedNode>,
    /// Whether a field is an ordered array.
    pub has_ordered: bool,
    /// The graph that has the names of these objects, if they are the members of a map. [`Mapping::resolve_namespaces`] sets it.
    pub name_graph: Option<GraphName>,
}

/// The `key` of an object in the text of a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyDefinition {
    /// The text has none.
    #[default]
    Omitted,
    /// The text has an empty one (`key: []`).
    Empty,
    /// The text names fields.
    Fields(KeyFields),
}

/// The fields that identify an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFields {
    /// Their indexes in [`Shape::fields`], in the order of the key.
    pub indexes: Vec<usize>,
    /// Where the values are unique.
    pub scope: KeyScope,
}

/// Where the values of a key are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyScope {
    /// In the whole namespace.
    #[default]
    Namespace,
    /// Among the objects that are nested in the same parent.
    Parent,
}

/// One field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name in the JSON. That of a field in a group begins with the names of the groups, with a dot after each.
    pub name: String,
    /// The groups around the field, from the outermost.
    groups: Box<[FieldGroup]>,
    /// Whether it is no member of the JSON: the name of a member of a map, or its value.
    is_nameless: bool,
    /// What the field contains.
    pub kind: FieldKind,
}

impl Field {
    /// Returns what the field contains, if it is not the object's own URI.
    pub fn property(&self) -> Option<&Property> {
        if let FieldKind::Property(property) = &self.kind { Some(property) } else { None }
    }

    /// Returns the shape of the objects in the field, if it contains objects.
    pub fn shape(&self) -> Option<&Shape> {
        self.property()?.value.shape()
    }

    /// Returns whether the field contains objects.
    pub fn contains_objects(&self) -> bool {
        self.shape().is_some()
    }

    /// Returns whether the field contains one string, of any datatype or language: `type: string`.
    pub fn is_single_string(&self) -> bool {
        self.property().is_some_and(|property| !property.is_array && property.value.is_string())
    }

    /// Returns whether the field contains one date or time.
    pub fn is_single_time(&self) -> bool {
        let is_time = |property: &Property| property.value.kind().order.is_time();
        self.property().is_some_and(|property| !property.is_array && is_time(property))
    }

    /// Returns whether a sender must give a value.
    pub(super) fn must_be_given(&self) -> bool {
        self.property().is_some_and(Property::must_be_given)
    }

    /// Returns whether an object without a value in this field is refused.
    pub fn is_required(&self) -> bool {
        self.property().is_some_and(|property| property.required)
    }
}

/// What a field contains.
#[expect(clippy::large_enum_variant, reason = "nearly every field is a property")]
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
    /// Whether the array keeps its order and what it has twice, as an RDF list.
    pub is_ordered: bool,
    /// Whether an object without a value here is refused.
    pub required: bool,
    /// The type of each value.
    pub value: Value,
    /// The codes that the JSON has in place of the values.
    pub codes: Option<Box<Codes>>,
    /// What else senders may write, if the definition says so.
    pub reading: Option<Box<Reading>>,
}

impl Property {
    /// Creates the property of a field with one value, which may be missing.
    pub fn new(predicate: NamedNode, value: Value) -> Self {
        Self {
            predicate,
            is_array: false,
            is_ordered: false,
            required: false,
            value,
            codes: None,
            reading: None,
        }
    }

    /// Returns whether a value that is written in the field means no value.
    pub(crate) fn is_absent(&self, json: &Json) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.is_absent(json))
    }

    /// Returns the value of an object that is created without one.
    pub fn default_value(&self) -> Option<&Json> {
        self.reading.as_ref()?.default.as_ref()
    }

    /// Returns whether a sender must give a value: the field is required and has no default.
    pub(super) fn must_be_given(&self) -> bool {
        self.required && self.default_value().is_none()
    }

    /// Returns whether the values are texts in a language on the property of this language map, which then has no texts in it.
    pub(super) fn owns_language(&self, map: &Self, tag: &str) -> bool {
        self.predicate == map.predicate
            && self.value.language().is_some_and(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Returns whether objects can be ordered by the field: it holds one value that filters find.
    pub fn is_orderable(&self) -> bool {
        let holds_one = !self.is_array && self.value.language_map().is_none();
        holds_one && self.value.shape().is_none() && self.value.kind().is_searchable()
    }

    /// Returns whether the view shows IRIs: of resources without codes, or of objects.
    pub fn holds_iris(&self) -> bool {
        self.codes.is_none() && matches!(self.value, Value::Resource | Value::Object(_))
    }

    /// Returns whether the view shows dates with times.
    pub fn is_date_time(&self) -> bool {
        self.order() == ValueOrder::DateTime
    }

    /// Returns how the values compare, as the view shows them.
    pub fn order(&self) -> ValueOrder {
        self.codes.as_ref().map_or_else(|| self.value.kind().order, |codes| codes.order())
    }

    /// Returns the code or other listed value with this text, in CSV or in a level of a topic; `None` for another text. Texts
    /// have no types, so a number or a boolean matches its text.
    pub(crate) fn find_listed(&self, text: &str) -> Option<&Json> {
        let read = self.reading.as_ref().and_then(|reading| reading.find_listed(text));
        read.or_else(|| self.codes.as_ref()?.find_listed(text))
    }

    /// Returns the code or other listed value that a person means by a text in a form; `None` for another text. What a person
    /// types in a field of texts is a text, unless it is a code.
    pub fn find_typed(&self, text: &str) -> Option<&Json> {
        match self.value.kind().form {
            Form::Text => self.codes.as_ref()?.find_listed(text),
            _ => self.find_listed(text),
        }
    }

    /// Returns whether there can be stored values of its type that the field does not show.
    pub(crate) fn may_hide_values(&self) -> bool {
        self.codes.is_some()
            || self.is_ordered
            || self.value.language_map().is_some()
            || self.map().is_some()
            || self.reading.as_ref().is_some_and(|reading| !reading.absent.is_empty())
    }

    /// Returns the type of the values in GraphQL.
    pub fn graphql(&self) -> &'static Scalar {
        let kind = self.value.kind();
        self.codes.as_ref().map_or(&kind.graphql, |codes| codes.graphql(kind))
    }
}

impl Mapping {
    /// Creates a mapping without a text, and so without prefixes.
    pub fn new(root: Shape) -> Self {
        Self {
            root,
            prefixes: Prefixes::default(),
            unknown_fields: UnknownFields::default(),
            label: None,
            document: None,
            warnings: Vec::new(),
            store_format: Format::default(),
        }
    }

    /// Returns every namespace whose objects have a key in this mapping, each once.
    pub(super) fn keyed_namespaces(&self) -> Vec<String> {
        fn collect(shape: &Shape, names: &mut Vec<String>) {
            if shape.key_fields().is_some() && !names.contains(&shape.namespace) {
                names.push(shape.namespace.clone());
            }
            for (_, _, nested) in shape.iter_nested() {
                collect(nested, names);
            }
        }
        let mut names = Vec::new();
        collect(&self.root, &mut names);
        names
    }

    /// Returns the format that a store needs, because a version that knows only earlier ones would misread the mapping, or
    /// ignore what it protects.
    pub(super) fn required_format(&self) -> Format {
        fn has_key_or_types(shape: &Shape) -> bool {
            shape.key != KeyDefinition::Omitted
                || !shape.types.is_empty()
                || shape.iter_nested().any(|(_, _, nested)| has_key_or_types(nested))
        }
        let needs_third = self.prefixes.uses_well_known()
            || self.label.is_some()
            || self.unknown_fields != UnknownFields::default()
            || has_key_or_types(&self.root);
        self.store_format.max(if needs_third { Format::V3 } else { Format::default() })
    }

    /// Returns the field whose text people see in lists and titles, and its index: the one that `label` names,
    /// otherwise the first required string, otherwise the first string. Without one, people see the URI.
    pub fn find_label_field(&self) -> Option<(usize, &Field)> {
        match &self.label {
            Some(name) => self.root.strings().find(|(_, field)| field.name == *name),
            None => self.root.find_label_field(),
        }
    }

    /// Returns every namespace that the mapping names, each once, the root's first.
    pub fn namespaces(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect_namespaces(&mut names, &mut HashSet::new());
        names
    }

    /// Returns whether an object of the mapping has a key.
    pub(super) fn has_key(&self) -> bool {
        self.root.has_key()
    }

    /// Looks up the namespaces that decide between fields of objects with the same property, and those of the members of maps.
    /// Without it, such objects belong to the first of these fields, and names count in all graphs. It needs to run only once,
    /// because the base of a namespace does not change while a mapping names it.
    pub fn resolve_namespaces(&mut self, read: &dyn Read) -> Result<(), Error> {
        self.root.resolve_namespaces(read)
    }
}

impl Shape {
    /// Creates a shape without a key and without types.
    pub fn new(namespace: impl Into<String>, fields: Vec<Field>) -> Self {
        let is_ordered =
            |field: &Field| field.property().is_some_and(|property| property.is_ordered);
        Self {
            namespace: namespace.into(),
            has_ordered: fields.iter().any(is_ordered),
            fields,
            uri_prefix: None,
            key: KeyDefinition::default(),
            types: Vec::new(),
            name_graph: None,
        }
    }

    /// Returns the field whose text people see in place of the URI of a nested object, and its index: the first required
    /// string, otherwise the first string.
    pub fn find_label_field(&self) -> Option<(usize, &Field)> {
        self.strings().find(|(_, field)| field.is_required()).or_else(|| self.strings().next())
    }

    fn strings(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.fields.iter().enumerate().filter(|(_, field)| field.is_single_string())
    }

    /// Returns the fields that identify an object, if the shape has a key.
    pub fn key_fields(&self) -> Option<&KeyFields> {
        match &self.key {
            KeyDefinition::Fields(fields) => Some(fields),
            KeyDefinition::Omitted | KeyDefinition::Empty => None,
        }
    }

    /// Returns whether this shape, or one nested in it, has a key.
    fn has_key(&self) -> bool {
        self.key_fields().is_some() || self.iter_nested().any(|(_, _, nested)| nested.has_key())
    }

    /// Returns the property of the field at this index.
    pub fn property_at(&self, index: usize) -> Option<&Property> {
        self.fields.get(index)?.property()
    }

    /// Returns the names of the fields of the key; none if there is no key.
    pub fn key_names(&self) -> Vec<&str> {
        let indexes = self.key_fields().map_or(&[][..], |key| &key.indexes);
        indexes.iter().filter_map(|index| Some(self.fields.get(*index)?.name.as_str())).collect()
    }

    /// Returns the fields with a property, each with its index.
    pub fn iter_properties(&self) -> impl Iterator<Item = (usize, &Field, &Property)> + Clone {
        let fields = self.fields.iter().enumerate();
        fields.filter_map(|(index, field)| Some((index, field, field.property()?)))
    }

    /// Returns the shapes of nested objects, each with the field and the property that lead to it.
    pub fn iter_nested(&self) -> impl Iterator<Item = (&Field, &Property, &Self)> {
        let properties = self.iter_properties();
        properties
            .filter_map(|(_, field, property)| Some((field, property, property.value.shape()?)))
    }

    /// Returns whether this shape, or one nested in it, has other types than the same one in another mapping.
    pub(super) fn has_other_types(&self, other: &Self) -> bool {
        self.types != other.types
            || self.iter_nested().any(|(field, _, nested)| {
                let mut others = other.iter_nested();
                let same = others.find(|(other, _, _)| other.name == field.name);
                same.is_some_and(|(_, _, other)| nested.has_other_types(other))
            })
    }

    /// Returns the field with this name.
    pub fn find_field(&self, name: &str) -> Option<&Field> {
        self.named_fields().iter().find(|field| field.name == name)
    }

    /// Returns the first field with this property.
    pub fn find_field_of(&self, predicate: &NamedNode) -> Option<&Field> {
        let mut properties = self.iter_properties();
        properties.find_map(|(_, field, found)| (found.predicate == *predicate).then_some(field))
    }

    /// Returns whether the member of this name is the object's own URI: `uri`, or a field of type `id`.
    pub fn is_id(&self, name: &str) -> bool {
        name == "uri" || self.find_field(name).is_some_and(|field| field.kind == FieldKind::Id)
    }

    /// Replaces the IRIs for which `rewrite` returns another one, here and in nested shapes. The datatypes of literals
    /// stay.
    pub(crate) fn rewrite_iris(&mut self, rewrite: &impl Fn(&str) -> Option<String>) {
        // Names every member, so that a new one with IRIs is not forgotten.
        let Self {
            namespace: _,
            fields,
            uri_prefix: _,
            key: _,
            types,
            has_ordered: _,
            name_graph: _,
        } = self;
        for rdf_type in types {
            if let Some(iri) = rewrite(rdf_type.as_str()) {
                *rdf_type = NamedNode::new_unchecked(iri);
            }
        }
        for Field { name: _, groups, is_nameless: _, kind } in fields {
            groups.iter_mut().for_each(|group| group.rewrite_iris(rewrite));
            let FieldKind::Property(property) = kind else { continue };
            let Property {
                predicate,
                is_array: _,
                is_ordered: _,
                required: _,
                value,
                codes,
                reading,
            } = property;
            if let Some(iri) = rewrite(predicate.as_str()) {
                *predicate = NamedNode::new_unchecked(iri);
            }
            if let Some(codes) = codes {
                codes.rewrite_iris(value, rewrite);
            }
            if let Some(reading) = reading {
                reading.rewrite_iris(rewrite);
            }
            if let Value::Object(nested) = value {
                nested.rewrite_iris(rewrite);
            }
        }
    }

    fn resolve_namespaces(&mut self, read: &dyn Read) -> Result<(), Error> {
        let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
        for (predicate, _) in self.iter_nested_mut() {
            if !seen.insert(predicate.clone()) {
                shared.insert(predicate.clone());
            }
        }
        for (predicate, nested) in self.iter_nested_mut() {
            let (is_shared, is_map) = (shared.contains(predicate), nested.map_member().is_some());
            if (is_shared || is_map)
                && let Some(namespace) = namespace::get(read, &nested.namespace)?
            {
                nested.uri_prefix = is_shared.then(|| namespace.identifier_prefix());
                nested.name_graph = is_map.then(|| namespace.graph_name().into());
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
        for (_, _, nested) in self.iter_nested() {
            nested.collect_namespaces(names, seen);
        }
    }
}
