//! Ingestion: stores the JSON of a Business Object in the graph, all or nothing.
//!
//! `run` handles one request, and `change` what happens inside its transaction. `convert` checks each object against
//! its shape and creates a `node`. `resolve` finds its URI. `write` (ADD, UPDATE, REPLACE, MERGE) or `delete` changes the
//! graph, and `request_writer` keeps what one object needs of those before it. `orphans` removes what nothing refers to any
//! more. `record` and `idempotency` are part of the same commit.
//!
//! An ingestion that needs an approval becomes a change (`submission`, `crate::changes`): what it would do is computed here
//! and stored, and nothing of it reaches the graph.
//!
//! A batch of messages of a source (`messages`) is one ingestion with `onError=skip`.
//!
//! With `onError=skip`, `partial` leaves out the objects with errors (`rejections`) and those that need them
//! (`dependents`), and stores them as dead letters.
//!
//! The body may be an export file (`export_file`), or documents that the objects are in (`documents`). Then `places` says
//! where each object is.
//!
//! Only one object of the request is in memory at a time. `dry_run` shows what sample data would become with a
//! definition that is not stored yet, and `preview` what a request would change. `locked_fields` finds the fields that a
//! form cannot send without losing stored values.
//!
//! Rules for the JSON of one object:
//! - `null` means that there is no value, also inside an array. An empty array means the same, except in UPDATE, where
//!   it clears the field. In MERGE both clear it. A value that the field's `absent` names is the same as `null`.
//! - `uri` and the mapping's `id` field both name the object. A nested object with only its `uri` is a reference: the
//!   link is created, and the object itself does not change.
//! - A single nested object without a URI is the one that its parent links to. Elements of an array without a URI are
//!   new each time, so a REPLACE that sends them again creates new objects and removes the old ones.
//! - UPDATE and MERGE require the URI or the key of the request's own objects; nested objects may be new.
//! - An object given several times in one request is one object. ADD and MERGE treat the mentions as separate requests;
//!   UPDATE and REPLACE accept them only if they are equal.
//! - An object whose shape has a natural key and that has no URI is the stored one with this key, or a new one with the
//!   key's URI.
//! - Values are equal if they have the same lexical form and datatype: `1.0` and `1` are two values.

mod answer;
mod bounded;
mod change;
mod codes;
mod condition;
mod convert;
mod delete;
mod dependents;
mod derived_iris;
mod documents;
mod dry_run;
mod empty;
mod expire;
mod export_file;
mod findings;
mod idempotency;
mod identifiers;
mod lines;
mod literal;
mod locked_fields;
mod mapping_namespaces;
mod messages;
mod mode;
mod node;
mod objects;
mod orphans;
mod partial;
mod places;
mod preview;
mod read_object;
mod record;
mod rejections;
mod repeats;
mod request;
mod request_uris;
mod request_writer;
mod resolve;
mod retry;
mod review;
mod run;
mod shared_keys;
mod shown_term;
mod submission;
#[cfg(test)]
mod tests;
mod value_limit;
mod violations;
mod write;
mod write_history;
mod written_objects;

pub use answer::Answer;
pub(crate) use change::{Applied, apply_whole_request};
pub use condition::ObjectCondition;
pub(crate) use convert::check_value;
pub use documents::measure_document;
pub use dry_run::{DryRun, RenderedObject, dry_run_ingestion};
pub(super) use empty::{RemovedMembers, is_kept, remove_next_members};
pub use expire::{KeptObjects, remove_expired};
pub(crate) use findings::describe_unknown_field;
pub(crate) use idempotency::{ANSWERS, rewrite_stored_answer};
pub use identifiers::MintedIdentifier;
pub(crate) use literal::MAX_JSON_BYTES;
pub use locked_fields::{LockReason, LockedFields, find_locked_fields};
pub use messages::{BatchedMessage, MAX_TOPIC_COPIES_BYTES, MessageBatch};
pub use mode::{parse_mode, parse_on_error};
pub use penstock_config::Limits;
pub use penstock_resources::ingestion::{BodyForm, Mode, OnError};
pub use preview::{Preview, preview_ingestion};
pub use record::{UpdateToRecord, iter_records, list_records, read_record, store_update_record};
pub(crate) use record::{new_record, store_record};
pub use request::{Body, Request};
pub use retry::missing_letter_error;
pub use review::{AuditHook, AuditedStep, Replay, ReviewStep, Submission};
pub use run::{BegunIngestion, begin_ingestion, ingest};
pub(crate) use run::{check_versions, outdated_error};
pub use value_limit::{check_value_count, count_values};
pub use write_history::{WriteHistory, find_write_history};
pub(crate) use written_objects::WrittenObjects;
