//! Converts JSON objects and checks them against their shape. It reports every error of an object, not only the first.
mod map;
mod texts;

use super::answer::Warnings;
use super::codes::{find_unlisted, to_coded_term};
use super::findings::{Findings, MISSING_VALUE, describe_unknown_field, quote_excerpt};
use super::literal::{describe_mismatch, suggest_mapping, to_iri, to_term};
use super::node::{GivenField, GivenObject, GivenValue, Partial};
use super::shown_term::format_value;
use crate::mapping::{
    self, Entry, Field, FieldKind, Form, KeyFields, KeyScope, Kind, Level, Property, ReadValue,
    Reading, Shape,
};
use crate::view::{find_owning_field, is_stored_absent};
use penstock_base::error::Finding;
use penstock_base::json::{Json, join_pointer, push_pointer};
use penstock_rdf::number::NumberKey;
use penstock_store::FastSet;
use std::collections::HashSet;

const DECIMAL_COMMA_HINT: &str = "; if its comma is the decimal point, send ?decimalComma=true";

/// Checks and converts JSON; `pointer` is the JSON Pointer of the current position.
#[derive(Debug)]
pub(super) struct Converter<'c> {
    pub(super) findings: &'c mut Findings,
    pub(super) warnings: &'c mut Warnings,
    /// The fields that the mapping does not have, if they are left out; otherwise they are errors.
    pub(super) ignored_fields: Option<&'c mut IgnoredFields>,
    /// Whether `null` clears a field, as in MERGE.
    pub(super) null_clears: bool,
    pub(super) pointer: String,
}

/// The names of fields that the mapping does not have. Each is reported once in a request.
#[derive(Debug, Default)]
pub(super) struct IgnoredFields {
    reported: HashSet<String>,
}

impl IgnoredFields {
    /// The maximum number of names that are remembered.
    const MAX_NAMES: usize = 1000;

    /// Returns whether a field is to be reported. `namespace` tells fields of different objects apart.
    fn add(&mut self, namespace: &str, name: &str) -> bool {
        self.reported.len() < Self::MAX_NAMES
            && self.reported.insert(format!("{namespace}\n{name}"))
    }
}

/// What a JSON value becomes.
enum Converted<'m> {
    Value(GivenValue<'m>),
    /// No value: `null`, or what `absent` names.
    Absent,
    /// Nothing, because an error was reported.
    Refused,
}

impl<'m> Converted<'m> {
    fn into_value(self) -> Option<GivenValue<'m>> {
        if let Self::Value(value) = self { Some(value) } else { None }
    }
}

