//! `/api/v1/audit`: changes of accounts and credentials, and refused requests.
use crate::shapes;
use penstock_auth::audit::{Filter, Record};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::ReplyResult;
use penstock_http::state::{gateway, run_blocking};
use penstock_service::gateway::Gateway;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

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
    let events = query_events(&query, gateway(depot)?, limit).await?;
    let items = events.into_iter().map(shapes::AuditEvent::from).collect();
    page_reply(items, limit, |event: &shapes::AuditEvent| &event.id)
}

/// Returns the events that match the parameters `account` and `what`, starting at `cursor`. If there are more
/// than `limit`, it returns one more than `limit`.
pub async fn query_events(
    query: &Query,
    gateway: Gateway,
    limit: usize,
) -> Result<Vec<Record>, Problem> {
    let before = query.read_cursor()?.map(|cursor| {
        cursor
            .parse::<u64>()
            .map_err(|_| Problem::malformed("the query parameter cursor is not from this list; leave it out to start with the first page"))
    });
    let before = before.transpose()?;
    let auth = gateway.auth;
    let account = query.get("account").map(|account| {
        let known = auth.accounts.find_by_id_or_email(account);
        known.map_or_else(|| account.to_owned(), |known| known.id.clone())
    });
    let keys = account.as_ref().map_or_else(Vec::new, |account| auth.keys.list_ids_of(account));
    let filter = Filter { account, keys, what: query.get("what").map(str::to_owned) };
    run_blocking(move || Ok(auth.audit.list(&filter, before, limit + 1)?)).await
}
