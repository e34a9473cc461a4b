//! `penstock check FILE...`: detects the kind of each file, and validates it.
use super::output;
use clap::{ArgMatches, Command};
use penstock_base::fault::{Fault, Finding, Kind, Place};
use penstock_config as config;
use penstock_model::mapping::{self, Mapping};
use penstock_model::resource::Definition;
use penstock_model::warnings;
use serde_json::json;
use serde_yaml::Value;
use std::path::Path;
use std::process::ExitCode;

/// The first parts of the names of settings.
const ROOTS: [&str; 6] = ["service", "server", "framework", "spring", "security", "profiles"];

pub(super) fn command() -> Command {
    Command::new("check")
        .about("Check a mapping, a Business Object or a configuration, without a service")
        .arg(output::files("YAML, JSON or .properties files"))
        .arg(output::json_flag().help("Print JSON, one object on a line for each file"))
        .after_help(
            "Exit status: 0 every file is valid, 1 a file is not valid.\n\nExamples:\n  penstock check pumps.yaml\n  \
             penstock check pumps.json /etc/penstock/application.yaml",
        )
}

pub(super) fn run(given: &ArgMatches) -> ExitCode {
    output::each_file(given, |path, json| {
        let checked = file(path);
        let text = if json { checked.json(path) } else { checked.text(path) };
        (checked.faults.is_empty(), text)
    })
}

/// The result of checking a file.
struct Checked {
    kind: &'static str,
    /// A description of the file, if it is valid.
    about: String,
    faults: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Checked {
    fn new(kind: &'static str, about: String) -> Self {
        Self { kind, about, faults: Vec::new(), warnings: Vec::new() }
    }

    fn faulty(kind: &'static str, faults: Vec<Finding>) -> Self {
        Self { kind, about: String::new(), faults, warnings: Vec::new() }
    }

    fn text(&self, path: &Path) -> String {
        let path = path.display();
        let mut lines: Vec<String> =
            self.faults.iter().map(|f| line(&path, self.kind, "", f)).collect();
        lines.extend(self.warnings.iter().map(|w| line(&path, self.kind, "warning: ", w)));
        if self.faults.is_empty() {
            lines.push(format!("{path}: valid: {}", self.about));
        }
        lines.join("\n")
    }

    fn json(&self, path: &Path) -> String {
        let faults = self.faults.iter().map(|fault| match &fault.place {
            Place::Pointer(pointer) => json!({ "pointer": pointer, "message": fault.message }),
            Place::Line { line, column } => {
                json!({ "line": line, "column": column, "message": fault.message })
            }
            Place::Whole => json!({ "message": fault.message }),
        });
        json!({
            "file": path.display().to_string(),
            "kind": self.kind,
            "right": self.faults.is_empty(),
            "faults": faults.collect::<Vec<_>>(),
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
fn line(path: &impl std::fmt::Display, kind: &str, severity: &str, fault: &Finding) -> String {
    match &fault.place {
        // The line is one of the text in `config`, which is a JSON string on one line of the file.
        Place::Line { line, column } if kind == BUSINESS_OBJECT => {
            let message = fault.message.strip_prefix("config: ").unwrap_or(&fault.message);
            format!("{path}: config, line {line}, column {column}: {severity}{message}")
        }
        Place::Line { line, column } => {
            format!("{path}:{line}:{column}: {severity}{}", fault.message)
        }
        Place::Pointer(_) | Place::Whole => format!("{path}: {severity}{fault}"),
    }
}

fn whole(message: String) -> Vec<Finding> {
    vec![Finding { place: Place::Whole, message }]
}

fn file(path: &Path) -> Checked {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return Checked::faulty(UNKNOWN, whole(format!("reading the file failed: {error}")));
        }
    };
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Checked::faulty(UNKNOWN, whole("the file is not UTF-8".to_owned()));
    };
    match kind(path, text) {
        Some(CONFIGURATION) => configuration(path, text),
        Some(BUSINESS_OBJECT) if !text.trim_start().starts_with('{') => Checked::faulty(
            BUSINESS_OBJECT,
            whole("a Business Object is sent as JSON, but this file is YAML".to_owned()),
        ),
        Some(BUSINESS_OBJECT) => business_object(&bytes),
        Some(_) => mapping(text),
        None => Checked::faulty(
            UNKNOWN,
            whole(format!(
                "the file is neither a mapping (with `type` at its root), nor a Business Object (`name` and `config`), nor a configuration (names that begin with {})",
                ROOTS.join(", ")
            )),
        ),
    }
}

/// Returns the kind that a file is meant to be; `None` if unknown. Malformed files get the kind whose parser reports
/// the best error.
fn kind(path: &Path, text: &str) -> Option<&'static str> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if path.extension().is_some_and(|e| e == "properties") {
        return Some(CONFIGURATION);
    }
    let root = match serde_yaml::from_str::<Value>(text) {
        Ok(Value::Mapping(root)) => root,
        Ok(Value::Null) | Err(_) if name.starts_with("application") => return Some(CONFIGURATION),
        Ok(_) => return None,
        Err(_) if text.trim_start().starts_with('{') => return Some(BUSINESS_OBJECT),
        Err(_) => return Some(MAPPING),
    };
    let has = |key: &str| root.contains_key(key);
    if has("name") && has("config") {
        return Some(BUSINESS_OBJECT);
    }
    if has("type") {
        return Some(MAPPING);
    }
    let is_root = |key: &Value| {
        let first = key.as_str().and_then(|key| key.split(['.', '[']).next()).unwrap_or_default();
        ROOTS.iter().any(|root| root.eq_ignore_ascii_case(first))
    };
    root.keys().any(is_root).then_some(CONFIGURATION)
}

fn mapping(text: &str) -> Checked {
    match mapping::compile(text) {
        Ok(mapping) => {
            let about = format!("a mapping {}", of(&mapping));
            Checked { warnings: mapping.warnings, ..Checked::new(MAPPING, about) }
        }
        Err(faults) => Checked::faulty(MAPPING, faults),
    }
}

fn business_object(bytes: &[u8]) -> Checked {
    match Definition::read(bytes) {
        Ok((definition, mapping, conditions)) => {
            let about =
                format!("the Business Object {}, a mapping {}", definition.name, of(&mapping));
            let warnings = warnings::of_definition(&definition, &mapping, &conditions);
            Checked { warnings, ..Checked::new(BUSINESS_OBJECT, about) }
        }
        Err(Fault { kind, detail, errors }) => {
            let what = if kind == Kind::Malformed { MALFORMED } else { BUSINESS_OBJECT };
            Checked::faulty(what, if errors.is_empty() { whole(detail) } else { errors })
        }
    }
}

fn of(mapping: &Mapping) -> String {
    let namespaces = mapping.namespaces().join(", ");
    match mapping.root.fields.len() {
        1 => format!("of 1 field, namespaces {namespaces}"),
        count => format!("of {count} fields, namespaces {namespaces}"),
    }
}

fn configuration(path: &Path, text: &str) -> Checked {
    let (faults, warnings) = config::check_file(path, text);
    let faults =
        faults.into_iter().map(|fault| Finding { place: Place::Whole, message: fault.to_string() });
    let warnings =
        warnings.into_iter().map(|message| Finding { place: Place::Whole, message }).collect();
    Checked {
        warnings,
        faults: faults.collect(),
        ..Checked::new(
            CONFIGURATION,
            "a configuration, as far as a single file can be checked".to_owned(),
        )
    }
}
