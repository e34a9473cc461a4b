//! Waiting for what happens at some time, with one deadline for all tests.
use std::time::{Duration, Instant};

/// The timeout after which a test fails. It is no requirement.
pub const TEST_TIMEOUT: Duration = Duration::from_mins(5);

const INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `is_met` returns true. Blocks the thread. Fails after [`TEST_TIMEOUT`].
#[track_caller]
pub fn wait_for(what: &str, mut is_met: impl FnMut() -> bool) {
    let end = Instant::now() + TEST_TIMEOUT;
    while !is_met() {
        assert!(Instant::now() < end, "gave up waiting until {what}");
        std::thread::sleep(INTERVAL);
    }
}

/// Waits as [`wait_for`] does, without blocking the thread.
pub async fn until(what: &str, mut is_met: impl AsyncFnMut() -> bool) {
    until_some(what, async || is_met().await.then_some(())).await;
}

/// Waits until `find` returns a value, without blocking the thread.
pub async fn until_some<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = find().await {
            return found;
        }
        assert!(Instant::now() < end, "gave up waiting until {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}