impl Converter<'_> {
    /// Converts an object of this shape. Members that do not fit are reported and left out.
    pub(super) fn convert_object<'m>(
        &mut self,
        shape: &'m Shape,
        json: Json,
    ) -> Option<GivenObject<'m>> {
        let Json::Object(members) = json else {
            self.report_invalid(describe_mismatch("an object", &json));
            return None;
        };
        let mut node =
            GivenObject { shape, pointer: self.pointer.clone(), uri: None, given: Vec::new() };
        self.convert_members(&mut node, shape.level(), members);
        node.given.sort_by_key(|given| given.field_index);
        Some(node)
    }

    /// Converts an object that must have only its URI or the fields of its key, as in DELETE. Reports other fields.
    pub(super) fn convert_reference<'m>(
        &mut self,
        shape: &'m Shape,
        json: Json,
    ) -> Option<GivenObject<'m>> {
        let before = self.findings.count();
        let node = self.convert_object(shape, json)?;
        let key = shape.key_fields().map_or(&[][..], |key| &key.indexes);
        for given in node.given.iter().filter(|given| !key.contains(&given.field_index)) {
            let message = if key.is_empty() {
                "DELETE takes only the uri, because it removes the whole object; to remove the value of a field, send it as \
                 `null` with MERGE"
            } else {
                "DELETE takes only the uri or the fields of the key, because it removes the whole object; to remove the value \
                 of a field, send it as `null` with MERGE"
            };
            if let Some(field) = shape.fields.get(given.field_index) {
                self.findings.add_invalid(&field.pointer_in(&self.pointer), message);
            }
        }
        if self.findings.count() > before {
            return None;
        }
        let has_key = !key.is_empty()
            && key.iter().all(|index| {
                node.given
                    .iter()
                    .any(|given| given.field_index == *index && !given.values.is_empty())
            });
        if node.uri.is_none() && !has_key {
            self.report_invalid(if key.is_empty() {
                "the uri of the object to remove is missing".to_owned()
            } else {
                let names = shape.key_names().join(", ");
                format!("the uri of the object to remove, or its key ({names}), is missing")
            });
            return None;
        }
        Some(node)
    }

    fn convert_members<'m>(
        &mut self,
        node: &mut GivenObject<'m>,
        level: Level<'m>,
        members: Vec<(String, Json)>,
    ) {
        let is_only_member = members.len() == 1;
        for (name, value) in members {
            self.with_pointer(&name, |here| match level.find(&name) {
                Some(Entry::Field(place, Field { kind: FieldKind::Property(property), .. })) => {
                    here.convert_property(node, place, property, value);
                }
                Some(Entry::Field(..)) => here.convert_id(node, value),
                Some(Entry::Group(inner)) => here.convert_group(node, inner, value),
                None if level.is_object() && name == "uri" => here.convert_id(node, value),
                None => {
                    let is_wrapper = is_only_member
                        && name == "data"
                        && matches!(value, Json::Array(_) | Json::Object(_));
                    here.report_unknown(&node.shape.namespace, level, &name, is_wrapper);
                }
            });
        }
    }

    /// Converts the object of a group, whose fields are those of the object around it.
    fn convert_group<'m>(&mut self, node: &mut GivenObject<'m>, level: Level<'m>, value: Json) {
        match value {
            Json::Object(members) => self.convert_members(node, level, members),
            value if value == Json::Null || level.is_absent(&value) => {
                if self.null_clears {
                    let cleared = |place| GivenField::new(place, Vec::new());
                    node.given.extend(level.places().map(cleared));
                }
            }
            other => self.report_invalid(describe_mismatch("an object", &other)),
        }
    }

    /// `is_wrapper` is whether it is perhaps a `data` around the object.
    fn report_unknown(&mut self, namespace: &str, level: Level<'_>, name: &str, is_wrapper: bool) {
        if let Some(ignored) = &mut self.ignored_fields {
            if ignored.add(namespace, name) {
                let name = quote_excerpt(name);
                let message = format!("the mapping has no field {name}; it is left out everywhere");
                self.warnings.push(&self.pointer, message);
            }
            return;
        }
        if is_wrapper && level.is_object() {
            self.report_invalid(
                "the mapping has no field \"data\"; send the object without `data` around it",
            );
            return;
        }
        let known: Vec<&str> = level.entries().map(|(name, _)| name).collect();
        let place = if level.is_object() { "" } else { " in this group" };
        let suggests = self.findings.may_suggest();
        self.report_invalid(describe_unknown_field(name, place, &known, suggests));
    }

    fn convert_property<'m>(
        &mut self,
        node: &mut GivenObject<'m>,
        place: usize,
        property: &'m Property,
        value: Json,
    ) {
        let given = self.convert_given(node.shape, (place, property), value);
        node.given.extend(given);
    }

    /// Converts what a field of an object of this shape contains; `None` as [`Self::convert_values`].
    pub(super) fn convert_given<'m>(
        &mut self,
        shape: &Shape,
        (place, property): (usize, &'m Property),
        value: Json,
    ) -> Option<GivenField<'m>> {
        let given = match value {
            Json::Object(members) if self.null_clears && property.map().is_some() => {
                self.convert_given_members(place, property, members)
            }
            value => {
                self.check_languages(shape, property, &value);
                let languages = self.list_languages(property, &value);
                let values = self.convert_values(property, value)?;
                let partial = languages.map(|languages| Box::new(Partial::Languages(languages)));
                GivenField { partial, ..GivenField::new(place, values) }
            }
        };
        self.check_namespaces(shape, &given);
        Some(given)
    }

    /// Converts what a field contains; `None` if that is no value, or an error that was reported.
    fn convert_values<'m>(
        &mut self,
        property: &'m Property,
        value: Json,
    ) -> Option<Vec<GivenValue<'m>>> {
        match value {
            value if value == Json::Null || property.is_absent(&value) => {
                self.null_clears.then(Vec::new)
            }
            texts if let Some(map) = property.value.language_map() => {
                Some(self.convert_texts(property, map, texts))
            }
            Json::Array(elements) if property.is_ordered => {
                Some(self.convert_ordered(property, elements))
            }
            Json::Array(elements) if property.is_array && property.map().is_none() => {
                Some(self.convert_elements(property, elements))
            }
            Json::Object(members) if property.map().is_some() => {
                Some(self.convert_map(property, members, &mut Vec::new()))
            }
            other if property.is_array => {
                let expected = match property.map() {
                    Some(_) => "an object with a member for each name",
                    None => "an array",
                };
                self.report_invalid(describe_mismatch(expected, &other));
                None
            }
            Json::Array(_)
                if !matches!(property.value, mapping::Value::Object(_))
                    && property.value.kind().form != Form::Json =>
            {
                self.report_invalid("a single value is expected, not an array");
                None
            }
            other => match self.convert_value(property, other) {
                Converted::Absent => self.null_clears.then(Vec::new),
                one => Some(one.into_value().into_iter().collect()),
            },
        }
    }

    /// Checks that nested objects lie in the namespace of their field, if the namespace decides which field they
    /// belong to.
    fn check_namespaces(&mut self, shape: &Shape, given: &GivenField<'_>) {
        let Some(property) = shape.property_at(given.field_index) else { return };
        let mapping::Value::Object(Shape { uri_prefix: Some(prefix), namespace, .. }) =
            &property.value
        else {
            return;
        };
        for value in &given.values {
            let GivenValue::Object(GivenObject { uri: Some(uri), pointer, .. }) = value else {
                continue;
            };
            let uri = uri.as_ref();
            if find_owning_field(shape, property.predicate.as_ref(), uri.into())
                != Some(given.field_index)
            {
                let message = format!(
                    "{} is not in the namespace {namespace:?}. Several fields have the property {}, and only the \
                     namespace distinguishes their objects: a URI here must begin with {prefix}",
                    quote_excerpt(uri.as_str()),
                    property.predicate
                );
                self.findings.add_invalid(pointer, message);
            }
        }
    }

    fn convert_id(&mut self, node: &mut GivenObject<'_>, value: Json) {
        if value == Json::Null {
            return;
        }
        match to_iri(value) {
            Err(message) => self.report_invalid(message),
            Ok(uri) => match &node.uri {
                Some(other) if *other != uri => self.report_invalid(format!(
                    "the object has two URIs: {} and {}",
                    quote_excerpt(other.as_str()),
                    quote_excerpt(uri.as_str())
                )),
                _ => node.uri = Some(uri),
            },
        }
    }

    /// Converts the elements of an array and drops repeated terms.
    fn convert_elements<'m>(
        &mut self,
        property: &'m Property,
        elements: Vec<Json>,
    ) -> Vec<GivenValue<'m>> {
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            let value = self.convert_element(property, index, element).into_value();
            values.extend(value.map(|value| (index, value)));
        }
        let repeated = find_repeated(&values);
        for (index, value) in values.iter().filter(|(index, _)| repeated.contains(index)) {
            let shown = match value {
                GivenValue::Term(term) => format_value(term),
                GivenValue::Object(node) => {
                    quote_excerpt(node.uri.as_ref().map_or("", |uri| uri.as_str()))
                }
            };
            self.with_pointer(&index.to_string(), |here| here.warn_of_repeated(&shown));
        }
        // A second mention of a nested object may add more values to it.
        let kept = |(index, value)| match value {
            GivenValue::Term(_) if repeated.contains(&index) => None,
            value => Some(value),
        };
        values.into_iter().filter_map(kept).collect()
    }

    /// Converts the elements of an ordered array. Each must be a value.
    fn convert_ordered<'m>(
        &mut self,
        property: &'m Property,
        elements: Vec<Json>,
    ) -> Vec<GivenValue<'m>> {
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            let value = self.convert_element(property, index, element);
            if matches!(value, Converted::Absent) {
                let message = "an element of an ordered array cannot be without a value, because the places of the others \
                               would change; remove it, or leave out `ordered`";
                let pointer = join_pointer(&self.pointer, &index.to_string());
                self.findings.add_invalid(&pointer, message);
            }
            values.extend(value.into_value());
        }
        values
    }

    fn convert_element<'m>(
        &mut self,
        property: &'m Property,
        index: usize,
        element: Json,
    ) -> Converted<'m> {
        if element == Json::Null || property.is_absent(&element) {
            return Converted::Absent;
        }
        self.with_pointer(&index.to_string(), |here| here.convert_value(property, element))
    }

    /// Warns of an element that equals an earlier one.
    fn warn_of_repeated(&mut self, shown: &str) {
        let message = format!(
            "{shown} is in the array more than once; arrays are sets, so it is stored once"
        );
        self.warnings.push(&self.pointer, message);
    }

    fn convert_value<'m>(&mut self, property: &'m Property, json: Json) -> Converted<'m> {
        let is_code = property.codes.as_ref().is_some_and(|codes| codes.lists(&json));
        let json = match &property.reading {
            Some(reading) if !is_code => {
                match self.read_value(reading, property.value.kind(), json) {
                    Some(json) => json,
                    None => return Converted::Refused,
                }
            }
            _ => json,
        };
        let hint = self.suggest_remedy(property, &json);
        let term = match (&property.value, &property.codes) {
            (mapping::Value::Object(shape), _) => {
                let object = self.convert_object(shape, json);
                return object.map_or(Converted::Refused, |object| {
                    Converted::Value(GivenValue::Object(object))
                });
            }
            (value, Some(codes)) => to_coded_term(codes, value, json),
            (value, None) => to_term(value, json),
        };
        match term {
            Ok(term) if is_stored_absent(property, term.as_ref()) => Converted::Absent,
            Ok(term) => Converted::Value(GivenValue::Term(term)),
            Err(message) => {
                let forms = property.reading.as_ref().filter(|_| hint.is_empty());
                let forms = forms.map(|reading| reading.describe_forms()).unwrap_or_default();
                self.report_invalid(message + &hint + &forms);
                Converted::Refused
            }
        }
    }

    /// Returns the canonical form of a value, or the value itself if no form of the field fits.
    fn read_value(&mut self, reading: &Reading, kind: &Kind, json: Json) -> Option<Json> {
        match reading.read(kind, json) {
            Ok(ReadValue { json, warning }) => {
                if let Some(warning) = warning {
                    self.warnings.push(&self.pointer, warning);
                }
                Some(json)
            }
            Err(message) => {
                self.report_invalid(message);
                None
            }
        }
    }

    /// Returns a hint for a number in a text with another decimal separator than the field has, in a cell of CSV or where the
    /// field accepts texts, and for a value that the field would take with another mapping. Otherwise it is empty.
    fn suggest_remedy(&self, property: &Property, json: &Json) -> String {
        let kind = property.value.kind();
        let reading = property.reading.as_ref().filter(|reading| !reading.accept.is_empty());
        match json {
            Json::String(text) if kind.form == Form::Number && reading.is_some() => {
                let written = reading.and_then(|reading| reading.suggest_number_text(kind, text));
                written.map_or_else(String::new, |written| format!("; write {written:?}"))
            }
            Json::String(text)
                if kind.form == Form::Number && self.findings.record_line.is_some() =>
            {
                let number = text.replace(',', ".");
                let is_number = number != *text
                    && !text.contains('.')
                    && NumberKey::parse(&number).is_some()
                    && (kind.check_text)(&number).is_ok();
                if is_number { DECIMAL_COMMA_HINT.to_owned() } else { String::new() }
            }
            json if property.codes.is_none() && reading.is_none() => {
                suggest_mapping(&property.value, json).to_owned()
            }
            _ => String::new(),
        }
    }

    /// Runs `work` at the position `token` below the current one.
    fn with_pointer<T>(&mut self, token: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.pointer.len();
        push_pointer(&mut self.pointer, token);
        let done = work(self);
        self.pointer.truncate(length);
        done
    }

    fn report_invalid(&mut self, message: impl Into<String>) {
        self.findings.add_invalid(&self.pointer, message);
    }
}

