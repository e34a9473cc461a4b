//! Validates a definition and compiles its mapping. Reports every error in it, in the order of its members.
use super::read::invalid_definition_error;
use super::review::MAX_APPROVERS;
use super::{CompiledDefinition, Conditions, Definition, NewDefinition};
use crate::mapping::{self, Mapping, Prefixes};
use crate::namespace;
use crate::shapes_graphs::MAX_GRAPHS;
use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNode, Term};
use penstock_base::bucket_name::check_bucket_name;
use penstock_base::definition;
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json::MAX_FINDINGS;
use penstock_base::principal::Principal;
use penstock_resources::business_object::{Condition, PushTarget, Validation};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::DefinedNamespace;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;
use std::iter::Peekable;
use std::vec;

/// The maximum length of a name in characters, and in bytes as export keys write it. Followed by the date and the
/// sequence, it must fit into the 255 bytes of a file name.
const MAX_NAME_LENGTH: usize = 200;

/// The maximum number of namespaces in one definition.
const MAX_NAMESPACES: usize = 1000;

/// The characters that export keys percent-encode (contract of the export file).
const KEY_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

impl NewDefinition {
    /// Checks every member and compiles the mapping. `check_target` returns the reason why a bucketName does not lead
    /// to a target.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with all findings. Findings about members have a JSON Pointer, those about `config` the
    /// line and column in its text.
    pub fn compile(
        self,
        check_target: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<CompiledDefinition, GatewayError> {
        let Self { definition, findings } = self;
        let mut report = Report { read: findings.into_iter().peekable(), findings: Vec::new() };
        report.check("/name", || check_name(&definition.name));
        report.take_read("/description");
        report.take_read("/enabled");
        let mapping = compile_config(&definition.config, &mut report);
        check_namespaces(&definition.namespaces, &mut report);
        let prefixes = mapping.as_ref().map(|mapping| mapping.prefixes.clone()).unwrap_or_default();
        let conditions = check_conditions(&definition.conditions, &prefixes, &mut report);
        check_targets(&definition.push_targets, check_target, &mut report);
        check_automatic(&definition, &mut report);
        check_validation(definition.validation.as_ref(), &mut report);
        check_approvers(definition.approvers(), &mut report);
        let findings = report.finish();
        match mapping {
            Some(mapping) if findings.is_empty() => {
                Ok(CompiledDefinition { definition, mapping, conditions })
            }
            _ => Err(invalid_definition_error(&definition.name, findings)),
        }
    }
}

impl CompiledDefinition {
    /// Reads and validates a request body; every bucketName counts as a target.
    ///
    /// # Errors
    /// As [`NewDefinition::from_json`] and [`NewDefinition::compile`].
    pub fn from_json(body: &[u8]) -> Result<Self, GatewayError> {
        NewDefinition::from_json(body)?.compile(&|_| Ok(()))
    }
}

/// Returns a condition as terms. It must not have prefixes.
///
/// # Errors
/// Returns which part is wrong.
pub(crate) fn condition_to_terms(condition: &Condition) -> Result<(NamedNode, Term), String> {
    read_condition(condition, &|text| {
        NamedNode::new(text).map_err(|error| format!("{text:?} is not an absolute IRI: {error}"))
    })
}

/// Returns a condition as terms, with its prefixes expanded.
///
/// # Errors
/// Returns which part is wrong.
pub fn expand_condition(
    condition: &Condition,
    prefixes: &Prefixes,
) -> Result<(NamedNode, Term), String> {
    read_condition(condition, &|text| prefixes.expand_iri(text))
}

/// Returns the IRI that a text of a condition means.
type ReadIri<'r> = &'r dyn Fn(&str) -> Result<NamedNode, String>;

fn read_condition(
    condition: &Condition,
    read_iri: ReadIri<'_>,
) -> Result<(NamedNode, Term), String> {
    let value = read_condition_value(condition, read_iri).map_err(|(_, why)| why)?;
    Ok((read_iri(&condition.predicate)?, value))
}

/// Returns the term that a condition compares with.
///
/// # Errors
/// Returns the member that is wrong, and why.
fn read_condition_value(
    condition: &Condition,
    read_iri: ReadIri<'_>,
) -> Result<Term, (&'static str, String)> {
    let Condition { predicate: _, value, datatype, language } = condition;
    match (datatype, language) {
        (None, None) if condition.has_iri() => match read_iri(value) {
            Ok(iri) => Ok(iri.into()),
            Err(why) => Err(("value", why)),
        },
        (None, None) if value.is_empty() => Err((
            "value",
            "it is empty; write an IRI, or a text (for an empty one, with the `datatype` xsd:string)"
                .to_owned(),
        )),
        (None, None) => Ok(Literal::new_simple_literal(value).into()),
        (Some(_), Some(_)) => Err((
            "datatype",
            "a literal has a datatype or a language, not both; leave one out".to_owned(),
        )),
        (Some(datatype), None) => match read_iri(datatype) {
            Ok(datatype) if datatype == rdf::LANG_STRING => {
                Err(("datatype", "a text of this datatype has a `language`; write that".to_owned()))
            }
            Ok(datatype) => Ok(Literal::new_typed_literal(value, datatype).into()),
            Err(why) => Err(("datatype", why)),
        },
        (None, Some(tag)) => match Literal::new_language_tagged_literal(value, tag.as_str()) {
            Ok(text) => Ok(text.into()),
            Err(why) => Err(("language", format!("{tag:?} is not a language tag (RFC 5646): {why}"))),
        },
    }
}

/// The findings of a definition. It merges what was found while the definition was read with the errors of its values.
/// Both are in the order of the members. A value that could not be read is not checked.
struct Report {
    read: Peekable<vec::IntoIter<Finding>>,
    findings: Vec<Finding>,
}

impl Report {
    /// Reports the error of a value, unless it could not be read.
    fn check(&mut self, pointer: &str, check: impl FnOnce() -> Result<(), String>) {
        if self.take_read(pointer) {
            return;
        }
        if let Err(message) = check() {
            self.add(Finding::at_pointer(pointer, message));
        }
    }

