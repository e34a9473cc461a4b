//! Creating and changing a Business Object.
use super::check::{self, Checked};
use super::draft::{Draft, FIELDS};
use super::form::{Form, FormErrors, take_form};
use super::frame::{self, Frame, Section};
use super::words;
use askama::Template;
use penstock_api::business_objects::{
    define_business_object, find_business_object, redefine_business_object,
};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::{gateway, run_blocking, state};
use penstock_model::derive::DerivationNote;
use penstock_model::namespace::Generator;
use penstock_model::resource::{BusinessObject, Compiled};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "admin/editor.html")]
pub(super) struct Editor {
    pub(super) frame: Frame,
    pub(super) heading: String,
    /// The path that the form is sent to, without the prefix.
    pub(super) action: String,
    /// The page to which Cancel leads, without the prefix.
    pub(super) back: String,
    pub(super) draft: Draft,
    /// The targets that have a check box.
    pub(super) known: Vec<String>,
    pub(super) checked: Checked,
    pub(super) faults: FormErrors,
    /// What to review in a derived mapping.
    pub(super) notes: Vec<DerivationNote>,
    /// What another user has changed in the meantime.
    pub(super) changed: Option<Changed>,
    /// Whether saving needs a confirmation.
    pub(super) needs_confirmation: bool,
}

/// What another user has changed since the form was loaded.
pub(super) struct Changed {
    by: String,
    at: String,
    /// The differences: the field, its stored value, and its value in the form.
    fields: Vec<(&'static str, String, String)>,
}

/// Returns the existing targets, each of which has a check box.
pub(super) fn list_targets(gateway: &Gateway) -> Result<Vec<String>, GatewayError> {
    Ok(gateway.exporter.list_targets()?.into_iter().map(|target| target.name).collect())
}

impl Editor {
    /// Creates the form of a new Business Object.
    pub(super) fn for_new(
        frame: Frame,
        draft: Draft,
        known: Vec<String>,
        checked: Checked,
    ) -> Self {
        Self {
            frame,
            heading: "New Business Object".to_owned(),
            action: "/admin/business-objects/new".to_owned(),
            back: "/admin/business-objects".to_owned(),
            draft,
            known,
            checked,
            faults: FormErrors::default(),
            notes: Vec::new(),
            changed: None,
            needs_confirmation: false,
        }
    }

    /// Creates the form of an existing Business Object.
    fn for_existing(
        frame: Frame,
        object: &BusinessObject,
        draft: Draft,
        known: Vec<String>,
        checked: Checked,
    ) -> Self {
        let page = format!("/admin/business-objects/{}", object.id);
        Self {
            heading: format!("Edit {}", object.definition.name),
            action: format!("{page}/edit"),
            back: page,
            ..Self::for_new(frame, draft, known, checked)
        }
    }

