//! The pages of a kind of definitions: the list, the form of a new one and of one that exists, and the deletion. What the
//! kinds differ in is in [`DefinitionPages`]. Business Objects have an editor of their own.
use super::form::{Form, FormErrors, NOT_SAVED, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::pager::Pager;
use askama::Template;
use penstock_auth::Authorized;
use penstock_base::Preconditions;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_http::caller::caller;
use penstock_http::parameters::page_of;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, TextCursor};
use penstock_http::state::gateway;
use penstock_resources::definitions::DefinitionKind;
use penstock_service::definitions::{self, Kind};
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, handler};
use std::marker::PhantomData;

/// Rows of one page of a list.
const ROWS_PER_PAGE: usize = 100;

/// What the pages of a kind of definitions differ in.
pub(crate) trait DefinitionPages: Kind {
    /// The section of the pages.
    const SECTION: Section;
    /// The address of the list, without the prefix. A definition has its page below it.
    const PATH: &'static str;
    /// The fields that can have errors.
    const FIELDS: &'static [&'static str];
    /// The field whose errors have lines, which are listed below it.
    const TEXT_FIELD: Option<&'static str> = None;
    /// What the notice says was done with a definition that existed.
    const SAVED: &'static str = "saved";
    /// Whether the list is shown after a change, not the page of the definition.
    const SHOWS_LIST_AFTER_SAVING: bool = false;
    /// What the page of a definition shows.
    type Details: Send;

    /// Reads what the page of a definition shows.
    fn read_details(
        view: &View,
        name: &str,
    ) -> impl Future<Output = Result<Self::Details, GatewayError>> + Send;

    /// Returns the fields of the form of a new definition.
    fn new_form() -> Form;

    /// Returns the fields of the form of a definition that exists.
    fn fill_form(view: &View, details: &Self::Details) -> Form;

    /// Reads the definition with this name in a form.
    fn read_form(name: &str, form: &Form) -> Result<Self::New, GatewayError>;

    /// Builds the list.
    fn build_list(view: View, rows: Vec<Self::Shown>, pager: Pager) -> impl Template;

    /// Builds the page with the form; without `details` of a new definition.
    fn build_form(
        view: View,
        details: Option<Self::Details>,
        filled: Form,
        faults: FormErrors,
    ) -> impl Template;

    /// Returns what the deletion of a definition means, or why it cannot be deleted.
    fn describe_deletion(view: &View, shown: &Self::Shown) -> Result<Vec<TextPart>, String>;
}

/// A part of a sentence.
pub(crate) enum TextPart {
    Plain(String),
    /// A name, in bold.
    Strong(String),
    /// An IRI.
    Code(String),
}

/// Who views a page, and its frame.
pub(crate) struct View {
    pub(super) gateway: Gateway,
    pub(super) by: Authorized,
    pub(super) frame: Frame,
}

impl View {
    fn new<K: DefinitionPages>(req: &Request, depot: &Depot) -> Result<Self, Problem> {
        let frame = Frame::new(req, depot, K::SECTION);
        Ok(Self { gateway: gateway(depot)?, by: caller(depot).clone(), frame })
    }

    /// Returns the view of a page of the definition with this name.
    fn for_definition<K: DefinitionPages>(
        req: &Request,
        depot: &Depot,
        name: &str,
    ) -> Result<Self, Problem> {
        let view = Self::new::<K>(req, depot)?;
        Ok(Self { frame: view.frame.with_source_of(depot, K::KIND, name), ..view })
    }
}

/// A page of a kind of definitions, or what one of its forms does.
pub(crate) struct DefinitionPage<K> {
    action: Action,
    kind: PhantomData<fn() -> K>,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    List,
    ShowNew,
    Create,
    Show,
    Save,
    ConfirmDeletion,
    Delete,
}

