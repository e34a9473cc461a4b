//! Whether a request still moves.
//!
//! A connection that is dead is noticed by the kernel (`TCP_USER_TIMEOUT`, keepalive). What is watched
//! here is a server, or something on the way, that keeps the connection and does nothing: no byte taken
//! and no answer. Bytes that were handed to the kernel may be in its buffer for a while on a slow link,
//! so that they count for some time; time spent waiting for the bandwidth that is allowed does not count.
use super::request::Why;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes a second that a link is thought to take at least from the kernel's buffer.
const DRAIN: u64 = 32 << 10;
/// Bytes that the kernel buffers at most, as Linux has it by default.
const BUFFERED: u64 = 4 << 20;
/// Bytes a second below which a whole request counts as broken.
const SLOWEST: u64 = 1 << 10;
/// Each whole request may take so long, beside what its bytes take.
const WHOLE: Duration = Duration::from_mins(2);

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// For a connection.
    pub(super) connect: Duration,
    /// For the next byte to move.
    pub(super) idle: Duration,
    /// For any answer, when it is asked whether the link is back.
    pub(super) probe: Duration,
}

/// How far a request has come.
#[derive(Debug)]
pub(super) struct Progress {
    begun: Instant,
    state: Mutex<State>,
    sent: AtomicU64,
}

#[derive(Debug)]
struct State {
    last: Instant,
    /// Since when the bandwidth holds it up.
    held: Option<Instant>,
    /// How long it has in all.
    held_for: Duration,
    source: Option<String>,
}

/// While it lives the request waits for bandwidth.
pub(super) struct Held<'a>(&'a Progress);

impl Progress {
    pub(super) fn begin() -> Self {
        let begun = Instant::now();
        let state = State { last: begun, held: None, held_for: Duration::ZERO, source: None };
        Self { begun, state: Mutex::new(state), sent: AtomicU64::new(0) }
    }

    /// So many bytes went out, or some came in.
    pub(super) fn moved(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
        self.state().last = Instant::now();
    }

    /// Bytes of the body that went out.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn hold(&self) -> Held<'_> {
        self.state().held = Some(Instant::now());
        Held(self)
    }

    pub(super) fn source_failed(&self, error: &std::io::Error) {
        self.state().source = Some(error.to_string());
    }

    /// What an error of the request was.
    pub(super) fn lost(&self, error: reqwest::Error) -> Why {
        match self.state().source.take() {
            Some(source) => Why::Source(source),
            None => Why::Http(error),
        }
    }

    /// Ends when nothing moved for too long, and says for how long.
    pub(super) async fn stalled(
        &self,
        patience: &Patience,
        bytes: u64,
        work: Duration,
    ) -> Duration {
        loop {
            tokio::time::sleep(patience.idle / 20).await;
            let sent = self.sent();
            let (silent, in_all) = {
                let state = self.state();
                if state.held.is_some() {
                    continue;
                }
                (state.last.elapsed(), self.begun.elapsed().saturating_sub(state.held_for))
            };
            let buffered = Duration::from_secs(sent.min(BUFFERED) / DRAIN);
            let whole = WHOLE + work + Duration::from_secs(bytes / SLOWEST);
            if silent > patience.idle + buffered + work || in_all > whole {
                return silent;
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if let Some(since) = state.held.take() {
            state.held_for += since.elapsed();
        }
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        connect: Duration::from_millis(100),
        idle: Duration::from_millis(100),
        probe: Duration::from_millis(100),
    };

    #[tokio::test]
    async fn silence_ends_a_request_and_waiting_for_bandwidth_does_not() {
        let progress = Progress::begin();
        assert!(progress.stalled(&PATIENCE, 0, Duration::ZERO).await > PATIENCE.idle);
        let held = progress.hold();
        let long = Duration::from_millis(400);
        let stalled = progress.stalled(&PATIENCE, 0, Duration::ZERO);
        assert!(tokio::time::timeout(long, stalled).await.is_err());
        drop(held);
        progress.stalled(&PATIENCE, 0, Duration::ZERO).await;
    }
}
