//! Writes what a mapping requires of the stored objects, as SHACL Core and as a ShEx schema.
//!
//! The shapes state what an ingestion guarantees for each object that it writes, and not more:
//! - Other Business Objects may write to the same object. So no shape is closed, and texts in languages that the mapping
//!   does not name are free.
//! - A nested object may be a reference to an object that is not stored (`{"uri": ...}`). So it has either none of the
//!   properties of its fields, or all required ones.
//! - The text of a value with a datatype of its own is not checked. So no shape names a datatype of XML Schema for it,
//!   because a validator would check the text.
//!
//! [`docs/shapes.md`] describes them to users.
//!
//! [`docs/shapes.md`]: ../../../docs/shapes.md

mod shacl;
mod shex;
#[cfg(test)]
mod tests;

pub use shacl::build_shacl;
pub use shex::write_shex;

use super::{Detail, Field, Mapping, Property, Shape, Value};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, Term};
use penstock_base::prefixes::WELL_KNOWN_PREFIXES;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The namespace of SHACL.
const SHACL_NAMESPACE: &str = "http://www.w3.org/ns/shacl#";
/// The namespace of the datatypes of XML Schema.
const XSD_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema#";
/// The characters of a field's name that are percent-encoded in the IRI of its shape: all but the unreserved ones (RFC
/// 3986, 2.3).
const PERCENT_ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A Business Object, as far as its shapes describe it.
#[derive(Debug, Clone, Copy)]
pub struct ShapeSource<'a> {
    /// The id of the Business Object.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its mapping.
    pub mapping: &'a Mapping,
    /// Its conditions.
    pub conditions: &'a [(NamedNode, Term)],
}

impl<'a> ShapeSource<'a> {
    /// Returns the IRI of the shape of the members: `urn:penstock:<id>:shape`.
    pub fn root_iri(&self) -> NamedNode {
        NamedNode::new_unchecked(format!(
            "urn:penstock:{}:shape",
            utf8_percent_encode(self.id, PERCENT_ENCODED)
        ))
    }

    /// Returns the prefixes that the shapes are written with: those of the mapping whose names need no escapes, then those
    /// of other vocabularies.
    pub fn prefixes(&self) -> Vec<(&'a str, &'a str)> {
        let declared = self.mapping.prefixes.declared();
        let mut prefixes: Vec<_> = declared.filter(|(name, _)| is_plain_name(name)).collect();
        for known in [("sh", SHACL_NAMESPACE)].iter().chain(WELL_KNOWN_PREFIXES) {
            if prefixes.iter().all(|(name, iri)| *name != known.0 && *iri != known.1) {
                prefixes.push(*known);
            }
        }
        prefixes
    }

    /// Returns which objects a SHACL processor validates by the shape of the members.
    fn find_target(&self) -> Target<'a> {
        let class = self.conditions.iter().find_map(|(predicate, value)| match value {
            Term::NamedNode(class) if *predicate == rdf::TYPE => Some(class),
            _ => None,
        });
        if let Some(class) = class {
            return Target::ConditionClass(class);
        }
        if let Some((predicate, _)) = self.conditions.first() {
            return Target::ConditionProperty(predicate);
        }
        let root = &self.mapping.root;
        if let Some(class) = root.types.first() {
            return Target::WrittenClass(class);
        }
        let key = root.key_fields().and_then(|key| root.property_at(*key.indexes.first()?));
        let required = || root.iter_properties().map(|(_, _, property)| property);
        match key.or_else(|| required().find(|property| property.required)) {
            Some(property) => Target::RequiredProperty(&property.predicate),
            None => Target::AnyProperty(
                group_by_predicate(root).into_iter().map(|group| group.predicate).collect(),
            ),
        }
    }
}

