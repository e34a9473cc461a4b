//! Runs work that may block: on another thread, or in place if it is short.
use penstock_base::error::{ErrorClass, GatewayError};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinError;

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
    let span = tracing::Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
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
