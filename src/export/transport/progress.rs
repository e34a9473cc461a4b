//! Detects requests that make no progress.
//!
//! The kernel detects a dead connection (`TCP_USER_TIMEOUT`, keepalive). This module detects a server or proxy
//! that keeps the connection open but reads no bytes and sends no answer. On a slow link, bytes may stay in the
//! kernel's buffer for a while, so sent bytes extend the timeout. Time spent waiting for the configured
//! bandwidth does not count.
use super::answer::RequestError;
use crate::backoff::DeliveryTimings;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The assumed minimum rate in bytes per second at which a link drains the kernel's buffer.
const MIN_DRAIN_BYTES_PER_SECOND: u64 = 32 << 10;
/// The maximum bytes in the kernel's send buffer, the default of Linux.
const MAX_BUFFERED_BYTES: u64 = 4 << 20;
/// The minimum rate in bytes per second at which a whole request must be sent, and an object must arrive.
const MIN_BYTES_PER_SECOND: u64 = 1 << 10;
/// The timeout of a whole request, in addition to the time for its bytes.
const REQUEST_BASE_TIMEOUT: Duration = Duration::from_mins(2);

/// Returns the maximum time of a request that moves this many bytes.
pub(crate) fn max_total_time(bytes: u64) -> Duration {
    REQUEST_BASE_TIMEOUT + Duration::from_secs(bytes / MIN_BYTES_PER_SECOND)
}

/// The progress of a request.
#[derive(Debug)]
pub(crate) struct Progress {
    /// How long no byte may move.
    idle_timeout: Duration,
    /// The length of the body in bytes.
    length: u64,
    /// The extra time that the server may take.
    extra_timeout: Duration,
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
    /// Begins a request with a body of this length, which the server may take `extra_timeout` longer to process.
    pub(crate) fn begin(timings: &DeliveryTimings, length: u64, extra_timeout: Duration) -> Self {
        let begun = Instant::now();
        let state = ProgressState {
            last_progress: begun,
            waiting_since: None,
            waited: Duration::ZERO,
            read_error: None,
        };
        Self {
            idle_timeout: timings.idle_timeout,
            length,
            extra_timeout,
            begun,
            state: Mutex::new(state),
            sent: AtomicU64::new(0),
        }
    }

    /// Records progress: `bytes` of the body were sent, or, with 0, bytes of the answer were received.
    pub(crate) fn record_bytes(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        self.state.lock().last_progress = Instant::now();
    }

    /// Returns whether the whole body was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed) >= self.length
    }

    pub(crate) fn pause_for_bandwidth(&self) -> BandwidthWait<'_> {
        self.state.lock().waiting_since = Some(Instant::now());
        BandwidthWait(self)
    }

    pub(crate) fn record_read_error(&self, error: &std::io::Error) {
        self.state.lock().read_error = Some(error.to_string());
    }

    /// Converts an error of the request. If the file could not be read, that is the error.
    pub(crate) fn classify_error(&self, error: reqwest::Error) -> RequestError {
        match self.state.lock().read_error.take() {
            Some(source) => RequestError::Source(source),
            None => RequestError::Http(error),
        }
    }

    /// Waits until the request makes no progress for too long, or takes too long in total. Returns the time since the
    /// last byte.
    pub(crate) async fn wait_for_stall(&self) -> Duration {
        loop {
            tokio::time::sleep(self.idle_timeout / 20).await;
            let sent = self.sent.load(Ordering::Relaxed);
            let (silent, total) = {
                let state = self.state.lock();
                if state.waiting_since.is_some() {
                    continue;
                }
                (state.last_progress.elapsed(), self.begun.elapsed().saturating_sub(state.waited))
            };
            let buffered =
                Duration::from_secs(sent.min(MAX_BUFFERED_BYTES) / MIN_DRAIN_BYTES_PER_SECOND);
            let max_total = max_total_time(self.length) + self.extra_timeout;
            if silent > self.idle_timeout + buffered + self.extra_timeout || total > max_total {
                return silent;
            }
        }
    }
}

impl Drop for BandwidthWait<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if let Some(since) = state.waiting_since.take() {
            state.waited += since.elapsed();
        }
        state.last_progress = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_server_ends_a_request_but_waiting_for_bandwidth_does_not() {
        let idle_timeout = Duration::from_millis(100);
        let timings = DeliveryTimings { idle_timeout, ..DeliveryTimings::default() };
        let progress = Progress::begin(&timings, 0, Duration::ZERO);
        assert!(progress.wait_for_stall().await > idle_timeout);
        let waiting = progress.pause_for_bandwidth();
        let long = Duration::from_millis(400);
        let stalled = progress.wait_for_stall();
        assert!(tokio::time::timeout(long, stalled).await.is_err());
        drop(waiting);
        progress.wait_for_stall().await;
    }
}
