//! The free space on the disk of the data directory, and the reserve that is kept free.
use crate::error::{ErrorClass, GatewayError, format_mebibytes};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// With less than this free, commits that free space may be refused too, because each takes some first.
const MIN_DELETION_BYTES: u64 = 1 << 20;

/// The disk of the data directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Disk {
    dir: PathBuf,
    reserve_bytes: u64,
    /// Whether the log has the error that the reserve is in use.
    is_logged: Arc<AtomicBool>,
}

/// Returns the bytes that are free for this process on the disk of a directory; `None` if unknown.
pub fn free_bytes_of(dir: &Path) -> Option<u64> {
    penstock_store::free_bytes(dir).ok()
}

impl Disk {
    /// Creates a handle for the disk of `dir`, on which `reserve` bytes (`service.limits.disk-reserve`) are kept free.
    pub fn new(dir: PathBuf, reserve_bytes: u64) -> Self {
        Self { dir, reserve_bytes, is_logged: Arc::default() }
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

    /// Returns the bytes that are free for this process; `None` if unknown. Logs if they have become less than the
    /// reserve, or more again.
    pub fn observe_free_bytes(&self) -> Option<u64> {
        let free = self.free_bytes();
        let used = free.filter(|free| *free < self.reserve_bytes);
        if self.is_logged.swap(used.is_some(), Ordering::Relaxed) != used.is_some() {
            if let Some(free) = used {
                tracing::error!(
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
        free
    }

    /// Returns the free bytes if they are less than the reserve, as [`Self::observe_free_bytes`].
    fn free_in_reserve(&self) -> Option<u64> {
        self.observe_free_bytes().filter(|free| *free < self.reserve_bytes)
    }

    /// Describes what is refused while less than the reserve is free; `None` otherwise.
    pub fn describe_shortage(&self) -> Option<String> {
        let free = self.free_in_reserve()?;
        let accepted = if free < MIN_DELETION_BYTES {
            "Reading and deliveries continue; DELETE may be refused too"
        } else {
            "Reading, DELETE and exports continue"
        };
        Some(format!(
            "the gateway's disk has {} free, less than its reserve of {} \
             (service.limits.disk-reserve): ingestions and definitions are refused until there is \
             enough space. {accepted}",
            format_mebibytes(free),
            format_mebibytes(self.reserve_bytes)
        ))
    }

    /// Refuses operations that take disk space permanently while less than the reserve is free. Operations that free
    /// space (`DELETE`, deliveries, compaction) and reads do not call this: the reserve is for them.
    ///
    /// # Errors
    /// `ErrorClass::InsufficientStorage` while less than the reserve is free.
    pub fn check_reserve(&self) -> Result<(), GatewayError> {
        match self.describe_shortage() {
            Some(shortage) => Err(GatewayError::new(ErrorClass::InsufficientStorage, shortage)),
            None => Ok(()),
        }
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
