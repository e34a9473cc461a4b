//! Checks a mapping while it is typed, and shows what it stores for sample data. The editor's page contains
//! the same HTML that its script requests.
use super::draft::Draft;
use super::editor::list_targets;
use super::form::take_form;
use askama::Template;
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json;
use penstock_http::problem::Problem;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::derive;
use penstock_model::ingest::{self, DryRun, Limits, Status};
use penstock_model::mapping::{self, FieldKind, Mapping, Property, Shape, Value};
use penstock_model::namespace;
use penstock_model::resource::{BusinessObject, Compiled, Condition};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::{Depot, Response, handler};
use std::fmt::Write as _;

/// The maximum number of JSON values in the body of a dry run: those of the sample, the array `data` and the
/// body itself. The limit is low because a dry run delays ingestions.
const MAX_DRY_RUN_VALUES: usize = derive::MAX_VALUES + 2;
/// The maximum number of quads that are shown.
const MAX_SHOWN_QUADS: usize = 200;
/// The maximum number of objects that are shown.
const MAX_SHOWN_OBJECTS: usize = 20;

/// The result of a check.
#[derive(Debug, Default, Template)]
#[template(path = "admin/checked.html")]
pub(super) struct Checked {
    /// Whether the form has a mapping.
    pub(super) is_there: bool,
    /// The errors in the text of the mapping.
    pub(super) faults: Vec<MappingError>,
    /// The error of the mapping as a whole.
    pub(super) whole: Option<String>,
    /// The number of fields, including those of nested objects.
    pub(super) fields: usize,
    pub(super) namespaces: Vec<MappingNamespace>,
    /// Warnings: the line and column in the mapping, if known, and the message.
    pub(super) warnings: Vec<(Option<(u64, u64)>, String)>,
    pub(super) sample: Sample,
}

/// An error at a line.
#[derive(Debug)]
pub(super) struct MappingError {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) message: String,
}

/// A namespace of the mapping.
#[derive(Debug)]
pub(super) struct MappingNamespace {
    pub(super) name: String,
    pub(super) base: String,
    /// Whether saving would create it.
    pub(super) is_new: bool,
}

/// The result for the sample data.
#[derive(Debug, Default)]
pub(super) enum Sample {
    /// There is no sample, or no valid mapping to test it with.
    #[default]
    Untried,
    /// The sample does not match the mapping: the cause, and the places and messages of its errors.
    Refused(String, Vec<(String, String)>),
    Tried(Tried),
}

/// What would be stored.
#[derive(Debug, Default)]
pub(super) struct Tried {
    pub(super) objects: Vec<Object>,
    /// The number of objects that are not shown.
    pub(super) more_objects: usize,
    /// The added quads as N-Quads.
    pub(super) quads: String,
    pub(super) quad_count: usize,
    pub(super) more_quads: usize,
    /// Places and messages.
    pub(super) warnings: Vec<(String, String)>,
    /// Which part of the text was used, if not all.
    pub(super) sampled: Option<String>,
}

/// An object of the sample.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) number: usize,
    pub(super) uri: String,
    /// What an ingestion would do with it.
    pub(super) status: &'static str,
    /// The places of nested objects in it, and their URIs.
    pub(super) nested: Vec<(String, String)>,
    /// The object in the view.
    pub(super) view: String,
    pub(super) warnings: Vec<String>,
}

/// Checks the content of the editor's form. Responds with the result as HTML, which the editor's script inserts.
#[handler]
pub(crate) async fn check(depot: &mut Depot, res: &mut Response) -> Result<(), Problem> {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let checked = run_blocking(move || {
        let draft = Draft::from_form(&form, &list_targets(&gateway)?);
        Ok(check_draft(&gateway, &draft))
    })
    .await?;
    super::frame::show_page_with_status(res, depot, StatusCode::OK, &checked);
    Ok(())
}

