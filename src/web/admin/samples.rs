//! Derives a new Business Object from a pasted sample.
use super::draft::Draft;
use super::editor::{self, Editor};
use super::form::{FormErrors, take_form};
use super::frame::{self, Frame, Section};
use askama::Template;
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json::Json;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::derive::{self, DerivationNote, DerivedMapping, MappingNames};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};

#[derive(Template)]
#[template(path = "admin/derive.html")]
struct Page {
    frame: Frame,
    /// The name of the new Business Object.
    called: String,
    vocabulary: String,
    sample: String,
    faults: FormErrors,
}

/// Shows the form.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let page = Page {
        vocabulary: default_vocabulary(&gateway(depot)?),
        frame: Frame::for_caller(req, depot, res, Section::BusinessObjects),
        called: String::new(),
        sample: String::new(),
        faults: FormErrors::default(),
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Derives the mapping, and shows it in the editor.
#[handler]
pub(crate) async fn post(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let name = form.trimmed("name").unwrap_or_default();
    let vocabulary = form.trimmed("vocabulary").unwrap_or_else(|| default_vocabulary(&gateway));
    let mut sample = form.text("sample");
    drop(form);
    let nesting = gateway.settings.limits.nesting;
    let mut faults = FormErrors::default();
    if name.is_empty() {
        faults.add("name", "the name is missing; enter what the objects are, such as Pump");
    }
    if sample.trim().is_empty() {
        faults.add("sample", "the sample is missing: paste JSON as the plant system sends it");
    }
    let mut derived = None;
    if faults.each().next().is_none() {
        let names = (name.clone(), vocabulary.clone());
        let guessed;
        (guessed, sample) = run_blocking(move || {
            let names = MappingNames { business_object: &names.0, vocabulary: &names.1 };
            Ok(derive_from_text(names, sample, nesting))
        })
        .await?;
        match guessed {
            Ok(guessed) => derived = Some(guessed),
            Err((field, error)) => faults.add(field, &error.detail),
        }
    }
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let Some(derived) = derived else {
        "No mapping could be derived.".clone_into(&mut faults.detail);
        let page = Page { frame, called: name, vocabulary, sample, faults };
        frame::show_page_with_status(res, depot, StatusCode::UNPROCESSABLE_ENTITY, &page);
        return Ok(());
    };
    let draft = Draft { name, enabled: true, config: derived.config, sample, ..Draft::default() };
    let (draft, known, checked) = editor::check_draft(gateway, draft).await?;
    let page = Editor::for_new(frame, draft, known, checked);
    frame::show_page(res, depot, &Editor { notes: derived.notes, ..page });
    Ok(())
}

/// Derives a mapping from the sample. Returns the sample too, or the part of it that was used. An error has
/// the name of the form's field that it belongs to.
fn derive_from_text(
    names: MappingNames<'_>,
    text: String,
    nesting: usize,
) -> (Result<DerivedMapping, (&'static str, GatewayError)>, String) {
    let sample = match derive::read_samples(&text, nesting) {
        Ok(sample) => sample,
        Err(error) => return (Err(("sample", error)), text),
    };
    match derive::derive_mapping(names, &sample.objects) {
        Err(error) => (Err((field_of_error(&error), error)), text),
        Ok(mut derived) => match derive::describe_sample(&sample) {
            None => (Ok(derived), text),
            Some(message) => {
                derived
                    .notes
                    .insert(0, DerivationNote { field: String::new(), message, misfit: false });
                (Ok(derived), format!("{:#}", Json::Array(sample.objects)))
            }
        },
    }
}

/// Returns the name of the form's field that an error of the derivation belongs to.
fn field_of_error(error: &GatewayError) -> &'static str {
    let is_vocabulary =
        |finding: &Finding| finding.place == Place::Pointer("/vocabulary".to_owned());
    if error.findings.iter().any(is_vocabulary) { "vocabulary" } else { "sample" }
}

/// Returns the default prefix of the IRIs of properties.
fn default_vocabulary(gateway: &Gateway) -> String {
    match &gateway.settings.base_url {
        Some(base_url) => format!("{}/vocabulary/", base_url.trim_end_matches('/')),
        None => gateway.catalogue.default_base("vocabulary"),
    }
}