impl<K> DefinitionPage<K> {
    /// Shows the list.
    pub(crate) const LIST: Self = Self::new(Action::List);
    /// Shows the form for a new definition.
    pub(crate) const SHOW_NEW: Self = Self::new(Action::ShowNew);
    /// Creates a definition.
    pub(crate) const CREATE: Self = Self::new(Action::Create);
    /// Shows a definition.
    pub(crate) const SHOW: Self = Self::new(Action::Show);
    /// Changes a definition.
    pub(crate) const SAVE: Self = Self::new(Action::Save);
    /// Asks for confirmation before a definition is deleted.
    pub(crate) const CONFIRM_DELETION: Self = Self::new(Action::ConfirmDeletion);
    /// Deletes a definition.
    pub(crate) const DELETE: Self = Self::new(Action::Delete);

    const fn new(action: Action) -> Self {
        Self { action, kind: PhantomData }
    }
}

#[handler]
impl<K: DefinitionPages> DefinitionPage<K> {
    async fn handle(&self, req: &mut Request, depot: &mut Depot) -> PageResult {
        match self.action {
            Action::List => list::<K>(req, depot).await,
            Action::ShowNew => {
                Query::read(req, &[])?;
                let view = View::new::<K>(req, depot)?;
                Ok(show_form::<K>(view, None, K::new_form(), FormErrors::default()))
            }
            Action::Create => create::<K>(req, depot).await,
            Action::Show => show::<K>(req, depot).await,
            Action::Save => save::<K>(req, depot).await,
            Action::ConfirmDeletion => confirm_deletion::<K>(req, depot).await,
            Action::Delete => delete::<K>(req, depot).await,
        }
    }
}

#[derive(Template)]
#[template(path = "admin/definition_delete.html")]
struct Deletion {
    frame: Frame,
    label: &'static str,
    name: String,
    version: Option<u64>,
    /// The address of its page, without the prefix.
    path: String,
    /// What the deletion means, or why it is not possible.
    effect: Result<Vec<TextPart>, String>,
}

/// Returns the address of the page of a definition, without the prefix.
fn page_path<K: DefinitionPages>(name: &str) -> String {
    format!("{}/{}", K::PATH, encode_segment(name))
}

async fn list<K: DefinitionPages>(req: &Request, depot: &Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let after = query.read_cursor::<TextCursor>()?;
    let view = View::new::<K>(req, depot)?;
    let rows = definitions::list::<K>(&view.gateway, &view.by, after, ROWS_PER_PAGE + 1).await?;
    let name = |shown: &K::Shown| K::name(shown).to_owned();
    let page = page_of(rows, ROWS_PER_PAGE, name);
    let pager = Pager::for_query(&view.frame, K::PATH, &query, page.next.as_deref());
    Ok(PageReply::show(&K::build_list(view, page.items, pager)))
}

fn show_form<K: DefinitionPages>(
    view: View,
    details: Option<K::Details>,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let status = faults.status;
    PageReply::show_with_status(status, &K::build_form(view, details, filled, faults))
}

async fn create<K: DefinitionPages>(req: &Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let view = View::new::<K>(req, depot)?;
    let name = form.trimmed("name").unwrap_or_default();
    Ok(match put::<K>(&view, &name, &form, Preconditions::ONLY_IF_NEW).await {
        Ok(()) => {
            PageReply::redirect(K::PATH, format!("The {} {name} was created.", K::KIND.label()))
        }
        Err(error) => show_form::<K>(view, None, form, describe_refusal::<K>(error, true)),
    })
}

async fn show<K: DefinitionPages>(req: &Request, depot: &Depot) -> PageResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let view = View::for_definition::<K>(req, depot, name)?;
    let details = K::read_details(&view, name).await?;
    let filled = K::fill_form(&view, &details);
    Ok(show_form::<K>(view, Some(details), filled, FormErrors::default()))
}

async fn save<K: DefinitionPages>(req: &Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let name = path_parameter(req, "name");
    let view = View::for_definition::<K>(req, depot, name)?;
    Ok(match put::<K>(&view, name, &form, form.if_match().into()).await {
        Ok(()) => {
            let words = format!("The {} {name} was {}.", K::KIND.label(), K::SAVED);
            let page = page_path::<K>(name);
            let next: &str = if K::SHOWS_LIST_AFTER_SAVING { K::PATH } else { &page };
            PageReply::redirect(next, words)
        }
        Err(error) => match K::read_details(&view, name).await {
            Ok(details) => {
                show_form::<K>(view, Some(details), form, describe_refusal::<K>(error, false))
            }
            Err(gone) if gone.class == ErrorClass::NotFound => {
                let faults = FormErrors::from_error(deleted_error(K::KIND), &[]);
                show_form::<K>(view, None, form.with_value("name", name), faults)
            }
            Err(error) => return Err(error.into()),
        },
    })
}

