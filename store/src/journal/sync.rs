//! Group commit: one sync acknowledges all frames that were appended before it began.
use crate::{Error, Format, files};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Poll, Waker};

/// The minimum length, in bytes, of a frame whose sync [`SyncThread`] begins. For smaller frames, switching
/// threads takes longer than it saves while the frame is applied to the index.
const MIN_AHEAD_SYNC_BYTES: usize = 16 << 10;

/// How far the journal is written and synced. The writer and waiting commits share it.
#[derive(Debug)]
pub(crate) struct SyncState {
    state: Mutex<State>,
    /// Wake those who wait for the running sync, and those who wait for the one after it: which is which alternates.
    /// So the end of a sync wakes only the commits that it has synced, and one that begins the next sync.
    ended: [Condvar; 2],
}

/// A commit that waits for its sync without a thread.
#[derive(Debug)]
struct WaitingTask {
    sequence: u64,
    id: u64,
    waker: Waker,
}

#[derive(Debug)]
struct State {
    /// The segment to which frames are appended. All earlier segments are synced.
    file: Arc<File>,
    path: PathBuf,
    /// The format in the header of that segment. No file of the journal has a newer one.
    format: Format,
    appended: u64,
    synced: u64,
    syncing: bool,
    /// The newest frame that the running sync, or the last one, syncs.
    syncing_up_to: u64,
    /// The number of syncs that have begun.
    rounds: usize,
    /// The commits that wait without a thread.
    tasks: Vec<WaitingTask>,
    next_task_id: u64,
    /// Why the store refuses commits, if it does.
    poison: Option<String>,
    /// Whether commits that wait for a sync must fail: a sync failed, or the store is being reopened. Frames
    /// that were appended but not synced may be lost.
    acknowledging_stopped: bool,
    /// The file whose sync failed, and why.
    failed_sync: Option<(PathBuf, io::Error)>,
    /// The frame that was appended but could not be applied to the index. Its commit was reported as failed,
    /// although the frame may be synced.
    failed: Option<u64>,
    bytes: JournalBytes,
    /// Whether full segments may exist that are not packed.
    needs_packing: bool,
}

/// The size of a journal on disk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalBytes {
    /// The base and all segments.
    pub(crate) all: u64,
    pub(crate) base: u64,
    /// The packed segments.
    pub(crate) packed: u64,
}

impl SyncState {
    pub(crate) fn new(
        file: Arc<File>,
        path: PathBuf,
        format: Format,
        sequence: u64,
        bytes: JournalBytes,
    ) -> Self {
        let state = State {
            file,
            path,
            format,
            appended: sequence,
            synced: sequence,
            syncing: false,
            syncing_up_to: sequence,
            rounds: 0,
            tasks: Vec::new(),
            next_task_id: 0,
            poison: None,
            acknowledging_stopped: false,
            failed_sync: None,
            failed: None,
            bytes,
            needs_packing: true,
        };
        Self { state: Mutex::new(state), ended: Default::default() }
    }

    /// Returns what wakes those who wait for the running sync, or the last one, and those who wait for the next one.
    fn this_and_next(&self, state: &State) -> (&Condvar, &Condvar) {
        let [even, odd] = &self.ended;
        if state.rounds.is_multiple_of(2) { (even, odd) } else { (odd, even) }
    }