/// Checks a mapping, with a dry run of the sample data. Blocking.
pub(super) fn check_draft(gateway: &Gateway, draft: &Draft) -> Checked {
    let config = draft.config.as_str();
    if config.trim().is_empty() {
        return Checked::default();
    }
    let mut checked = Checked { is_there: true, ..Checked::default() };
    let mapping = match mapping::compile(config) {
        Ok(mapping) => mapping,
        Err(findings) => {
            checked.faults = findings.into_iter().map(to_mapping_error).collect();
            return checked;
        }
    };
    checked.fields = count_fields(&mapping.root);
    if let Err(error) = run_dry_run(gateway, mapping, draft, &mut checked) {
        checked.whole = Some(describe_error(&error));
    }
    checked
}

/// Checks the namespaces, and the sample if there is one.
fn run_dry_run(
    gateway: &Gateway,
    mapping: Mapping,
    draft: &Draft,
    checked: &mut Checked,
) -> Result<(), GatewayError> {
    let compiled = compile_draft(mapping, draft);
    let is_new: Vec<bool> = {
        let read = gateway.store.read();
        let namespaces = compiled.mapping.namespaces().into_iter();
        namespaces
            .map(|name| Ok(namespace::get(&read, name)?.is_none()))
            .collect::<Result<_, GatewayError>>()?
    };
    let nesting = gateway.settings.limits.nesting;
    let sample = if draft.sample.trim().is_empty() {
        None
    } else {
        match derive::read_samples(&draft.sample, nesting) {
            Ok(sample) => {
                let sampled = derive::describe_sample(&sample);
                Some((format!("{{\"data\":{}}}", json::Json::Array(sample.objects)), sampled))
            }
            Err(error) => {
                checked.sample = to_refused_sample(&error);
                None
            }
        }
    };
    let limits = Limits {
        nesting: nesting.saturating_add(2),
        objects: derive::MAX_OBJECTS,
        values: MAX_DRY_RUN_VALUES,
        idempotency_keys: 0,
        idempotency_bytes: 0,
        history: 0,
    };
    let ((bases, tried), warnings) = gateway.catalogue.dry_run(&compiled, |transaction| {
        let mut bases = Vec::new();
        for name in compiled.mapping.namespaces() {
            let there = namespace::get(transaction, name)?;
            bases.push((name.to_owned(), there.map_or_else(String::new, |there| there.uri_base)));
        }
        let mut compiled = compiled.clone();
        compiled.mapping.resolve_namespaces(transaction)?;
        let tried = sample.map(|(data, sampled)| {
            let dry_run =
                ingest::dry_run_ingestion(transaction, &limits, &compiled, data.as_bytes())?;
            Ok::<_, GatewayError>((dry_run, sampled))
        });
        Ok((bases, tried))
    })?;
    let spaces = bases.into_iter().zip(is_new);
    checked.namespaces =
        spaces.map(|((name, base), is_new)| MappingNamespace { name, base, is_new }).collect();
    checked.warnings = warnings.into_iter().map(split_warning).collect();
    match tried {
        Some(Ok((dry_run, sampled))) => {
            checked.sample =
                Sample::Tried(Tried { sampled, ..Tried::from_dry_run(dry_run, nesting) });
        }
        Some(Err(error)) => checked.sample = to_refused_sample(&error),
        None => {}
    }
    Ok(())
}

/// Compiles a Business Object that is not stored.
fn compile_draft(mapping: Mapping, draft: &Draft) -> Compiled {
    let mut definition = draft.to_definition();
    // An invalid IRI is reported when the definition is saved.
    let expand = |condition: &Condition| condition.expand_terms(&mapping.prefixes).ok();
    definition.conditions.retain(|condition| expand(condition).is_some());
    let conditions = definition.conditions.iter().filter_map(expand).collect();
    let object = BusinessObject {
        id: draft.id.clone(),
        definition,
        version: 0,
        created_at: String::new(),
        updated_at: String::new(),
        updated_by: None,
        created_namespaces: Vec::new(),
    };
    Compiled { object, mapping, conditions }
}

