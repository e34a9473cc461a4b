//! Converts JSON objects and checks them against their shape. It reports every error of an object, not only the first.
use super::answer::Warnings;
use super::findings::{Findings, quote_excerpt};
use super::literal::{describe_mismatch, to_iri, to_literal};
use super::node::{GivenField, GivenObject, GivenValue};
use crate::mapping::{self, Form, Property, Shape};
use crate::view::find_owning_field;
use oxrdf::Term;
use penstock_base::json::{Json, push_pointer};
use penstock_rdf::number::NumberKey;
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
        for (name, value) in members {
            self.with_pointer(&name, |here| here.convert_member(&mut node, &name, value));
        }
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
            let name = shape.fields.get(given.field_index).map_or("", |field| field.name.as_str());
            let message = if key.is_empty() {
                "DELETE takes only the uri, because it removes the whole object; to remove single values, use UPDATE or REPLACE"
            } else {
                "DELETE takes only the uri or the fields of the key, because it removes the whole object; to remove single \
                 values, use UPDATE, REPLACE or MERGE"
            };
            self.with_pointer(name, |here| here.report_invalid(message));
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

    fn convert_member(&mut self, node: &mut GivenObject<'_>, name: &str, value: Json) {
        let shape = node.shape;
        if shape.is_id(name) {
            self.convert_id(node, value);
            return;
        }
        let Some((place, field)) =
            shape.fields.iter().enumerate().find(|(_, field)| field.name == name)
        else {
            if let Some(ignored) = &mut self.ignored_fields {
                if ignored.add(&shape.namespace, name) {
                    let name = quote_excerpt(name);
                    let message =
                        format!("the mapping has no field {name}; it is left out everywhere");
                    self.warnings.push(&self.pointer, message);
                }
                return;
            }
            let known: Vec<_> = shape.fields.iter().take(20).map(|f| f.name.as_str()).collect();
            self.report_invalid(format!(
                "the mapping has no field {}; it has {}",
                quote_excerpt(name),
                known.join(", ")
            ));
            return;
        };
        let Some(property) = field.property() else { return };
        let first = node.given.len();
        match value {
            Json::Null if self.null_clears => {
                node.given.push(GivenField { field_index: place, values: Vec::new() });
            }
            Json::Null => {}
            Json::Array(elements) if property.is_array => {
                let values = self.convert_elements(property, elements);
                node.given.push(GivenField { field_index: place, values });
            }
            other if property.is_array => {
                self.report_invalid(describe_mismatch("an array", &other));
            }
            Json::Array(_) if !matches!(property.value, mapping::Value::Object(_)) => {
                self.report_invalid("a single value is expected, not an array");
            }
            other => {
                let values = self.convert_value(property, other).into_iter().collect();
                node.given.push(GivenField { field_index: place, values });
            }
        }
        for given in node.given.iter().skip(first) {
            self.check_namespaces(shape, given);
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
            if element != Json::Null {
                let value = self
                    .with_pointer(&index.to_string(), |here| here.convert_value(property, element));
                values.extend(value.map(|value| (index, value)));
            }
        }
        let repeated = find_repeated(&values);
        for (index, value) in values.iter().filter(|(index, _)| repeated.contains(index)) {
            let shown = match value {
                GivenValue::Term(term) => format_value(term),
                GivenValue::Object(node) => {
                    quote_excerpt(node.uri.as_ref().map_or("", |uri| uri.as_str()))
                }
            };
            self.with_pointer(&index.to_string(), |here| {
                let message = format!(
                    "{shown} is in the array more than once; arrays are sets, so it is stored once"
                );
                here.warnings.push(&here.pointer, message);
            });
        }
        // A second mention of a nested object may add more values to it.
        let kept = |(index, value)| match value {
            GivenValue::Term(_) if repeated.contains(&index) => None,
            value => Some(value),
        };
        values.into_iter().filter_map(kept).collect()
    }

    fn convert_value<'m>(&mut self, property: &'m Property, json: Json) -> Option<GivenValue<'m>> {
        let hint = self.suggest_decimal_comma(property, &json);
        let term = match &property.value {
            mapping::Value::Object(shape) => {
                return self.convert_object(shape, json).map(GivenValue::Object);
            }
            mapping::Value::Resource => to_iri(json).map(Term::NamedNode),
            mapping::Value::Literal(kind) => to_literal(kind, json).map(Term::Literal),
        };
        match term {
            Ok(term) => Some(GivenValue::Term(term)),
            Err(message) => {
                self.report_invalid(message + hint);
                None
            }
        }
    }

    /// Returns a hint for a cell of CSV that is a number with a decimal comma, otherwise an empty text.
    fn suggest_decimal_comma(&self, property: &Property, json: &Json) -> &'static str {
        let kind = property.value.kind();
        match json {
            Json::String(text)
                if kind.form == Form::Number && self.findings.record_line.is_some() =>
            {
                let number = text.replace(',', ".");
                let is_number = number != *text
                    && !text.contains('.')
                    && NumberKey::parse(&number).is_some()
                    && (kind.check_text)(&number).is_ok();
                if is_number { DECIMAL_COMMA_HINT } else { "" }
            }
            _ => "",
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

/// Returns the indexes of values that also occur at an earlier index.
fn find_repeated(values: &[(usize, GivenValue<'_>)]) -> HashSet<usize> {
    let (mut terms, mut uris) = (HashSet::new(), HashSet::new());
    let mut places = HashSet::new();
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

/// Formats a value for a message.
pub(super) fn format_value(term: &Term) -> String {
    quote_excerpt(term_text(term))
}

/// Formats two different values for a message. If their excerpts are equal, the texts show where the values differ.
pub(super) fn format_both(one: &Term, other: &Term) -> (String, String) {
    let shown = (format_value(one), format_value(other));
    if shown.0 != shown.1 {
        return shown;
    }
    let texts = (term_text(one), term_text(other));
    if texts.0 == texts.1 {
        return (
            format!("{} ({})", shown.0, describe_type(one)),
            format!("{} ({})", shown.1, describe_type(other)),
        );
    }
    // Both excerpts end before the texts differ.
    let same = texts.0.chars().zip(texts.1.chars()).take_while(|(a, b)| a == b).count();
    let end = |text: &str| {
        let end: String = text.chars().skip(same.saturating_sub(20)).collect();
        format!("...{}", quote_excerpt(&end))
    };
    (end(texts.0), end(texts.1))
}

fn term_text(term: &Term) -> &str {
    match term {
        Term::NamedNode(iri) => iri.as_str(),
        Term::Literal(literal) => literal.value(),
        Term::BlankNode(node) => node.as_str(),
        // The store refuses it.
        Term::Triple(_) => "a triple term",
    }
}

fn describe_type(term: &Term) -> String {
    let Term::Literal(literal) = term else { return "an IRI".to_owned() };
    let datatype = literal.datatype().as_str();
    match (literal.language(), datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#")) {
        (Some(language), _) => format!("in the language {language}"),
        (None, Some(name)) => format!("xsd:{name}"),
        (None, None) => format!("<{datatype}>"),
    }
}
