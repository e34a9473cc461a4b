//! `/admin/groups`: groups of accounts.
use super::form::{Form, FormErrors, NOT_SAVED, take_form};
use super::frame::{Frame, PageReply, PageResult, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::Caller;
use penstock_auth::groups::{NewGroup, missing_group_error};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_base::principal::Principal;
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, TextCursor};
use penstock_http::state::gateway;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::group::Group;
use penstock_service::gateway::Gateway;
use penstock_service::groups;
use salvo::{Depot, Request, handler};
use serde_json::json;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The fields that can have errors.
const FIELDS: &[&str] = &["name", "members", "claimValues"];

#[derive(Template)]
#[template(path = "admin/groups.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

/// The form of a new or an existing group.
#[derive(Template)]
#[template(path = "admin/group.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    /// The stored group; `None` for a new one.
    row: Option<Row>,
    filled: Form,
}

#[derive(Template)]
#[template(path = "admin/group_delete.html")]
struct Deletion {
    frame: Frame,
    row: Row,
    /// The names of the Business Objects whose changes it approves.
    used_by: Vec<String>,
}

/// A group in the list.
struct Row {
    name: String,
    /// The address of its page, without the prefix.
    path: String,
    /// The emails of its accounts.
    members: Vec<String>,
    claim_values: Vec<String>,
    version: u64,
    changed: String,
    changed_by: String,
}

impl Row {
    /// Converts a group that an Admin sees.
    fn from_group(group: Group, gateway: &Gateway, by: &Caller) -> Option<Self> {
        Some(Self {
            path: page_path(&group.name),
            name: group.name,
            members: group.members?.iter().map(|id| name_member(gateway, id)).collect(),
            claim_values: group.claim_values?,
            version: group.version?,
            changed: words::format_minute(&group.updated_at?),
            changed_by: words::name_actor(gateway, by, &group.updated_by?),
        })
    }

    fn fill_form(&self) -> Form {
        Form::with_values([
            ("members", Some(self.members.join("\n"))),
            ("claimValues", Some(self.claim_values.join("\n"))),
            ("version", Some(self.version.to_string())),
        ])
    }
}

/// Returns the email of an account, or its id if other accounts have the email too.
fn name_member(gateway: &Gateway, id: &str) -> String {
    let accounts = &gateway.auth.accounts;
    let email = accounts.get(id).map(|account| account.email.clone()).unwrap_or_default();
    let is_unique = accounts.find_user(&email).is_some_and(|account| account.id == id);
    if is_unique { email } else { id.to_owned() }
}

/// Returns the address of the page of a group, without the prefix.
fn page_path(name: &str) -> String {
    format!("/admin/groups/{}", encode_segment(name))
}

fn find_row(req: &Request, depot: &Depot) -> Result<Row, Problem> {
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name"));
    let found = groups::find_group(&gateway, caller(depot), name)?;
    Ok(Row::from_group(found, &gateway, caller(depot)).ok_or_else(|| missing_group_error(name))?)
}

