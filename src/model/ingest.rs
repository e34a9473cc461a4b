//! Ingestion: stores the JSON of a Business Object in the graph, all or nothing.
//!
//! `run` handles one request, and `change` what happens inside its transaction. `convert` checks each object against
//! its shape and creates a `node`. `write` (ADD, UPDATE, REPLACE) or `delete` changes the graph. `orphans` removes what
//! nothing refers to any more. `write_scope` limits what a key for certain Business Objects may change. `record` and
//! `idempotency` are part of the same commit.
//!
//! Only one object of the request is in memory at a time. `dry_run` shows what sample data would become with a
//! definition that is not stored yet.
//!
//! Rules for the JSON of one object:
//! - `null` means that there is no value, also inside an array. An empty array means the same, except in UPDATE, where
//!   it clears the field.
//! - `uri` and the mapping's `id` field both name the object. A nested object with only its `uri` is a reference: the
//!   link is created, and the object itself does not change.
//! - A single nested object without a URI is the one that its parent links to. Elements of an array without a URI are
//!   new each time, so a REPLACE that sends them again creates new objects and removes the old ones.
//! - UPDATE requires the URI of the request's own objects; nested objects may be new.
//! - An object given several times in one request is one object. ADD treats the mentions as separate requests; UPDATE
//!   and REPLACE accept them only if they are equal.
//! - Values are equal if they have the same lexical form and datatype: `1.0` and `1` are two values.

mod answer;
mod bounded;
mod change;
mod convert;
mod delete;
mod dry_run;
mod expire;
mod findings;
mod idempotency;
mod lines;
mod literal;
mod mapping_namespaces;
mod mode;
mod node;
mod orphans;
mod record;
mod repeats;
mod request;
mod run;
#[cfg(test)]
mod tests;
mod value_limit;
mod write;
mod write_history;
mod write_scope;

pub use answer::{Answer, Nested, Outcome, Status, Warning};
pub use dry_run::{DryRun, RenderedObject, dry_run_ingestion};
pub use expire::remove_expired;
pub(crate) use idempotency::{ANSWERS_BY_SCOPE, rewrite_stored_answer};
pub use mode::Mode;
pub use record::{Record, list_records, read_record};
pub use request::{Body, Limits, Request};
pub use run::ingest;
pub use write_history::{WriteHistory, find_write_history};
