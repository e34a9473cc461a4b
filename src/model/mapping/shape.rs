//! The tree of a mapping: the shapes of objects, their fields, and the properties and values in these.
use super::{Codes, Form, ListedValue, Literal, Reading, Scalar};
use oxrdf::{GraphName, NamedNode};
use penstock_base::json::Json;
use penstock_rdf::compare::ValueOrder;
use std::sync::Arc;

/// How one kind of object is read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The name of the namespace that mints the identifiers, and whose base names the graph.
    pub namespace: String,
    /// The fields, in the mapping's order, in which they are also written.
    pub fields: Vec<Field>,
    /// The prefix of these objects' URIs. [`Mapping::resolve_namespaces`](super::Mapping::resolve_namespaces) sets it if
    /// several fields of the parent have the property that leads here. The URI of each object then determines its field.
    pub uri_prefix: Option<String>,
    /// Which fields identify an object.
    pub key: KeyDefinition,
    /// The types that are written with each object.
    pub types: Vec<NamedNode>,
    /// Whether a field is an ordered array.
    pub has_ordered: bool,
    /// The graph that has the names of these objects, if they are the members of a map.
    /// [`Mapping::resolve_namespaces`](super::Mapping::resolve_namespaces) sets it.
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
    pub(super) groups: Box<[FieldGroup]>,
    /// Whether it is no member of the JSON: the name of a member of a map, or its value.
    pub(super) is_nameless: bool,
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
    pub(crate) fn must_be_given(&self) -> bool {
        self.property().is_some_and(Property::must_be_given)
    }

    /// Returns whether an object without a value in this field is refused.
    pub fn is_required(&self) -> bool {
        self.property().is_some_and(|property| property.required)
    }
}

/// A group around a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldGroup {
    /// Where in the name of the field the name of the group ends.
    pub(super) end: u16,
    /// The values that mean no value in place of the group.
    pub(super) absent: Arc<[ListedValue]>,
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
    pub(crate) fn must_be_given(&self) -> bool {
        self.required && self.default_value().is_none()
    }

    /// Returns whether the values are texts in a language on the property of this language map, which then has no texts in it.
    pub(crate) fn owns_language(&self, map: &Self, tag: &str) -> bool {
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

    pub(super) fn strings(&self) -> impl Iterator<Item = (usize, &Field)> {
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
    pub(super) fn has_key(&self) -> bool {
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
    pub(crate) fn has_other_types(&self, other: &Self) -> bool {
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
}

impl FieldGroup {
    /// Replaces the texts that are IRIs for which `rewrite` returns another one.
    fn rewrite_iris(&mut self, rewrite: &impl Fn(&str) -> Option<String>) {
        let mut absent = self.absent.to_vec();
        for listed in &mut absent {
            listed.rewrite_iri(rewrite);
        }
        self.absent = absent.into();
    }
}
