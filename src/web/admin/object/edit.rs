//! `/admin/object/edit`: changes an object in a form, and shows the difference before it is saved. Saving is an ingestion of
//! the mode MERGE with the fields that differ, and the condition that the object is as the form has shown it.
use super::change::{
    Difference, Obstacle, Target, new_form_key, new_request, preview, read_target,
    report_submitted, save,
};
use super::inputs::{FormItem, FormSource, InputKind, build_form};
use crate::admin::changes::difference::{ChangedField, list_changed_fields};
use crate::admin::form::{Form, take_form};
use crate::admin::frame::{Frame, PageReply, PageResult};
use crate::admin::menu::Section;
use askama::Template;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json};
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::ingest::{Answer, LockedFields, Mode, Preview, check_value_count};
use penstock_model::resource::Compiled;
use penstock_model::view::compute_etag;
use penstock_service::objects::{
    EditableObject, JSON_FIELD, MAX_EDITED_BYTES, UnreadText, add_at, apply_texts,
    build_merge_patch, merge_drafts, read_editable_object, remove_at, remove_empty, view_nesting,
};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// The maximum number of bytes of the form, which has the object, the draft, and each text of it.
pub(crate) const MAX_FORM_BYTES: u64 = 2 << 20;
/// The maximum number of bytes of a draft.
const MAX_DRAFT_BYTES: usize = 4 * MAX_EDITED_BYTES;

#[derive(Template)]
#[template(path = "admin/object/edit.html")]
struct Page {
    frame: Frame,
    target: Target,
    items: Vec<FormItem>,
    /// What is wrong, in one sentence; empty without errors.
    detail: String,
    /// The errors: the field, if it has one, and the message.
    errors: Vec<(Option<String>, String)>,
    /// What others have changed since the form was loaded.
    meanwhile: Vec<ChangedField>,
    base: String,
    draft: String,
}

#[derive(Template)]
#[template(path = "admin/object/review.html")]
struct ReviewPage {
    frame: Frame,
    target: Target,
    difference: Difference,
    base: String,
    draft: String,
    /// The key under which the form is sent only once.
    key: String,
}

/// A change of an object that a form asks for.
struct Edit {
    compiled: Arc<Compiled>,
    uri: String,
    /// The view of the object when the form was loaded.
    base: Json,
    /// The text of that view, whose digest is the entity tag.
    base_text: String,
    draft: Json,
    /// The texts of the form that are not JSON.
    unread: Vec<UnreadText>,
    /// The fields that the form cannot change, as far as the object could be read.
    locked: LockedFields,
    nesting: usize,
}

/// The limits of the JSON in a form.
#[derive(Debug, Clone, Copy)]
struct FormLimits {
    /// How deep it may nest.
    nesting: usize,
    /// The maximum number of values of each text.
    values: usize,
}

/// What a person asks for with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// To see the form again, perhaps with another row.
    Form,
    Review,
    Save,
}

/// What a form says besides its fields.
struct Remarks {
    status: StatusCode,
    detail: String,
    findings: Vec<Finding>,
    meanwhile: Vec<ChangedField>,
    /// The JSON Pointer of the field that a row was added to or removed from.
    changed_at: Option<String>,
}

impl Default for Remarks {
    fn default() -> Self {
        Self {
            status: StatusCode::OK,
            detail: String::new(),
            findings: Vec::new(),
            meanwhile: Vec::new(),
            changed_at: None,
        }
    }
}

impl Remarks {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), ..Self::default() }
    }

    /// Creates the remarks about a draft with errors.
    fn about_errors(error: GatewayError) -> Self {
        let status = Problem::from(error.clone()).status();
        let findings = match error.findings.as_slice() {
            [] => vec![Finding::at_pointer("", error.detail)],
            findings => findings.to_vec(),
        };
        Self { findings, ..Self::new(status, "This cannot be saved.") }
    }

    /// Creates the remarks about a problem that has nothing to do with the draft. Somebody who may no longer change the
    /// object sees no form.
    fn about_problem(problem: Problem) -> Result<Self, Problem> {
        match problem.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(problem),
            status => {
                let detail = format!("Nothing was saved: {}", problem.detail());
                Ok(Self::new(status, detail))
            }
        }
    }
}

/// Shows the form.
#[handler]
pub(crate) async fn show_editor(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (compiled, uri) = read_target(req, depot)?;
    let gateway = gateway(depot)?;
    let read = read_editable_object(&gateway, caller(depot), Arc::clone(&compiled), &uri).await?;
    let EditableObject { text: base_text, view: base, locked } = read;
    let (draft, unread) = (base.clone(), Vec::new());
    let nesting = view_nesting(&gateway);
    let edit = Edit { compiled, uri, base, base_text, draft, unread, locked, nesting };
    Ok(edit.show_form(req, depot, Remarks::default()))
}

