//! A definition out of a request body, with every fault in it.
use super::{Condition, Conditions, Definition, PushTarget};
use crate::mapping::{self, Mapping, Prefixes};
use crate::namespace::NamespaceDefinition;
use oxrdf::{NamedNode, Term};
use penstock_base::characters::is_deceptive;
use penstock_base::fault::{Fault, Finding, Kind};
use penstock_base::json::{self, Json, MAX_NESTING, Members, push_pointer};
use penstock_config::check_bucket_name;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::collections::HashSet;

/// The longest name, in characters, and in bytes as export keys write it: with the date and sequence
/// behind it, it must fit the 255 bytes of a file name.
const MAX_NAME: usize = 200;

/// The maximum number of namespaces that one definition defines.
const MAX_NAMESPACES: usize = 1000;

/// What export keys leave as it is (contract of the export file).
const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// What an answer holds beside the definition. It may come back in a request, so that an answer can be
/// changed and sent again; it has no effect there.
const OF_THE_ANSWER: &[&str] =
    &["id", "version", "createdAt", "updatedAt", "updatedBy", "createdNamespaces", "warnings"];

impl Definition {
    /// Reads a request body, checks every field and compiles the mapping. `config` may be a JSON object as
    /// well, which is kept as its text. What an answer adds (`id`, `version`, ...) may stand in the body.
    ///
    /// # Errors
    /// `Kind::Malformed` as [`json::parse`]; `Kind::Invalid` with every finding: those of fields
    /// with a JSON Pointer, those of `config` with the line and column in its text.
    pub fn read(body: &[u8]) -> Result<(Self, Mapping, Conditions), Fault> {
        Self::read_with(body, &|_| Ok(()))
    }

    /// As [`Self::read`]; `check_target` says why a bucketName leads nowhere.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_with(
        body: &[u8],
        check_target: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<(Self, Mapping, Conditions), Fault> {
        let body = json::parse(body, MAX_NESTING)?;
        let mut findings = Vec::new();
        let mut definition = Self { enabled: true, ..Self::default() };
        let mut mapping = None;
        let mut conditions = Vec::new();
        if let Some(mut members) = Members::of(body, "", &mut findings) {
            definition.name = name(&mut members);
            definition.description = members.string("description").unwrap_or_default();
            definition.enabled = members.boolean("enabled").unwrap_or(true);
            (definition.config, mapping) = config(&mut members);
            definition.namespaces = read_namespaces(&mut members);
            let prefixes = mapping.as_ref().map(|mapping: &Mapping| mapping.prefixes.clone());
            (definition.conditions, conditions) =
                read_conditions(&mut members, &prefixes.unwrap_or_default());
            definition.push_targets = read_targets(&mut members, check_target);
            read_automatic(&mut members, &mut definition);
            for name in OF_THE_ANSWER {
                members.take(name);
            }
            members.end();
        }
        match mapping {
            Some(mapping) if findings.is_empty() => Ok((definition, mapping, conditions)),
            _ => Err(invalid(&definition.name, findings)),
        }
    }
}

impl Condition {
    /// The condition as terms, where it has no prefixes.
    ///
    /// # Errors
    /// What is no absolute IRI, in words.
    pub fn terms(&self) -> Result<(NamedNode, Term), String> {
        let iri = |text: &str| {
            NamedNode::new(text).map_err(|error| format!("{text:?} is no absolute IRI: {error}"))
        };
        Ok((iri(&self.predicate)?, iri(&self.value)?.into()))
    }

    /// The condition as terms, its prefixes expanded.
    ///
    /// # Errors
    /// What is no IRI, in words.
    pub fn expand(&self, prefixes: &Prefixes) -> Result<(NamedNode, Term), String> {
        Ok((prefixes.expand(&self.predicate)?, prefixes.expand(&self.value)?.into()))
    }
}

fn invalid(name: &str, findings: Vec<Finding>) -> Fault {
    let what = if name.is_empty() {
        "the Business Object".to_owned()
    } else {
        format!("the Business Object {name:?}")
    };
    let detail = match findings.as_slice() {
        [one] => format!("{what} is not valid: {one}"),
        many => format!("{what} is not valid: {} faults were found", many.len()),
    };
    Fault::with(Kind::Invalid, detail, findings)
}

fn name(members: &mut Members<'_>) -> String {
    let Some(name) = members.string("name") else {
        members.require("name", "expected is the name of the Business Object");
        return String::new();
    };
    if let Err(why) = check_name(&name) {
        members.find("name", format!("{name:?} cannot be the name of a Business Object: {why}"));
    }
    name
}

