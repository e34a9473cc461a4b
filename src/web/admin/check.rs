//! Shows what is known about the definition in the editor's form, and what it stores for sample data. The editor's page
//! contains the same HTML that its script requests.
use super::draft::Draft;
use super::form::take_form;
use super::frame::{PageReply, PageResult};
use super::schedule::ShownSchedule;
use askama::Template;
use penstock_auth::Authorized;
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::state::gateway;
use penstock_model::ingest::DryRun;
use penstock_resources::ingestion::IngestedStatus;
use penstock_resources::warning::Warning;
use penstock_service::business_objects::{DefinitionCheck, SampleCheck, check_definition};
use penstock_service::gateway::Gateway;
use salvo::{Depot, handler};
use std::fmt::Write as _;

/// The maximum number of quads that are shown.
const MAX_SHOWN_QUADS: usize = 200;
/// The maximum number of objects that are shown.
const MAX_SHOWN_OBJECTS: usize = 20;

/// The result of a check.
#[derive(Debug, Default, Template)]
#[template(path = "admin/checked.html")]
pub(super) struct Checked {
    /// What is known about the definition; `None` if the form has no mapping.
    check: Option<DefinitionCheck>,
    sample: Sample,
}

/// What the editor's script inserts after a check.
#[derive(Template)]
#[template(source = "{{ checked|safe }}{{ runs|safe }}", ext = "html")]
struct CheckAnswer {
    checked: Checked,
    runs: ShownSchedule,
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
pub(crate) async fn check_form(depot: &mut Depot) -> PageResult {
    let draft = Draft::from_form(&take_form(depot));
    let gateway = gateway(depot)?;
    let checked = check_draft(&gateway, caller(depot), &draft).await?;
    Ok(PageReply::show_fragment(&CheckAnswer { checked, runs: draft.describe_schedule() }))
}

/// Checks a draft, with a dry run of the sample data.
pub(super) async fn check_draft(
    gateway: &Gateway,
    by: &Authorized,
    draft: &Draft,
) -> Result<Checked, Problem> {
    if draft.definition.config.trim().is_empty() {
        return Ok(Checked::default());
    }
    let (definition, sample) = (draft.definition.clone(), draft.sample.clone());
    let result = check_definition(gateway, by, draft.id.clone(), definition, sample).await?;
    Ok(Checked::new(result, gateway.settings.limits.nesting))
}

impl Checked {
    fn new(mut check: DefinitionCheck, nesting: usize) -> Self {
        let sample = match check.sample.take() {
            None => Sample::Untried,
            Some(Err(error)) => to_refused_sample(&error),
            Some(Ok(SampleCheck { dry_run, used_part })) => {
                Sample::Tried(Tried { sampled: used_part, ..Tried::from_dry_run(dry_run, nesting) })
            }
        };
        Self { check: Some(check), sample }
    }

    /// Returns the errors in the text of the mapping: line, column and message.
    fn mapping_errors(&self) -> Vec<(u64, u64, &str)> {
        let errors = self.check.iter().flat_map(|check| &check.mapping_errors);
        let errors = errors.map(|Finding { place, message, .. }| match place {
            Place::Line { line, column } => (*line, *column, message.as_str()),
            _ => (1, 1, message.as_str()),
        });
        errors.collect()
    }

    /// Returns the warnings: the line and column in the mapping, if known, and the message.
    fn warnings(&self) -> Vec<(Option<(u64, u64)>, String)> {
        let warnings = self.check.iter().flat_map(|check| &check.warnings);
        warnings.map(|finding| split_warning(finding.clone().into())).collect()
    }
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
                    IngestedStatus::Created => "new",
                    IngestedStatus::Updated => "exists, would be extended",
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
            Place::Pointer(pointer) => match finding.record_line {
                Some(line) => format!("line {line}, {}", describe_place(pointer)),
                None => describe_place(pointer),
            },
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

/// Converts a warning: its line and column in the mapping, if known, and the message.
pub(super) fn split_warning(
    Warning { line, column, message, .. }: Warning,
) -> (Option<(u64, u64)>, String) {
    match line.zip(column) {
        Some(place) => {
            (Some(place), message.strip_prefix("config: ").unwrap_or(&message).to_owned())
        }
        None => (None, message),
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
