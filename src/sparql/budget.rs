//! The limits of one request, and how it ends beyond them.
//!
//! The evaluator drops errors of expressions, and its joins collect errors and continue. So an error value would not
//! end a query. [`abort`] unwinds the thread instead, from wherever the evaluator calls this crate.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::thread_bytes;
use penstock_base::unwind::abort;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The number of checks between two readings of the clock.
const CHECKS_PER_CLOCK_READING: u32 = 16;

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `service.limits.sparql.time`
    pub time: Duration,
    /// `service.limits.sparql.memory`, in bytes
    pub memory: u64,
    /// `service.limits.sparql.rows`
    pub rows: u64,
}

/// When a request must end: at a time, or as soon as it is cancelled. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    is_cancelled: Arc<AtomicBool>,
}

impl Deadline {
    /// Returns the time.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// Ends the request soon, because its client has disconnected.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

impl From<Instant> for Deadline {
    fn from(at: Instant) -> Self {
        Self { at, is_cancelled: Arc::default() }
    }
}

/// What is left of the limits of one request. It counts the memory of the thread that created it.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    deadline: Deadline,
    /// [`thread_bytes`] when the request began, plus the bytes of what other threads have taken over since.
    initial_bytes: AtomicI64,
    checks: AtomicU32,
}

impl Budget {
    /// Begins to count. What its thread has allocated since [`begin_request`] counts too: it has parsed the request.
    pub(crate) fn new(limits: Limits, deadline: Deadline) -> Self {
        let initial_bytes = AtomicI64::new(BYTES_BEFORE_REQUEST.get());
        Self { limits, deadline, initial_bytes, checks: AtomicU32::new(0) }
    }

    /// Checks memory, and time now and then. Aborts beyond a limit.
    pub(crate) fn check(&self) {
        if u64::try_from(self.used_bytes()).is_ok_and(|used| used > self.limits.memory) {
            self.abort_for_memory();
        }
        // Only one thread checks, so it needs no atomic increment, which would take longer than all else here.
        let checks = self.checks.load(Ordering::Relaxed);
        self.checks.store(checks.wrapping_add(1), Ordering::Relaxed);
        if checks.is_multiple_of(CHECKS_PER_CLOCK_READING) {
            self.check_time();
        }
    }

    /// Aborts if there is no time left, or the request is cancelled.
    pub(crate) fn check_time(&self) {
        if self.deadline.is_cancelled.load(Ordering::Relaxed) {
            let class = ErrorClass::Unavailable(Duration::from_secs(1));
            abort(GatewayError::new(class, "the client has disconnected"));
        }
        if Instant::now() >= self.deadline.at {
            let time = self.limits.time.as_secs_f64();
            abort(limit_error(format!(
                "the request takes longer than service.limits.sparql.time ({time} s); select less, or add a LIMIT or a more selective pattern"
            )));
        }
    }

    /// Aborts if a text of this many bytes exceeds the limit of memory, with what is used already.
    pub(crate) fn check_bytes(&self, bytes: usize) {
        let used = u64::try_from(self.used_bytes()).unwrap_or(0);
        if used.saturating_add(bytes as u64) > self.limits.memory {
            self.abort_for_memory();
        }
    }

    fn used_bytes(&self) -> i64 {
        thread_bytes() - self.initial_bytes.load(Ordering::Relaxed)
    }

    /// Aborts if there are too many rows.
    pub(crate) fn check_rows(&self, rows: u64) {
        if rows > self.limits.rows {
            abort(limit_error(format!(
                "the result has more rows or triples than service.limits.sparql.rows ({}); add a LIMIT",
                self.limits.rows
            )));
        }
    }

    /// Runs `hand_over`, and does not count the memory that it allocates: another thread frees it.
    pub(crate) fn without_counting<T>(&self, hand_over: impl FnOnce() -> T) -> T {
        let before = thread_bytes();
        let result = hand_over();
        self.initial_bytes.fetch_add(thread_bytes() - before, Ordering::Relaxed);
        result
    }

    fn abort_for_memory(&self) -> ! {
        abort(limit_error(format!(
            "the request needs more memory than service.limits.sparql.memory ({} bytes) for sorting, grouping, joining or long texts; select less, or add a more selective pattern",
            self.limits.memory
        )))
    }
}

fn limit_error(detail: String) -> GatewayError {
    GatewayError::new(ErrorClass::Invalid, detail)
}

thread_local! {
    /// [`thread_bytes`] when the request of this thread began.
    static BYTES_BEFORE_REQUEST: Cell<i64> = const { Cell::new(0) };
}

/// Begins a request on a thread that may have run others before.
pub(crate) fn begin_request() {
    BYTES_BEFORE_REQUEST.set(thread_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::unwind::catch;

    #[test]
    fn what_a_thread_held_before_a_request_does_not_count() {
        let before = vec![0_u8; 64 << 20];
        begin_request();
        let limits = Limits { time: Duration::from_mins(10), memory: 32 << 20, rows: 1 };
        let budget = Budget::new(limits, (Instant::now() + limits.time).into());
        let checked = catch("the test", || {
            budget.check();
            Ok(before.len())
        });
        assert_eq!(checked.unwrap(), 64 << 20);
    }
}
