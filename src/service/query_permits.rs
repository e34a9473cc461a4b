//! Permits for reads that may look at many objects: GraphQL queries, and searches of the pages.
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of concurrent queries and searches; others wait for a permit. Queries and searches use threads
/// that ingestion needs too.
const MAX_CONCURRENT_QUERIES: usize = 4;

/// The permits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueryPermits {
    semaphore: Arc<Semaphore>,
    timeout: Duration,
}

impl QueryPermits {
    /// Creates the permits. `timeout` is how long a read waits for one.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { semaphore: Arc::new(Semaphore::new(MAX_CONCURRENT_QUERIES)), timeout }
    }

    /// Waits for a permit, and returns it. Dropping the permit releases it. Returns `None` after the timeout.
    pub async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.semaphore).acquire_owned();
        tokio::time::timeout(self.timeout, permit).await.ok()?.ok()
    }

    /// Returns a permit if one is free now.
    pub fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.semaphore).try_acquire_owned().ok()
    }
}
