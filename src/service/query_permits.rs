//! Permits for reads that may look at many objects: GraphQL queries, and searches of the pages.
use penstock_base::account_slots::{AccountSlot, AccountSlots};
use std::time::Duration;

/// The maximum number of concurrent queries and searches; others wait for a permit. Queries and searches use threads
/// that ingestion needs too.
const MAX_CONCURRENT_QUERIES: usize = 4;

/// The permits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueryPermits {
    slots: AccountSlots,
    timeout: Duration,
}

impl QueryPermits {
    /// Creates the permits. `timeout` is how long a read waits for one.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { slots: AccountSlots::new(MAX_CONCURRENT_QUERIES), timeout }
    }

    /// Waits for a permit of this account, and returns it. Dropping the permit releases it. Returns `None` after the
    /// timeout.
    pub async fn acquire(&self, account: &str) -> Option<AccountSlot> {
        self.slots.acquire(account, self.timeout).await
    }

    /// Returns a permit of this account if one is free now.
    pub fn try_acquire(&self, account: &str) -> Option<AccountSlot> {
        self.slots.try_acquire(account)
    }
}
