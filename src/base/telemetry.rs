//! What the operator sees: the log and the metrics.

mod counts;
mod gauges;
mod journal;
pub mod limit;
pub mod log;
pub mod metrics;
pub mod recent;
mod targets;
pub mod trace;

pub use log::LogFormat;

/// Does this with what is logged meanwhile going to `to`. A callsite that another thread comes to first, one that
/// nothing listens on, keeps that nobody listens for as long as it is the only listener (tracing's cache of
/// interest): two that never end keep it from being that.
#[cfg(any(test, feature = "testing"))]
pub fn heard<T>(
    to: impl tracing::Subscriber + Send + Sync + 'static,
    work: impl FnOnce() -> T,
) -> T {
    use std::sync::LazyLock;
    static KEPT: LazyLock<[tracing::Dispatch; 2]> =
        LazyLock::new(|| [(); 2].map(|()| tracing::Dispatch::new(tracing_subscriber::registry())));
    LazyLock::force(&KEPT);
    tracing::subscriber::with_default(to, work)
}
