//! What the operator sees: the log and the metrics.

pub mod log;
pub mod metrics;