/// Reads the group in a form.
fn read_group(name: &str, form: &Form) -> Result<NewGroup, GatewayError> {
    let lines = |field: &str| {
        let text = form.text(field);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let body = json!({ "members": lines("members"), "claimValues": lines("claimValues") });
    NewGroup::from_json(name, body.to_string().as_bytes())
}

/// Returns the errors of a group that was refused.
fn describe_refusal(mut error: GatewayError, is_new: bool) -> FormErrors {
    match error.class {
        ErrorClass::PreconditionFailed if is_new => {
            let message = "this name is taken; choose another one, or edit that group";
            let findings = vec![Finding::at_pointer("/name", message)];
            error = GatewayError::with_findings(ErrorClass::Conflict, NOT_SAVED, findings);
        }
        ErrorClass::PreconditionFailed => {
            "Another user has changed this group in the meantime. Your changes are not saved. Copy them, and open the page again."
                .clone_into(&mut error.detail);
        }
        ErrorClass::Invalid => NOT_SAVED.clone_into(&mut error.detail),
        _ => {}
    }
    for finding in &mut error.findings {
        if finding.place == Place::Pointer(String::new()) {
            finding.place = Place::Pointer("/name".to_owned());
        }
    }
    FormErrors::from_error(error, FIELDS)
}

/// Shows the list.
#[handler]
pub(crate) async fn list_groups(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let (after, gateway) = (query.read_cursor::<TextCursor>()?, gateway(depot)?);
    let by = caller(depot);
    let mut listed = groups::list_groups(&gateway, by, after.as_deref(), ROWS_PER_PAGE + 1);
    let frame = Frame::new(req, depot, Section::Groups);
    let name = |group: &Group| group.name.clone();
    Ok(PageReply::show(&List {
        pager: Pager::for_rows(&frame, "/admin/groups", &query, &mut listed, ROWS_PER_PAGE, name),
        rows: listed.into_iter().filter_map(|group| Row::from_group(group, &gateway, by)).collect(),
        frame,
    }))
}

/// Shows the form for a new group.
#[handler]
pub(crate) async fn show_new_group(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    Ok(build_page(req, depot, None, Form::default(), FormErrors::default()))
}

fn build_page(
    req: &Request,
    depot: &Depot,
    row: Option<Row>,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let mut frame = Frame::new(req, depot, Section::Groups);
    if let Some(row) = &row {
        frame = frame.with_source_of(depot, DefinitionKind::Group, &row.name);
    }
    let status = faults.status;
    PageReply::show_with_status(status, &One { frame, faults, row, filled })
}

/// Creates a group.
#[handler]
pub(crate) async fn create_group(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = form.trimmed("name").unwrap_or_default();
    let created = async {
        let new = read_group(&name, &form)?;
        groups::define_group(&gateway, caller(depot), &name, new, IfMatch::Any, true).await
    };
    Ok(match created.await {
        Ok(_) => PageReply::redirect("/admin/groups", format!("The group {name} was created.")),
        Err(error) => build_page(req, depot, None, form, describe_refusal(error, true)),
    })
}

/// Shows one group.
#[handler]
pub(crate) async fn show_group(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let row = find_row(req, depot)?;
    let filled = row.fill_form();
    Ok(build_page(req, depot, Some(row), filled, FormErrors::default()))
}

/// Changes a group.
#[handler]
pub(crate) async fn save_group(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let row = find_row(req, depot)?;
    let name = row.name.clone();
    let saved = async {
        let new = read_group(&name, &form)?;
        groups::define_group(&gateway, caller(depot), &name, new, form.if_match(), false).await
    };
    Ok(match saved.await {
        Ok(_) => PageReply::redirect("/admin/groups", format!("The group {name} was saved.")),
        Err(error) => build_page(req, depot, Some(row), form, describe_refusal(error, false)),
    })
}

/// Asks for confirmation before a group is deleted.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let row = find_row(req, depot)?;
    let group = Principal::Group(row.name.clone());
    let objects = gateway(depot)?.catalogue.list();
    let uses = objects.iter().filter(|one| one.object.definition.approvers().contains(&group));
    let used_by = uses.map(|one| one.object.definition.name.clone()).collect();
    let frame = Frame::new(req, depot, Section::Groups);
    let frame = frame.with_source_of(depot, DefinitionKind::Group, &row.name);
    Ok(PageReply::show(&Deletion { frame, row, used_by }))
}

/// Deletes a group.
#[handler]
pub(crate) async fn delete_group(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let name = path_parameter(req, "name");
    Ok(match groups::delete_group(&gateway, caller(depot), name, form.if_match()).await {
        Ok(()) => PageReply::redirect("/admin/groups", format!("The group {name} was deleted.")),
        Err(error) if error.class == ErrorClass::NotFound => return Err(error.into()),
        Err(error) => PageReply::redirect_with_error(page_path(name), error.detail),
    })
}