    /// Reports what was found at a place and inside it while the definition was read. Returns whether there was
    /// anything.
    fn take_read(&mut self, pointer: &str) -> bool {
        let before = self.findings.len();
        while let Some(finding) = self.read.next_if(|finding| is_inside(finding, pointer)) {
            self.findings.push(finding);
        }
        self.findings.len() > before
    }

    /// Checks the elements of an array that could be read as objects.
    fn check_each<'a, T>(
        &mut self,
        name: &str,
        elements: &'a [T],
        mut check: impl FnMut(&mut Self, &str, &'a T),
    ) {
        for (index, element) in elements.iter().enumerate() {
            let pointer = format!("/{name}/{index}");
            let is_object = self
                .read
                .peek()
                .is_none_or(|finding| finding.place != Place::Pointer(pointer.clone()));
            if is_object {
                check(self, &pointer, element);
            }
            self.take_read(&pointer);
        }
        self.take_read(&format!("/{name}"));
    }

    fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// Returns all findings.
    fn finish(mut self) -> Vec<Finding> {
        self.findings.extend(self.read);
        self.findings
    }
}

/// Whether a finding is at this place or inside it.
fn is_inside(finding: &Finding, pointer: &str) -> bool {
    let Place::Pointer(place) = &finding.place else { return false };
    place.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn check_name(name: &str) -> Result<(), String> {
    definition::check_name(DefinitionKind::BusinessObject, name, MAX_NAME_LENGTH, &['/'])?;
    let encoded: usize = utf8_percent_encode(name, KEY_ENCODED).map(str::len).sum();
    let why = if encoded > MAX_NAME_LENGTH {
        format!(
            "it takes {encoded} bytes in the keys of exports, which exceeds {MAX_NAME_LENGTH} (each byte other than \
             A-Za-z0-9._- takes three)"
        )
    } else if uuid::Uuid::try_parse(name).is_ok() {
        "it looks like an id, and URLs accept a name or an id".to_owned()
    } else {
        return Ok(());
    };
    Err(definition::describe_bad_name(DefinitionKind::BusinessObject, name, &why))
}

fn compile_config(config: &str, report: &mut Report) -> Option<Mapping> {
    if report.take_read("/config") {
        return None;
    }
    match mapping::compile(config) {
        Ok(mapping) => Some(mapping),
        Err(found) => {
            report.findings.extend(found.into_iter().map(|finding| Finding {
                message: format!("config: {}", finding.message),
                ..finding
            }));
            None
        }
    }
}

fn check_namespaces(namespaces: &[DefinedNamespace], report: &mut Report) {
    let mut seen = HashSet::new();
    report.check_each("namespaces", namespaces, |report, place, namespace| {
        let DefinedNamespace { name, uri_base, .. } = namespace;
        report.check(&format!("{place}/name"), || {
            namespace::check_name(name)?;
            if !seen.insert(name) {
                return Err(format!("the namespace {name:?} is defined twice; leave one out"));
            }
            Ok(())
        });
        report.check(&format!("{place}/uriBase"), || {
            uri_base.as_deref().map_or(Ok(()), namespace::check_base)
        });
    });
    if namespaces.len() > MAX_NAMESPACES {
        let count = namespaces.len();
        let message = format!(
            "{count} namespaces are defined; a Business Object may define at most {MAX_NAMESPACES}"
        );
        report.add(Finding::at_pointer("/namespaces", message));
    }
}

fn check_conditions(
    conditions: &[Condition],
    prefixes: &Prefixes,
    report: &mut Report,
) -> Conditions {
    report.check_each("conditions", conditions, |report, place, condition| {
        let predicate = prefixes.expand_iri(&condition.predicate).map(drop);
        report.check(&format!("{place}/predicate"), || predicate);
        let value = read_condition_value(condition, &|text| prefixes.expand_iri(text));
        let wrong = value.err();
        for member in ["value", "datatype", "language"] {
            let why = wrong.as_ref().filter(|(of, _)| *of == member).map(|(_, why)| why.clone());
            report.check(&format!("{place}/{member}"), || why.map_or(Ok(()), Err));
        }
    });
    conditions.iter().filter_map(|condition| expand_condition(condition, prefixes).ok()).collect()
}

fn check_targets(
    targets: &[PushTarget],
    check_target: &dyn Fn(&str) -> Result<(), String>,
    report: &mut Report,
) {
    let mut seen = HashSet::new();
    report.check_each("pushTargets", targets, |report, place, PushTarget { bucket_name }| {
        report.check(&format!("{place}/bucketName"), || {
            check_bucket_name(bucket_name)?;
            check_target(bucket_name)?;
            if !seen.insert(bucket_name) {
                return Err(format!("{bucket_name:?} is listed twice; remove one"));
            }
            Ok(())
        });
    });
}

/// Checks the settings for automatic exports and retention.
fn check_automatic(definition: &Definition, report: &mut Report) {
    for name in ["schedule", "timezone", "exportOnChange", "debounce", "retention"] {
        report.take_read(&format!("/{name}"));
    }
    for wrong in definition.parse_automatic().err().unwrap_or_default() {
        report.add(Finding::at_pointer(format!("/{}", wrong.member), wrong.cause));
    }
}

/// Checks which shapes graphs are named. The commit that saves the definition checks that they exist.
fn check_validation(validation: Option<&Validation>, report: &mut Report) {
    if report.take_read("/validation") {
        return;
    }
    let names = validation.map(|validation| validation.shapes.as_slice()).unwrap_or_default();
    let mut seen = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        if !seen.insert(name) {
            let message = format!("the shapes graph {name:?} is listed twice; remove one");
            report.add(Finding::at_pointer(format!("/validation/shapes/{index}"), message));
        }
    }
    if names.len() > MAX_GRAPHS {
        let count = names.len();
        let message =
            format!("{count} shapes graphs are listed; a gateway has at most {MAX_GRAPHS}");
        report.add(Finding::at_pointer("/validation/shapes", message));
    }
}

/// Checks who approves changes. They need not exist.
fn check_approvers(approvers: &[Principal], report: &mut Report) {
    report.take_read("/review");
    if report.take_read("/approvers") {
        return;
    }
    let mut seen = HashSet::new();
    for (index, approver) in approvers.iter().enumerate() {
        if !seen.insert(approver) {
            let message = format!("{approver} is listed twice; remove one");
            report.add(Finding::at_pointer(format!("/approvers/{index}"), message));
        }
    }
    if approvers.len() > MAX_APPROVERS {
        let count = approvers.len();
        let message = format!(
            "{count} approvers are listed, at most {MAX_APPROVERS} are allowed; use a group"
        );
        report.add(Finding::at_pointer("/approvers", message));
    }
}
