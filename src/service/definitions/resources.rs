//! Reads the definitions in files, each as its PUT takes it, and gives every error its file, line and column.
use super::content::{Content, invalid_error, take_member};
use super::kind::{Result, StoredKind as _};
use crate::gateway::Gateway;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_base::json::Json;
use penstock_model::rdf::Format;
use penstock_model::shapes_graphs::{NewGraph, TextFormat};
use penstock_model::source_text::{SourceText, SourceValue};
use penstock_resources::definitions::{DefinitionFile, DefinitionId, DefinitionKind};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A definition in a file.
#[derive(Debug)]
pub(super) struct Resource<'s> {
    pub(super) id: DefinitionId,
    pub(super) content: Content,
    /// Whether the guards against a redefinition are overridden.
    pub(super) force: bool,
    pub(super) place: ResourcePlace<'s>,
}

/// Where a definition is.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourcePlace<'s> {
    pub(super) file: &'s str,
    /// `None` if the whole file is a shapes graph.
    source: Option<SourceValue<'s>>,
    /// The member whose text has lines of its own.
    text_member: &'static str,
}

/// A file whose values keep their positions; `None` if the file is a shapes graph.
pub(super) type ParsedFile<'f> = (&'f DefinitionFile, Option<SourceText<'f>>);

impl ResourcePlace<'_> {
    /// Describes an error of the definition, with the file, line and column of each finding.
    pub(super) fn place_error(&self, error: GatewayError) -> Vec<Finding> {
        let GatewayError { class, mut detail, mut findings } = error;
        if class == ErrorClass::Unconfirmed {
            detail.push_str("; to apply it anyway, set `force: true` in the file");
            findings.clear();
        }
        let mut placed = Vec::new();
        let has_all = matches!(class, ErrorClass::Invalid | ErrorClass::Malformed);
        // A finding that says the same has the better place.
        let is_repeated = findings.iter().any(|finding| finding.message == detail);
        if findings.is_empty() || !(has_all || is_repeated) {
            placed.push(self.place_finding(Finding::whole(detail)));
        }
        placed.extend(findings.into_iter().map(|finding| self.place_finding(finding)));
        placed
    }

    /// Describes a finding as compilers do: `file:line:column: message`.
    pub(super) fn place_finding(&self, finding: Finding) -> Finding {
        let placed = match self.source {
            Some(source) => source.place_finding(finding, self.text_member),
            None => finding,
        };
        format_finding(self.file, &placed)
    }
}

fn format_finding(file: &str, finding: &Finding) -> Finding {
    let format = |finding: &Finding| match &finding.place {
        Place::Line { line, column } => format!("{file}:{line}:{column}: {}", finding.message),
        Place::Pointer(_) | Place::Whole => format!("{file}: {finding}"),
    };
    let public_message = finding.public_message.as_ref().map(|message| {
        format(&Finding {
            message: message.clone(),
            place: finding.place.clone(),
            ..Finding::default()
        })
    });
    Finding { public_message, ..Finding::whole(format(finding)) }
}

/// Creates the error of files with these findings.
pub(super) fn files_error(class: ErrorClass, mut findings: Vec<Finding>) -> GatewayError {
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert(finding.message.clone()));
    let count = match findings.len() {
        1 => "1 error".to_owned(),
        count => format!("{count} errors"),
    };
    let detail = format!("nothing was applied; the definition files have {count}");
    GatewayError::with_findings(class, detail, findings)
}

/// Parses all files.
///
/// # Errors
/// `ErrorClass::Invalid` with the errors of all files.
pub(super) fn parse_files(files: &[DefinitionFile]) -> Result<Vec<ParsedFile<'_>>> {
    let (mut parsed, mut findings) = (Vec::new(), Vec::new());
    for file in files {
        if text_format(&file.name).is_some() {
            parsed.push((file, None));
            continue;
        }
        let is_json =
            Path::new(&file.name).extension().is_some_and(|extension| extension == "json");
        let parse = if is_json { SourceText::parse_json } else { SourceText::parse };
        match parse(&file.text) {
            Ok(Some(text)) => parsed.push((file, Some(text))),
            Ok(None) => {}
            Err(found) => {
                findings.extend(found.iter().map(|finding| format_finding(&file.name, finding)));
            }
        }
    }
    if findings.is_empty() { Ok(parsed) } else { Err(files_error(ErrorClass::Invalid, findings)) }
}

/// Returns the format of a file that is a shapes graph.
fn text_format(name: &str) -> Option<TextFormat> {
    match Path::new(name).extension()?.to_str()? {
        "ttl" => Some(TextFormat::Rdf(Format::Turtle)),
        "shex" => Some(TextFormat::ShexC),
        _ => None,
    }
}

/// Reads the definitions in all files, in the order in which they depend on each other.
///
/// # Errors
/// `ErrorClass::Invalid` with the errors of all definitions.
pub(super) fn read_resources<'s>(
    gateway: &Gateway,
    files: &'s [ParsedFile<'_>],
) -> Result<Vec<Resource<'s>>> {
    let (mut resources, mut findings) = (Vec::new(), Vec::new());
    for (file, text) in files {
        let sources: Vec<Option<SourceValue<'_>>> = match text {
            Some(text) => text.values().into_iter().map(Some).collect(),
            None => vec![None],
        };
        for source in sources {
            let place = ResourcePlace { file: &file.name, source, text_member: "config" };
            let read = match source {
                Some(source) => read_value(gateway, place, source.to_json()),
                None => read_shapes_file(file, place),
            };
            match read {
                Ok(resource) => resources.push(resource),
                Err(found) => findings.extend(found),
            }
        }
    }
    findings.extend(find_contradictions(&resources));
    if !findings.is_empty() {
        return Err(files_error(ErrorClass::Invalid, findings));
    }
    resources.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(resources)
}

