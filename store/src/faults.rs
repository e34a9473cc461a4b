//! Fault injection for tests: the n-th operation on files below a folder fails.
//!
//! The journal, its base and the checkpoint marks use `files` for all operations, and `files` calls this
//! module first. The engine of the index does not; tests with a full disk and with damaged files cover its
//! writes. Applying a commit to the index counts as one operation, and so does looking for a block in a snapshot.
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An operation on a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Creating a file or folder, or opening one for writing.
    Create,
    /// Writing bytes.
    Write,
    /// Syncing a file or folder.
    Sync,
    /// Cutting off the end of a file.
    Truncate,
    /// Renaming a file.
    Rename,
    /// Removing a file.
    Remove,
    /// Applying a commit to the index.
    Apply,
    /// Looking for a block in a snapshot. The snapshot ends, whatever the failure is.
    FindPreserved,
}

/// The exit status of a process that [`Failure::Exit`] ended.
pub const EXIT_STATUS: i32 = 86;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The medium reports an error (EIO).
    Io,
    /// The disk is full (ENOSPC).
    DiskFull,
    /// A write stores half of the bytes before the medium reports an error. For other operations the same as
    /// `Io`.
    ShortWrite,
    /// A write stores half of the bytes before the disk is full. For other operations the same as `DiskFull`.
    ShortWriteDiskFull,
    /// The process exits.
    Exit,
}

impl Failure {
    pub(crate) fn to_io_error(self) -> io::Error {
        match self {
            // `ErrorKind` has no value for EIO (5).
            Self::Io | Self::ShortWrite | Self::Exit => io::Error::from_raw_os_error(5),
            Self::DiskFull | Self::ShortWriteDiskFull => io::ErrorKind::StorageFull.into(),
        }
    }

    pub(crate) fn is_short(self) -> bool {
        matches!(self, Self::ShortWrite | Self::ShortWriteDiskFull)
    }
}

#[derive(Debug)]
struct Plan {
    dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    planned: Option<Planned>,
    first_failure: Option<(Operation, PathBuf)>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    /// The number of the operation that fails, from 1.
    nth: u64,
    /// The kind of operation that counts. `None` counts all operations on files.
    only: Option<Operation>,
    failure: Failure,
    /// Whether all later operations fail too.
    lasting: bool,
}

/// Lets operations skip the plans when none exist: only tests create them, and most tests have none.
static ANY_PLANS: AtomicBool = AtomicBool::new(false);
static PLANS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

/// The fault injection below a folder. It ends when this is dropped.
#[derive(Debug)]
pub struct Faults {
    plan: Arc<Plan>,
}

impl Faults {
    /// Starts counting the operations below `dir`. None fails yet.
    pub fn inject_below(dir: &Path) -> Self {
        let plan = Arc::new(Plan { dir: dir.to_owned(), state: Mutex::default() });
        PLANS.lock().push(plan.clone());
        ANY_PLANS.store(true, Ordering::Release);
        Self { plan }
    }

    /// Makes the n-th operation from now on fail, counted from 1. With `lasting`, all later ones fail too.
    pub fn fail_nth(&self, nth: u64, failure: Failure, lasting: bool) {
        self.set_plan(Planned { nth, only: None, failure, lasting });
    }

    /// Makes the n-th operation of one kind fail.
    pub fn fail_nth_of(&self, only: Operation, nth: u64, failure: Failure) {
        self.set_plan(Planned { nth, only: Some(only), failure, lasting: false });
    }

    fn set_plan(&self, planned: Planned) {
        let mut state = self.plan.state.lock();
        state.count = 0;
        state.first_failure = None;
        state.planned = Some(planned);
    }

    /// Lets all operations succeed again.
    pub fn clear_plan(&self) {
        self.plan.state.lock().planned = None;
    }

    /// Returns the number of operations since the last [`Faults::fail_nth`], or since the start.
    pub fn operation_count(&self) -> u64 {
        self.plan.state.lock().count
    }

    /// Returns the first operation that failed, with its path.
    pub fn first_failure(&self) -> Option<(Operation, PathBuf)> {
        self.plan.state.lock().first_failure.clone()
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        let mut plans = PLANS.lock();
        plans.retain(|plan| !Arc::ptr_eq(plan, &self.plan));
        ANY_PLANS.store(!plans.is_empty(), Ordering::Release);
    }
}

/// Returns how this operation fails, if it does.
pub(crate) fn planned_failure(operation: Operation, path: &Path) -> Option<Failure> {
    if !ANY_PLANS.load(Ordering::Acquire) {
        return None;
    }
    let plans = PLANS.lock();
    let plan = plans.iter().find(|plan| path.starts_with(&plan.dir))?;
    let mut state = plan.state.lock();
    let counts = match state.planned.and_then(|planned| planned.only) {
        Some(only) => only == operation,
        None => !matches!(operation, Operation::Apply | Operation::FindPreserved),
    };
    if !counts {
        return None;
    }
    state.count += 1;
    let Planned { nth, failure, lasting, .. } = state.planned?;
    if state.count != nth && !(lasting && state.count > nth) {
        return None;
    }
    if failure == Failure::Exit {
        std::process::exit(EXIT_STATUS);
    }
    state.first_failure.get_or_insert((operation, path.to_owned()));
    Some(failure)
}
