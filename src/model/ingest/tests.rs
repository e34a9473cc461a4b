//! Tests of the rules of ingestion, by example.
mod add;
mod conditions;
mod delete;
mod depth;
mod faults;
mod fixture;
mod idempotency;
mod lines;
mod log;
mod records;
mod replace;
mod shared_property;
mod trial;
mod update;
mod write_scope;
mod wrote;
