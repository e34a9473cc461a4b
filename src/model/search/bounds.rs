//! How much a search may look at, and for how long.
use penstock_base::fault::{Fault, Kind};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What is left of both. One of these serves a whole request.
#[derive(Debug)]
pub struct Bounds {
    looked_at: Cell<u64>,
    most: u64,
    end: Instant,
    time: Duration,
}

impl Bounds {
    /// So many objects read or passed over, within this time from now on.
    pub fn new(most: u64, time: Duration) -> Self {
        Self { looked_at: Cell::new(0), most, end: Instant::now() + time, time }
    }

    /// Counts objects that are looked at.
    ///
    /// # Errors
    /// `Kind::TooLarge` when there were too many, or it took too long.
    pub fn look(&self, objects: usize) -> Result<(), Fault> {
        let looked_at = self.looked_at.get().saturating_add(objects as u64);
        self.looked_at.set(looked_at);
        if looked_at > self.most {
            return Err(Fault::new(
                Kind::TooLarge,
                format!(
                    "it was given up after {} objects, which is the limit of one request: no index answers it; \
                     ask for a URI or for what a field of type resource holds, or for less",
                    self.most
                ),
            ));
        }
        self.check_time()
    }

    /// Whether there is time left.
    ///
    /// # Errors
    /// `Kind::TooLarge` when there is none.
    pub fn check_time(&self) -> Result<(), Fault> {
        if Instant::now() < self.end {
            return Ok(());
        }
        Err(Fault::new(
            Kind::TooLarge,
            format!(
                "it was given up after {} ms, which is the limit of one request, with {} objects looked at; ask \
                 for less",
                self.time.as_millis(),
                self.looked_at.get()
            ),
        ))
    }
}
