//! Group commit: who waits for a sync shares it with all that was appended before it began.
use crate::{Error, files};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How many times the bytes of its base the frames behind it may take. A quad takes a third as much
/// in the base; with 1, each quad that is added lets three be written anew, with 2 it is half of that.
const OUTGROWN: u64 = 2;

/// How far the journal is written and synced. Shared by the writer and those who wait.
#[derive(Debug)]
pub(crate) struct Synced {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The segment that is appended to. All segments before it are synced.
    file: Arc<File>,
    path: PathBuf,
    appended: u64,
    synced: u64,
    syncing: bool,
    /// Why no commit is taken any more.
    poison: Option<String>,
    /// Whether a sync failed: what was appended and is not synced may never be.
    lost: bool,
    /// Bytes of the base and of all segments.
    journal_bytes: u64,
    base_bytes: u64,
}

impl Synced {
    pub(crate) fn new(
        file: Arc<File>,
        path: PathBuf,
        sequence: u64,
        journal_bytes: u64,
        base_bytes: u64,
    ) -> Self {
        let state = State {
            file,
            path,
            appended: sequence,
            synced: sequence,
            syncing: false,
            poison: None,
            lost: false,
            journal_bytes,
            base_bytes,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frame was appended.
    pub(crate) fn appended(&self, sequence: u64, bytes: u64) {
        let mut state = self.state();
        state.appended = sequence;
        state.journal_bytes += bytes;
    }

    /// Frames go to a new segment from now on; all before are synced.
    pub(crate) fn rolled(&self, file: Arc<File>, path: PathBuf, bytes: u64) {
        let mut state = self.state();
        state.file = file;
        state.path = path;
        state.journal_bytes += bytes;
    }

    /// The newest frame that is known to be synced.
    pub(crate) fn newest(&self) -> u64 {
        self.state().synced
    }

    pub(crate) fn journal_bytes(&self) -> u64 {
        self.state().journal_bytes
    }

    pub(crate) fn base_bytes(&self) -> u64 {
        self.state().base_bytes
    }

    /// A new base took the place of files of so many bytes.
    pub(crate) fn rebased(&self, removed: u64, base_bytes: u64) {
        let mut state = self.state();
        state.journal_bytes = (state.journal_bytes + base_bytes).saturating_sub(removed);
        state.base_bytes = base_bytes;
    }

    /// Whether the frames behind the base take more than twice the bytes that it does, and more than
    /// `least`.
    pub(crate) fn is_outgrown(&self, least: u64) -> bool {
        let state = self.state();
        let tail = state.journal_bytes.saturating_sub(state.base_bytes);
        tail > least.max(state.base_bytes.saturating_mul(OUTGROWN))
    }

    /// Lets no further commit in.
    pub(crate) fn poison(&self, cause: &Error) {
        tracing::error!(%cause, "A write failed; the store takes no commits until it is opened anew.");
        self.state().poison.get_or_insert_with(|| cause.to_string());
        self.changed.notify_all();
    }

    /// Why no commit is taken any more.
    pub(crate) fn cause(&self) -> Option<String> {
        self.state().poison.clone()
    }

    /// Refuses when the store is poisoned.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.state().poison {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Lets nothing more be acknowledged; gives the newest frame that may have been.
    pub(crate) fn end(&self) -> u64 {
        let mut state = self.state();
        while state.syncing {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.lost = true;
        state.synced
    }

    /// Returns once the frame of that sequence, which has been appended, is synced.
    pub(crate) fn wait(&self, sequence: u64) -> Result<(), Error> {
        let mut state = self.state();
        loop {
            if state.synced >= sequence {
                return Ok(());
            }
            if state.lost {
                let cause = state.poison.clone().unwrap_or_default();
                return Err(Error::Poisoned { cause });
            }
            if state.syncing {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            let (file, path, appended) = (state.file.clone(), state.path.clone(), state.appended);
            drop(state);
            let result = files::sync_data(&file, &path).map_err(files::fault("syncing", &path));
            state = self.state();
            state.syncing = false;
            match result {
                Ok(()) => state.synced = state.synced.max(appended),
                Err(error) => {
                    state.lost = true;
                    drop(state);
                    self.poison(&error);
                    return Err(error);
                }
            }
            self.changed.notify_all();
        }
    }
}
