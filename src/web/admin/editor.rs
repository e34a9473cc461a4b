//! Creating and changing a Business Object.
use super::business_objects::describe_updater;
use super::check::{self, Checked};
use super::definitions::{deleted_error, taken_name_error};
use super::draft::{Draft, FIELDS};
use super::form::{FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::words;
use askama::Template;
use penstock_auth::Authorized;
use penstock_auth::Caller;
use penstock_base::Preconditions;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_model::derive::DerivationNote;
use penstock_model::resource::{BusinessObject, Definition};
use penstock_resources::business_object;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::Generator;
use penstock_service::business_objects::{
    BusinessObjects, NewBusinessObject, find_business_object,
};
use penstock_service::definitions::save;
use penstock_service::gateway::Gateway;
use penstock_service::targets::list_targets;
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

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
    /// The shapes graphs that have a check box.
    pub(super) shapes: Vec<String>,
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

/// The targets and the shapes graphs that have a check box, and what is known about a draft.
pub(super) struct DraftCheck {
    known: Vec<String>,
    shapes: Vec<String>,
    checked: Checked,
}

impl DraftCheck {
    /// Checks a draft.
    pub(super) async fn run(
        gateway: &Gateway,
        by: &Authorized,
        draft: &Draft,
    ) -> Result<Self, Problem> {
        let known = list_targets(gateway).await?.into_iter().map(|target| target.name).collect();
        let graphs = gateway.catalogue.list_shapes_graphs();
        let mut shapes: Vec<String> =
            graphs.iter().map(|graph| graph.metadata.name.clone()).collect();
        // One that does not exist is shown too, so that it can be removed.
        shapes.extend(
            draft
                .shapes()
                .iter()
                .filter(|name| !shapes.contains(name))
                .cloned()
                .collect::<Vec<_>>(),
        );
        Ok(Self { known, shapes, checked: check::check_draft(gateway, by, draft).await? })
    }
}

impl Editor {
    /// Creates the form of a new Business Object.
    pub(super) fn for_new(frame: Frame, draft: Draft, check: DraftCheck) -> Self {
        Self {
            frame,
            heading: "New Business Object".to_owned(),
            action: "/admin/business-objects/new".to_owned(),
            back: "/admin/business-objects".to_owned(),
            draft,
            known: check.known,
            shapes: check.shapes,
            checked: check.checked,
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
        check: DraftCheck,
    ) -> Self {
        let page = format!("/admin/business-objects/{}", object.id);
        Self {
            heading: format!("Edit {}", object.definition.name),
            action: format!("{page}/edit"),
            back: page,
            ..Self::for_new(frame, draft, check)
        }
    }

    /// Returns the targets of the draft that have no check box.
    fn others(&self) -> String {
        let all = self.draft.definition.push_targets.iter().map(|target| &target.bucket_name);
        let mut others: Vec<&str> =
            all.filter(|name| !self.known.contains(name)).map(String::as_str).collect();
        others.sort_unstable();
        others.join(", ")
    }
}

/// The choices of the mode of the validation.
const MODES: [(&str, &str); 3] = [
    ("off", "Off: objects are not validated"),
    ("warn", "Warn: the answer has a warning"),
    ("reject", "Reject: the request is refused"),
];

/// The choices of the review.
const REVIEWS: [(&str, &str); 3] = [
    ("off", "Off: never"),
    ("optional", "Optional: if the request asks for it"),
    ("required", "Required: always"),
];

/// Shows an empty form.
#[handler]
pub(crate) async fn show_new_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let definition = Definition { enabled: true, ..Definition::default() };
    let draft = Draft { definition, ..Draft::default() };
    let check = DraftCheck::run(&gateway(depot)?, caller(depot), &draft).await?;
    Ok(PageReply::show(&Editor::for_new(frame, draft, check)))
}

/// Shows the form of an existing Business Object.
#[handler]
pub(crate) async fn show_editor(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let there = find_business_object(&gateway, path_parameter(req, "id"))?;
    let frame = frame_for_existing(req, depot, &there.object);
    let draft = Draft::from_business_object(&there.object);
    let check = DraftCheck::run(&gateway, caller(depot), &draft).await?;
    Ok(PageReply::show(&Editor::for_existing(frame, &there.object, draft, check)))
}

/// Creates a Business Object, or checks the form.
#[handler]
pub(crate) async fn create_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let only_checks = form.is_ticked("check");
    let draft = Draft::from_form(&form);
    drop(form);
    let mut refused = None;
    if !only_checks {
        let new = NewBusinessObject { new: draft.to_definition(), replaced: None, force: false };
        match save::<BusinessObjects>(&gateway, by, new, Preconditions::ONLY_IF_NEW).await {
            Ok(put) => return Ok(redirect_saved(put.value(), "was created")),
            Err(error) if error.class == ErrorClass::PreconditionFailed => {
                refused = Some(taken_name_error(DefinitionKind::BusinessObject));
            }
            Err(error) => refused = Some(error),
        }
    }
    let check = DraftCheck::run(&gateway, by, &draft).await?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    Ok(show_again(Editor::for_new(frame, draft, check), refused))
}

