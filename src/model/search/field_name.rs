//! The names of fields and of those of nested objects, as addresses and saved views have them: `place.room`.
//!
//! The name of a field may have dots, and so may the names of the members of a map. The longest name that is one of a field
//! wins.
use super::errors::unknown_field_error;
use super::filter::ANY_MEMBER;
use crate::csv::split_member;
use crate::mapping::{MEMBER_KEY, Property, Shape, format_language_tag};
use penstock_base::error::GatewayError;
use std::cmp::Reverse;

/// The maximum number of fields that are listed.
const MAX_LISTED_FIELDS: usize = 1_000;

/// A field of an object, or of one nested in it.
#[derive(Debug, Clone)]
pub struct SearchField<'s> {
    /// Its name, as [`find_field_path`] takes it.
    pub name: String,
    /// The field itself.
    pub property: &'s Property,
    /// Whether an object has at most one value.
    pub is_single: bool,
}

/// Lists the fields whose values can be searched, in the order of the mapping, about the first 1,000. The members of a map are
/// listed as [`ANY_MEMBER`], and their names as [`MEMBER_KEY`].
pub fn list_search_fields(shape: &Shape) -> Vec<SearchField<'_>> {
    let mut fields = Vec::new();
    collect_fields(shape, "", true, &mut fields);
    fields
}

fn collect_fields<'s>(
    shape: &'s Shape,
    prefix: &str,
    is_single: bool,
    found: &mut Vec<SearchField<'s>>,
) {
    for (_, field, property) in shape.iter_properties() {
        if field.is_nameless() || found.len() >= MAX_LISTED_FIELDS {
            return;
        }
        collect_property(&format!("{prefix}{}", field.name), property, is_single, found);
    }
}

fn collect_property<'s>(
    name: &str,
    property: &'s Property,
    is_single: bool,
    found: &mut Vec<SearchField<'s>>,
) {
    let is_single = is_single && !property.is_array;
    if let Some((shape, map)) = property.map() {
        let key = format!("{name}.{MEMBER_KEY}");
        found.push(SearchField { name: key, property: map.key, is_single: false });
        let member = format!("{name}.{ANY_MEMBER}");
        match map.value {
            Some((_, value)) => collect_property(&member, value, false, found),
            None => collect_fields(shape, &format!("{member}."), false, found),
        }
        return;
    }
    if !property.value.kind().is_searchable() {
        return;
    }
    let map = property.value.language_map();
    let is_one = is_single && map.is_none();
    found.push(SearchField { name: name.to_owned(), property, is_single: is_one });
    for tag in map.into_iter().flat_map(|map| &map.languages) {
        let name = format!("{name}.{}", format_language_tag(tag));
        let is_single = is_single && map.is_some_and(|map| !map.has_arrays);
        found.push(SearchField { name, property, is_single });
    }
    if let Some(shape) = property.value.shape() {
        collect_fields(shape, &format!("{name}."), is_single, found);
    }
}

/// Returns the names that lead to a field, for [`Filter::for_field`](super::Filter::for_field). `place.room` is the field `room`
/// of the object in the field `place`, unless a field has exactly that name. After a language map it names a language, after a
/// map a member: `sensors.T1.value`, or `sensors["10.0.0.1"].value`.
///
/// # Errors
/// `ErrorClass::Invalid` if there is no such field.
pub fn find_field_path(shape: &Shape, name: &str) -> Result<Vec<String>, GatewayError> {
    find_named(shape, name).map(|field| field.path)
}

/// Returns the field of a name; `None` for the URI of an object, and if there is no such field.
pub fn find_search_property<'s>(shape: &'s Shape, name: &str) -> Option<&'s Property> {
    find_field(shape, name)?.property
}

/// Returns the field of this name, as [`find_field_path`].
pub(super) fn find_named<'s>(shape: &'s Shape, name: &str) -> Result<NamedField<'s>, GatewayError> {
    find_field(shape, name).ok_or_else(|| no_field_error(shape, name))
}

/// Returns the error of a name that is not one of a field.
pub(super) fn no_field_error(shape: &Shape, name: &str) -> GatewayError {
    let fields = list_search_fields(shape);
    let known: Vec<&str> =
        std::iter::once("uri").chain(fields.iter().map(|field| field.name.as_str())).collect();
    unknown_field_error(name, &known)
}

/// A field that a text names.
#[derive(Debug, Clone)]
pub(super) struct NamedField<'s> {
    /// The names that lead to it.
    pub(super) path: Vec<String>,
    /// The field itself; `None` for the URI.
    pub(super) property: Option<&'s Property>,
    /// How many fields of nested objects are around it.
    pub(super) depth: usize,
    /// Whether the text ends with a name that is data, and not in quotes: of a member of a map, or a language.
    pub(super) ends_with_data: bool,
}

impl<'s> NamedField<'s> {
    fn new(property: Option<&'s Property>) -> Self {
        Self { path: Vec::new(), property, depth: 0, ends_with_data: false }
    }

    /// Counts the object around it.
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Counts the member of a map around it, unless the member is its value.
    fn deeper_if_nested(self) -> Self {
        if self.depth > 0 { self.deeper() } else { self }
    }

    /// Returns whether it holds objects with fields.
    pub(super) fn has_fields(&self) -> bool {
        self.property.is_some_and(|property| property.value.shape().is_some())
    }

    /// Puts the name before it that leads to the object or map that it is in.
    fn within(mut self, name: &str) -> Self {
        self.path.insert(0, name.to_owned());
        self
    }
}

