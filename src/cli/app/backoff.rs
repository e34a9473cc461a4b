//! Exponential backoff between failed starts, so that a gateway whose disk fails does not wear the disk out or take
//! resources from other services.
//!
//! The service manager's own delay (`RestartSec=`) does not grow in all of its versions, and a connection to the
//! service's socket ends it early. So the service counts its starts in the runtime directory, which is empty after
//! each boot, and waits before it opens the store.
use super::systemd;
use penstock_base::backoff::exponential_delay;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first delay, `RestartSec=` of the unit.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_mins(5);
/// A start counts as successful after the service has run for this time.
const SUCCESS_AFTER: Duration = Duration::from_mins(10);

/// Counts consecutive failed starts.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// The file with the count; `None` without a service manager that provides a runtime directory.
    file: Option<PathBuf>,
    /// The number of failed starts before this one.
    failed_starts: u32,
}

impl Backoff {
    /// Counts this start in `$RUNTIME_DIRECTORY`, which `RuntimeDirectory=` sets (`systemd.exec(5)`).
    #[must_use]
    pub fn count_start_of_service() -> Self {
        let directories = std::env::var("RUNTIME_DIRECTORY").unwrap_or_default();
        let first = directories.split(':').next().filter(|first| !first.is_empty());
        Self::count_start_in(first.map(|directory| Path::new(directory).join("starts")))
    }

    fn count_start_in(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let failed_starts = text.and_then(|text| text.trim().parse().ok()).unwrap_or(0_u32);
        if let Some(file) = &file
            && let Err(error) =
                std::fs::write(file, format!("{}\n", failed_starts.saturating_add(1)))
        {
            tracing::warn!(%error, file = %file.display(), "Counting this start failed; the delay of the next start may be too short.");
        }
        Self { file, failed_starts }
    }

    /// Waits for the delay of this start, and reports that to the service manager.
    pub(super) async fn wait_for_delay(&self) {
        let delay = self.remaining_delay();
        if delay.is_zero() {
            return;
        }
        let words = format!(
            "Waiting {} s before starting, after {} failed starts",
            delay.as_secs(),
            self.failed_starts
        );
        tracing::warn!("{words}.");
        systemd::notify_delay(&words, delay);
        tokio::time::sleep(delay).await;
    }

    /// Returns how long this start waits: the backoff less the delay that the service manager has added already.
    fn remaining_delay(&self) -> Duration {
        if self.failed_starts < 2 {
            return Duration::ZERO;
        }
        let delay = exponential_delay(FIRST_DELAY, self.failed_starts.into(), MAX_DELAY);
        delay.saturating_sub(FIRST_DELAY)
    }

    /// Resets the count, so that the next start does not wait. Call it when the service was shut down normally, or when
    /// only a person can fix the error.
    pub fn reset_count(&self) {
        if let Some(file) = &self.file {
            // A missing file means a count of 0 already.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Resets the count once the service has run for [`SUCCESS_AFTER`].
    pub(super) async fn reset_count_later(self) {
        tokio::time::sleep(SUCCESS_AFTER).await;
        self.reset_count();
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
            delays.push(Backoff::count_start_in(file.clone()).remaining_delay().as_secs());
        }
        // With the 5 s of the service manager: 5, 10, 20 and so on.
        assert_eq!(delays, [0, 0, 5, 15, 35, 75, 155, 295, 295, 295]);
        std::fs::write(dir.path().join("starts"), format!("{}\n", u32::MAX)).unwrap();
        assert_eq!(Backoff::count_start_in(file.clone()).remaining_delay().as_secs(), 295);
        Backoff::count_start_in(file.clone()).reset_count();
        assert_eq!(Backoff::count_start_in(file.clone()).failed_starts, 0);
        std::fs::write(dir.path().join("starts"), "no number").unwrap();
        assert_eq!(Backoff::count_start_in(file).failed_starts, 0);
        assert_eq!(Backoff::count_start_in(None).remaining_delay(), Duration::ZERO);
    }
}
