//! Tests of the rules of ingestion, by example.
mod add;
mod conditions;
mod delete;
mod depth;
mod dry_run;
mod errors;
mod fixture;
mod idempotency;
mod lines;
mod log;
mod records;
mod replace;
mod shared_property;
mod update;
mod write_history;
mod write_scope;
