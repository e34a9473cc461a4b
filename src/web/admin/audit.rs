//! `/admin/audit`: changes of accounts, credentials and definitions, and refused requests.
use super::filter_bar::Select;
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::audit::Filter;
use penstock_auth::{Auth, Caller};
use penstock_http::caller::caller;
use penstock_http::parameters::page_of;
use penstock_http::query::{NumberCursor, Query};
use penstock_http::state::gateway;
use penstock_resources::audit::AuditEvent;
use penstock_service::audit::list_events;
use salvo::{Depot, Request, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The choices of the filter.
const KINDS: [(&str, &str); 19] = [
    ("", "Everything"),
    ("sign-in", "Sign-ins, including refused ones"),
    ("sign-in.refused", "Refused sign-ins"),
    ("sign-out", "Sign-outs"),
    ("request.refused", "Refused requests"),
    ("account", "Accounts: all changes"),
    ("account.created", "Created accounts"),
    ("account.deleted", "Deleted accounts"),
    ("role.changed", "Changed roles"),
    ("password.changed", "Changed passwords"),
    ("key.created", "Created API keys"),
    ("key.revoked", "Revoked API keys"),
    ("data", "Backups, dumps, loads and restores"),
    ("business-object", "Business Objects: all changes"),
    ("namespace", "Namespaces: all changes"),
    ("shapes-graph", "Shapes graphs: all changes"),
    ("group", "Groups: all changes"),
    ("view", "Saved views: all changes"),
    ("change", "Changes under review: all steps"),
];

#[derive(Template)]
#[template(path = "admin/audit.html")]
struct Trail {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
    account: String,
    what: Select,
}

/// An event in the list.
struct Row {
    event: AuditEvent,
    account: Who,
    by: Who,
}

/// The subject or the originator of an event: an account, local administration or an API key.
struct Who {
    name: String,
    /// The address of its page, without the prefix.
    path: Option<String>,
}

impl Who {
    fn from_id(id: Option<&str>, auth: &Auth) -> Self {
        let Some(id) = id else { return Self { name: String::new(), path: None } };
        match auth.accounts.get(id) {
            Some(account) => Self {
                name: words::display_name(&account),
                path: Some(format!("/admin/users/{id}")),
            },
            None if id == "local" => Self { name: "Local administration".to_owned(), path: None },
            None => {
                let name = match auth.keys.get(&Caller::local(), id) {
                    Some(key) => format!("API key {:?}", key.name),
                    None => words::name_deleted(id),
                };
                Self { name, path: None }
            }
        }
    }
}

/// Shows the page.
#[handler]
pub(crate) async fn show_audit_trail(req: &mut Request, depot: &mut Depot) -> PageResult {
    // The filter's form also sends its empty fields.
    let query = Query::read(req, &["cursor", "account", "what"])?.without_empty();
    let gateway = gateway(depot)?;
    let text = |name: &str| query.get(name).map(str::to_owned);
    let filter = Filter { account: text("account"), what: text("what"), ..Filter::default() };
    let before = query.read_cursor::<NumberCursor>()?;
    let events = list_events(&gateway, caller(depot), filter, before, ROWS_PER_PAGE + 1).await?;
    let frame = Frame::new(req, depot, Section::Audit);
    let id = |event: &AuditEvent| event.id.clone();
    let page = page_of(events, ROWS_PER_PAGE, id);
    Ok(PageReply::show(&Trail {
        pager: Pager::for_query(&frame, "/admin/audit", &query, page.next.as_deref()),
        rows: page.items.into_iter().map(|event| build_row(event, &gateway.auth)).collect(),
        account: text("account").unwrap_or_default(),
        what: Select::new("what", "Event", KINDS, query.get("what")),
        frame,
    }))
}

fn build_row(event: AuditEvent, auth: &Auth) -> Row {
    Row {
        account: Who::from_id(event.account.as_deref(), auth),
        by: Who::from_id(event.by.as_deref(), auth),
        event,
    }
}
