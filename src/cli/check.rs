//! `penstock check FILE...`: detects the kind of each file, and validates it.
use super::output;
use clap::{ArgMatches, Command};
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_config as config;
use penstock_model::csv::check_text_field;
use penstock_model::mapping::{self, Mapping};
use penstock_model::resource::CompiledDefinition;
use penstock_model::warnings;
use penstock_resources::business_object::Review;
use serde_json::json;
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The first part of the name of every setting.
const SETTING_ROOTS: [&str; 6] =
    ["service", "server", "framework", "spring", "security", "profiles"];

pub(super) fn build_command() -> Command {
    Command::new("check")
        .about("Check a mapping, a Business Object or a configuration, without a service")
        .arg(output::files_argument("YAML, JSON or .properties files"))
        .arg(output::json_flag().help("Print JSON, one object on a line for each file"))
        .after_help(
            "Exit status: 0 every file is valid, 1 a file is not valid.\n\nGive the definitions of Business Objects beside a configuration to compare its sources with them.\n\nExamples:\n  penstock check pumps.yaml\n  \
             penstock check pumps.json /etc/penstock/application.yaml",
        )
}

pub(super) fn run(given: &ArgMatches) -> ExitCode {
    let known = KnownDefinitions::read(given);
    output::check_each_file(given, |path, json| {
        let checked = check_file(path, &known);
        let text = if json { checked.format_json(path) } else { checked.format_text(path) };
        (checked.errors.is_empty(), text)
    })
}

/// The result of checking a file.
struct CheckResult {
    kind: &'static str,
    /// A description of the file, if it is valid.
    description: String,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl CheckResult {
    fn new(kind: &'static str, description: String) -> Self {
        Self { kind, description, errors: Vec::new(), warnings: Vec::new() }
    }

    fn with_errors(kind: &'static str, errors: Vec<Finding>) -> Self {
        Self { kind, description: String::new(), errors, warnings: Vec::new() }
    }

    fn with_error(kind: &'static str, message: impl Into<String>) -> Self {
        Self::with_errors(kind, vec![Finding::whole(message.into())])
    }

    fn format_text(&self, path: &Path) -> String {
        let path = path.display();
        let mut lines: Vec<String> =
            self.errors.iter().map(|f| format_finding(&path, self.kind, "", f)).collect();
        lines
            .extend(self.warnings.iter().map(|w| format_finding(&path, self.kind, "warning: ", w)));
        if self.errors.is_empty() {
            lines.push(format!("{path}: valid: {}", self.description));
        }
        lines.join("\n")
    }

    fn format_json(&self, path: &Path) -> String {
        let findings = self.errors.iter().map(|finding| match &finding.place {
            Place::Pointer(pointer) => json!({ "pointer": pointer, "message": finding.message }),
            Place::Line { line, column } => {
                json!({ "line": line, "column": column, "message": finding.message })
            }
            Place::Whole => json!({ "message": finding.message }),
        });
        json!({
            "file": path.display().to_string(),
            "kind": self.kind,
            "right": self.errors.is_empty(),
            "faults": findings.collect::<Vec<_>>(),
            "warnings": self.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
        .to_string()
    }
}

const MAPPING: &str = "mapping";
const BUSINESS_OBJECT: &str = "business object";
const CONFIGURATION: &str = "configuration";
const MALFORMED: &str = "malformed JSON";
const UNKNOWN: &str = "unknown";

/// Formats a finding as compilers do: `file:line:column: message`, with `severity` before the message.
fn format_finding(
    path: &impl std::fmt::Display,
    kind: &str,
    severity: &str,
    finding: &Finding,
) -> String {
    match &finding.place {
        // The line is one of the text in `config`, which is a JSON string on one line of the file.
        Place::Line { line, column } if kind == BUSINESS_OBJECT => {
            let message = finding.message.strip_prefix("config: ").unwrap_or(&finding.message);
            format!("{path}: config, line {line}, column {column}: {severity}{message}")
        }
        Place::Line { line, column } => {
            format!("{path}:{line}:{column}: {severity}{}", finding.message)
        }
        Place::Pointer(_) | Place::Whole => format!("{path}: {severity}{finding}"),
    }
}

/// The Business Objects among the files, by name, which the subscriptions of sources are compared with.
#[derive(Default)]
struct KnownDefinitions(BTreeMap<String, KnownDefinition>);

struct KnownDefinition {
    mapping: Mapping,
    review: Review,
}

impl KnownDefinitions {
    fn read(given: &ArgMatches) -> Self {
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).ok()?;
            let CompiledDefinition { definition, mapping, .. } =
                CompiledDefinition::from_json(&bytes).ok()?;
            let known = KnownDefinition { mapping, review: definition.review() };
            Some((definition.name, known))
        };
        Self(output::list_files(given).iter().filter_map(read).collect())
    }

    /// Warns of the subscriptions of a source that cannot work.
    fn check_source(&self, name: &str, source: &config::Source) -> Vec<Finding> {
        let warn = |object: &&str| {
            let message = match self.0.get(*object) {
                // Without any definition, nothing is known of those that the gateway has.
                None if self.0.is_empty() => return None,
                None => format!(
                    "the source {name:?} ingests into {object:?}, which none of the files defines; its messages wait until \
                     it is defined"
                ),
                Some(known) if known.review == Review::Required => format!(
                    "the source {name:?} ingests into {object:?}, which requires a review; no source writes to such a \
                     one, so it stays off"
                ),
                Some(known) if known.mapping.root.key_fields().is_none() => format!(
                    "the source {name:?} ingests into {object:?}, which has no key; objects without uri become dead letters, \
                     because a message that is delivered again would be stored twice"
                ),
                Some(_) => return None,
            };
            Some(Finding::whole(message))
        };
        let objects = source.business_objects();
        let of_fields = source.subscriptions.iter().flat_map(|one| self.check_fields(name, one));
        objects.iter().filter_map(warn).chain(of_fields).collect()
    }

    /// Warns of the fields that a subscription takes from topics, if they are no fields for a text.
    fn check_fields(
        &self,
        name: &str,
        subscription: &penstock_config::Subscription,
    ) -> Vec<Finding> {
        let object = &subscription.business_object;
        let Some(known) = self.0.get(object) else { return Vec::new() };
        let check = |field: &String| {
            let why = check_text_field(&known.mapping, field).err()?;
            Some(Finding::whole(format!(
                "the source {name:?} takes the field {field:?} of {object:?} from the topic: {why}"
            )))
        };
        subscription.fields.keys().filter_map(check).collect()
    }
}

fn check_file(path: &Path, known: &KnownDefinitions) -> CheckResult {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return CheckResult::with_error(UNKNOWN, format!("reading the file failed: {error}"));
        }
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return CheckResult::with_error(UNKNOWN, "the file is not UTF-8");
    };
    match detect_kind(path, text) {
        Some(CONFIGURATION) => check_configuration(path, text, known),
        Some(BUSINESS_OBJECT) if !text.trim_start().starts_with('{') => CheckResult::with_error(
            BUSINESS_OBJECT,
            "a Business Object is sent as JSON, but this file is YAML",
        ),
        Some(BUSINESS_OBJECT) => check_business_object(&bytes),
        Some(_) => check_mapping(text),
        None => CheckResult::with_error(
            UNKNOWN,
            format!(
                "the file is neither a mapping (with `type` at its root), nor a Business Object (`name` and `config`), nor a configuration (names that begin with {})",
                SETTING_ROOTS.join(", ")
            ),
        ),
    }
}

