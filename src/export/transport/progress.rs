//! Detects requests that make no progress.
//!
//! The kernel detects a dead connection (`TCP_USER_TIMEOUT`, keepalive). This module detects a server or proxy
//! that keeps the connection open but reads no bytes and sends no answer. On a slow link, bytes may stay in the
//! kernel's buffer for a while, so sent bytes extend the timeout. Time spent waiting for the configured
//! bandwidth does not count.
use super::RequestError;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The assumed minimum rate in bytes per second at which a link drains the kernel's buffer.
const MIN_DRAIN_BYTES_PER_SECOND: u64 = 32 << 10;
/// The maximum bytes in the kernel's send buffer, the default of Linux.
const MAX_BUFFERED_BYTES: u64 = 4 << 20;
/// The minimum rate in bytes per second at which a whole request must be sent.
const MIN_BYTES_PER_SECOND: u64 = 1 << 10;
/// The timeout of a whole request, in addition to the time for its bytes.
const REQUEST_BASE_TIMEOUT: Duration = Duration::from_mins(2);

/// The timeouts of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestTimeouts {
    /// For connecting.
    pub(crate) connect: Duration,
    /// For the next byte to move.
    pub(crate) idle: Duration,
    /// For any answer to a probe of the link.
    pub(crate) probe: Duration,
}

/// The progress of a request.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Instant,
    state: Mutex<ProgressState>,
    sent: AtomicU64,
}

#[derive(Debug)]
struct ProgressState {
    last_progress: Instant,
    /// When it started to wait for bandwidth, if it does now.
    waiting_since: Option<Instant>,
    /// The total time that it has waited for bandwidth.
    waited: Duration,
    read_error: Option<String>,
}

/// A guard: the request waits for bandwidth until it is dropped.
pub(crate) struct BandwidthWait<'a>(&'a Progress);

impl Progress {
    pub(crate) fn begin() -> Self {
        let begun = Instant::now();
        let state = ProgressState {
            last_progress: begun,
            waiting_since: None,
            waited: Duration::ZERO,
            read_error: None,
        };
        Self { begun, state: Mutex::new(state), sent: AtomicU64::new(0) }
    }

    /// Records progress: `bytes` of the body were sent, or, with 0, bytes of the answer were received.
    pub(crate) fn record_bytes(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        self.lock_state().last_progress = Instant::now();
    }

    /// Returns the bytes of the body that were sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn pause_for_bandwidth(&self) -> BandwidthWait<'_> {
        self.lock_state().waiting_since = Some(Instant::now());
        BandwidthWait(self)
    }

    pub(crate) fn record_read_error(&self, error: &std::io::Error) {
        self.lock_state().read_error = Some(error.to_string());
    }

    /// Converts an error of the request. If the file could not be read, that is the error.
    pub(crate) fn classify_error(&self, error: reqwest::Error) -> RequestError {
        match self.lock_state().read_error.take() {
            Some(source) => RequestError::Source(source),
            None => RequestError::Http(error),
        }
    }

    /// Waits until the request makes no progress for too long, or takes too long in total. Returns the time since the
    /// last byte.
    pub(crate) async fn wait_for_stall(
        &self,
        timeouts: &RequestTimeouts,
        bytes: u64,
        extra_timeout: Duration,
    ) -> Duration {
        loop {
            tokio::time::sleep(timeouts.idle / 20).await;
            let sent = self.sent_bytes();
            let (silent, total) = {
                let state = self.lock_state();
                if state.waiting_since.is_some() {
                    continue;
                }
                (state.last_progress.elapsed(), self.begun.elapsed().saturating_sub(state.waited))
            };
            let buffered =
                Duration::from_secs(sent.min(MAX_BUFFERED_BYTES) / MIN_DRAIN_BYTES_PER_SECOND);
            let max_total = REQUEST_BASE_TIMEOUT
                + extra_timeout
                + Duration::from_secs(bytes / MIN_BYTES_PER_SECOND);
            if silent > timeouts.idle + buffered + extra_timeout || total > max_total {
                return silent;
            }
        }
    }

    fn lock_state(&self) -> parking_lot::MutexGuard<'_, ProgressState> {
        self.state.lock()
    }
}

impl Drop for BandwidthWait<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock_state();
        if let Some(since) = state.waiting_since.take() {
            state.waited += since.elapsed();
        }
        state.last_progress = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: RequestTimeouts = RequestTimeouts {
        connect: Duration::from_millis(100),
        idle: Duration::from_millis(100),
        probe: Duration::from_millis(100),
    };

    #[tokio::test]
    async fn a_silent_server_ends_a_request_but_waiting_for_bandwidth_does_not() {
        let progress = Progress::begin();
        assert!(progress.wait_for_stall(&TIMEOUTS, 0, Duration::ZERO).await > TIMEOUTS.idle);
        let waiting = progress.pause_for_bandwidth();
        let long = Duration::from_millis(400);
        let stalled = progress.wait_for_stall(&TIMEOUTS, 0, Duration::ZERO);
        assert!(tokio::time::timeout(long, stalled).await.is_err());
        drop(waiting);
        progress.wait_for_stall(&TIMEOUTS, 0, Duration::ZERO).await;
    }
}
