//! Work on threads that may block.
use penstock_base::blocking::spawn_blocking;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::shared::Shared;
use std::io;

/// Runs `work` with a part of the exporter on a thread that may block.
pub(super) async fn run_blocking<P: Send + Sync + 'static, T: Send + 'static>(
    part: &Shared<P>,
    work: impl FnOnce(&P) -> Result<T, GatewayError> + Send + 'static,
) -> Result<T, GatewayError> {
    let part = part.clone();
    spawn_blocking(move || work(&part)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "A task of the exporter failed.");
        Err(GatewayError::new(
            ErrorClass::Internal,
            "the exporter failed; the gateway's log says why",
        ))
    })
}

/// Reads or writes files on a thread that may block.
pub(super) async fn run_io<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error).into()))
}