/// Checks that an ingestion would accept this as the value of a field of a new object.
///
/// # Errors
/// Returns what is wrong with it.
pub(crate) fn check_value(property: &Property, json: Json) -> Result<(), String> {
    let (mut findings, mut warnings) = (Findings::default(), Warnings::default());
    let mut converter = Converter {
        findings: &mut findings,
        warnings: &mut warnings,
        ignored_fields: None,
        null_clears: false,
        pointer: String::new(),
    };
    let values = converter.convert_values(property, json).unwrap_or_default();
    if let Some(finding) = findings.take_all().into_iter().next() {
        return Err(finding.to_string());
    }
    if values.is_empty() {
        return Err("it is empty, `null`, or one of `absent`; leave it out".to_owned());
    }
    find_refused(property, "", &values).map_or(Ok(()), |finding| Err(finding.to_string()))
}

/// Returns what every ingestion would refuse of values in a field of a new object: a value without a code, or a required field
/// without a value in a nested object.
fn find_refused(property: &Property, pointer: &str, values: &[GivenValue<'_>]) -> Option<Finding> {
    let (mut terms, mut objects) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            GivenValue::Term(term) => terms.push(term.clone()),
            GivenValue::Object(object) if !may_be_stored(object) => objects.push(object),
            GivenValue::Object(_) => {}
        }
    }
    let codes = property.codes.as_ref();
    let unlisted = codes.and_then(|codes| find_unlisted(codes, &property.value, &terms, []));
    unlisted
        .map(|message| Finding::at_pointer(pointer, message))
        .or_else(|| objects.into_iter().find_map(find_refused_field))
}

