//! Runs work that reads or writes the store on a thread that may block.
use penstock_base::error::{ErrorClass, GatewayError};
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

/// Returns the error of a request whose task has ended without an answer.
pub fn task_ended_error(error: &JoinError) -> GatewayError {
    tracing::error!(%error, "A request's work ended without an answer.");
    GatewayError::new(
        ErrorClass::Internal,
        "the request's work ended without an answer; the gateway's log says why",
    )
}
