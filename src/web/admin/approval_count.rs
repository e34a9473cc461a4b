//! How many changes wait for the viewer's approval, for the menu of every page.
use super::frame::{Frame, PageReply, PageResult, Section};
use super::menu::{ApprovalCount, MAX_TO_APPROVE};
use askama::Template;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_service::changes::count_waiting_changes;
use salvo::{Depot, Request, handler};

/// Runs before the handler of each page: counts what waits for the viewer. Without a count the page has none.
pub(crate) struct ApprovalCounter;

#[handler]
impl ApprovalCounter {
    async fn handle(&self, depot: &mut Depot) {
        let Ok(gateway) = gateway(depot) else { return };
        match count_waiting_changes(&gateway, caller(depot), MAX_TO_APPROVE + 1).await {
            Ok(Some(count)) => {
                depot.insert_typed(ApprovalCount(count));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(cause = error.detail, "Counting the changes to approve failed.");
            }
        }
    }
}

/// Only the count, which a script inserts.
#[derive(Template)]
#[template(path = "admin/approval_count.html")]
struct Count {
    frame: Frame,
}

/// Shows the count.
#[handler]
pub(crate) async fn show_count(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Changes);
    Ok(PageReply::show_fragment(&Count { frame }))
}
