//! Runs work that may block: on another thread, or in place if it is short.
use penstock_base::error::{ErrorClass, GatewayError};
use std::collections::VecDeque;
use std::error::Error;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tracing::{Instrument as _, Span};

/// The number of threads that ingest. Writers run one after the other, and no ingestion keeps its thread while it waits for
/// its sync. So the second one only reads a body while the first one writes.
const INGESTION_THREADS: usize = 2;
/// The maximum number of threads for all other work, each of which may need memory at the same time.
const MAX_OTHER_WORK: usize = 16;
/// The maximum number of threads for short work that is not counted here, such as reading a part of a file to send.
const MAX_SHORT_WORK: usize = 14;
/// The number of threads that may block.
pub const MAX_BLOCKING_THREADS: usize = INGESTION_THREADS + MAX_OTHER_WORK + MAX_SHORT_WORK;

static INGESTIONS: Mutex<WaitingIngestions> =
    Mutex::new(WaitingIngestions { waiting: VecDeque::new(), threads: 0 });
static OTHER_WORK: Semaphore = Semaphore::const_new(MAX_OTHER_WORK);

/// Ingestions that wait for a thread, in the order of their requests.
struct WaitingIngestions {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    /// The number of threads that take ingestions until none waits.
    threads: usize,
}

/// Runs work that reads or writes the store on a thread that may block, in the span of the caller.
///
/// # Errors
/// The errors of `work`; `ErrorClass::Internal` when it ended without an answer.
pub async fn run_blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<GatewayError> + Send + 'static,
{
    let span = Span::current();
    // Nothing closes the semaphore.
    let permit: Option<SemaphorePermit<'static>> = OTHER_WORK.acquire().await.ok();
    let run = move || {
        // Held until the work ends, even if its request ends before.
        let _permit = permit;
        span.in_scope(work)
    };
    tokio::task::spawn_blocking(run)
        .await
        .unwrap_or_else(|error| Err(task_ended_error(&error).into()))
}

/// Runs an ingestion on a thread that may block, then `work`'s future, which waits for the sync. Both end even if the
/// caller no longer waits. A thread takes one ingestion after the other, so that it is not woken for each.
///
/// # Errors
/// As [`run_blocking`].
pub async fn run_ingestion<T, E, F>(
    work: impl FnOnce() -> Result<F, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<GatewayError> + Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let (sender, ended) = oneshot::channel();
    let (span, runtime) = (Span::current(), Handle::current());
    let ingestion = move || match span.in_scope(work) {
        // Nobody receives it if the client has disconnected.
        Err(error) => drop(sender.send(Err(error))),
        Ok(sync) => {
            let sync = async move { drop(sender.send(sync.await)) };
            runtime.spawn(sync.instrument(span));
        }
    };
    let starts_thread = {
        let mut ingestions = lock_ingestions();
        ingestions.waiting.push_back(Box::new(ingestion));
        let starts = ingestions.threads < INGESTION_THREADS;
        ingestions.threads += usize::from(starts);
        starts
    };
    if starts_thread {
        tokio::task::spawn_blocking(run_waiting_ingestions);
    }
    ended.await.unwrap_or_else(|error| Err(task_ended_error(&error).into()))
}

fn lock_ingestions() -> MutexGuard<'static, WaitingIngestions> {
    INGESTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_waiting_ingestions() {
    loop {
        let mut ingestions = lock_ingestions();
        let Some(ingestion) = ingestions.waiting.pop_front() else {
            ingestions.threads -= 1;
            return;
        };
        drop(ingestions);
        // After a panic, its request gets an error because nothing is sent to it.
        let _ = panic::catch_unwind(AssertUnwindSafe(ingestion));
    }
}

/// Runs a short read of the store on this thread. The runtime moves its other tasks to other threads meanwhile. This
/// avoids two thread switches, which take most of the time of such a request.
pub fn run_in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        // This runtime has no other thread, so `block_in_place` would panic.
        RuntimeFlavor::CurrentThread => work(),
        _ => tokio::task::block_in_place(work),
    }
}

/// Returns the error of a request whose task has ended without an answer.
pub fn task_ended_error(error: &dyn Error) -> GatewayError {
    tracing::error!(%error, "A request's work ended without an answer.");
    GatewayError::new(
        ErrorClass::Internal,
        "the request's work ended without an answer; the gateway's log says why",
    )
}
