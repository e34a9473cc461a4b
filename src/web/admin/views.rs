//! `/admin/views`: the saved views that the viewer sees. A link of each leads to the list that it begins.
use super::form::take_form;
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::objects::address::view_path;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::Caller;
use penstock_http::caller::caller;
use penstock_http::parameters::page_of;
use penstock_http::path::path_parameter;
use penstock_http::query::{Query, UuidCursor};
use penstock_http::state::gateway;
use penstock_resources::view::{SavedView, ViewFilter};
use penstock_service::gateway::Gateway;
use penstock_service::views::{delete_view, find_view, list_views, may_change_view};
use salvo::{Depot, Request, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 100;

#[derive(Template)]
#[template(path = "admin/views.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

#[derive(Template)]
#[template(path = "admin/view_delete.html")]
struct Deletion {
    frame: Frame,
    row: Row,
}

/// A view in the list.
struct Row {
    view: SavedView,
    /// The path of its list, without the prefix.
    path: String,
    /// The name of its Business Object; `None` if that was deleted.
    business_object: Option<String>,
    /// The display name of its owner.
    owner: String,
    conditions: Vec<String>,
    may_delete: bool,
}

impl Row {
    fn new(view: SavedView, gateway: &Gateway, by: &Caller) -> Self {
        let found = gateway.catalogue.get(&view.business_object);
        let owner = view.owner.as_deref().unwrap_or("local");
        Self {
            path: view_path(&view.business_object, &view.id),
            business_object: found.map(|found| found.object.definition.name.clone()),
            owner: words::name_requester(gateway, by, owner),
            conditions: view.filters.iter().map(describe_filter).collect(),
            may_delete: may_change_view(by, &view),
            view,
        }
    }
}

/// Returns a condition of a view in words.
pub(super) fn describe_filter(ViewFilter { field, test, value }: &ViewFilter) -> String {
    match (test.as_str(), value.as_str()) {
        ("eq", value) => format!("{field} is {value}"),
        ("in", value) => format!("{field} is {value}, or another of its values here"),
        ("contains", value) => format!("{field} contains {value}, with this case"),
        ("containsAnyCase", value) => format!("{field} contains {value}"),
        ("startsWith", value) => format!("{field} begins with {value}"),
        ("before", value) => format!("{field} is before or less than {value}"),
        ("after", value) => format!("{field} is after or greater than {value}"),
        ("atLeast", value) => format!("{field} is at least {value}"),
        ("atMost", value) => format!("{field} is at most {value}"),
        ("exists", "false") => format!("{field} has no value"),
        ("exists", _) => format!("{field} has a value"),
        (test, value) => format!("{field} {test} {value}"),
    }
}

/// Shows the list.
#[handler]
pub(crate) async fn show_views(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["businessObject", "cursor"])?;
    let (after, gateway) = (query.read_cursor::<UuidCursor>()?, gateway(depot)?);
    let (by, of) = (caller(depot), query.get("businessObject"));
    let listed = list_views(&gateway, by, of, after.as_deref(), ROWS_PER_PAGE + 1);
    let page = page_of(listed, ROWS_PER_PAGE, |view: &SavedView| view.id.clone());
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    Ok(PageReply::show(&List {
        pager: Pager::for_query(&frame, "/admin/views", &query, page.next.as_deref()),
        rows: page.items.into_iter().map(|view| Row::new(view, &gateway, by)).collect(),
        frame,
    }))
}

/// Asks for confirmation before a view is deleted.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let view = find_view(&gateway, by, path_parameter(req, "id"))?;
    let row = Row::new(view, &gateway, by);
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    Ok(PageReply::show(&Deletion { frame, row }))
}

/// Deletes a view.
#[handler]
pub(crate) async fn delete_saved_view(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let (gateway, by, id) = (gateway(depot)?, caller(depot), path_parameter(req, "id"));
    let view = find_view(&gateway, by, id)?;
    Ok(match delete_view(&gateway, by, id, form.if_match().into()).await {
        Ok(()) => {
            PageReply::redirect("/admin/views", format!("The view {} was deleted.", view.name))
        }
        Err(error) => {
            let words = format!("The view {} was not deleted: {}", view.name, error.detail);
            PageReply::redirect_with_error("/admin/views", words)
        }
    })
}
