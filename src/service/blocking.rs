//! Runs work that may block: on another thread, or in place if it is short.
use penstock_base::error::{ErrorClass, GatewayError};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinError;

/// The maximum number of ingestions on threads of their own. Writers run one after the other, so nearly all of these
/// threads wait for a sync. Commits that wait at the same time share one, so more of them are faster.
const MAX_INGESTIONS: usize = 32;
/// The maximum number of threads for all other work, each of which may need memory at the same time.
const MAX_OTHER_WORK: usize = 16;
/// The number of threads that may block.
pub const MAX_BLOCKING_THREADS: usize = MAX_INGESTIONS + MAX_OTHER_WORK;

static INGESTIONS: Semaphore = Semaphore::const_new(MAX_INGESTIONS);
static OTHER_WORK: Semaphore = Semaphore::const_new(MAX_OTHER_WORK);

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
    run_within(&OTHER_WORK, work).await
}

/// Runs an ingestion as [`run_blocking`] does, beside more of its kind.
///
/// # Errors
/// As [`run_blocking`].
pub async fn run_ingestion<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<GatewayError> + Send + 'static,
{
    run_within(&INGESTIONS, work).await
}

async fn run_within<T, E>(
    permits: &'static Semaphore,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<GatewayError> + Send + 'static,
{
    let span = tracing::Span::current();
    // Nothing closes the semaphores.
    let permit: Option<SemaphorePermit<'static>> = permits.acquire().await.ok();
    let run = move || {
        // Held until the work ends, even if its request ends before.
        let _permit = permit;
        span.in_scope(work)
    };
    tokio::task::spawn_blocking(run)
        .await
        .unwrap_or_else(|error| Err(task_ended_error(&error).into()))
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
pub fn task_ended_error(error: &JoinError) -> GatewayError {
    tracing::error!(%error, "A request's work ended without an answer.");
    GatewayError::new(
        ErrorClass::Internal,
        "the request's work ended without an answer; the gateway's log says why",
    )
}
