//! Derives a new Business Object from a pasted sample.
use super::draft::Draft;
use super::editor::{DraftCheck, Editor};
use super::form::{FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use askama::Template;
use penstock_auth::Authorized;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_model::derive::DerivedMapping;
use penstock_model::resource::Definition;
use penstock_service::business_objects::{Derivation, default_vocabulary, derive_mapping};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "admin/derive.html")]
struct Page {
    frame: Frame,
    /// The name of the new Business Object.
    called: String,
    vocabulary: String,
    sample: Arc<str>,
    faults: FormErrors,
}

/// Shows the form.
#[handler]
pub(crate) async fn show_sample_form(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let page = Page {
        vocabulary: default_vocabulary(&gateway(depot)?),
        frame: Frame::new(req, depot, Section::BusinessObjects),
        called: String::new(),
        sample: Arc::default(),
        faults: FormErrors::default(),
    };
    Ok(PageReply::show(&page))
}

/// Derives the mapping, and shows it in the editor.
#[handler]
pub(crate) async fn derive_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let name = form.trimmed("name").unwrap_or_default();
    let vocabulary = form.trimmed("vocabulary").unwrap_or_else(|| default_vocabulary(&gateway));
    let sample: Arc<str> = form.text("sample").into();
    drop(form);
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let by = caller(depot);
    Ok(match derive(&gateway, by, &name, &vocabulary, &sample).await? {
        Ok(Derivation { mapping: DerivedMapping { config, notes, .. }, used_part }) => {
            let sample = used_part.map_or(sample, Into::into);
            let definition = Definition { name, enabled: true, config, ..Definition::default() };
            let draft = Draft { definition, sample, ..Draft::default() };
            let check = DraftCheck::run(&gateway, by, &draft).await?;
            PageReply::show(&Editor { notes, ..Editor::for_new(frame, draft, check) })
        }
        Err(mut faults) => {
            "No mapping could be derived.".clone_into(&mut faults.detail);
            let page = Page { frame, called: name, vocabulary, sample, faults };
            PageReply::show_with_status(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
    })
}

/// Derives the mapping. The inner errors are those of the form.
async fn derive(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    vocabulary: &str,
    sample: &Arc<str>,
) -> Result<Result<Derivation, FormErrors>, Problem> {
    let mut faults = FormErrors::default();
    if name.is_empty() {
        faults.add("name", "the name is missing; enter what the objects are, such as Pump");
    }
    if sample.trim().is_empty() {
        faults
            .add("sample", "the sample is missing: paste JSON or CSV as the plant system sends it");
    }
    if faults.each().next().is_some() {
        return Ok(Err(faults));
    }
    let (name, vocabulary) = (name.to_owned(), vocabulary.to_owned());
    match derive_mapping(gateway, by, name, vocabulary, sample.clone()).await {
        Ok(derivation) => Ok(Ok(derivation)),
        Err(error) if error.class == ErrorClass::Internal => Err(error.into()),
        Err(error) => {
            faults.add(field_of_error(&error), &error.detail);
            Ok(Err(faults))
        }
    }
}

/// Returns the name of the form's field that an error of the derivation belongs to.
fn field_of_error(error: &GatewayError) -> &'static str {
    let is_vocabulary =
        |finding: &Finding| finding.place == Place::Pointer("/vocabulary".to_owned());
    if error.findings.iter().any(is_vocabulary) { "vocabulary" } else { "sample" }
}