fn read_shapes_file<'s>(
    file: &DefinitionFile,
    place: ResourcePlace<'s>,
) -> Result<Resource<'s>, Vec<Finding>> {
    let stem = Path::new(&file.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let format = text_format(&file.name).unwrap_or(TextFormat::Rdf(Format::Turtle));
    let graph = NewGraph::check(stem, file.text.as_bytes(), format)
        .map_err(|error| place.place_error(error))?;
    let id = DefinitionId { kind: DefinitionKind::Shapes, name: stem.to_owned() };
    Ok(Resource { id, content: Content::Shapes(graph), force: false, place })
}

/// Reads a definition in YAML or JSON.
fn read_value<'s>(
    gateway: &Gateway,
    mut place: ResourcePlace<'s>,
    value: Json,
) -> Result<Resource<'s>, Vec<Finding>> {
    let mut members = match value {
        Json::Object(members) => members,
        other => {
            let message = format!("expected a definition with members, not {}", other.kind_name());
            return Err(place.place_error(invalid_error("", message)));
        }
    };
    let Head { id, force } = read_head(&mut members).map_err(|error| place.place_error(error))?;
    if id.kind == DefinitionKind::Shapes {
        place.text_member = "text";
    }
    let content = of_kind!(id.kind, K => K::read_members(gateway, &id.name, members))
        .map_err(|error| place.place_error(error))?;
    Ok(Resource { id, content, force, place })
}

/// What all kinds of definitions have.
struct Head {
    id: DefinitionId,
    force: bool,
}

/// Takes `kind` and `force` from the members, and reads the name.
fn read_head(members: &mut Vec<(String, Json)>) -> Result<Head> {
    let kind = match take_member(members, "kind") {
        Some(Json::String(kind)) => parse_kind(&kind)?,
        Some(other) => {
            let message = format!("`kind` must be a string, not {}", other.kind_name());
            return Err(invalid_error("/kind", message));
        }
        None if has_member(members, "config") => DefinitionKind::BusinessObject,
        None if has_member(members, "uriBase") || has_member(members, "generator") => {
            DefinitionKind::Namespace
        }
        None if has_member(members, "members") => DefinitionKind::Group,
        None => {
            return Err(invalid_error(
                "",
                "it is unknown what this defines; add `kind`: BusinessObject, Namespace, Shapes or Group",
            ));
        }
    };
    let force = match members.iter().position(|(name, _)| name == "force") {
        // The definitions of other kinds have no guard, so `force` is an unknown member of them.
        Some(place) if kind == DefinitionKind::BusinessObject => match members.remove(place).1 {
            Json::Bool(force) => force,
            other => {
                let message = format!("`force` must be true or false, not {}", other.kind_name());
                return Err(invalid_error("/force", message));
            }
        },
        _ => false,
    };
    let name = members.iter().find(|(member, _)| member == "name").map(|(_, value)| value);
    match name {
        Some(Json::String(name)) => {
            Ok(Head { id: DefinitionId { kind, name: name.clone() }, force })
        }
        Some(Json::Null) | None => {
            let message = format!("`name` is missing; expected the name of the {}", kind.label());
            Err(invalid_error("", message))
        }
        Some(other) => {
            let message =
                format!("`name` must be a string, not {}; put it in quotes", other.kind_name());
            Err(invalid_error("/name", message))
        }
    }
}

fn parse_kind(text: &str) -> Result<DefinitionKind> {
    DefinitionKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
        let message =
            format!("there is no kind {text:?}; use BusinessObject, Namespace, Shapes or Group");
        invalid_error("/kind", message)
    })
}

fn has_member(members: &[(String, Json)], name: &str) -> bool {
    members.iter().any(|(member, value)| member == name && *value != Json::Null)
}

/// Finds definitions that are in two files, and namespaces that a Business Object defines otherwise than a file.
fn find_contradictions(resources: &[Resource<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut known: HashMap<&DefinitionId, &Resource<'_>> = HashMap::new();
    for resource in resources {
        match known.get(&resource.id) {
            Some(first) => {
                let message = format!(
                    "the {} {:?} is also in {}; remove it from one of them",
                    resource.id.kind.label(),
                    resource.id.name,
                    first.place.describe()
                );
                findings.push(resource.place.place_finding(Finding::whole(message)));
            }
            None => {
                known.insert(&resource.id, resource);
            }
        }
    }
    for resource in resources {
        let Content::BusinessObject(new) = &resource.content else { continue };
        for (index, own) in new.definition.namespaces.iter().enumerate() {
            let id = DefinitionId { kind: DefinitionKind::Namespace, name: own.name.clone() };
            let Some(Resource { content: Content::Namespace(file), place, .. }) = known.get(&id)
            else {
                continue;
            };
            let has_other_base = own.uri_base.is_some() && own.uri_base != file.uri_base;
            let generator = file.generator.unwrap_or_default();
            if has_other_base || own.generator.is_some_and(|own| own != generator) {
                let message = format!(
                    "{} defines the namespace `{}` otherwise; define it only there",
                    place.describe(),
                    own.name
                );
                let pointer = format!("/namespaces/{index}");
                findings.push(resource.place.place_finding(Finding::at_pointer(pointer, message)));
            }
        }
    }
    findings
}

impl ResourcePlace<'_> {
    fn describe(&self) -> String {
        let at = self.source.map(|source| source.find_at("", "").place);
        match at {
            Some(Place::Line { line, .. }) => format!("{}, line {line}", self.file),
            _ => self.file.to_owned(),
        }
    }
}