/// Returns the field of an object that a text names.
pub(super) fn find_field<'s>(shape: &'s Shape, text: &str) -> Option<NamedField<'s>> {
    let named = shape.fields.iter().filter(|field| !field.is_nameless());
    let mut named: Vec<_> =
        named.filter_map(|field| Some((field, rest_after(text, &field.name)?))).collect();
    named.sort_by_key(|(field, _)| Reverse(field.name.len()));
    let found = named.into_iter().find_map(|(field, rest)| {
        let found = match field.property() {
            Some(property) => find_below(property, rest),
            None => rest.is_empty().then(|| NamedField::new(None)),
        };
        Some(found?.within(&field.name))
    });
    found.or_else(|| (text == "uri").then(|| NamedField::new(None).within(text)))
}

/// Returns what follows the name of a field, if a text begins with it.
fn rest_after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

/// Returns the field that the rest of a text names, after the name of this one.
fn find_below<'s>(property: &'s Property, rest: &str) -> Option<NamedField<'s>> {
    if rest.is_empty() {
        return Some(NamedField::new(Some(property)));
    }
    let is_quoted = rest.starts_with('[');
    if let Some((shape, map)) = property.map() {
        let (name, rest) = split_member(rest)?;
        let value = map.value.map(|(_, value)| value);
        let found = if name == MEMBER_KEY {
            rest.is_empty().then(|| NamedField::new(Some(map.key)))
        } else if rest.is_empty() {
            let named = NamedField::new(Some(value.unwrap_or(property)));
            Some(NamedField { ends_with_data: !is_quoted, ..named })
        } else if let Some(value) = value {
            find_below(value, rest).map(NamedField::deeper_if_nested)
        } else {
            find_field(shape, rest.strip_prefix('.')?).map(NamedField::deeper)
        };
        return Some(found?.within(name));
    }
    if let Some(map) = property.value.language_map() {
        let (name, rest) = split_member(rest)?;
        let named = NamedField { ends_with_data: !is_quoted, ..NamedField::new(Some(property)) };
        return (rest.is_empty() && map.accepts(name)).then(|| named.within(name));
    }
    find_field(property.value.shape()?, rest.strip_prefix('.')?).map(NamedField::deeper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;
    use penstock_base::error::ErrorClass;

    const MAPPING: &str = "
type: object
path: 'Pump:.'
fields:
  uri: {type: id}
  name: {type: string, path: <urn:n>}
  name.short: {type: string, path: <urn:s>}
  flow: {type: number, path: <urn:f>}
  title: {type: languageMap, path: <urn:t>, languages: [en, de]}
  limits: {type: group, fields: {low: {type: number, path: <urn:low>}}}
  place: {type: object, path: '<urn:p>/Place:.', fields: {room: {type: string, path: <urn:r>}}}
  sensors:
    type: map
    path: '<urn:m>/Sensor:.'
    key: {path: <urn:k>}
    elements: {type: object, fields: {value: {type: number, path: <urn:v>}}}
  counts: {type: map, path: '<urn:o>/Count:.', key: {path: <urn:k>}, elements: {type: integer, path: <urn:c>}}
";

    fn shape() -> Shape {
        compile(MAPPING).unwrap().root
    }

    #[test]
    fn a_dot_leads_to_a_nested_field_unless_a_field_has_exactly_that_name() {
        let shape = shape();
        for (name, path) in [
            ("uri", &["uri"][..]),
            ("name", &["name"]),
            ("name.short", &["name.short"]),
            ("limits.low", &["limits.low"]),
            ("title", &["title"]),
            ("title.de", &["title", "de"]),
            ("place.room", &["place", "room"]),
            ("place.uri", &["place", "uri"]),
            ("sensors.T1.value", &["sensors", "T1", "value"]),
            ("sensors.*.value", &["sensors", "*", "value"]),
            ("sensors[\"10.0.0.1\"].value", &["sensors", "10.0.0.1", "value"]),
            ("sensors.@key", &["sensors", "@key"]),
            ("counts.a", &["counts", "a"]),
        ] {
            assert_eq!(find_field_path(&shape, name).unwrap(), path, "{name}");
        }
        for name in [
            "",
            ".",
            "none",
            "name.long",
            "flow.x",
            "title.fr",
            "place.",
            "place[\"room\"]",
            "limits",
            "sensors.",
            "sensors.T1.none",
            "sensors.@key.value",
            "counts.a.value",
        ] {
            let error = find_field_path(&shape, name).unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid, "{name}");
        }
        let error = find_field_path(&shape, "flwo").unwrap_err();
        assert!(error.detail.contains("did you mean `flow`?"), "{error}");
    }

    #[test]
    fn what_can_be_searched_is_listed_by_names_that_lead_to_it() {
        let shape = shape();
        let fields = list_search_fields(&shape);
        let listed: Vec<(&str, bool)> =
            fields.iter().map(|field| (field.name.as_str(), field.is_single)).collect();
        let expected = [
            ("name", true),
            ("name.short", true),
            ("flow", true),
            ("title", false),
            ("title.en", true),
            ("title.de", true),
            ("limits.low", true),
            ("place", true),
            ("place.room", true),
            ("sensors.@key", false),
            ("sensors.*.value", false),
            ("counts.@key", false),
            ("counts.*", false),
        ];
        assert_eq!(listed, expected);
        for (name, _) in listed {
            find_field_path(&shape, name).unwrap();
        }
    }
}
