//! Ingestion: JSON of a Business Object into the graph, all or nothing.
//!
//! `run` is the whole of one request and `change` what happens inside its transaction: `convert` checks each
//! object against its shape and makes a `node` of it, `write` (ADD, UPDATE, REPLACE) or `delete` brings it into the
//! graph, `orphans` removes what nothing refers to any more, `write_scope` says what a key for one Business Object may change, `record` and `idempotency` go into the same commit.
//! No more than one object of the request is held at a time. `trial` shows what would come of a definition that is
//! not stored yet.
//!
//! What is given as JSON of one object:
//! - `null`, in an array too, is no value. An empty array is none either, except to UPDATE, which then clears.
//! - `uri` and the mapping's `id` field both name the object. A nested object of its `uri` alone is a reference:
//!   the link is made, the object itself is left as it is.
//! - A single nested object without a URI is the one that its parent links to; elements of an array without
//!   a URI are new each time. UPDATE asks for the URI of the request's own objects; nested ones may be new.
//!   So a REPLACE that gives such elements again makes new objects of them and removes the old ones.
//! - An object given several times in one request is one object: to ADD as if in requests of their own, to UPDATE
//!   and REPLACE only if it is the same each time.
//! - Equal is what has the same lexical form and datatype: `1.0` and `1` are two values.

mod answer;
mod bounded;
mod change;
mod convert;
mod delete;
mod expire;
mod findings;
mod idempotency;
mod lines;
mod literal;
mod mode;
mod node;
mod orphans;
mod record;
mod repeats;
mod request;
mod run;
mod spaces;
#[cfg(test)]
mod tests;
mod trial;
mod values;
mod write;
mod write_scope;
mod wrote;

pub use answer::{Answer, Nested, Outcome, Status, Warning};
pub use expire::expire;
pub use mode::Mode;
pub use record::{Record, record, records};
pub use request::{ApiKey, Body, Limits, Request};
pub use run::ingest;
pub use trial::{Trial, Viewed, try_out};
pub use wrote::{Writers, writers};