fn check_name(name: &str) -> Result<(), String> {
    let encoded: usize = utf8_percent_encode(name, KEY).map(str::len).sum();
    if name.is_empty() {
        Err("it is empty".to_owned())
    } else if name.chars().count() > MAX_NAME {
        Err(format!("it has more than {MAX_NAME} characters"))
    } else if encoded > MAX_NAME {
        Err(format!(
            "it takes {encoded} bytes in the keys of exports, and {MAX_NAME} is the limit (each byte beyond \
             A-Za-z0-9._- takes three)"
        ))
    } else if name.trim() != name {
        Err("white space stands at its end".to_owned())
    } else if name == "." || name == ".." {
        Err("URLs would lose it".to_owned())
    } else if let Some(c) = name.chars().find(|c| *c == '/' || is_deceptive(*c)) {
        Err(format!("{c:?} is none of its characters"))
    } else if uuid::Uuid::try_parse(name).is_ok() {
        Err("it looks like an id, and paths take either".to_owned())
    } else {
        Ok(())
    }
}

fn config(members: &mut Members<'_>) -> (String, Option<Mapping>) {
    let config = match members.take("config") {
        Some(Json::String(text)) => text,
        Some(object @ Json::Object(_)) => format!("{object:#}"),
        Some(other) => {
            let message = format!("`config` is a text of YAML, or an object, not {}", other.kind());
            members.find("config", message);
            return (String::new(), None);
        }
        None => {
            members.find("config", "`config` is missing; expected is the mapping as YAML");
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
    each(members, "namespaces", |members| {
        let namespace = NamespaceDefinition::read(members);
        if !seen.insert(namespace.name.clone()) {
            let message =
                format!("the namespace {:?} is defined twice; leave one out", namespace.name);
            members.find("name", message);
        }
        namespaces.push(namespace);
    });
    if namespaces.len() > MAX_NAMESPACES {
        let count = namespaces.len();
        let message = format!(
            "{count} namespaces are defined; a Business Object defines up to {MAX_NAMESPACES}"
        );
        members.find("namespaces", message);
    }
    namespaces
}

fn read_conditions(members: &mut Members<'_>, prefixes: &Prefixes) -> (Vec<Condition>, Conditions) {
    let mut read = (Vec::new(), Vec::new());
    each(members, "conditions", |members| {
        let mut part = |name: &'static str| {
            let text = members.string(name);
            match text.as_deref().map(|text| prefixes.expand(text)) {
                None => members.require(name, "expected is an IRI without angle brackets"),
                Some(Err(why)) => members.find(name, why),
                Some(Ok(_)) => {}
            }
            text.unwrap_or_default()
        };
        let condition = Condition { predicate: part("predicate"), value: part("value") };
        if let Ok(terms) = condition.expand(prefixes) {
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
    each(members, "pushTargets", |members| {
        let Some(bucket_name) = members.string("bucketName") else {
            members.require("bucketName", "expected is the name of an export target");
            return;
        };
        if let Err(why) = check_bucket_name(&bucket_name).and_then(|()| check_target(&bucket_name))
        {
            members.find("bucketName", why);
        } else if !seen.insert(bucket_name.clone()) {
            members.find("bucketName", format!("{bucket_name:?} stands twice; once is enough"));
        }
        targets.push(PushTarget { bucket_name });
    });
    targets
}

/// Reads an array of objects, handing over the members of each.
fn each(members: &mut Members<'_>, name: &'static str, mut read: impl FnMut(&mut Members<'_>)) {
    let base = members.pointer(name);
    for (index, element) in members.array(name).unwrap_or_default().into_iter().enumerate() {
        let mut pointer = base.clone();
        push_pointer(&mut pointer, &index.to_string());
        if let Some(mut element) = Members::of(element, &pointer, members.findings()) {
            read(&mut element);
            element.end();
        }
    }
}

/// Reads what asks for exports by themselves, and for removal.
fn read_automatic(members: &mut Members<'_>, definition: &mut Definition) {
    definition.schedule = members.string("schedule");
    definition.timezone = members.string("timezone");
    definition.export_on_change = members.boolean("exportOnChange").unwrap_or(false);
    definition.debounce = members.string("debounce");
    definition.retention = members.string("retention");
    for wrong in definition.automatic().err().unwrap_or_default() {
        members.find(wrong.member, wrong.cause);
    }
}

#[cfg(test)]
mod tests;
