//! What the operator sees: the log and the metrics.

mod counts;
mod gauges;
mod journal;
pub mod limit;
pub mod log;
pub mod metrics;
pub mod recent;
pub mod trace;
