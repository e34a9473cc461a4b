//! Growing delays between starts that came to nothing, so that a gateway whose disk fails does not wear it
//! down, and takes no more than it needs from what else runs there.
//!
//! The service manager's own delay (`RestartSec=`) does not grow on every version of it, and whoever connects
//! to the service's socket ends it early. So the starts are counted in the runtime directory, which is empty
//! after each boot, and the service waits by itself.
use super::systemd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the unit has as `RestartSec=`: the first delay.
const FIRST: Duration = Duration::from_secs(5);
/// The longest delay.
const LONGEST: Duration = Duration::from_mins(5);
/// A service that has run for so long did not come to nothing.
const RAN: Duration = Duration::from_mins(10);

/// The count of the starts that came to nothing, one after the other.
#[derive(Debug, Clone)]
pub struct Backoff {
    /// `None` without a service manager that keeps a directory.
    file: Option<PathBuf>,
    /// How many there were before this one.
    before: u32,
}

impl Backoff {
    /// Counts this start (`$RUNTIME_DIRECTORY` of `systemd.exec(5)`, by `RuntimeDirectory=`).
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
            tracing::warn!(%error, file = %file.display(), "This start could not be counted.");
        }
        Self { file, before }
    }

    /// Waits, and says so to the service manager.
    pub(super) async fn wait(&self) {
        let delay = self.delay();
        if delay.is_zero() {
            return;
        }
        let words = format!(
            "Waiting {} s before it starts, since {} starts came to nothing",
            delay.as_secs(),
            self.before
        );
        tracing::warn!("{words}.");
        systemd::delayed(&words, delay);
        tokio::time::sleep(delay).await;
    }

    /// How long this start waits: what the delay lacks that the service manager has kept already.
    fn delay(&self) -> Duration {
        if self.before < 2 {
            return Duration::ZERO;
        }
        let factor = 1_u32.checked_shl(self.before - 1).unwrap_or(u32::MAX);
        FIRST.saturating_mul(factor).min(LONGEST).saturating_sub(FIRST)
    }

    /// The next start does not wait: this one ended in good order, or a person is needed.
    pub fn forget(&self) {
        if let Some(file) = &self.file {
            // What is not there is forgotten.
            let _ = std::fs::remove_file(file);
        }
    }

    /// Forgets once the service has run for a while.
    pub(super) async fn forget_later(self) {
        tokio::time::sleep(RAN).await;
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_until_a_start_went_well() {
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