    fn wake_all(&self) {
        for ended in &self.ended {
            ended.notify_all();
        }
        let tasks = std::mem::take(&mut self.lock_state().tasks);
        wake_tasks(tasks);
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Records an appended frame.
    pub(crate) fn record_append(&self, sequence: u64, bytes: u64) {
        let mut state = self.lock_state();
        state.appended = sequence;
        state.bytes.all += bytes;
    }

    /// Records that frames go to a new segment, which added `bytes` to the journal. All earlier ones are
    /// synced.
    pub(crate) fn record_roll(&self, file: Arc<File>, path: PathBuf, format: Format, bytes: u64) {
        let mut state = self.lock_state();
        state.file = file;
        state.path = path;
        state.format = format;
        state.bytes.all += bytes;
        state.needs_packing = true;
    }

    /// Returns the segment to which frames are appended. All earlier segments are full and synced.
    pub(crate) fn current_segment(&self) -> PathBuf {
        self.lock_state().path.clone()
    }

    /// Returns the newest frame that is known to be synced.
    pub(crate) fn newest_synced(&self) -> u64 {
        self.lock_state().synced
    }

    /// Returns the newest frame that is synced and that reopening the store keeps.
    pub(crate) fn newest_kept(&self) -> u64 {
        self.lock_state().newest_kept()
    }

    /// Returns the format of the store.
    pub(crate) fn format(&self) -> Format {
        self.lock_state().format
    }

    pub(crate) fn bytes(&self) -> JournalBytes {
        self.lock_state().bytes
    }

    /// Records a new base of `base` bytes, which replaced files of `removed` bytes, including all packed
    /// segments.
    pub(crate) fn record_base(&self, removed: u64, base: u64) {
        let mut state = self.lock_state();
        let all = (state.bytes.all + base).saturating_sub(removed);
        state.bytes = JournalBytes { all, base, packed: 0 };
    }

    /// Records that files of `removed` bytes, which a base had replaced earlier, were removed.
    pub(crate) fn record_removal(&self, removed: u64) {
        let bytes = &mut self.lock_state().bytes;
        bytes.all = bytes.all.saturating_sub(removed);
    }

    /// Records that the full segments are being packed.
    pub(crate) fn begin_packing(&self) {
        self.lock_state().needs_packing = false;
    }

    /// Records that packing failed, so that full segments remain.
    pub(crate) fn record_packing_failure(&self) {
        self.lock_state().needs_packing = true;
    }

    /// Returns whether full segments may exist that are not packed.
    pub(crate) fn needs_packing(&self) -> bool {
        self.lock_state().needs_packing
    }

    /// Records that a segment was packed.
    pub(crate) fn record_packed(&self, before: u64, after: u64) {
        let bytes = &mut self.lock_state().bytes;
        bytes.all = (bytes.all + after).saturating_sub(before);
        bytes.packed += after;
    }

    /// Poisons the store, so that it refuses commits.
    pub(crate) fn poison(&self, cause: &Error) {
        tracing::error!(%cause, "The store refuses commits until it is reopened.");
        self.lock_state().poison.get_or_insert_with(|| cause.to_string());
        self.wake_all();
    }

    /// Poisons the store after frame `sequence`, which was appended, could not be applied.
    pub(crate) fn poison_after(&self, sequence: u64, cause: &Error) {
        self.lock_state().failed = Some(sequence);
        self.poison(cause);
    }

    /// Returns why the store refuses commits, if it does.
    pub(crate) fn poison_cause(&self) -> Option<String> {
        self.lock_state().poison.clone()
    }

    /// Fails if the store is poisoned.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        match &self.lock_state().poison {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Stops acknowledging commits. Returns the newest frame that may have been acknowledged.
    pub(crate) fn stop_acknowledging(&self) -> u64 {
        let mut state = self.lock_state();
        while state.syncing {
            let (this, _) = self.this_and_next(&state);
            this.wait(&mut state);
        }
        state.acknowledging_stopped = true;
        let newest = state.newest_kept();
        drop(state);
        // Those who wait for the next sync: nobody begins it.
        self.wake_all();
        newest
    }

    /// Simulates a sync that does not return.
    #[cfg(test)]
    pub(crate) fn set_hanging(&self, hangs: bool) {
        self.lock_state().syncing = hangs;
        self.wake_all();
    }

    /// Returns whether an appended frame is synced, or wakes `waker` when it may be. `id` identifies the commit for its
    /// next call. Another one must sync the file.
    pub(crate) fn poll_synced(
        &self,
        sequence: u64,
        id: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        let mut state = self.lock_state();
        if let Some(result) = state.result_of(sequence) {
            return Poll::Ready(result);
        }
        let known = *id;
        let id = *id.get_or_insert(state.next_task_id);
        let waiting = known.and_then(|known| state.tasks.iter_mut().find(|task| task.id == known));
        if let Some(task) = waiting {
            task.waker.clone_from(waker);
        } else {
            state.next_task_id = state.next_task_id.max(id + 1);
            state.tasks.push(WaitingTask { sequence, id, waker: waker.clone() });
        }
        Poll::Pending
    }

    /// Returns when an appended frame is synced. The first caller that waits syncs the file for all.
    pub(crate) fn wait_synced(&self, sequence: u64) -> Result<(), Error> {
        let mut state = self.lock_state();
        loop {
            if let Some(result) = state.result_of(sequence) {
                return result;
            }
            if state.syncing {
                let (this, next) = self.this_and_next(&state);
                let ended = if sequence <= state.syncing_up_to { this } else { next };
                ended.wait(&mut state);
                continue;
            }
            state.syncing = true;
            state.syncing_up_to = state.appended;
            state.rounds = state.rounds.wrapping_add(1);
            let (file, path, appended) = (state.file.clone(), state.path.clone(), state.appended);
            drop(state);
            let result = files::sync_data(&file, &path);
            state = self.lock_state();
            state.syncing = false;
            match result {
                Ok(()) => state.synced = state.synced.max(appended),
                Err(error) => {
                    state.acknowledging_stopped = true;
                    state.failed_sync = Some((path.clone(), copy_error(&error)));
                    let error = files::io_error("syncing", &path)(error);
                    // At once: a commit that fails with a full disk, and no cause, is known not to exist.
                    state.poison.get_or_insert_with(|| error.to_string());
                    drop(state);
                    self.poison(&error);
                    return Err(error);
                }
            }
            let (this, next) = self.this_and_next(&state);
            this.notify_all();
            next.notify_one();
            let synced = state.synced;
            let tasks = state.tasks.extract_if(.., |task| task.sequence <= synced).collect();
            drop(state);
            wake_tasks(tasks);
            state = self.lock_state();
        }
    }
}

impl State {
    /// Returns the newest frame that reopening the store keeps.
    fn newest_kept(&self) -> u64 {
        // No frame is appended after one that could not be applied.
        self.failed.map_or(self.synced, |failed| self.synced.min(failed - 1))
    }