/// Saves the changes to a Business Object, or checks the form.
#[handler]
pub(crate) async fn save_business_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let id = path_parameter(req, "id");
    let (only_checks, force) = (form.is_ticked("check"), form.is_ticked("force"));
    let if_match = form.if_match();
    let mut draft = Draft::from_form(&form);
    drop(form);
    let (mut refused, mut changed) = (None, None);
    // Without it, somebody has deleted it since the form was loaded.
    let mut there = gateway.catalogue.get(id);
    if let Some(object) = there.as_ref().filter(|_| !only_checks) {
        let replaced = Some(object.object.id.clone());
        let new = NewBusinessObject { new: draft.to_definition(), replaced, force };
        match save::<BusinessObjects>(&gateway, by, new, if_match.into()).await {
            Ok(put) => return Ok(redirect_saved(put.value(), "was saved")),
            Err(error) => {
                there = gateway.catalogue.get(id);
                if let Some(now) = &there
                    && error.class == ErrorClass::PreconditionFailed
                {
                    changed = Some(Changed::compare(&gateway, by, &now.object, &draft));
                    draft.version = Some(now.object.version);
                }
                refused = Some(error);
            }
        }
    }
    let page = if let Some(there) = there {
        let check = DraftCheck::run(&gateway, by, &draft).await?;
        let frame = frame_for_existing(req, depot, &there.object);
        Editor::for_existing(frame, &there.object, draft, check)
    } else {
        refused = Some(deleted_error(DefinitionKind::BusinessObject));
        let draft = Draft { id: String::new(), version: None, ..draft };
        let check = DraftCheck::run(&gateway, by, &draft).await?;
        Editor::for_new(Frame::new(req, depot, Section::BusinessObjects), draft, check)
    };
    Ok(show_again(Editor { changed, ..page }, refused))
}

/// Creates the frame of the form of a Business Object, which names its file if it cannot be changed here.
fn frame_for_existing(req: &Request, depot: &Depot, object: &BusinessObject) -> Frame {
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    frame.with_source_of(depot, DefinitionKind::BusinessObject, &object.definition.name)
}

fn redirect_saved(saved: &business_object::BusinessObject, done: &str) -> PageReply {
    let business_object::BusinessObject { id, definition, created_namespaces, .. } = saved;
    let mut words = format!("{} {done}.", definition.name);
    if !created_namespaces.is_empty() {
        words.push_str(" Created namespaces: ");
        words.push_str(&created_namespaces.join(", "));
        words.push('.');
    }
    PageReply::redirect(format!("/admin/business-objects/{id}"), words)
}

/// Shows the form again, with the error if the definition was refused.
fn show_again(mut page: Editor, refused: Option<GatewayError>) -> PageReply {
    let mut status = StatusCode::OK;
    if let Some(error) = refused {
        page.needs_confirmation = error.class == ErrorClass::Unconfirmed;
        page.faults = describe_refusal(error);
        status = page.faults.status;
    }
    PageReply::show_with_status(status, &page)
}

/// Returns the errors of a form whose definition was refused.
fn describe_refusal(mut error: GatewayError) -> FormErrors {
    let class = error.class;
    let count = error.findings.len();
    if class == ErrorClass::Unconfirmed {
        // The API names a parameter, the page has a button.
        error.findings.clear();
        error.detail = format!(
            "Nothing was saved: {}. Check the mapping and the conditions, or save it anyway.",
            error.detail
        );
    }
    // The check shows the errors of the mapping, at their lines.
    let mut faults =
        FormErrors::with_text(error, &FIELDS.map(|(name, ..)| name), "config", "the mapping");
    let summary = match (class, count) {
        (ErrorClass::PreconditionFailed, 0) => {
            "Another user has changed this Business Object in the meantime. Your changes are not saved yet."
        }
        (ErrorClass::Unconfirmed, _) | (_, 0) => "",
        (_, 1) => "One field has an error.",
        (_, _) => "Some fields have errors.",
    };
    if !summary.is_empty() {
        summary.clone_into(&mut faults.detail);
    }
    faults
}

impl Changed {
    fn compare(gateway: &Gateway, by: &Caller, now: &BusinessObject, draft: &Draft) -> Self {
        let updater =
            describe_updater(gateway, by, now).unwrap_or_else(|| "another user".to_owned());
        let stored = Draft::from_business_object(now);
        let fields = FIELDS.iter().map(|(_, label, show)| (*label, show(&stored), show(draft)));
        let fields = fields.filter(|(_, stored, yours)| stored != yours).collect();
        Self { by: updater, at: words::format_utc(&now.updated_at), fields }
    }
}

#[cfg(test)]
mod tests {
    use penstock_model::mapping::KINDS;

    #[test]
    fn the_editor_names_every_type_of_a_mapping() {
        let page = include_str!("../templates/admin/editor.html");
        let script = include_str!("../templates/admin/complete.js");
        let kinds = KINDS.iter().map(|value| value.kind().name);
        for name in kinds.chain(["id", "object", "array", "group", "map"]) {
            assert!(page.contains(&format!("<code>{name}</code>")), "{name}");
            assert!(script.contains(&format!("'{name}'")), "{name}");
        }
    }
}
