//! Reads a definition from a request body, and reports every error in it.
use super::{Condition, Conditions, Definition, PushTarget};
use crate::mapping::{self, Mapping, Prefixes};
use crate::namespace::NamespaceDefinition;
use oxrdf::{NamedNode, Term};
use penstock_base::bucket_name::check_bucket_name;
use penstock_base::characters::is_deceptive;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, MAX_NESTING, Members, push_pointer};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;

/// The maximum length of a name in characters, and in bytes as export keys write it. Followed by the date and the
/// sequence, it must fit into the 255 bytes of a file name.
const MAX_NAME_LENGTH: usize = 200;

/// The maximum number of namespaces in one definition.
const MAX_NAMESPACES: usize = 1000;

/// The characters that export keys percent-encode (contract of the export file).
const KEY_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// The members of an answer that are not part of the definition. A request may contain them, so that an answer can be
/// changed and sent back; they have no effect.
const ANSWER_MEMBERS: &[&str] =
    &["id", "version", "createdAt", "updatedAt", "updatedBy", "createdNamespaces", "warnings"];

impl Definition {
    /// Reads a request body, checks every field and compiles the mapping. `config` may also be a JSON object, which is
    /// stored as its text. The body may contain the members that an answer adds (`id`, `version`, ...).
    ///
    /// # Errors
    /// - `ErrorClass::Malformed` as [`json::parse`]
    /// - `ErrorClass::Invalid` with all findings. Findings about fields have a JSON Pointer, those about `config` the
    ///   line and column in its text.
    pub fn read_body(body: &[u8]) -> Result<(Self, Mapping, Conditions), GatewayError> {
        Self::read_body_with(body, &|_| Ok(()))
    }

    /// As [`Self::read_body`]. `check_target` returns the reason why a bucketName does not lead to a target.
    ///
    /// # Errors
    /// As [`Self::read_body`].
    pub fn read_body_with(
        body: &[u8],
        check_target: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<(Self, Mapping, Conditions), GatewayError> {
        let body = json::parse(body, MAX_NESTING)?;
        let mut findings = Vec::new();
        let mut definition = Self { enabled: true, ..Self::default() };
        let mut mapping = None;
        let mut conditions = Vec::new();
        if let Some(mut members) = Members::of_object(body, "", &mut findings) {
            definition.name = read_name(&mut members);
            definition.description = members.take_string("description").unwrap_or_default();
            definition.enabled = members.take_boolean("enabled").unwrap_or(true);
            (definition.config, mapping) = read_config(&mut members);
            definition.namespaces = read_namespaces(&mut members);
            let prefixes = mapping.as_ref().map(|mapping: &Mapping| mapping.prefixes.clone());
            (definition.conditions, conditions) =
                read_conditions(&mut members, &prefixes.unwrap_or_default());
            definition.push_targets = read_targets(&mut members, check_target);
            read_automatic(&mut members, &mut definition);
            for name in ANSWER_MEMBERS {
                members.take(name);
            }
            members.report_unknown();
        }
        match mapping {
            Some(mapping) if findings.is_empty() => Ok((definition, mapping, conditions)),
            _ => Err(invalid_definition_error(&definition.name, findings)),
        }
    }
}

impl Condition {
    /// Returns the condition as terms. It must not have prefixes.
    ///
    /// # Errors
    /// Returns which part is not an absolute IRI.
    pub fn to_terms(&self) -> Result<(NamedNode, Term), String> {
        let iri = |text: &str| {
            NamedNode::new(text)
                .map_err(|error| format!("{text:?} is not an absolute IRI: {error}"))
        };
        Ok((iri(&self.predicate)?, iri(&self.value)?.into()))
    }