    /// Returns whether a frame is synced, or will never be; `None` while it is unknown.
    fn result_of(&self, sequence: u64) -> Option<Result<(), Error>> {
        if self.synced >= sequence {
            return Some(Ok(()));
        }
        self.acknowledging_stopped.then(|| {
            Err(match &self.failed_sync {
                Some((path, error)) => files::io_error("syncing", path)(copy_error(error)),
                None => Error::Poisoned { cause: self.poison.clone().unwrap_or_default() },
            })
        })
    }
}

/// Call it without the lock of the state.
fn wake_tasks(tasks: Vec<WaitingTask>) {
    for task in tasks {
        task.waker.wake();
    }
}

/// Returns the error of the operating system once more: each commit that waited for a sync fails with it.
fn copy_error(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Syncs for commits that do not wait on a thread. It begins the sync of a long frame while the frame is applied to the
/// index.
#[derive(Debug, Default)]
pub(crate) struct SyncThread(Mutex<Option<FrameSender>>);

/// Sends the sequence of each frame, with the state to sync.
type FrameSender = Sender<(Arc<SyncState>, u64)>;

impl SyncThread {
    /// Begins the sync of an appended frame if it is long.
    pub(crate) fn begin_sync(&self, synced: &Arc<SyncState>, sequence: u64, bytes: usize) {
        if bytes >= MIN_AHEAD_SYNC_BYTES {
            // If there is no thread, the waiting commit syncs the file as usual.
            self.request_sync(synced, sequence);
        }
    }

    /// Syncs an appended frame. Returns false if there is no thread.
    pub(crate) fn request_sync(&self, synced: &Arc<SyncState>, sequence: u64) -> bool {
        let mut sender = self.0.lock();
        if sender.is_none() {
            *sender = start_thread();
        }
        sender.as_ref().is_some_and(|sender| sender.send((synced.clone(), sequence)).is_ok())
    }
}

/// Starts a thread that ends when the sender is dropped.
fn start_thread() -> Option<FrameSender> {
    let (sender, frames): (FrameSender, _) = channel();
    let run = move || {
        for (synced, sequence) in frames {
            // A failure poisons the store, so the waiting commit fails too.
            let _ = synced.wait_synced(sequence);
        }
    };
    std::thread::Builder::new().name("syncing".into()).spawn(run).ok().map(|_| sender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;
    use std::thread;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn commits_that_wait_for_the_next_sync_fail_when_acknowledging_stops() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = Arc::new(file.reopen().unwrap());
        let bytes = JournalBytes { all: 0, base: 0, packed: 0 };
        let synced = &SyncState::new(open, file.path().to_owned(), Format::default(), 0, bytes);
        synced.set_hanging(true);
        for sequence in 1..=3 {
            synced.record_append(sequence, 1);
        }
        let woken = Arc::new(Woken::default());
        let (mut id, waker) = (None, Waker::from(woken.clone()));
        assert!(synced.poll_synced(3, &mut id, &waker).is_pending());
        let results = thread::scope(|scope| {
            let waiting: Vec<_> =
                (1..=3).map(|sequence| scope.spawn(move || synced.wait_synced(sequence))).collect();
            // As when a sync has ended, and none of them has begun the next one yet.
            thread::sleep(std::time::Duration::from_millis(50));
            synced.lock_state().syncing = false;
            synced.stop_acknowledging();
            waiting.into_iter().map(|waiter| waiter.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(results.iter().all(Result::is_err), "{results:?}");
        assert!(woken.0.load(Ordering::SeqCst));
        let polled = synced.poll_synced(3, &mut id, &waker);
        assert!(matches!(polled, Poll::Ready(Err(Error::Poisoned { .. }))), "{polled:?}");
    }
}
