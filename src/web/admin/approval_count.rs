//! How many changes wait for the viewer's approval, for the menu of every page.
use penstock_http::caller::caller;
use penstock_http::state::gateway;
use penstock_service::changes::count_waiting_changes;
use salvo::{Depot, handler};
use std::fmt;

/// The maximum number that the menu shows. Counting ends above it.
const MAX_COUNT: usize = 99;

/// How many changes wait for the viewer's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApprovalCount(usize);

impl ApprovalCount {
    /// Returns the count that [`ApprovalCounter`] has left for the page of this request.
    pub(super) fn of_request(depot: &Depot) -> Option<Self> {
        depot.get_typed::<Self>().ok().copied()
    }

    pub(super) fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for ApprovalCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > MAX_COUNT { write!(f, "{MAX_COUNT}+") } else { write!(f, "{}", self.0) }
    }
}

/// Runs before the handler of each page: counts what waits for the viewer. Without a count the page has none.
pub(crate) struct ApprovalCounter;

#[handler]
impl ApprovalCounter {
    async fn handle(&self, depot: &mut Depot) {
        let Ok(gateway) = gateway(depot) else { return };
        match count_waiting_changes(&gateway, caller(depot), MAX_COUNT + 1).await {
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
