//! The files of the backup in `<data-dir>/backup`. The state has a copy, because a damaged one does not say whether another
//! machine has taken over.
use super::objects::discard_file;
use super::state::{LocalState, VERSION};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{fs, io};

const STATE_FILE: &str = "state.json";
/// A copy of the state, which a start uses if the state is damaged or missing. It is written first, so it is never older.
const STATE_COPY_FILE: &str = "state.copy.json";
/// The extension of a damaged state that was kept.
const DAMAGED_EXTENSION: &str = "json.damaged";
/// What the state is after the takeover of a restore, while it is not certain that the bucket has taken its head. It is in a
/// file of its own, because a gateway that is started with an empty store must not take it for its state.
const TAKEOVER_FILE: &str = "takeover.json";
const SEGMENT_FILE: &str = "segment.new";
const MERGED_FILE: &str = "merged.new";
const BASE_FILE: &str = "base.new";
/// Exists after a restore until exports whose files are gone are replaced. It is no part of the state, which only the
/// worker writes.
const LOST_EXPORTS_FILE: &str = "lost-exports";

/// The folder of the backup in the data directory.
#[derive(Debug, Clone)]
pub(super) struct BackupFolder {
    pub(super) path: PathBuf,
}

/// What every version of the state has.
#[derive(Deserialize)]
struct Preamble {
    version: u32,
}

impl BackupFolder {
    pub(super) fn of(data_dir: &Path) -> Self {
        Self { path: data_dir.join("backup") }
    }

    pub(super) fn segment_file(&self) -> PathBuf {
        self.path.join(SEGMENT_FILE)
    }

    pub(super) fn merged_file(&self) -> PathBuf {
        self.path.join(MERGED_FILE)
    }

    pub(super) fn base_file(&self) -> PathBuf {
        self.path.join(BASE_FILE)
    }

    /// Records whether exports whose files are gone still have to be replaced.
    pub(super) fn set_lost_exports(&self, are_lost: bool) -> io::Result<()> {
        let path = self.path.join(LOST_EXPORTS_FILE);
        if are_lost {
            return files::write_atomically(&path, b"");
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => files::sync_folder(&self.path),
        }
    }

    /// Returns whether exports whose files are gone still have to be replaced.
    pub(super) fn has_lost_exports(&self) -> bool {
        self.path.join(LOST_EXPORTS_FILE).exists()
    }

    /// Creates the folder, and removes what an earlier process did not finish.
    pub(super) fn prepare(&self) -> io::Result<()> {
        files::create_folders(&self.path)?;
        for left in [self.segment_file(), self.merged_file(), self.base_file()] {
            discard_file(&left);
        }
        Ok(())
    }

    /// Reads the state: its copy if it is damaged or missing, and the default if there is neither. Changes nothing, so the
    /// caller does not need the lock of the store.
    ///
    /// # Errors
    /// A newer version wrote it.
    pub(super) fn read_state(&self) -> Result<LocalState, GatewayError> {
        Ok(self.find_state()?.0)
    }

    /// Reads the state as [`Self::read_state`] does. One that was damaged or missing is written again from its copy, and what
    /// is left of it is kept under another name. The caller has the lock of the store.
    ///
    /// # Errors
    /// A newer version wrote it.
    pub(super) fn repair_state(&self) -> Result<LocalState, GatewayError> {
        let (state, cause) = self.find_state()?;
        let repaired = if let Some(cause) = cause {
            tracing::warn!(
                cause,
                "The state of the backup cannot be used, so the backup continues with its copy. Check the disk."
            );
            self.keep_damaged_state().and_then(|()| self.write_state(&state))
        } else if state.lost.is_none() {
            self.repair_copy()
        } else {
            Ok(())
        };
        if let Err(error) = repaired {
            tracing::warn!(%error, "Writing the state of the backup again failed; the gateway tries again.");
        }
        Ok(state)
    }

    /// Returns the state, and if it is that of the copy, the reason.
    fn find_state(&self) -> Result<(LocalState, Option<String>), GatewayError> {
        let cause = match self.read_state_file(STATE_FILE)? {
            Ok(Some(state)) => return Ok((state, None)),
            Ok(None) => None,
            Err(cause) => Some(cause),
        };
        match (self.read_state_file(STATE_COPY_FILE)?, cause) {
            (Ok(Some(copy)), cause) => {
                let missing = || format!("backup/{STATE_FILE} is missing");
                Ok((copy, Some(cause.unwrap_or_else(missing))))
            }
            (Ok(None), None) => Ok((LocalState::default(), None)),
            (Ok(None) | Err(_), Some(cause)) | (Err(cause), None) => {
                Ok((LocalState { lost: Some(cause), ..LocalState::default() }, None))
            }
        }
    }

