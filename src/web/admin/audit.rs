//! `/admin/audit`: changes of accounts, credentials and definitions, and refused requests.
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_api::audit::query_events;
use penstock_auth::audit::Record;
use penstock_auth::{Auth, Caller};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::state::gateway;
use salvo::{Depot, Request, Response, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The choices of the filter.
const KINDS: [(&str, &str); 15] = [
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
];

#[derive(Template)]
#[template(path = "admin/audit.html")]
struct Trail {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
    account: String,
    what: String,
    kinds: [(&'static str, &'static str); 15],
}

/// An event in the list.
struct Row {
    at: String,
    what: String,
    is_refusal: bool,
    account: Who,
    by: Who,
    from: String,
    detail: String,
    /// The number of occurrences if more than one, otherwise empty.
    times: String,
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
                let key = auth.keys.get(&Caller::local(), id);
                let name =
                    key.map_or_else(|| id.to_owned(), |key| format!("API key {:?}", key.name));
                Self { name, path: None }
            }
        }
    }
}

/// Shows the page.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let asked = Query::read(req, &["cursor", "account", "what"])?;
    // The filter's form also sends its empty fields.
    let query = asked.without_empty();
    let gateway = gateway(depot)?;
    let auth = gateway.auth.clone();
    let mut records = query_events(&query, gateway, ROWS_PER_PAGE).await?;
    let mut ids: Vec<_> = records.iter().map(|record| record.id.to_string()).collect();
    let next = truncate_page(&mut ids, ROWS_PER_PAGE, |id| id);
    records.truncate(ROWS_PER_PAGE);
    let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let frame = Frame::for_caller(req, depot, res, Section::Audit);
    let filter = [("account", query.get("account")), ("what", query.get("what"))];
    let is_first = query.get("cursor").is_none();
    let page = Trail {
        rows: records.into_iter().map(|record| build_row(record, &auth)).collect(),
        pager: Pager::new(&frame, "/admin/audit", &filter, is_first, next.as_deref()),
        account: text("account"),
        what: text("what"),
        kinds: KINDS,
        frame,
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

fn build_row(record: Record, auth: &Auth) -> Row {
    Row {
        at: words::format_second(&record.at),
        is_refusal: record.what.ends_with(".refused"),
        what: record.what,
        account: Who::from_id(record.account.as_deref(), auth),
        by: Who::from_id(record.by.as_deref(), auth),
        from: record.from.map(|from| from.to_string()).unwrap_or_default(),
        detail: record.detail,
        times: if record.count > 1 { words::format_number(record.count) } else { String::new() },
    }
}
