//! The free space on the disk of the data directory, and the reserve that is kept free.
use crate::error::{ErrorClass, GatewayError, format_mebibytes};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The disk of the data directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Disk {
    dir: PathBuf,
    reserve_bytes: u64,
    /// Whether the log has the warning that the reserve is in use.
    is_warned: Arc<AtomicBool>,
}

/// Returns the bytes that are free for this process on the disk of a directory; `None` if unknown.
pub fn free_bytes_of(dir: &Path) -> Option<u64> {
    penstock_store::free_bytes(dir).ok()
}

impl Disk {
    /// Creates a handle for the disk of `dir`, on which `reserve` bytes (`service.limits.disk-reserve`) are kept free.
    pub fn new(dir: PathBuf, reserve_bytes: u64) -> Self {
        Self { dir, reserve_bytes, is_warned: Arc::default() }
    }

    /// Returns the bytes that are free for this process; `None` if unknown.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes_of(&self.dir)
    }

    /// Returns the bytes that are kept free.
    pub fn reserve_bytes(&self) -> u64 {
        self.reserve_bytes
    }

    /// Whether less than half of the reserve is left.
    pub fn is_half_used(&self) -> bool {
        self.free_bytes().is_some_and(|free| free < self.reserve_bytes / 2)
    }

    /// Whether less than the reserve is free, so that ingestions and definitions are refused.
    pub fn is_in_reserve(&self) -> bool {
        self.free_in_reserve().is_some()
    }

    /// Returns the free bytes if they are less than the reserve. Logs each change between the two states.
    fn free_in_reserve(&self) -> Option<u64> {
        let used = self.free_bytes().filter(|free| *free < self.reserve_bytes);
        if self.is_warned.swap(used.is_some(), Ordering::Relaxed) != used.is_some() {
            if let Some(free) = used {
                tracing::warn!(
                    free,
                    reserve = self.reserve_bytes,
                    "The disk is full up to its reserve; ingestions and definitions are refused until there is enough space."
                );
            } else {
                tracing::info!(
                    "The disk has enough space again; ingestions and definitions are accepted."
                );
            }
        }
        used
    }

    /// Refuses operations that take disk space permanently while less than the reserve is free. Operations that free
    /// space (`DELETE`, deliveries, compaction) and reads do not call this: the reserve is for them.
    ///
    /// # Errors
    /// `ErrorClass::InsufficientStorage` while less than the reserve is free.
    pub fn check_reserve(&self) -> Result<(), GatewayError> {
        let Some(free) = self.free_in_reserve() else { return Ok(()) };
        Err(GatewayError::new(
            ErrorClass::InsufficientStorage,
            format!(
                "the gateway's disk has {} free, less than its reserve of {} \
                 (service.limits.disk-reserve): ingestions and definitions are refused until there is \
                 enough space. Reading, DELETE and exports continue",
                format_mebibytes(free),
                format_mebibytes(self.reserve_bytes)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_refused_only_while_the_reserve_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let disk = |reserve| Disk::new(dir.path().to_owned(), reserve);
        assert_eq!(disk(0).check_reserve(), Ok(()));
        assert_eq!(disk(1).check_reserve(), Ok(()));
        let refused = disk(u64::MAX).check_reserve().unwrap_err();
        assert_eq!(refused.class, ErrorClass::InsufficientStorage);
        assert!(refused.detail.contains("service.limits.disk-reserve"), "{refused}");
        // If the free space is unknown, nothing is refused.
        assert_eq!(Disk::new("/no/such/folder".into(), u64::MAX).check_reserve(), Ok(()));
        assert_eq!(format_mebibytes(1_610_612), "1.5 MiB");
    }
}
