//! The threads that parse and evaluate requests.
use crate::budget::begin_request;
use parking_lot::{Mutex, MutexGuard};
use penstock_base::error::GatewayError;
use penstock_base::unwind::{catch, run_on_stack};
use std::io;
use std::sync::mpsc::{SendError, Sender, channel};
use std::thread::{Builder, ThreadId};
use std::time::{Duration, Instant};

/// The size of the stack. The parser, the planner and the evaluator call themselves for each level of nesting, and
/// `syntax` limits the levels. Only pages that are used take memory.
const STACK_BYTES: usize = 64 << 20;
/// How long a thread waits for another request before it ends.
const MAX_IDLE_TIME: Duration = Duration::from_secs(1);
/// A thread whose request took longer ends with it, which frees the pages of its stack. Starting another thread takes
/// little of such a time.
const SHORT_TIME: Duration = Duration::from_millis(10);

type Work = Box<dyn FnOnce() + Send>;

/// The threads that wait for a request.
static IDLE_THREADS: Mutex<Vec<(ThreadId, Sender<Work>)>> = Mutex::new(Vec::new());

/// Runs `work` on a thread of its own with a large stack, and waits for it.
#[cfg(test)]
pub(crate) fn run_in_query_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let builder = Builder::new().name("sparql".into()).stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work)?;
        thread.join().map_err(|panic| -> io::Error { std::panic::resume_unwind(panic) })
    })
}

/// Starts `work` on a thread with a large stack, which runs nothing else meanwhile, and does not wait for it.
///
/// # Errors
/// If the thread cannot be started.
pub fn spawn_query_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut work: Work = Box::new(work);
    loop {
        let idle = lock_idle().pop();
        let Some((_, idle)) = idle else { break };
        match idle.send(work) {
            Ok(()) => return Ok(()),
            Err(SendError(unsent)) => work = unsent,
        }
    }
    let builder = Builder::new().name("sparql".into()).stack_size(STACK_BYTES);
    builder.spawn(move || run_requests(work)).map(drop)
}

/// Runs short work on the calling thread, on a stack as large as that of [`spawn_query_thread`].
///
/// # Errors
/// [`ErrorClass::Unavailable`](penstock_base::error::ErrorClass::Unavailable) if the machine has no memory for the stack;
/// [`ErrorClass::Internal`](penstock_base::error::ErrorClass::Internal) if the work panics.
pub fn run_on_query_stack<T>(work: impl FnOnce() -> T) -> Result<T, GatewayError> {
    catch("the SPARQL request", || {
        run_on_stack(STACK_BYTES, || {
            begin_request();
            work()
        })
    })
}

/// Runs a request, and those that come soon after it.
fn run_requests(first: Work) {
    let (sender, receiver) = channel();
    let mut next = Some(first);
    while let Some(work) = next {
        let started = Instant::now();
        begin_request();
        work();
        if started.elapsed() > SHORT_TIME {
            return;
        }
        let this = std::thread::current().id();
        lock_idle().push((this, sender.clone()));
        next = receiver.recv_timeout(MAX_IDLE_TIME).ok().or_else(|| {
            let mut idle = lock_idle();
            let before = idle.len();
            idle.retain(|(thread, _)| *thread != this);
            let is_taken = idle.len() == before;
            drop(idle);
            // A request that took the sender comes soon.
            if is_taken { receiver.recv().ok() } else { None }
        });
    }
}

// No code panics while it holds this lock.
fn lock_idle() -> MutexGuard<'static, Vec<(ThreadId, Sender<Work>)>> {
    IDLE_THREADS.lock()
}
