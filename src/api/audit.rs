//! `/api/v1/audit`: changes of accounts and credentials, and refused requests.
use penstock_auth::audit::Filter;
use penstock_http::access::MinimumRole::Admin;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::PageQuery;
use penstock_http::query::NumberCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::audit::AuditEvent;
use penstock_service::audit::list_events;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/audit", Admin, list_audit)
            .describe("listAudit", "Audit", "Lists the events of the audit trail, newest first.")
            .answer::<Page<AuditEvent>>(200, "A page.")
            .problems(&[400]),
    ]
}

penstock_http::parameters! {
    /// Which events are listed.
    struct AuditQuery {
        "account" => account: Option<String>, "Only events about this account or caused by it: its id, or the email of a built-in one.";
        "what" => what: Option<String>, "Only events of this kind and the kinds below it: `sign-in` includes `sign-in.refused`.";
        ..page: PageQuery<NumberCursor>
    }
}

async fn list_audit(call: Call<'_>, query: AuditQuery) -> ReplyResult {
    let AuditQuery { account, what, page } = query;
    let filter = Filter { account, what, ..Filter::default() };
    let (gateway, by) = (call.gateway()?, call.caller());
    let events = list_events(&gateway, by, filter, page.after, page.limit + 1).await?;
    Reply::json(&page.page(events, |event| event.id.clone()))
}
