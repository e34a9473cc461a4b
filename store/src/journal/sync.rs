//! Group commit: who waits for a sync shares it with all that was appended before it began.
use crate::{Error, files};
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of a frame from which on its sync is begun by another thread: while less is applied to the index,
/// the change of threads would take longer than the sync gains.
const LONG: usize = 16 << 10;

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
    /// The frame that was appended and could not be applied to the index. Its commit was reported
    /// as failed, although the frame may be synced.
    failed: Option<u64>,
    bytes: Bytes,
    /// Whether a segment may be full and not packed.
    to_pack: bool,
}

/// What a journal takes on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    /// The base and all segments.
    pub(crate) all: u64,
    pub(crate) base: u64,
    /// The segments that are packed.
    pub(crate) packed: u64,
}

impl Synced {
    pub(crate) fn new(file: Arc<File>, path: PathBuf, sequence: u64, bytes: Bytes) -> Self {
        let state = State {
            file,
            path,
            appended: sequence,
            synced: sequence,
            syncing: false,
            poison: None,
            lost: false,
            failed: None,
            bytes,
            to_pack: true,
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
        state.bytes.all += bytes;
    }

    /// Frames go to a new segment from now on; all before are synced.
    pub(crate) fn rolled(&self, file: Arc<File>, path: PathBuf, bytes: u64) {
        let mut state = self.state();
        state.file = file;
        state.path = path;
        state.bytes.all += bytes;
        state.to_pack = true;
    }

    /// The newest frame that is known to be synced.
    pub(crate) fn newest(&self) -> u64 {
        self.state().synced
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.state().bytes
    }

    /// A new base took the place of files of so many bytes, all packed segments among them.
    pub(crate) fn rebased(&self, removed: u64, base: u64) {
        let mut state = self.state();
        let all = (state.bytes.all + base).saturating_sub(removed);
        state.bytes = Bytes { all, base, packed: 0 };
    }

    /// The segments that are full now are being packed.
    pub(crate) fn begin_packing(&self) {
        self.state().to_pack = false;
    }

    /// Some of them were not.
    pub(crate) fn packing_failed(&self) {
        self.state().to_pack = true;
    }

    /// Whether a segment may be full and not packed.
    pub(crate) fn is_to_pack(&self) -> bool {
        self.state().to_pack
    }

    /// A segment was packed.
    pub(crate) fn packed(&self, before: u64, after: u64) {
        let bytes = &mut self.state().bytes;
        bytes.all = (bytes.all + after).saturating_sub(before);
        bytes.packed += after;
    }

    /// Lets no further commit in.
    pub(crate) fn poison(&self, cause: &Error) {
        tracing::error!(%cause, "The store takes no commits until it is opened anew.");
        self.state().poison.get_or_insert_with(|| cause.to_string());
        self.changed.notify_all();
    }

    /// Lets no further commit in after frame `sequence`, which was appended, could not be applied.
    pub(crate) fn poison_from(&self, sequence: u64, cause: &Error) {
        self.state().failed = Some(sequence);
        self.poison(cause);
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
        // Nothing is appended behind a frame that could not be applied.
        state.failed.map_or(state.synced, |failed| state.synced.min(failed - 1))
    }

    /// As if a sync did not return.
    #[cfg(test)]
    pub(crate) fn hang(&self, hangs: bool) {
        self.state().syncing = hangs;
        self.changed.notify_all();
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

/// Begins the syncs of long frames while they are applied to the index, before anybody waits for them.
#[derive(Debug, Default)]
pub(crate) struct Ahead(OnceLock<Option<Frames>>);

/// Takes the sequence of each frame, and what waits for it.
type Frames = Sender<(Arc<Synced>, u64)>;

impl Ahead {
    /// A frame with so many bytes was appended.
    pub(crate) fn appended(&self, synced: &Arc<Synced>, sequence: u64, bytes: usize) {
        if bytes >= LONG
            && let Some(sender) = self.0.get_or_init(start)
        {
            // Without the thread whoever waits for the sync makes it, as always.
            let _ = sender.send((synced.clone(), sequence));
        }
    }
}

/// Starts a thread that ends with the sender.
fn start() -> Option<Frames> {
    let (sender, frames): (Frames, _) = channel();
    let run = move || {
        for (synced, sequence) in frames {
            // What fails poisons, and is told to whoever waits for the frame.
            let _ = synced.wait(sequence);
        }
    };
    std::thread::Builder::new().name("syncing".into()).spawn(run).ok().map(|_| sender)
}
