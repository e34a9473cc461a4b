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
pub struct Budget {
    limits: Limits,
    deadline: Instant,
    initial_bytes: i64,
    checks: Cell<u32>,
}

impl Budget {
    /// Begins to count time and memory.
    pub fn new(limits: Limits) -> Self {
        let deadline = limits.deadline.unwrap_or_else(|| Instant::now() + limits.time);
        Self { limits, deadline, initial_bytes: thread_bytes(), checks: Cell::new(0) }
    }

    /// Begins to count only time.
    pub fn of_time(time: Duration) -> Self {
        let cancellation = Cancellation::default();
        let (memory, violations) = (u64::MAX, usize::MAX);
        Self::new(Limits { time, deadline: None, memory, violations, cancellation })
    }

    pub(crate) fn max_violations(&self) -> usize {
        self.limits.violations
    }

    /// Checks memory, and time now and then.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` beyond a limit, `ErrorClass::Unavailable` after it was cancelled.
    pub fn check(&self) -> Result<(), GatewayError> {
        let used = thread_bytes() - self.initial_bytes;
        if u64::try_from(used).is_ok_and(|used| used > self.limits.memory) {
            return Err(self.memory_error());
        }
        self.check_time()
    }

    /// Checks time now and then.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_time(&self) -> Result<(), GatewayError> {
        let checks = self.checks.get().wrapping_add(1);
        self.checks.set(checks);
        if checks.is_multiple_of(CHECKS_PER_CLOCK_READING) { self.check_clock() } else { Ok(()) }
    }

    /// Checks time, after work that takes much longer than reading the clock.
    pub(crate) fn check_clock(&self) -> Result<(), GatewayError> {
        if self.limits.cancellation.is_cancelled() {
            let class = ErrorClass::Unavailable(Duration::from_secs(1));
            return Err(GatewayError::new(class, "the validation was cancelled"));
        }
        if Instant::now() >= self.deadline { Err(self.time_error()) } else { Ok(()) }
    }

    /// As [`Self::check`], but aborts beyond a limit.
    pub(crate) fn check_or_abort(&self) {
        self.check().unwrap_or_else(|error| abort(error));
    }

    fn time_error(&self) -> GatewayError {
        GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "validating the objects takes longer than service.limits.shapes.time ({} s); simplify the paths and nested shapes of the shapes graph, or send fewer objects at once",
                self.limits.time.as_secs_f64()
            ),
        )
    }

    fn memory_error(&self) -> GatewayError {
        GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "validating the objects needs more memory than service.limits.shapes.memory ({} bytes); simplify the paths of the shapes graph, or send fewer objects at once",
                self.limits.memory
            ),
        )
    }
}
