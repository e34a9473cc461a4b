//! Exponential backoff between failed starts. A gateway whose disk fails neither wears it down nor takes resources
//! from other services.
//!
//! The service manager's own delay (`RestartSec=`) does not grow in all of its versions, and a connection to the
//! service's socket ends it early. So the service counts its starts in the runtime directory, which is empty after
//! each boot, and waits before it opens the store.
use super::systemd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first delay, `RestartSec=` of the unit.
const FIRST: Duration = Duration::from_secs(5);
/// The longest delay.
const LONGEST: Duration = Duration::from_mins(5);
/// A start counts as successful after the service has run for this time.
const RAN: Duration = Duration::from_mins(10);

/// Counts consecutive failed starts.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// The file with the count; `None` without a service manager that provides a runtime directory.
    file: Option<PathBuf>,
    /// The number of failed starts before this one.
    before: u32,
}

impl Backoff {
    /// Counts this start in `$RUNTIME_DIRECTORY`, which `RuntimeDirectory=` sets (`systemd.exec(5)`).
    #[must_use]
    pub fn of_service() -> Self {
        let directories = std::env::var("RUNTIME_DIRECTORY").unwrap_or_default();
        let first = directories.split(':').next().filter(|first| !first.is_empty());
        Self::at(first.map(|directory| Path::new(directory).join("starts")))
    }

    fn at(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let before = text.and_then(|text| text.trim().parse().ok()).unwrap_or(0_u32);
        if let Some(file) = &file
            && let Err(error) = std::fs::write(file, format!("{}\n", before.saturating_add(1)))
        {
            tracing::warn!(%error, file = %file.display(), "Counting this start failed; the delay of the next start may be too short.");
        }
        Self { file, before }
    }

    /// Waits for the delay of this start, and reports that to the service manager.
    pub(super) async fn wait(&self) {
        let delay = self.delay();
        if delay.is_zero() {
            return;
        }
        let words = format!(
            "Waiting {} s before starting, after {} failed starts",
            delay.as_secs(),
            self.before
        );
        tracing::warn!("{words}.");
        systemd::delayed(&words, delay);
        tokio::time::sleep(delay).await;
    }

    /// Returns how long this start waits: the backoff less the delay that the service manager has added already.
    fn delay(&self) -> Duration {
        if self.before < 2 {
            return Duration::ZERO;
        }
        let factor = 1_u32.checked_shl(self.before - 1).unwrap_or(u32::MAX);
        FIRST.saturating_mul(factor).min(LONGEST).saturating_sub(FIRST)
    }

    /// Resets the count, so that the next start does not wait. For a service that was shut down in order, or that
    /// needs a person's help.
    pub fn forget(&self) {
        if let Some(file) = &self.file {
            // A missing file means a count of 0 already.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Resets the count once the service has run for [`RAN`].
    pub(super) async fn forget_later(self) {
        tokio::time::sleep(RAN).await;
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_until_a_start_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let file = Some(dir.path().join("starts"));
        let mut delays = Vec::new();
        for _ in 0..10 {
            delays.push(Backoff::at(file.clone()).delay().as_secs());
        }
        // With the 5 s of the service manager: 5, 10, 20 and so on.
        assert_eq!(delays, [0, 0, 5, 15, 35, 75, 155, 295, 295, 295]);
        std::fs::write(dir.path().join("starts"), format!("{}\n", u32::MAX)).unwrap();
        assert_eq!(Backoff::at(file.clone()).delay().as_secs(), 295);
        Backoff::at(file.clone()).forget();
        assert_eq!(Backoff::at(file.clone()).before, 0);
        std::fs::write(dir.path().join("starts"), "no number").unwrap();
        assert_eq!(Backoff::at(file).before, 0);
        assert_eq!(Backoff::at(None).delay(), Duration::ZERO);
    }
}
