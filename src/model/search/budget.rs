//! Limits the number of objects that a search examines, and its time.
use penstock_base::error::{ErrorClass, GatewayError};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The remaining objects and time of a request. One value serves the whole request.
#[derive(Debug)]
pub struct SearchBudget {
    examined: Cell<u64>,
    max_objects: u64,
    deadline: Instant,
    time_limit: Duration,
}

impl SearchBudget {
    /// Allows a search to examine up to `most` objects within `time` from now.
    pub fn new(max_objects: u64, time_limit: Duration) -> Self {
        Self {
            examined: Cell::new(0),
            max_objects,
            deadline: Instant::now() + time_limit,
            time_limit,
        }
    }

    /// Allows a search to examine up to `max_objects` objects in what is left of a time that others share, of which this was
    /// used.
    pub fn after_others(max_objects: u64, time_limit: Duration, used: Duration) -> Self {
        let deadline = Instant::now() + time_limit.saturating_sub(used);
        Self { deadline, ..Self::new(max_objects, time_limit) }
    }

    /// Begins the next search of a request: its objects count from zero, and the time goes on.
    pub fn begin_next(&self) {
        self.examined.set(0);
    }

    /// Allows another search of the same request to examine up to `max_objects` objects, but no more than this one, in the time
    /// that is left.
    pub(super) fn limited_to(&self, max_objects: u64) -> Self {
        Self { examined: Cell::new(0), max_objects: self.max_objects.min(max_objects), ..*self }
    }

    /// Allows a search to examine all objects, for an answer of any length.
    pub(super) fn unlimited() -> Self {
        Self::new(u64::MAX, Duration::from_hours(24 * 365))
    }

    /// Counts objects that are examined.
    ///
    /// # Errors
    /// `ErrorClass::TooLarge` if there were too many, or the time is over.
    pub fn count_examined(&self, objects: usize) -> Result<(), GatewayError> {
        let looked_at = self.examined.get().saturating_add(objects as u64);
        self.examined.set(looked_at);
        if looked_at > self.max_objects {
            return Err(GatewayError::new(
                ErrorClass::TooLarge,
                format!(
                    "the search was given up after {} objects, the limit of one request, because no index answers \
                     it; filter by a URI or by the value of a field, or ask for less",
                    self.max_objects
                ),
            ));
        }
        self.check_time()
    }

    /// Returns how many objects were examined so far.
    pub(super) fn examined(&self) -> u64 {
        self.examined.get()
    }

    /// Forgets the objects that were examined since there were this many, because the search begins again.
    pub(super) fn rewind(&self, examined: u64) {
        self.examined.set(examined);
    }

    /// Returns when the time is over.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Checks that there is time left.
    ///
    /// # Errors
    /// `ErrorClass::TooLarge` if the time is over.
    pub fn check_time(&self) -> Result<(), GatewayError> {
        if Instant::now() < self.deadline {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the search was given up after {} ms, the limit of one request; it had examined {} objects; ask \
                 for less",
                self.time_limit.as_millis(),
                self.examined.get()
            ),
        ))
    }
}

/// Makes the error of a search past its limits one of a request that cannot be answered: its answer would be about a part of
/// the objects.
pub(super) fn refuse_past_limits(error: GatewayError) -> GatewayError {
    match error.class {
        ErrorClass::TooLarge => GatewayError { class: ErrorClass::Invalid, ..error },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_search_of_a_request_has_no_higher_limit() {
        let budget = SearchBudget::new(2, Duration::from_mins(1));
        for (limit, most) in [(1, 1), (10, 2)] {
            let other = budget.limited_to(limit);
            other.count_examined(most).unwrap();
            assert_eq!(other.count_examined(1).unwrap_err().class, ErrorClass::TooLarge);
        }
        budget.count_examined(2).unwrap();
    }
}