/// Adds and removes rows, shows the difference, and saves.
#[handler]
pub(crate) async fn change_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let (compiled, uri) = read_target(req, depot)?;
    let gateway = gateway(depot)?;
    let now = read_editable_object(&gateway, caller(depot), Arc::clone(&compiled), &uri).await;
    let locked = now.as_ref().map(|now| now.locked.clone()).unwrap_or_default();
    let values = gateway.settings.limits.values;
    let limits = FormLimits { nesting: view_nesting(&gateway), values };
    let prepared = run_blocking(move || {
        let mut edit = Edit::from_form(compiled, uri, &form, locked, limits)?;
        let step = edit.take_step(&form.text("do"))?;
        let patch = if step == Step::Form { Ok(None) } else { edit.build_patch() };
        Ok((edit, step, patch, form))
    });
    let (edit, step, patch, form) = prepared.await?;
    let now = match now {
        Ok(now) => now,
        Err(error) => {
            let remarks = Remarks::about_problem(error.into())?;
            return Ok(edit.show_form(req, depot, remarks));
        }
    };
    if step == Step::Form {
        let remarks = if edit.unread.is_empty() {
            Remarks { changed_at: find_changed_field(&form.text("do")), ..Remarks::default() }
        } else {
            Remarks::new(StatusCode::UNPROCESSABLE_ENTITY, "Correct the JSON first.")
        };
        return Ok(edit.show_form(req, depot, remarks));
    }
    // The commit checks it too. A form that is sent twice has changed the object itself, and gets its answer again.
    if step == Step::Review && now.text != edit.base_text {
        return Ok(edit.show_outdated(req, depot, now));
    }
    match patch {
        Ok(Some(patch)) => edit.review_or_save(req, depot, &form, step, patch).await,
        Ok(None) => {
            let remarks = Remarks::new(StatusCode::OK, "Nothing is changed yet.");
            Ok(edit.show_form(req, depot, remarks))
        }
        Err(error) => Ok(edit.show_form(req, depot, Remarks::about_errors(error))),
    }
}

impl Edit {
    /// Reads what a form has sent.
    fn from_form(
        compiled: Arc<Compiled>,
        uri: String,
        form: &Form,
        locked: LockedFields,
        limits: FormLimits,
    ) -> Result<Self, Problem> {
        let (base_text, draft) = (form.text("base"), form.text("draft"));
        check_size(&base_text, MAX_EDITED_BYTES)?;
        check_size(&draft, MAX_DRAFT_BYTES)?;
        for text in [&*base_text, &*draft].into_iter().chain(form.texts_below(JSON_FIELD)) {
            check_value_count(text.as_bytes(), limits.values)?;
        }
        let nesting = limits.nesting;
        let base = json::parse(base_text.as_bytes(), nesting)?;
        let mut draft = json::parse(draft.as_bytes(), nesting)?;
        let texts = |name: &str| form.text_if_sent(name);
        let unread = apply_texts(&compiled.mapping.root, &mut draft, &texts, nesting);
        Ok(Self { compiled, uri, base, base_text, draft, unread, locked, nesting })
    }

    /// Does what a button of the form says. With a text that is not JSON, it only shows the form: a row that is removed would
    /// move the fields of such texts.
    fn take_step(&mut self, step: &str) -> Result<Step, Problem> {
        if !self.unread.is_empty() {
            return Ok(Step::Form);
        }
        let shape = &self.compiled.mapping.root;
        let taken = if let Some(pointer) = step.strip_prefix("add") {
            add_at(shape, &self.base, &mut self.draft, pointer);
            Step::Form
        } else if let Some(pointer) = step.strip_prefix("remove") {
            remove_at(shape, &mut self.draft, pointer);
            Step::Form
        } else {
            match step {
                "edit" => Step::Form,
                "save" => Step::Save,
                _ => Step::Review,
            }
        };
        if taken != Step::Form {
            remove_empty(shape, &mut self.draft);
        }
        // The next form sends it.
        check_size(&self.draft.to_string(), MAX_DRAFT_BYTES)?;
        Ok(taken)
    }

    /// Returns the object that a MERGE sends; `None` if nothing has changed.
    fn build_patch(&self) -> Result<Option<Json>, GatewayError> {
        let root = &self.compiled.mapping.root;
        build_merge_patch(root, &self.locked, &self.base, &self.draft)
    }

