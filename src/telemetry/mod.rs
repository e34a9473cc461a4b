//! What the operator sees: the log and the metrics.

mod gauges;
pub mod log;
pub mod metrics;
