//! The limits of one request, and how it ends beyond them.
//!
//! The evaluator drops errors of expressions, and its joins collect errors and continue. So an error value would not
//! end a query. [`abort`] unwinds the thread instead, from wherever the evaluator calls this crate.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::{ThreadTotals, thread_bytes, thread_totals};
use penstock_base::unwind::abort;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of checks between two readings of the clock.
const CHECKS_PER_CLOCK_READING: u32 = 16;
/// The number of checks that a short query has, about one for each quad that it reads. What needs more begins again. With 256
/// of them, queries of 1 to 2 ms took a millisecond longer.
const MAX_CHECKS_OF_SHORT_QUERY: u32 = 48;
/// The time that a short query has, for a medium that answers slowly and for what checks only the time. In tests the first
/// query also initializes what all of them share, without optimization.
const MAX_TIME_OF_SHORT_QUERY: Duration =
    Duration::from_millis(if cfg!(test) { 60_000 } else { 1 });
/// What a request holds of what it has allocated between two checks counts as one block from this size on, in bytes.
const LARGE_BYTES: u64 = 1 << 20;
/// A request may hold this percentage of its limit while one of its tables moves to a block of twice its size. What holds
/// more meanwhile exceeds the limit afterwards: `used + 2 * table` is more than `limit + table`, and a table that fits
/// twice has at most half of the limit.
const PERCENT_WHILE_GROWING: u64 = 150;

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
    last_allocated: AtomicU64,
    last_freed: AtomicU64,
    /// The size of the largest block that the request holds, or 0 if none is as large as [`LARGE_BYTES`].
    largest_block: AtomicU64,
    /// Of a query that must be short.
    short: Option<ShortLimits>,
}

#[derive(Debug)]
struct ShortLimits {
    until: Instant,
    is_exceeded: AtomicBool,
}

impl Budget {
    /// Begins to count. What its thread has allocated since [`begin_request`] counts too: it has parsed the request.
    pub(crate) fn new(limits: Limits, deadline: Deadline) -> Self {
        let totals = thread_totals();
        Self {
            limits,
            deadline,
            initial_bytes: AtomicI64::new(BYTES_BEFORE_REQUEST.get()),
            checks: AtomicU32::new(0),
            last_allocated: AtomicU64::new(totals.allocated),
            last_freed: AtomicU64::new(totals.freed),
            largest_block: AtomicU64::new(0),
            short: None,
        }
    }

    /// Begins to count for a query that ends as soon as it is not short.
    pub(crate) fn for_short_query(limits: Limits) -> Self {
        let until = Instant::now() + MAX_TIME_OF_SHORT_QUERY;
        let short = Some(ShortLimits { until, is_exceeded: AtomicBool::new(false) });
        Self { short, ..Self::new(limits, (Instant::now() + limits.time).into()) }
    }

    /// Returns whether the query ended because it is not short.
    pub(crate) fn exceeds_short_limits(&self) -> bool {
        self.short.as_ref().is_some_and(|short| short.is_exceeded.load(Ordering::Relaxed))
    }

    /// Ends a query that must be short, and is not.
    pub(crate) fn abort_short_query(&self) {
        if let Some(short) = &self.short {
            short.is_exceeded.store(true, Ordering::Relaxed);
            abort(limit_error("the query is not short".to_owned()));
        }
    }

    /// Checks memory, and time now and then. Aborts beyond a limit.
    pub(crate) fn check(&self) {
        #[cfg(test)]
        CHECKS.set(CHECKS.get() + 1);
        self.check_memory();
        // Only one thread checks, so it needs no atomic increment, which would take longer than all else here.
        let checks = self.checks.load(Ordering::Relaxed);
        self.checks.store(checks.wrapping_add(1), Ordering::Relaxed);
        let is_short = self.short.is_some();
        if is_short && checks >= MAX_CHECKS_OF_SHORT_QUERY {
            self.abort_short_query();
        }
        if is_short || checks.is_multiple_of(CHECKS_PER_CLOCK_READING) {
            self.check_time();
        }
    }

    /// As [`Self::check`], for a term of a quad that was counted when it was read: a short query returns what it reads.
    pub(crate) fn check_term(&self) {
        if self.short.is_none() {
            return self.check();
        }
        self.check_memory();
        self.check_time();
    }

