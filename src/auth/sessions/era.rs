//! The era of sessions: one boot of the machine with one data directory. Sessions of another era have ended.
use nix::time::{ClockId, clock_gettime};
use penstock_base::files::write_atomically;
use penstock_base::hex::encode_hex;
use rand::RngCore;
use std::path::Path;
use std::time::Duration;

/// The name of the file in the data directory. No backup includes it, so restoring a store ends its sessions.
const ERA_FILE: &str = "session-era";

/// The current era.
#[derive(Debug)]
pub(super) struct Era(String);

impl Era {
    /// Returns the era of this boot in this data directory. Starts a new one if there is none.
    pub(super) fn load_or_start(data_dir: &Path) -> Self {
        let path = data_dir.join(ERA_FILE);
        let boot = penstock_base::clock::boot_id();
        if let Ok(stored) = std::fs::read_to_string(&path)
            && let Some((of_boot, era)) = stored.trim().split_once(' ')
            && !boot.is_empty()
            && of_boot == boot
        {
            return Self(era.to_owned());
        }
        let mut bytes = [0; 16];
        rand::rng().fill_bytes(&mut bytes);
        let era = encode_hex(&bytes);
        if let Err(error) = write_atomically(&path, format!("{boot} {era}\n").as_bytes()) {
            tracing::warn!(%error, "The file that keeps sessions valid after a restart could not be written. Sessions will end with this process.");
        }
        Self(era)
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

/// Returns the time since the machine was booted, including sleep; zero if the system does not report it.
pub(super) fn time_since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_lasts_for_one_boot_and_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let first = Era::load_or_start(folder.path());
        assert_eq!(Era::load_or_start(folder.path()).name(), first.name());
        std::fs::write(folder.path().join(ERA_FILE), format!("other-boot {}\n", first.name()))
            .unwrap();
        assert_ne!(Era::load_or_start(folder.path()).name(), first.name());
        let other = tempfile::tempdir().unwrap();
        assert_ne!(Era::load_or_start(other.path()).name(), first.name());
    }

    #[test]
    fn time_passes() {
        let before = time_since_boot();
        assert!(before > Duration::ZERO);
        assert!(time_since_boot() >= before);
    }
}
