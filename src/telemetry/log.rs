//! The log: to standard error, which systemd hands to the journal.
use crate::config::LogFormat;

/// Starts logging; `filter` as tracing's `EnvFilter` reads it.
pub fn start(filter: &str, format: LogFormat) {
    let _ = (filter, format);
    todo!()
}