/// Returns the kind that a file is meant to be; `None` if unknown. Malformed files get the kind whose parser reports
/// the best error.
fn detect_kind(path: &Path, text: &str) -> Option<&'static str> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.extension().is_some_and(|e| e == "properties") {
        return Some(CONFIGURATION);
    }
    let root = match serde_yaml::from_str::<Value>(text) {
        Ok(Value::Mapping(root)) => root,
        Ok(Value::Null) | Err(_) if name.starts_with("application") => return Some(CONFIGURATION),
        Ok(_) => return None,
        Err(_) if text.trim_start().starts_with('{') => return Some(BUSINESS_OBJECT),
        Err(_) if has_settings(text) => return Some(CONFIGURATION),
        Err(_) => return Some(MAPPING),
    };
    let has = |key: &str| root.contains_key(key);
    if has("name") && has("config") {
        return Some(BUSINESS_OBJECT);
    }
    if has("type") {
        return Some(MAPPING);
    }
    let mut names = root.keys().filter_map(Value::as_str);
    names.any(is_setting).then_some(CONFIGURATION)
}

/// Returns whether a name begins as that of a setting.
fn is_setting(name: &str) -> bool {
    let first = name.split(['.', '[']).next().unwrap_or_default();
    SETTING_ROOTS.iter().any(|root| root.eq_ignore_ascii_case(first))
}

/// Returns whether a malformed YAML has the names of settings at its root, and not what a mapping has there.
fn has_settings(text: &str) -> bool {
    let names = || text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim_end()));
    names().any(is_setting) && !names().any(|name| name == "type")
}

fn check_mapping(text: &str) -> CheckResult {
    match mapping::compile(text) {
        Ok(mapping) => {
            let about = format!("a mapping {}", describe_mapping(&mapping));
            CheckResult { warnings: mapping.warnings, ..CheckResult::new(MAPPING, about) }
        }
        Err(findings) => CheckResult::with_errors(MAPPING, findings),
    }
}

fn check_business_object(bytes: &[u8]) -> CheckResult {
    match CompiledDefinition::from_json(bytes) {
        Ok(CompiledDefinition { definition, mapping, conditions }) => {
            let about = format!(
                "the Business Object {}, a mapping {}",
                definition.name,
                describe_mapping(&mapping)
            );
            let warnings = warnings::check_definition(&definition, &mapping, &conditions);
            CheckResult { warnings, ..CheckResult::new(BUSINESS_OBJECT, about) }
        }
        Err(GatewayError { class: kind, detail, findings: errors }) => {
            let what = if kind == ErrorClass::Malformed { MALFORMED } else { BUSINESS_OBJECT };
            if errors.is_empty() {
                CheckResult::with_error(what, detail)
            } else {
                CheckResult::with_errors(what, errors)
            }
        }
    }
}

fn describe_mapping(mapping: &Mapping) -> String {
    let namespaces = mapping.namespaces().join(", ");
    match mapping.root.fields.len() {
        1 => format!("of 1 field, namespaces {namespaces}"),
        count => format!("of {count} fields, namespaces {namespaces}"),
    }
}

fn check_configuration(path: &Path, text: &str, known: &KnownDefinitions) -> CheckResult {
    let config::CheckedFile { errors, warnings, sources } = config::check_file(path, text);
    let errors = errors.into_iter().map(|error| Finding::whole(error.to_string()));
    let of_sources = sources.iter().flat_map(|(name, source)| known.check_source(name, source));
    let warnings = warnings.into_iter().map(Finding::whole).chain(of_sources);
    CheckResult {
        warnings: warnings.collect(),
        errors: errors.collect(),
        ..CheckResult::new(
            CONFIGURATION,
            "a configuration, as far as a single file can be checked".to_owned(),
        )
    }
}