impl Tried {
    fn from_dry_run(dry_run: DryRun, nesting: usize) -> Self {
        let DryRun { answer, added, views } = dry_run;
        let mut tried = Self {
            more_objects: answer.objects.len().saturating_sub(MAX_SHOWN_OBJECTS),
            quad_count: added.len(),
            more_quads: added.len().saturating_sub(MAX_SHOWN_QUADS),
            warnings: answer
                .warnings
                .into_iter()
                .map(|warning| (describe_place(&warning.pointer), warning.message))
                .collect(),
            ..Self::default()
        };
        for quad in added.iter().take(MAX_SHOWN_QUADS) {
            // Writing into a string cannot fail.
            let _ = writeln!(tried.quads, "{quad} .");
        }
        for (outcome, view) in answer.objects.into_iter().zip(views).take(MAX_SHOWN_OBJECTS) {
            let prefix = format!("/data/{}", outcome.index);
            let nested = outcome.nested.into_iter().map(|nested| {
                let place = nested.pointer.strip_prefix(&prefix).unwrap_or(&nested.pointer);
                (place.to_owned(), nested.uri)
            });
            tried.objects.push(Object {
                number: outcome.index + 1,
                status: match outcome.status {
                    Status::Created => "new",
                    Status::Updated => "exists, would be extended",
                    _ => "exists, would not change",
                },
                nested: nested.collect(),
                view: format_json(&view.json, nesting),
                warnings: view.warnings.iter().map(ToString::to_string).collect(),
                uri: outcome.uri,
            });
        }
        tried
    }
}

/// Formats the gateway's own JSON with white space.
pub(super) fn format_json(text: &[u8], nesting: usize) -> String {
    match json::parse(text, nesting.saturating_add(2)) {
        Ok(json) => format!("{json:#}"),
        Err(_) => String::from_utf8_lossy(text).into_owned(),
    }
}

fn to_refused_sample(error: &GatewayError) -> Sample {
    let findings = error.findings.iter().map(|finding| {
        let place = match &finding.place {
            Place::Pointer(pointer) => describe_place(pointer),
            Place::Line { line, column } => format!("line {line}, column {column}"),
            Place::Whole => String::new(),
        };
        (place, finding.message.clone())
    });
    Sample::Refused(error.detail.clone(), findings.collect())
}

/// Formats a JSON Pointer into `{"data": [...]}` for people: `object 1, /flow`.
fn describe_place(pointer: &str) -> String {
    let Some(rest) = pointer.strip_prefix("/data/") else { return pointer.to_owned() };
    let (index, inside) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    match index.parse::<usize>() {
        Ok(index) if inside.is_empty() => format!("object {}", index + 1),
        Ok(index) => format!("object {}, {inside}", index + 1),
        Err(_) => pointer.to_owned(),
    }
}

/// Converts a finding of a mapping.
pub(super) fn to_mapping_error(finding: Finding) -> MappingError {
    match finding.place {
        Place::Line { line, column } => MappingError { line, column, message: finding.message },
        _ => MappingError { line: 1, column: 1, message: finding.message },
    }
}

/// Converts a warning: its line and column in the mapping, if known, and the message.
pub(super) fn split_warning(finding: Finding) -> (Option<(u64, u64)>, String) {
    match finding.place {
        Place::Line { line, column } => {
            let message = finding.message.strip_prefix("config: ").unwrap_or(&finding.message);
            (Some((line, column)), message.to_owned())
        }
        Place::Pointer(_) | Place::Whole => (None, finding.message),
    }
}

fn describe_error(error: &GatewayError) -> String {
    match error.findings.as_slice() {
        [] => error.detail.clone(),
        errors => {
            errors.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
        }
    }
}

fn count_fields(shape: &Shape) -> usize {
    let nested = shape.fields.iter().map(|field| match &field.kind {
        FieldKind::Property(Property { value: Value::Object(inner), .. }) => count_fields(inner),
        _ => 0,
    });
    shape.fields.len() + nested.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_from_one() {
        assert_eq!(describe_place("/data/0"), "object 1");
        assert_eq!(describe_place("/data/2/parts/0/label"), "object 3, /parts/0/label");
        assert_eq!(describe_place("/config"), "/config");
    }
}
