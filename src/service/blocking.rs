//! Runs work that may block: on another thread, or in place if it is short.
use parking_lot::{Mutex, MutexGuard};
use penstock_base::blocking::spawn_blocking;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::permits::{Permit, Permits};
use std::collections::VecDeque;
use std::error::Error;
use std::panic::{self, AssertUnwindSafe};
use std::sync::LazyLock;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tracing::{Instrument as _, Span};

/// The number of threads that ingest. Writers run one after the other, and no ingestion keeps its thread while it waits for
/// its sync. So the second one only reads a body while the first one writes.
const INGESTION_THREADS: usize = 2;
/// The maximum number of threads for all other work, each of which may need memory at the same time.
const MAX_OTHER_WORK: usize = 16;
/// The number of threads for work that is not counted here: of exports, message sources, backups and sign-ins.
const UNCOUNTED_WORK: usize = 30;
/// The number of threads that may block.
pub const MAX_BLOCKING_THREADS: usize = INGESTION_THREADS + MAX_OTHER_WORK + UNCOUNTED_WORK;

static INGESTIONS: Mutex<WaitingIngestions> =
    Mutex::new(WaitingIngestions { waiting: VecDeque::new(), threads: 0 });
static OTHER_WORK: LazyLock<Permits<String>> =
    LazyLock::new(|| Permits::for_accounts(MAX_OTHER_WORK));

tokio::task_local! {
    /// The account whose request runs.
    static ACCOUNT: String;
}

/// Ingestions that wait for a thread, in the order of their requests.
struct WaitingIngestions {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    /// The number of threads that take ingestions until none waits.
    threads: usize,
}

/// Runs a request of an account. Its work takes threads of the share of this account. What runs in no such request has a share
/// together.
pub fn run_for_account<F: Future>(account: String, request: F) -> impl Future<Output = F::Output> {
    ACCOUNT.scope(account, request)
}

/// Waits for a thread of the share of the account whose request this is.
pub(crate) async fn acquire_thread() -> Permit<String> {
    OTHER_WORK.acquire(ACCOUNT.try_with(String::clone).unwrap_or_default()).await
}

/// Runs work that reads or writes the store on a thread that may block, in the span of the caller. One account may have half
/// of the threads, so that its slow requests keep only itself waiting.
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
    let permit = acquire_thread().await;
    let run = move || {
        // Held until the work ends, even if its request ends before.
        let _permit = permit;
        span.in_scope(work)
    };
    spawn_blocking(run).await.unwrap_or_else(|error| Err(task_ended_error(&error).into()))
}

/// Runs an ingestion on a thread that may block, then `work`'s future, which waits for the sync. Once `work` has begun,
/// both end even if the caller no longer waits. A thread takes one ingestion after the other, so that it is not woken for
/// each.
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
    let ingestion = move || {
        // The client has disconnected while it waited for a thread.
        if sender.is_closed() {
            return;
        }
        match span.in_scope(work) {
            Err(error) => drop(sender.send(Err(error))),
            Ok(sync) => {
                let sync = async move { drop(sender.send(sync.await)) };
                runtime.spawn(sync.instrument(span));
            }
        }
    };
    if let Some(thread) = enqueue_ingestion(Box::new(ingestion)) {
        spawn_blocking(move || thread.run_waiting_ingestions());
    }
    ended.await.unwrap_or_else(|error| Err(task_ended_error(&error).into()))
}

fn lock_ingestions() -> MutexGuard<'static, WaitingIngestions> {
    INGESTIONS.lock()
}

/// Returns the thread to start for it, if there are not enough.
fn enqueue_ingestion(ingestion: Box<dyn FnOnce() + Send>) -> Option<IngestionThread> {
    let mut ingestions = lock_ingestions();
    ingestions.waiting.push_back(ingestion);
    let starts = ingestions.threads < INGESTION_THREADS;
    ingestions.threads += usize::from(starts);
    starts.then(|| IngestionThread)
}

/// One of the counted threads. It is dropped without having run if the runtime ends before.
struct IngestionThread;

impl IngestionThread {
    fn run_waiting_ingestions(self) {
        loop {
            let mut ingestions = lock_ingestions();
            let Some(ingestion) = ingestions.waiting.pop_front() else {
                // Under the same lock: the next ingestion starts a thread.
                ingestions.threads -= 1;
                std::mem::forget(self);
                return;
            };
            drop(ingestions);
            // After a panic, its request gets an error because nothing is sent to it.
            let _ = panic::catch_unwind(AssertUnwindSafe(ingestion));
        }
    }
}

impl Drop for IngestionThread {
    fn drop(&mut self) {
        let mut ingestions = lock_ingestions();
        ingestions.threads -= 1;
        // No thread is left to run them, so their requests end with an error.
        let stranded = match ingestions.threads {
            0 => std::mem::take(&mut ingestions.waiting),
            _ => VecDeque::new(),
        };
        drop(ingestions);
        drop(stranded);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::{Duration, sleep, timeout};

    /// The queue is one for the process, so all of it is tested by one test.
    #[test]
    fn ingestions_end_whatever_happens_to_their_clients_neighbours_and_runtimes() {
        static ENDED: AtomicUsize = AtomicUsize::new(0);
        type Never = std::future::Ready<Result<usize, GatewayError>>;
        let count = |number: usize| {
            move || {
                Ok(async move {
                    sleep(Duration::from_millis(1)).await;
                    ENDED.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, GatewayError>(number)
                })
            }
        };
        for _ in 0..20 {
            // This runtime ends while its ingestions wait.
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                for _ in 0..INGESTION_THREADS * 2 {
                    let waiting = run_ingestion(|| Ok::<Never, _>(std::future::ready(Ok(0))));
                    let _ = timeout(Duration::ZERO, waiting).await.is_ok();
                }
            });
            runtime.shutdown_background();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let panicked = run_ingestion::<usize, GatewayError, Never>(|| panic!("broken")).await;
            assert_eq!(panicked.unwrap_err().class, ErrorClass::Internal);
            let refused = GatewayError::new(ErrorClass::Conflict, "refused");
            let failed = refused.clone();
            let failed = run_ingestion::<usize, _, Never>(|| Err(failed)).await;
            assert_eq!(failed.unwrap_err(), refused);
            // Its client disconnects after it has begun.
            let (begin, begun) = oneshot::channel();
            let work = move || {
                begin.send(()).unwrap();
                count(0)()
            };
            let client = tokio::spawn(run_ingestion(work));
            begun.await.unwrap();
            client.abort();
            while ENDED.load(Ordering::SeqCst) == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            let all: Vec<_> =
                (0..100).map(|number| tokio::spawn(run_ingestion(count(number)))).collect();
            for (number, ingestion) in all.into_iter().enumerate() {
                assert_eq!(ingestion.await.unwrap().unwrap(), number);
            }
        });
        assert!(lock_ingestions().waiting.is_empty());
    }
}