fn find_refused_field(object: &GivenObject<'_>) -> Option<Finding> {
    object.shape.iter_properties().find_map(|(place, field, property)| {
        let pointer = field.pointer_in(&object.pointer);
        match object.given.iter().find(|given| given.field_index == place) {
            Some(given) if !given.values.is_empty() => {
                find_refused(property, &pointer, &given.values)
            }
            _ => property.must_be_given().then(|| Finding::at_pointer(pointer, MISSING_VALUE)),
        }
    })
}

/// Returns whether an object can be stored already, and then have values that are not given here: it has a URI, or a key that
/// counts in the whole namespace.
fn may_be_stored(object: &GivenObject<'_>) -> bool {
    let is_given = |index: &usize| {
        let mut given = object.given.iter();
        given.any(|given| given.field_index == *index && !given.values.is_empty())
    };
    let is_identified =
        |key: &KeyFields| key.scope == KeyScope::Namespace && key.indexes.iter().all(is_given);
    object.uri.is_some() || object.shape.key_fields().is_some_and(is_identified)
}

/// Returns the indexes of values that also occur at an earlier index.
fn find_repeated(values: &[(usize, GivenValue<'_>)]) -> FastSet<usize> {
    let (mut terms, mut uris) = (FastSet::default(), FastSet::default());
    let mut places = FastSet::default();
    for (index, value) in values {
        let new = match value {
            GivenValue::Term(term) => terms.insert(term),
            GivenValue::Object(node) => node.uri.as_ref().is_none_or(|uri| uris.insert(uri)),
        };
        if !new {
            places.insert(*index);
        }
    }
    places
}
