//! The IRIs that contain those of other objects: of the nodes of lists, and of nested objects with a key in their
//! parent. A short request could have many of them with a long URI in each, so their bytes are limited together.

/// How many bytes such IRIs may have on average, if each JSON value of a request has one.
const BYTES_PER_VALUE: usize = 256;

/// Counts the bytes of such IRIs in a request.
#[derive(Debug)]
pub(super) struct DerivedIris {
    bytes: usize,
    max_bytes: usize,
    is_exceeded: bool,
}

impl DerivedIris {
    /// Creates the count of a request that may have this many JSON values (`service.limits.values`).
    pub(super) fn new(max_values: usize) -> Self {
        let max_bytes = max_values.saturating_mul(BYTES_PER_VALUE);
        Self { bytes: 0, max_bytes, is_exceeded: false }
    }

    /// Returns whether some did not fit.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Adds IRIs with this many bytes together. Those that do not fit are not counted.
    ///
    /// # Errors
    /// Returns the message if there are too many bytes.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), String> {
        let total = self.bytes.saturating_add(bytes);
        if total > self.max_bytes {
            self.is_exceeded = true;
            return Err(format!(
                "the IRIs of list nodes and of nested objects with a key contain the URI of the object around \
                 them, and those of the request would have more than {} bytes together ({BYTES_PER_VALUE} for \
                 each of service.limits.values); give the object a shorter uri, or send less at once",
                self.max_bytes
            ));
        }
        self.bytes = total;
        Ok(())
    }
}
