//! The metrics, in the Prometheus text format.
//!
//! They belong to the process, so they are reached through functions rather than handed around.

/// One ingestion is done. `outcome` is `committed`, `validated`, `replayed` or `refused`.
pub fn ingestion(outcome: &'static str, objects: u64, bytes: u64, seconds: f64) {
    let _ = (outcome, objects, bytes, seconds);
}

/// One export was rendered and queued.
pub fn export_queued(objects: u64, bytes: u64, seconds: f64) {
    let _ = (objects, bytes, seconds);
}

/// One attempt to deliver ended.
pub fn delivery(target: &str, delivered: bool, bytes: u64, seconds: f64) {
    let _ = (target, delivered, bytes, seconds);
}