    /// Reads a file with the state; `None` if there is none. The inner error says why it cannot be used, without any of its
    /// content.
    ///
    /// # Errors
    /// A newer version wrote it.
    fn read_state_file(
        &self,
        name: &str,
    ) -> Result<Result<Option<LocalState>, String>, GatewayError> {
        let path = self.path.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
            Err(error) => return Ok(Err(format!("backup/{name} cannot be read: {error}"))),
        };
        let preamble = serde_json::from_slice::<Preamble>(&bytes);
        if preamble.is_ok_and(|preamble| preamble.version > VERSION) {
            return Err(GatewayError::new(
                ErrorClass::Damaged,
                format!(
                    "a newer version of Penstock wrote the state of the backup, {}; install that version",
                    path.display()
                ),
            ));
        }
        let state = serde_json::from_slice::<LocalState>(&bytes);
        Ok(state.map(|state| Some(state.convert_hole())).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("backup/{name} is damaged at line {line}, column {column}")
        }))
    }

    /// Writes the copy of the state again if it differs. The caller knows that the state can be read.
    fn repair_copy(&self) -> io::Result<()> {
        let copy = self.path.join(STATE_COPY_FILE);
        let state = match fs::read(self.path.join(STATE_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            state => state?,
        };
        if fs::read(&copy).is_ok_and(|copy| copy == state) {
            return Ok(());
        }
        files::write_atomically(&copy, &state)
    }

    /// Keeps a state that cannot be used under another name, if there is a file.
    pub(super) fn keep_damaged_state(&self) -> io::Result<()> {
        match files::rename_synced(&self.path.join(STATE_FILE), &self.damaged_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn damaged_file(&self) -> PathBuf {
        self.path.join(STATE_FILE).with_extension(DAMAGED_EXTENSION)
    }

    /// Returns the warning about a damaged state, until the operator removes what was kept of it.
    pub(super) fn describe_damage(&self) -> Option<String> {
        let kept = self.damaged_file();
        kept.symlink_metadata().is_ok().then(|| {
            format!(
                "the state of the backup was damaged, and backup/{STATE_FILE}.damaged in the data directory is what was left \
                 of it; check the disk, and remove that file"
            )
        })
    }

    /// Replaces the state and its copy. Both are on the medium when this returns.
    pub(super) fn write_state(&self, state: &LocalState) -> io::Result<()> {
        files::create_folders(&self.path)?;
        let text = serde_json::to_vec(state)?;
        files::write_atomically(&self.path.join(STATE_COPY_FILE), &text)?;
        files::write_atomically(&self.path.join(STATE_FILE), &text)
    }

    /// Records the state after a takeover that is about to be tried.
    pub(super) fn write_takeover(&self, state: &LocalState) -> io::Result<()> {
        files::create_folders(&self.path)?;
        files::write_atomically(&self.path.join(TAKEOVER_FILE), &serde_json::to_vec(state)?)
    }

    /// Returns the state after a takeover that was tried, if its result was not seen.
    pub(super) fn read_takeover(&self) -> Option<LocalState> {
        // One that is damaged only lets another era begin.
        serde_json::from_slice(&fs::read(self.path.join(TAKEOVER_FILE)).ok()?).ok()
    }

    /// Forgets a takeover that was tried.
    pub(super) fn discard_takeover(&self) {
        discard_file(&self.path.join(TAKEOVER_FILE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::state::ReplacedBy;

    /// Ways in which a file is damaged or lost.
    fn damages() -> [fn(&Path); 6] {
        [
            |path| fs::write(path, "").unwrap(),
            |path| fs::write(path, [0_u8; 400]).unwrap(),
            |path| fs::write(path, [0xff_u8; 400]).unwrap(),
            |path| {
                let text = fs::read(path).unwrap();
                fs::write(path, &text[..text.len() / 2]).unwrap();
            },
            // Reading this fails as reading a bad sector does.
            |path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/proc/self/mem", path).unwrap();
            },
            |path| fs::remove_file(path).unwrap(),
        ]
    }

    #[test]
    fn a_damaged_state_is_that_of_its_copy_and_is_kept() {
        for damage in damages() {
            let dir = tempfile::tempdir().unwrap();
            let folder = BackupFolder::of(dir.path());
            let replaced = ReplacedBy { at: "now".to_owned(), era: "g".to_owned() };
            let state = LocalState { replaced: Some(replaced), ..LocalState::default() };
            folder.write_state(&state).unwrap();
            let (file, copy) = (folder.path.join(STATE_FILE), folder.path.join(STATE_COPY_FILE));
            damage(&file);
            let is_left = file.symlink_metadata().is_ok();
            assert_eq!(folder.read_state().unwrap(), state);
            // Without the lock of the store nothing changes.
            assert_eq!(file.symlink_metadata().is_ok(), is_left);
            assert_eq!(folder.repair_state().unwrap(), state);
            assert_eq!(folder.damaged_file().symlink_metadata().is_ok(), is_left);
            assert_eq!(folder.describe_damage().is_some(), is_left);
            assert_eq!(fs::read(&file).unwrap(), fs::read(&copy).unwrap());
            // The next damage may be that of the copy.
            damage(&copy);
            assert_eq!(folder.repair_state().unwrap(), state);
            assert_eq!(fs::read(&file).unwrap(), fs::read(&copy).unwrap());
        }
    }

    #[test]
    fn without_a_copy_a_damaged_state_is_lost_until_a_takeover_and_a_missing_one_is_not() {
        for damage in damages() {
            let dir = tempfile::tempdir().unwrap();
            let folder = BackupFolder::of(dir.path());
            assert_eq!(folder.repair_state().unwrap(), LocalState::default());
            assert!(!folder.path.exists());
            folder.write_state(&LocalState { copy: true, ..LocalState::default() }).unwrap();
            damage(&folder.path.join(STATE_COPY_FILE));
            damage(&folder.path.join(STATE_FILE));
            if folder.path.join(STATE_FILE).symlink_metadata().is_err() {
                // As in a store from `penstock restore FILE`.
                assert_eq!(folder.repair_state().unwrap(), LocalState::default());
                continue;
            }
            for _ in 0..2 {
                let state = folder.repair_state().unwrap();
                let cause = state.lost.clone().unwrap();
                assert!(cause.starts_with("backup/state.json "), "{cause}");
                assert!(state.hold_reason().unwrap().contains("take-over"));
                assert_eq!(state.retain_after(), None);
            }
            crate::backup::request_take_over(dir.path(), || Ok(())).unwrap();
            let asked = LocalState { take_over: true, ..LocalState::default() };
            assert_eq!(folder.repair_state().unwrap(), asked);
            assert_eq!(asked.hold_reason(), None);
            assert!(folder.damaged_file().symlink_metadata().is_ok());
        }
    }
}
