//! What operators observe: the log and the metrics.

mod counts;
mod gauges;
mod journal;
mod levels;
pub mod limit;
pub mod log;
pub mod metrics;
pub mod recent;
mod ring;
mod targets;
pub mod trace;

pub use log::LogFormat;

/// Runs `work` and sends its log events to the subscriber `to`.
///
/// tracing caches whether a callsite has a subscriber. If another thread without a subscriber reaches the callsite
/// first, it stays off as long as there is only one subscriber. Two permanent subscribers prevent that.
#[cfg(any(test, feature = "testing"))]
pub fn with_subscriber<T>(
    to: impl tracing::Subscriber + Send + Sync + 'static,
    work: impl FnOnce() -> T,
) -> T {
    use std::sync::LazyLock;
    static KEPT: LazyLock<[tracing::Dispatch; 2]> =
        LazyLock::new(|| [(); 2].map(|()| tracing::Dispatch::new(tracing_subscriber::registry())));
    LazyLock::force(&KEPT);
    tracing::subscriber::with_default(to, work)
}
