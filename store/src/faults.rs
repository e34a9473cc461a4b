//! Faults of the medium, made for tests: the n-th operation on files below a folder fails.
//!
//! The journal, its base, and the marks do all that they do to files through `files`, which asks
//! here first. The engine of the index does not: its own writes are tried by a full disk and by damage.
//! Applying a commit to the index asks as a whole.
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something done to a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A file or folder is made or opened for writing.
    Create,
    /// Bytes are written.
    Write,
    /// A file or folder is synced.
    Sync,
    /// A file's end is cut off.
    Cut,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
    /// A commit is applied to the index.
    Apply,
}

/// The exit status of a process that [`Failure::Exit`] ended.
pub const EXIT_STATUS: i32 = 86;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The medium reports an error.
    Io,
    /// The disk is full.
    NoRoom,
    /// Half of the bytes are written before the medium reports an error; else as `Io`.
    Short,
    /// Half of the bytes are written before the disk is full; else as `NoRoom`.
    ShortOfRoom,
    /// The process ends instead.
    Exit,
}

impl Failure {
    pub(crate) fn error(self) -> io::Error {
        match self {
            // EIO has no kind of its own.
            Self::Io | Self::Short | Self::Exit => io::Error::from_raw_os_error(5),
            Self::NoRoom | Self::ShortOfRoom => io::ErrorKind::StorageFull.into(),
        }
    }

    pub(crate) fn is_short(self) -> bool {
        matches!(self, Self::Short | Self::ShortOfRoom)
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
    struck: Option<(Operation, PathBuf)>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    /// The number of the operation that fails.
    nth: u64,
    /// Which operations count; all on files when nothing is named.
    only: Option<Operation>,
    failure: Failure,
    /// Whether all operations after it fail, too.
    lasting: bool,
}

/// None but tests have plans, and most tests have none.
static ANY: AtomicBool = AtomicBool::new(false);
static PLANS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

/// The faults of a folder, until it is dropped.
#[derive(Debug)]
pub struct Faults {
    plan: Arc<Plan>,
}

impl Faults {
    /// Counts the operations below `dir`; none fails yet.
    pub fn below(dir: &Path) -> Self {
        let plan = Arc::new(Plan { dir: dir.to_owned(), state: Mutex::default() });
        PLANS.lock().unwrap_or_else(PoisonError::into_inner).push(plan.clone());
        ANY.store(true, Ordering::Release);
        Self { plan }
    }

    /// Lets the n-th operation on files from now on fail, the first being 1; if `lasting` all after it, too.
    pub fn fail(&self, nth: u64, failure: Failure, lasting: bool) {
        self.plan(Planned { nth, only: None, failure, lasting });
    }

    /// Lets the n-th operation of one kind fail.
    pub fn fail_only(&self, only: Operation, nth: u64, failure: Failure) {
        self.plan(Planned { nth, only: Some(only), failure, lasting: false });
    }

    fn plan(&self, planned: Planned) {
        let mut state = self.plan.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count = 0;
        state.struck = None;
        state.planned = Some(planned);
    }

    /// Lets all succeed again.
    pub fn lift(&self) {
        self.plan.state.lock().unwrap_or_else(PoisonError::into_inner).planned = None;
    }

    /// Operations since the last [`Faults::fail`], or the beginning.
    pub fn count(&self) -> u64 {
        self.plan.state.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The first operation that failed.
    pub fn struck(&self) -> Option<(Operation, PathBuf)> {
        self.plan.state.lock().unwrap_or_else(PoisonError::into_inner).struck.clone()
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|plan| !Arc::ptr_eq(plan, &self.plan));
        ANY.store(!plans.is_empty(), Ordering::Release);
    }
}

/// How this operation is to fail, if it is.
pub(crate) fn strike(operation: Operation, path: &Path) -> Option<Failure> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    let plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = plans.iter().find(|plan| path.starts_with(&plan.dir))?;
    let mut state = plan.state.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = match state.planned.and_then(|planned| planned.only) {
        Some(only) => only == operation,
        None => operation != Operation::Apply,
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
    state.struck.get_or_insert((operation, path.to_owned()));
    Some(failure)
}
