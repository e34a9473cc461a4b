//! Reads a definition from JSON. `check` validates what was read.
use super::review::{read_approvers, read_review};
use super::validation::read_validation;
use super::{Definition, NewDefinition};
use crate::namespace;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, MAX_NESTING, Members, join_pointer};
use penstock_resources::business_object::{Condition, PushTarget};

/// The members of an answer that are not part of the definition. A request may contain them, so that an answer can be
/// changed and sent back; they have no effect.
const ANSWER_MEMBERS: &[&str] = &[
    "id",
    "version",
    "createdAt",
    "updatedAt",
    "updatedBy",
    "createdNamespaces",
    "deleting",
    "warnings",
];

impl NewDefinition {
    /// Reads a request body. `config` may also be a JSON object, which is stored as its text. The body may contain the
    /// members that an answer adds (`id`, `version`, ...).
    ///
    /// # Errors
    /// `ErrorClass::Malformed` as [`json::parse`]; `ErrorClass::Invalid` if the body is not an object.
    pub fn from_json(body: &[u8]) -> Result<Self, GatewayError> {
        let body = json::parse(body, MAX_NESTING)?;
        let mut findings = Vec::new();
        let Some(mut members) = Members::of_object(body, "", &mut findings) else {
            return Err(invalid_definition_error("", findings));
        };
        let definition = Definition {
            name: take_required(&mut members, "name", "expected the name of the Business Object"),
            description: members.take_string("description").unwrap_or_default(),
            enabled: members.take_boolean("enabled").unwrap_or(true),
            config: read_config(&mut members),
            namespaces: read_objects(&mut members, "namespaces", namespace::read_defined),
            conditions: read_objects(&mut members, "conditions", |members| {
                let mut take =
                    |name| take_required(members, name, "expected an IRI without angle brackets");
                Condition {
                    predicate: take("predicate"),
                    value: take("value"),
                    datatype: members.take_string("datatype"),
                    language: members.take_string("language"),
                }
            }),
            push_targets: read_objects(&mut members, "pushTargets", |members| PushTarget {
                bucket_name: take_required(
                    members,
                    "bucketName",
                    "expected the name of an export target",
                ),
            }),
            schedule: members.take_string("schedule"),
            timezone: members.take_string("timezone"),
            export_on_change: members.take_boolean("exportOnChange").unwrap_or(false),
            debounce: members.take_string("debounce"),
            retention: members.take_string("retention"),
            validation: read_validation(&mut members),
            review: read_review(&mut members),
            approvers: read_approvers(&mut members),
        };
        for name in ANSWER_MEMBERS {
            members.take(name);
        }
        members.report_unknown();
        Ok(Self { definition, findings })
    }
}

/// Returns the error of a definition with these findings.
pub(super) fn invalid_definition_error(name: &str, findings: Vec<Finding>) -> GatewayError {
    let what = if name.is_empty() {
        "the Business Object".to_owned()
    } else {
        format!("the Business Object {name:?}")
    };
    let detail = match findings.as_slice() {
        [one] => format!("{what} is not valid: {one}"),
        many => format!("{what} is not valid: {} errors were found", many.len()),
    };
    GatewayError::with_findings(ErrorClass::Invalid, detail, findings)
}

/// Takes a string. Reports it if it is missing.
fn take_required(members: &mut Members<'_>, name: &'static str, expected: &str) -> String {
    members.take_string(name).unwrap_or_else(|| {
        members.report_missing(name, expected);
        String::new()
    })
}

fn read_config(members: &mut Members<'_>) -> String {
    match members.take("config") {
        Some(Json::String(text)) => return text,
        Some(object @ Json::Object(_)) => return format!("{object:#}"),
        Some(other) => {
            let message =
                format!("`config` must be YAML text or an object, not {}", other.kind_name());
            members.add_finding("config", message);
        }
        None => {
            members.add_finding("config", "`config` is missing; expected the mapping as YAML");
        }
    }
    String::new()
}

/// Reads the objects in an array. An element that is not an object is reported, and read as an empty one, so that each
/// element keeps its index.
fn read_objects<T: Default>(
    members: &mut Members<'_>,
    name: &'static str,
    read: impl Fn(&mut Members<'_>) -> T,
) -> Vec<T> {
    let base = members.pointer_to(name);
    let elements = members.take_array(name).unwrap_or_default();
    let read_element = |(index, element): (usize, Json)| {
        let pointer = join_pointer(&base, &index.to_string());
        let Some(mut element) = Members::of_object(element, &pointer, members.findings()) else {
            return T::default();
        };
        let read = read(&mut element);
        element.report_unknown();
        read
    };
    elements.into_iter().enumerate().map(read_element).collect()
}

#[cfg(test)]
mod tests;