    /// Aborts beyond the limit of memory, and before a table that is full moves to a block of twice its size and would
    /// exceed the limit too far: the evaluator asks nothing before it allocates that block.
    fn check_memory(&self) {
        let totals = thread_totals();
        let initial_bytes = self.initial_bytes.load(Ordering::Relaxed);
        let used = u64::try_from(totals.held() - initial_bytes).unwrap_or(0);
        let while_growing = used.saturating_add(self.find_largest_block(totals).saturating_mul(2));
        if used > self.limits.memory
            || while_growing > self.limits.memory / 100 * PERCENT_WHILE_GROWING
        {
            self.abort_for_memory();
        }
    }

    fn find_largest_block(&self, totals: ThreadTotals) -> u64 {
        let allocated = totals.allocated - self.last_allocated.load(Ordering::Relaxed);
        let freed = totals.freed - self.last_freed.load(Ordering::Relaxed);
        self.last_allocated.store(totals.allocated, Ordering::Relaxed);
        self.last_freed.store(totals.freed, Ordering::Relaxed);
        let mut largest = self.largest_block.load(Ordering::Relaxed);
        if freed >= largest {
            largest = 0;
        }
        // A table that moves to a block of twice its size frees half of what it allocates. What a request allocates and
        // frees in small pieces, such as a plan, is no block.
        let block = allocated.min(allocated.saturating_sub(freed).saturating_mul(2));
        if block >= LARGE_BYTES.max(largest) {
            largest = block;
        }
        self.largest_block.store(largest, Ordering::Relaxed);
        largest
    }

    /// Aborts if there is no time left, or the request is cancelled.
    pub(crate) fn check_time(&self) {
        let now = Instant::now();
        if self.short.as_ref().is_some_and(|short| now >= short.until) {
            self.abort_short_query();
        }
        if self.deadline.is_cancelled.load(Ordering::Relaxed) {
            let class = ErrorClass::Unavailable(Duration::from_secs(1));
            abort(GatewayError::new(class, "the client has disconnected"));
        }
        if now >= self.deadline.at {
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

#[cfg(test)]
thread_local! {
    /// The number of checks of this thread.
    pub(crate) static CHECKS: Cell<u64> = const { Cell::new(0) };
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

    #[test]
    fn a_short_query_ends_at_its_time_also_where_nothing_else_is_checked() {
        let limits = Limits { time: Duration::from_mins(10), memory: 32 << 20, rows: 1 };
        let mut budget = Budget::for_short_query(limits);
        let check = |budget: &Budget| {
            catch("the test", || {
                budget.check_time();
                Ok(())
            })
        };
        check(&budget).unwrap();
        assert!(!budget.exceeds_short_limits());
        let until = Instant::now();
        budget.short = Some(ShortLimits { until, is_exceeded: AtomicBool::new(false) });
        check(&budget).unwrap_err();
        assert!(budget.exceeds_short_limits());
    }

    #[test]
    fn a_table_that_would_exceed_the_limit_too_far_while_it_grows_ends_the_request() {
        let limits = Limits { time: Duration::from_mins(10), memory: 32 << 20, rows: 1 };
        let grow = |bytes: &[usize]| {
            begin_request();
            let budget = Budget::new(limits, (Instant::now() + limits.time).into());
            catch("the test", || {
                let mut table = Vec::<u8>::new();
                for size in bytes {
                    table = Vec::with_capacity(*size);
                    budget.check();
                }
                Ok(table.capacity())
            })
        };
        assert_eq!(grow(&[4 << 20, 8 << 20, 15 << 20]).unwrap(), 15 << 20);
        assert_eq!(grow(&[20 << 20, 2 << 20]).unwrap_err().class, ErrorClass::Invalid);
        assert_eq!(grow(&[7 << 20, 0, 15 << 20]).unwrap(), 15 << 20);
    }

    #[test]
    fn small_pieces_that_were_freed_again_are_no_table() {
        let limits = Limits { time: Duration::from_mins(10), memory: 32 << 20, rows: 1 };
        begin_request();
        let budget = Budget::new(limits, (Instant::now() + limits.time).into());
        let checked = catch("the test", || {
            let pieces = (0..1_000).map(|_| std::hint::black_box(vec![1_u8; 64 << 10]));
            let sum: usize = pieces.map(|piece| piece.len()).sum();
            budget.check();
            Ok(sum)
        });
        assert_eq!(checked.unwrap(), 1_000 * (64 << 10));
    }
}
