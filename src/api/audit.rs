//! `/api/v1/audit`: changes of accounts and credentials, and refused requests.
use crate::shapes;
use penstock_auth::audit::Filter;
use penstock_http::caller::caller;
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::audit::list_events;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Lists the events of the audit trail, newest first.
#[endpoint(
    operation_id = "listAudit",
    tags("Audit"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
        ("account" = Option<String>, Query, description = "Only events about this account or caused by it: its id, or the email of a built-in one."),
        ("what" = Option<String>, Query, description = "Only events of this kind and the kinds below it: `sign-in` includes `sign-in.refused`."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::AuditEvents)),
)]
pub(super) async fn list_audit(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor", "account", "what"])?;
    let limit = query.read_limit()?;
    let text = |name: &str| query.get(name).map(str::to_owned);
    let filter = Filter { account: text("account"), what: text("what"), ..Filter::default() };
    let before = query.read_number_cursor()?;
    let events = list_events(&gateway(depot)?, caller(depot), filter, before, limit + 1).await?;
    let mut items: Vec<_> = events.into_iter().map(shapes::AuditEvent::from).collect();
    let next = truncate_page(&mut items, limit, |event| &event.id);
    Reply::json(&shapes::AuditEvents { items, next })
}
