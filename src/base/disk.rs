//! The room on the disk of the data directory, and the part of it that is kept in reserve.
use crate::fault::{Fault, Kind};
use penstock_store::DiskFull;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The disk of the data directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Disk {
    dir: PathBuf,
    reserve: u64,
    /// Whether the log says that the reserve is in use.
    told: Arc<AtomicBool>,
}

/// The bytes that are free for us on the disk of a directory; `None` when it cannot be told.
pub fn free(dir: &Path) -> Option<u64> {
    penstock_store::free(dir).ok()
}

impl Disk {
    /// The disk of `dir`, of which `reserve` bytes (`service.limits.disk-reserve`) are kept.
    pub fn new(dir: PathBuf, reserve: u64) -> Self {
        Self { dir, reserve, told: Arc::default() }
    }

    /// The bytes that are free for us; `None` when it cannot be told.
    pub fn free(&self) -> Option<u64> {
        free(&self.dir)
    }

    /// Whether less than half of the reserve is left.
    pub fn is_half_used(&self) -> bool {
        self.free().is_some_and(|free| free < self.reserve / 2)
    }

    /// Whether no more is free than the reserve, so that nothing is to be taken in.
    pub fn is_in_reserve(&self) -> bool {
        self.used().is_some()
    }

    /// What is free when it is less than the reserve.
    fn used(&self) -> Option<u64> {
        let used = self.free().filter(|free| *free < self.reserve);
        if self.told.swap(used.is_some(), Ordering::Relaxed) != used.is_some() {
            if let Some(free) = used {
                tracing::warn!(
                    free,
                    reserve = self.reserve,
                    "The disk is full up to its reserve; ingestions and definitions are refused until there is room."
                );
            } else {
                tracing::info!("There is room on the disk again; ingestions are taken.");
            }
        }
        used
    }

    /// Refuses what takes room for good. What frees it (`DELETE`, delivering, compaction) and what
    /// only reads does not ask: the reserve is theirs.
    ///
    /// # Errors
    /// `Kind::NoRoom`.
    pub fn take_in(&self) -> Result<(), Fault> {
        let Some(free) = self.used() else { return Ok(()) };
        Err(Fault::new(
            Kind::NoRoom,
            format!(
                "{} are free on the disk of the gateway, and {} are kept in reserve \
                 (service.limits.disk-reserve): nothing is taken in until there is room. Reading, DELETE \
                 and exporting go on",
                mebibytes(free),
                mebibytes(self.reserve)
            ),
        ))
    }
}

/// How much disk space is needed and how much is free, in words.
pub fn shortage(DiskFull { needed, free }: DiskFull) -> String {
    format!("{} are needed, and {} are free", mebibytes(needed), mebibytes(free))
}

fn mebibytes(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reserve_that_is_not_free_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let disk = |reserve| Disk::new(dir.path().to_owned(), reserve);
        assert_eq!(disk(0).take_in(), Ok(()));
        assert_eq!(disk(1).take_in(), Ok(()));
        let refused = disk(u64::MAX).take_in().unwrap_err();
        assert_eq!(refused.kind, Kind::NoRoom);
        assert!(refused.detail.contains("service.limits.disk-reserve"), "{refused}");
        // What cannot be told refuses nothing.
        assert_eq!(Disk::new("/no/such/folder".into(), u64::MAX).take_in(), Ok(()));
        assert_eq!(mebibytes(1_610_612), "1.5 MiB");
    }
}