/// The objects that the shape of the members applies to.
enum Target<'a> {
    /// Those with the class of a condition.
    ConditionClass(&'a NamedNode),
    /// Those with the property of a condition.
    ConditionProperty(&'a NamedNode),
    /// Those with a class that is written with each object.
    WrittenClass(&'a NamedNode),
    /// Those with a property that each object has.
    RequiredProperty(&'a NamedNode),
    /// Those with one of the properties of the fields.
    AnyProperty(Vec<&'a NamedNode>),
}

impl Target<'_> {
    /// Returns what the shape says about the choice.
    fn describe(&self) -> String {
        match self {
            Self::ConditionClass(class) => format!(
                "The target is the class of a condition, {class}. Objects that do not satisfy the other conditions are \
                 no members, but targets."
            ),
            Self::ConditionProperty(property) => format!(
                "The target is every object with the property of the first condition, {property}, with any value."
            ),
            Self::WrittenClass(class) => format!(
                "The members are the objects in the graph of a namespace, which no target of SHACL Core can name. The \
                 target is the class that is written with each object, {class}. Objects that were stored before may lack \
                 it."
            ),
            Self::RequiredProperty(property) => format!(
                "The members are the objects in the graph of a namespace, which no target of SHACL Core can name. The \
                 target is every object with a property that each member has, {property}."
            ),
            Self::AnyProperty(_) => {
                "The members are the objects in the graph of a namespace, which no target of SHACL \
                 Core can name. The target is every object with a property of a field."
                    .to_owned()
            }
        }
    }
}

/// The fields of an object that have the same property.
struct PropertyGroup<'m> {
    predicate: &'m NamedNode,
    /// The index of each field in the shape, and the field.
    fields: Vec<(usize, &'m Field, &'m Property)>,
}

impl<'m> PropertyGroup<'m> {
    /// Returns the only field, if it owns all values of the property: texts in other languages than those of a field belong to
    /// others.
    fn sole_owner(&self) -> Option<(usize, &'m Field, &'m Property)> {
        match self.fields.as_slice() {
            [only] if list_languages(&only.2.value).is_empty() => Some(*only),
            _ => None,
        }
    }

    /// Returns the field if it is an ordered array, which is the only field of its property.
    fn ordered_array(&self) -> Option<(usize, &'m Field, &'m Property)> {
        self.fields.first().copied().filter(|(_, _, property)| property.is_ordered)
    }

    /// Returns the languages of the fields that have one.
    fn languages(&self) -> impl Iterator<Item = &'m str> {
        self.fields.iter().filter_map(|(_, _, property)| property.value.language())
    }

    /// Returns all languages of the fields; `None` if a language map has those that no other field has.
    fn all_languages(&self) -> Option<Vec<&'m str>> {
        let mut languages = Vec::new();
        for (_, _, property) in &self.fields {
            let own = list_languages(&property.value);
            if own.is_empty() && property.value.language_map().is_some() {
                return None;
            }
            for language in own {
                if !languages.contains(&language) {
                    languages.push(language);
                }
            }
        }
        Some(languages)
    }

    /// Returns the namespaces of other fields that lie in that of this one.
    fn inner_prefixes(&self, prefix: &str) -> impl Iterator<Item = &'m str> {
        self.fields.iter().filter_map(move |(_, _, property)| match &property.value {
            Value::Object(Shape { uri_prefix: Some(other), .. }) => {
                (other.len() > prefix.len() && other.starts_with(prefix)).then_some(other.as_str())
            }
            _ => None,
        })
    }
}

/// Returns the languages that a field names: one, or those of a language map.
fn list_languages(value: &Value) -> Vec<&str> {
    let map = value.language_map().map_or(&[][..], |map| &map.languages);
    value.language().into_iter().chain(map.iter().map(String::as_str)).collect()
}

/// Returns whether a field has several texts in one language.
fn has_repeated_languages(property: &Property) -> bool {
    match property.value.language_map() {
        Some(map) => map.has_arrays,
        None => property.value.language().is_some() && property.is_array,
    }
}

/// Returns whether every syntax takes a name as it is, before or behind a colon.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Groups the fields by their properties, in the order of the fields.
fn group_by_predicate(shape: &Shape) -> Vec<PropertyGroup<'_>> {
    let mut groups: Vec<PropertyGroup<'_>> = Vec::new();
    for field in shape.iter_properties() {
        let predicate = &field.2.predicate;
        match groups.iter_mut().find(|group| group.predicate == predicate) {
            Some(group) => group.fields.push(field),
            None => groups.push(PropertyGroup { predicate, fields: vec![field] }),
        }
    }
    groups
}

/// Returns whether each object that is not only a reference has something: a required field, or a type.
fn requires_something(shape: &Shape) -> bool {
    !shape.types.is_empty() || shape.fields.iter().any(Field::is_required)
}

/// Appends the name of a field to the IRI of the shape of its object.
fn field_iri(object: &NamedNode, field: &str) -> NamedNode {
    let separator = if object.as_str().contains('#') { "" } else { "#" };
    let name = utf8_percent_encode(field, PERCENT_ENCODED);
    NamedNode::new_unchecked(format!("{}{separator}{name}", object.as_str()))
}

/// Returns the IRI of the shape of all values of a property that fields with these names share. A name has no `+`,
/// because it is percent-encoded, so no field has this IRI.
fn shared_iri(object: &NamedNode, names: &[&str]) -> NamedNode {
    let [first, others @ ..] = names else { return object.clone() };
    let mut iri = field_iri(object, first).into_string();
    iri.push('+');
    let others = others.iter().map(|name| utf8_percent_encode(name, PERCENT_ENCODED).to_string());
    iri.push_str(&others.collect::<Vec<_>>().join("+"));
    NamedNode::new_unchecked(iri)
}

/// Returns the IRI of the shape of the list in the field of an ordered array. A name has no `@`.
fn list_iri(field: &NamedNode) -> NamedNode {
    NamedNode::new_unchecked(format!("{}@list", field.as_str()))
}

/// Returns the IRI of the shape of the objects in a field.
fn nested_iri(field: &NamedNode) -> NamedNode {
    NamedNode::new_unchecked(format!("{}/", field.as_str()))
}

/// Returns the datatypes of the literals of a field; none if it writes texts in a language, or texts that are not
/// checked against their datatype.
fn list_datatypes(value: &Value) -> Vec<NamedNodeRef<'_>> {
    match value.detail() {
        Detail::Datatype(datatype) if is_unchecked(datatype) => Vec::new(),
        Detail::Datatype(datatype) => vec![datatype.as_ref()],
        _ => value.kind().datatypes.to_vec(),
    }
}

/// Returns whether the texts of a datatype that a field names could be checked against it, but are not.
fn is_unchecked(datatype: &NamedNode) -> bool {
    datatype.as_str().starts_with(XSD_NAMESPACE)
}
