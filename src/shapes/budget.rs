//! The limits of one validation.
//!
//! rudof takes some errors of its data for "conforms". So an error value would let a violation pass. Each read of the data
//! and each constraint is a check, and unwinds the thread beyond a limit ([`abort`]).
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::thread_bytes;
use penstock_base::unwind::abort;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of checks between two readings of the clock.
const CHECKS_PER_CLOCK_READING: u32 = 16;

/// The limits of one validation.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Its maximum time: `service.limits.shapes.time`.
    pub time: Duration,
    /// When it must have ended, if several validations have this time together.
    pub deadline: Option<Instant>,
    /// The maximum memory that it takes, in bytes: `service.limits.shapes.memory`.
    pub memory: u64,
    /// The maximum number of violations of one shape, with those of the shapes in it, in one validation.
    pub violations: usize,
    /// Ends it early.
    pub cancellation: Cancellation,
}

/// Ends a validation early. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Ends the validation at its next check.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is left of the limits. It counts the memory of the thread that created it.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    deadline: Instant,
    initial_bytes: i64,
    checks: Cell<u32>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        let deadline = limits.deadline.unwrap_or_else(|| Instant::now() + limits.time);
        Self { limits, deadline, initial_bytes: thread_bytes(), checks: Cell::new(0) }
    }

    pub(crate) fn max_violations(&self) -> usize {
        self.limits.violations
    }

    /// Checks memory, and time now and then. Aborts beyond a limit.
    pub(crate) fn check(&self) {
        let used = thread_bytes() - self.initial_bytes;
        if u64::try_from(used).is_ok_and(|used| used > self.limits.memory) {
            self.abort_for_memory();
        }
        let checks = self.checks.get().wrapping_add(1);
        self.checks.set(checks);
        if !checks.is_multiple_of(CHECKS_PER_CLOCK_READING) {
            return;
        }
        if self.limits.cancellation.is_cancelled() {
            let class = ErrorClass::Unavailable(Duration::from_secs(1));
            abort(GatewayError::new(class, "the validation was cancelled"));
        }
        if Instant::now() >= self.deadline {
            abort(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "validating the objects takes longer than service.limits.shapes.time ({} s); simplify the paths and nested shapes of the shapes graph, or send fewer objects at once",
                    self.limits.time.as_secs_f64()
                ),
            ));
        }
    }

    fn abort_for_memory(&self) -> ! {
        abort(GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "validating the objects needs more memory than service.limits.shapes.memory ({} bytes); simplify the paths of the shapes graph, or send fewer objects at once",
                self.limits.memory
            ),
        ))
    }
}
