//! The export queue and its targets: an exporter with a small plant, without HTTP.
//!
//! Tests that measure the memory of their process are binaries of their own (`export_memory.rs`, `export_memory_s3.rs`,
//! `export_offline.rs`).

mod causes;
mod directory;
mod heartbeat;
mod keys;
mod killed;
mod link;
mod operate;
mod restart;
mod resume;
mod s3;
mod sparql;
mod walk;
mod without_objects;