async fn put<K: DefinitionPages>(
    view: &View,
    name: &str,
    form: &Form,
    conditions: Preconditions,
) -> Result<(), GatewayError> {
    let new = K::read_form(name, form)?;
    definitions::save::<K>(&view.gateway, &view.by, new, conditions).await.map(drop)
}

async fn confirm_deletion<K: DefinitionPages>(req: &Request, depot: &Depot) -> PageResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let view = View::for_definition::<K>(req, depot, name)?;
    let shown = definitions::find::<K>(&view.gateway, &view.by, name).await?;
    Ok(PageReply::show(&Deletion {
        label: K::KIND.label(),
        name: K::name(&shown).to_owned(),
        version: K::version(&shown),
        path: page_path::<K>(name),
        effect: K::describe_deletion(&view, &shown),
        frame: view.frame,
    }))
}

async fn delete<K: DefinitionPages>(req: &Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let name = path_parameter(req, "name");
    let view = View::new::<K>(req, depot)?;
    let (gateway, by) = (&view.gateway, &view.by);
    match definitions::delete::<K>(gateway, by, name, form.if_match().into()).await {
        Ok(()) => {
            let words = format!("The {} {name} was deleted.", K::KIND.label());
            Ok(PageReply::redirect(K::PATH, words))
        }
        Err(error) if error.class == ErrorClass::NotFound => Err(error.into()),
        Err(error) => Ok(PageReply::redirect_with_error(page_path::<K>(name), error.detail)),
    }
}

/// Returns the error of a name that is not valid.
pub(super) fn refuse_name(why: String) -> GatewayError {
    let findings = vec![Finding::at_pointer("/name", why)];
    GatewayError::with_findings(ErrorClass::Invalid, NOT_SAVED, findings)
}

/// Returns the error of a new definition whose name is taken.
pub(super) fn taken_name_error(kind: DefinitionKind) -> GatewayError {
    let label = kind.label();
    let message = format!("this name is taken already; choose another one, or edit that {label}");
    let findings = vec![Finding::at_pointer("/name", message)];
    GatewayError::with_findings(ErrorClass::PreconditionFailed, NOT_SAVED, findings)
}

/// Returns the error of a form whose definition is deleted. The page then has the form of a new one, with what was typed.
pub(super) fn deleted_error(kind: DefinitionKind) -> GatewayError {
    let label = kind.label();
    let detail = format!(
        "Another user has deleted this {label} in the meantime. Your changes are not saved. Create it again, or copy what \
         you want to keep."
    );
    GatewayError::new(ErrorClass::Conflict, detail)
}

/// Describes why a form was refused whose version is no longer the stored one. The form keeps its version, so that sending
/// it again overwrites nothing either.
pub(super) fn describe_conflict(label: &str) -> String {
    format!(
        "Another user has changed this {label} in the meantime. Your changes are not saved. Copy them, and open the page \
         again."
    )
}

/// Returns the errors of a definition that was refused.
fn describe_refusal<K: DefinitionPages>(mut error: GatewayError, is_new: bool) -> FormErrors {
    let label = K::KIND.label();
    match error.class {
        ErrorClass::PreconditionFailed if is_new => error = taken_name_error(K::KIND),
        ErrorClass::PreconditionFailed => {
            error.detail = describe_conflict(label);
        }
        ErrorClass::Invalid if !error.findings.is_empty() => {
            NOT_SAVED.clone_into(&mut error.detail);
        }
        _ => {}
    }
    for finding in &mut error.findings {
        if finding.place == Place::Pointer(String::new()) {
            finding.place = Place::Pointer("/name".to_owned());
        }
    }
    match K::TEXT_FIELD {
        Some(field) => FormErrors::with_text(error, K::FIELDS, field, "it"),
        None => FormErrors::from_error(error, K::FIELDS),
    }
}
