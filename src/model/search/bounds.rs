//! Limits the number of objects that a search examines, and its time.
use penstock_base::error::{ErrorClass, GatewayError};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The remaining objects and time of a request. One value serves the whole request.
#[derive(Debug)]
pub struct SearchBudget {
    looked_at: Cell<u64>,
    most: u64,
    end: Instant,
    time: Duration,
}

impl SearchBudget {
    /// Allows a search to examine up to `most` objects within `time` from now.
    pub fn new(most: u64, time: Duration) -> Self {
        Self { looked_at: Cell::new(0), most, end: Instant::now() + time, time }
    }

    /// Counts objects that are examined.
    ///
    /// # Errors
    /// `ErrorClass::TooLarge` if there were too many, or the time is over.
    pub fn count_examined(&self, objects: usize) -> Result<(), GatewayError> {
        let looked_at = self.looked_at.get().saturating_add(objects as u64);
        self.looked_at.set(looked_at);
        if looked_at > self.most {
            return Err(GatewayError::new(
                ErrorClass::TooLarge,
                format!(
                    "the search was given up after {} objects, the limit of one request, because no index answers \
                     it; filter by a URI or by a field of type resource, or ask for less",
                    self.most
                ),
            ));
        }
        self.check_time()
    }

    /// Checks that there is time left.
    ///
    /// # Errors
    /// `ErrorClass::TooLarge` if the time is over.
    pub fn check_time(&self) -> Result<(), GatewayError> {
        if Instant::now() < self.end {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the search was given up after {} ms, the limit of one request; it had examined {} objects; ask \
                 for less",
                self.time.as_millis(),
                self.looked_at.get()
            ),
        ))
    }
}