    /// Returns the condition as terms, with its prefixes expanded.
    ///
    /// # Errors
    /// Returns which part is not an IRI.
    pub fn expand_terms(&self, prefixes: &Prefixes) -> Result<(NamedNode, Term), String> {
        Ok((prefixes.expand_iri(&self.predicate)?, prefixes.expand_iri(&self.value)?.into()))
    }
}

fn invalid_definition_error(name: &str, findings: Vec<Finding>) -> GatewayError {
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

fn read_name(members: &mut Members<'_>) -> String {
    let Some(name) = members.take_string("name") else {
        members.report_missing("name", "expected the name of the Business Object");
        return String::new();
    };
    if let Err(why) = check_name(&name) {
        members.add_finding(
            "name",
            format!("{name:?} cannot be the name of a Business Object: {why}"),
        );
    }
    name
}

fn check_name(name: &str) -> Result<(), String> {
    let encoded: usize = utf8_percent_encode(name, KEY_ENCODED).map(str::len).sum();
    if name.is_empty() {
        Err("it is empty".to_owned())
    } else if name.chars().count() > MAX_NAME_LENGTH {
        Err(format!("it has more than {MAX_NAME_LENGTH} characters"))
    } else if encoded > MAX_NAME_LENGTH {
        Err(format!(
            "it takes {encoded} bytes in the keys of exports, which exceeds {MAX_NAME_LENGTH} (each byte other than \
             A-Za-z0-9._- takes three)"
        ))
    } else if name.trim() != name {
        Err("it begins or ends with white space".to_owned())
    } else if name == "." || name == ".." {
        Err("URLs do not keep it as a path segment".to_owned())
    } else if let Some(c) = name.chars().find(|c| *c == '/' || is_deceptive(*c)) {
        Err(format!("the character {c:?} is not allowed"))
    } else if uuid::Uuid::try_parse(name).is_ok() {
        Err("it looks like an id, and URLs accept a name or an id".to_owned())
    } else {
        Ok(())
    }
}

fn read_config(members: &mut Members<'_>) -> (String, Option<Mapping>) {
    let config = match members.take("config") {
        Some(Json::String(text)) => text,
        Some(object @ Json::Object(_)) => format!("{object:#}"),
        Some(other) => {
            let message =
                format!("`config` must be YAML text or an object, not {}", other.kind_name());
            members.add_finding("config", message);
            return (String::new(), None);
        }
        None => {
            members.add_finding("config", "`config` is missing; expected the mapping as YAML");
            return (String::new(), None);
        }
    };
    match mapping::compile(&config) {
        Ok(mapping) => (config, Some(mapping)),
        Err(found) => {
            members.findings().extend(found.into_iter().map(|finding| Finding {
                message: format!("config: {}", finding.message),
                ..finding
            }));
            (config, None)
        }
    }
}

fn read_namespaces(members: &mut Members<'_>) -> Vec<NamespaceDefinition> {
    let mut namespaces = Vec::new();
    let mut seen = HashSet::new();
    for_each_object(members, "namespaces", |members| {
        let namespace = NamespaceDefinition::read_members(members);
        if !seen.insert(namespace.name.clone()) {
            let message =
                format!("the namespace {:?} is defined twice; leave one out", namespace.name);
            members.add_finding("name", message);
        }
        namespaces.push(namespace);
    });
    if namespaces.len() > MAX_NAMESPACES {
        let count = namespaces.len();
        let message = format!(
            "{count} namespaces are defined; a Business Object may define at most {MAX_NAMESPACES}"
        );
        members.add_finding("namespaces", message);
    }
    namespaces
}

fn read_conditions(members: &mut Members<'_>, prefixes: &Prefixes) -> (Vec<Condition>, Conditions) {
    let mut read = (Vec::new(), Vec::new());
    for_each_object(members, "conditions", |members| {
        let mut part = |name: &'static str| {
            let text = members.take_string(name);
            match text.as_deref().map(|text| prefixes.expand_iri(text)) {
                None => members.report_missing(name, "expected an IRI without angle brackets"),
                Some(Err(why)) => members.add_finding(name, why),
                Some(Ok(_)) => {}
            }
            text.unwrap_or_default()
        };
        let condition = Condition { predicate: part("predicate"), value: part("value") };
        if let Ok(terms) = condition.expand_terms(prefixes) {
            read.1.push(terms);
        }
        read.0.push(condition);
    });
    read
}

fn read_targets(
    members: &mut Members<'_>,
    check_target: &dyn Fn(&str) -> Result<(), String>,
) -> Vec<PushTarget> {
    let mut targets = Vec::new();
    let mut seen = HashSet::new();
    for_each_object(members, "pushTargets", |members| {
        let Some(bucket_name) = members.take_string("bucketName") else {
            members.report_missing("bucketName", "expected the name of an export target");
            return;
        };
        if let Err(why) = check_bucket_name(&bucket_name).and_then(|()| check_target(&bucket_name))
        {
            members.add_finding("bucketName", why);
        } else if !seen.insert(bucket_name.clone()) {
            members
                .add_finding("bucketName", format!("{bucket_name:?} is listed twice; remove one"));
        }
        targets.push(PushTarget { bucket_name });
    });
    targets
}

/// Calls `read` with the members of each object in an array.
fn for_each_object(
    members: &mut Members<'_>,
    name: &'static str,
    mut read: impl FnMut(&mut Members<'_>),
) {
    let base = members.pointer_to(name);
    for (index, element) in members.take_array(name).unwrap_or_default().into_iter().enumerate() {
        let mut pointer = base.clone();
        push_pointer(&mut pointer, &index.to_string());
        if let Some(mut element) = Members::of_object(element, &pointer, members.findings()) {
            read(&mut element);
            element.report_unknown();
        }
    }
}

/// Reads the settings for automatic exports and retention.
fn read_automatic(members: &mut Members<'_>, definition: &mut Definition) {
    definition.schedule = members.take_string("schedule");
    definition.timezone = members.take_string("timezone");
    definition.export_on_change = members.take_boolean("exportOnChange").unwrap_or(false);
    definition.debounce = members.take_string("debounce");
    definition.retention = members.take_string("retention");
    for wrong in definition.parse_automatic().err().unwrap_or_default() {
        members.add_finding(wrong.member, wrong.cause);
    }
}

#[cfg(test)]
mod tests;