    /// Shows the difference, or saves it; shows the form again if that is not possible.
    async fn review_or_save(
        self,
        req: &Request,
        depot: &Depot,
        form: &Form,
        step: Step,
        patch: Json,
    ) -> PageResult {
        let body = Json::Object(vec![("data".to_owned(), Json::Array(vec![patch]))]).to_string();
        let request = new_request(req, depot, &self.compiled, Mode::Merge, form);
        let etag = compute_etag(self.base_text.as_bytes());
        let obstacle = if step == Step::Save {
            match save(depot, request, etag, body).await {
                Ok(answer) => return Ok(report_saved(&self.compiled, &self.uri, &answer)),
                Err(obstacle) => obstacle,
            }
        } else {
            match preview(depot, request, etag, body).await {
                Ok(preview) => return Ok(self.show_review(req, depot, preview)),
                Err(obstacle) => obstacle,
            }
        };
        match obstacle {
            Obstacle::Failed(problem) => {
                let remarks = Remarks::about_problem(problem)?;
                Ok(self.show_form(req, depot, remarks))
            }
            Obstacle::Invalid(error) => {
                Ok(self.show_form(req, depot, Remarks::about_errors(error)))
            }
            Obstacle::Outdated => {
                let (gateway, by) = (gateway(depot)?, caller(depot));
                let compiled = Arc::clone(&self.compiled);
                match read_editable_object(&gateway, by, compiled, &self.uri).await {
                    Ok(now) => Ok(self.show_outdated(req, depot, now)),
                    Err(error) => {
                        let remarks = Remarks::about_problem(error.into())?;
                        Ok(self.show_form(req, depot, remarks))
                    }
                }
            }
        }
    }

    /// Shows the form with what others have changed meanwhile.
    fn show_outdated(mut self, req: &Request, depot: &Depot, now: EditableObject) -> PageReply {
        let meanwhile = list_changed_fields(&self.base, &now.view);
        let root = &self.compiled.mapping.root;
        self.draft = merge_drafts(root, &self.base, &self.draft, &now.view);
        (self.base, self.base_text, self.locked) = (now.view, now.text, now.locked);
        let detail = "Somebody has changed the object meanwhile. Nothing was saved.";
        let remarks = Remarks::new(StatusCode::PRECONDITION_FAILED, detail);
        self.show_form(req, depot, Remarks { meanwhile, ..remarks })
    }

    fn show_form(self, req: &Request, depot: &Depot, remarks: Remarks) -> PageReply {
        let frame = Frame::new(req, depot, Section::BusinessObjects);
        let source = FormSource {
            locked: &self.locked,
            unread: &self.unread,
            changed_at: remarks.changed_at.as_deref(),
        };
        let form = build_form(&self.compiled.mapping.root, &self.draft, &remarks.findings, source);
        PageReply::show_with_status(
            remarks.status,
            &Page {
                target: Target::new(&frame, &self.compiled, &self.uri, &self.base),
                items: form.items,
                errors: form.errors,
                detail: remarks.detail,
                meanwhile: remarks.meanwhile,
                draft: self.draft.to_string(),
                base: self.base_text,
                frame,
            },
        )
    }

    fn show_review(self, req: &Request, depot: &Depot, preview: Preview) -> PageReply {
        let frame = Frame::new(req, depot, Section::BusinessObjects);
        PageReply::show(&ReviewPage {
            target: Target::new(&frame, &self.compiled, &self.uri, &self.base),
            difference: Difference::new(preview, &self.compiled, self.nesting, &frame),
            base: self.base_text,
            draft: self.draft.to_string(),
            key: new_form_key(),
            frame,
        })
    }
}

/// Checks the size of a part of the form before it is parsed.
fn check_size(text: &str, max_bytes: usize) -> Result<(), Problem> {
    if text.len() <= max_bytes {
        return Ok(());
    }
    let detail = format!(
        "the object has {} KiB of JSON, and this page sends at most {} KiB; change it with the API",
        text.len() >> 10,
        max_bytes >> 10
    );
    Err(GatewayError::new(ErrorClass::TooLarge, detail).into())
}

/// Returns the JSON Pointer of the field that a button adds a row to or removes one from.
fn find_changed_field(step: &str) -> Option<String> {
    if let Some(pointer) = step.strip_prefix("add") {
        return Some(pointer.to_owned());
    }
    let (field, last) = step.strip_prefix("remove")?.rsplit_once('/')?;
    last.parse::<usize>().is_ok().then(|| field.to_owned())
}

fn report_saved(compiled: &Compiled, uri: &str, answer: &Answer) -> PageReply {
    if answer.change.is_some() {
        return report_submitted(answer);
    }
    let id = &compiled.object.id;
    let path = format!("/admin/object?uri={}&view={}", encode_segment(uri), encode_segment(id));
    PageReply::redirect(path, "The object was saved.")
}