    /// Returns the targets of the draft that have no check box.
    fn others(&self) -> String {
        let others = self.draft.targets.iter().filter(|name| !self.known.contains(name));
        others.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// Shows an empty form.
#[handler]
pub(crate) async fn new(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let known = run_blocking(move || Ok(list_targets(&gateway)?)).await?;
    let draft = Draft { enabled: true, ..Draft::default() };
    frame::show_page(res, depot, &Editor::for_new(frame, draft, known, Checked::default()));
    Ok(())
}

/// Shows the form of an existing Business Object.
#[handler]
pub(crate) async fn edit(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let there = find_business_object(req, &gateway)?;
    let draft = Draft::from_business_object(&there.object);
    let (draft, known, checked) = check_draft(gateway, draft).await?;
    frame::show_page(
        res,
        depot,
        &Editor::for_existing(frame, &there.object, draft, known, checked),
    );
    Ok(())
}

/// Creates a Business Object.
#[handler]
pub(crate) async fn create(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let form = take_form(depot);
    let (state, gateway) = (state(depot), gateway(depot)?);
    if form.is_ticked("check") {
        let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
        let (draft, known, checked) = check_form(gateway, form).await?;
        frame::show_page(res, depot, &Editor::for_new(frame, draft, known, checked));
        return Ok(());
    }
    let one_at_a_time = state.creation_lock.lock().await;
    let by = caller(depot).clone();
    let (gateway, draft, saved) = run_blocking(move || {
        let draft = read_draft(&form, &gateway)?;
        let taken = gateway.catalogue.get(&draft.name);
        let saved = if taken.is_some_and(|there| there.object.definition.name == draft.name) {
            let message = "this name is taken; choose another one, or edit that Business Object";
            let found = vec![Finding::at_pointer("/name", message)];
            Err(GatewayError::with_findings(ErrorClass::Conflict, "The name is taken.", found))
        } else {
            define_business_object(&gateway, &by, false, &draft.to_body(), IfMatch::Any)
                .map(|(compiled, _)| compiled)
        };
        Ok((gateway, draft, saved))
    })
    .await?;
    drop(one_at_a_time);
    match saved {
        Ok(compiled) => redirect_saved(&compiled, "was created", depot, res),
        Err(error) => {
            let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
            let (draft, known, checked) = check_draft(gateway, draft).await?;
            show_errors(Editor::for_new(frame, draft, known, checked), error, depot, res);
        }
    }
    Ok(())
}

/// Saves the changes to a Business Object.
#[handler]
pub(crate) async fn save(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let there = find_business_object(req, &gateway)?;
    if form.is_ticked("check") {
        let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
        let (draft, known, checked) = check_form(gateway, form).await?;
        frame::show_page(
            res,
            depot,
            &Editor::for_existing(frame, &there.object, draft, known, checked),
        );
        return Ok(());
    }
    let by = caller(depot).clone();
    let force = form.is_ticked("force");
    let id = there.object.id.clone();
    let (gateway, draft, saved) = run_blocking(move || {
        let draft = read_draft(&form, &gateway)?;
        let if_match = draft.version.map_or(IfMatch::Exists, IfMatch::Version);
        let saved = redefine_business_object(&gateway, &by, force, &id, &draft.to_body(), if_match);
        Ok((gateway, draft, saved))
    })
    .await?;
    match saved {
        Ok(compiled) => redirect_saved(&compiled, "was saved", depot, res),
        Err(error) => {
            let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
            let now = find_business_object(req, &gateway)?;
            let changed = (error.class == ErrorClass::PreconditionFailed)
                .then(|| Changed::compare(&gateway, &now.object, &draft));
            let (mut draft, known, checked) = check_draft(gateway, draft).await?;
            if changed.is_some() {
                draft.version = Some(now.object.version);
            }
            let page = Editor::for_existing(frame, &now.object, draft, known, checked);
            show_errors(Editor { changed, ..page }, error, depot, res);
        }
    }
    Ok(())
}

fn read_draft(form: &Form, gateway: &Gateway) -> Result<Draft, GatewayError> {
    Ok(Draft::from_form(form, &list_targets(gateway)?))
}

/// Returns the content of the form with the result of its check.
async fn check_form(
    gateway: Gateway,
    form: Form,
) -> Result<(Draft, Vec<String>, Checked), Problem> {
    let read = gateway.clone();
    let draft = run_blocking(move || Ok(read_draft(&form, &read)?)).await?;
    check_draft(gateway, draft).await
}

/// Returns a draft with the result of its check.
pub(super) async fn check_draft(
    gateway: Gateway,
    draft: Draft,
) -> Result<(Draft, Vec<String>, Checked), Problem> {
    run_blocking(move || {
        let checked = check::check_draft(&gateway, &draft);
        Ok((draft, list_targets(&gateway)?, checked))
    })
    .await
}

fn redirect_saved(compiled: &Arc<Compiled>, done: &str, depot: &Depot, res: &mut Response) {
    let BusinessObject { id, definition, created_namespaces, .. } = &compiled.object;
    let mut words = format!("{} {done}.", definition.name);
    if !created_namespaces.is_empty() {
        words.push_str(" Created namespaces: ");
        words.push_str(&created_namespaces.join(", "));
        words.push('.');
    }
    frame::redirect_with_notice(res, depot, &format!("/admin/business-objects/{id}"), &words);
}

/// Shows the form again with its errors.
fn show_errors(mut page: Editor, mut error: GatewayError, depot: &Depot, res: &mut Response) {
    let all = error.findings.len();
    // The errors of the mapping are shown at their lines, below it.
    error.findings.retain(|finding| !matches!(finding.place, Place::Line { .. }));
    let of_mapping = all - error.findings.len();
    let conflict = error.class == ErrorClass::PreconditionFailed;
    page.needs_confirmation = error.class == ErrorClass::Unconfirmed;
    if page.needs_confirmation {
        // The API names a parameter, the page has a button.
        error.findings.clear();
        error.detail.insert_str(0, "Nothing was saved: ");
        error.detail.push_str(". Check the mapping and the conditions, or save it anyway.");
    }
    let several = all > 1;
    let mut faults = FormErrors::from_problem(&Problem::from(error), FIELDS);
    if conflict {
        "Another user has changed this Business Object in the meantime. Your changes are not saved yet."
            .clone_into(&mut faults.detail);
    } else if all > 0 && !page.needs_confirmation {
        let many = "Some fields have errors.";
        let one = "One field has an error.";
        (if several { many } else { one }).clone_into(&mut faults.detail);
    }
    if of_mapping > 0 {
        let words = words::format_count(of_mapping as u64, "error", "errors");
        faults.add("config", &format!("the mapping has {words}, listed below it"));
    }
    let status = faults.status;
    page.faults = faults;
    let status = if status.is_success() { StatusCode::UNPROCESSABLE_ENTITY } else { status };
    frame::show_page_with_status(res, depot, status, &page);
}

impl Changed {
    fn compare(gateway: &Gateway, now: &BusinessObject, draft: &Draft) -> Self {
        let account = now.updated_by.as_deref().and_then(|id| gateway.auth.accounts.get(id));
        let by = account.map_or_else(
            || now.updated_by.clone().unwrap_or_else(|| "another user".to_owned()),
            |account| words::display_name(&account),
        );
        let stored = Draft::from_business_object(now).field_values();
        let fields =
            stored.into_iter().zip(draft.field_values()).filter(|(stored, yours)| stored != yours);
        let fields = fields.map(|((name, stored), (_, yours))| (name, stored, yours)).collect();
        Self { by, at: words::format_utc(&now.updated_at), fields }
    }
}
