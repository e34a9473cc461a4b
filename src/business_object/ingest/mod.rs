//! Ingestion: JSON of a Business Object into the graph, all or nothing.
use super::resource::Compiled;
use crate::fault::Fault;
use penstock_store::Store;
use serde::{Deserialize, Serialize};

/// What an ingestion does with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// Adds and never removes; a contradiction is a fault.
    #[default]
    Add,
    /// Makes each named object exactly what is given.
    Replace,
    /// Replaces the values of the fields present.
    Update,
    /// Removes the named objects.
    Delete,
    /// Stores nothing and answers what `Add` would.
    Validate,
}

impl std::str::FromStr for Mode {
    type Err = Fault;
    fn from_str(text: &str) -> Result<Self, Fault> {
        let _ = text;
        todo!()
    }
}

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `service.limits.nesting`
    pub nesting: usize,
    /// `service.limits.objects`
    pub objects: usize,
    /// `service.limits.idempotency-keys`: answers kept for 24 h, the oldest given up first.
    pub idempotency_keys: usize,
    /// `service.limits.history`: ingestion records kept.
    pub history: usize,
}

/// One ingestion to be done.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The Business Object.
    pub business_object: &'a Compiled,
    /// What to do.
    pub mode: Mode,
    /// The account that asks, as it stands in the record.
    pub caller: &'a str,
    /// The `Idempotency-Key` header.
    pub idempotency_key: Option<&'a str>,
    /// The body.
    pub body: Body<'a>,
}

/// What a request carries.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// `{"data": [...]}`
    Json(&'a [u8]),
    /// A chunk of NDJSON: one object a line; `first` is the index of its first object in the whole stream.
    Lines {
        /// The lines, each but the last ending in `\n`.
        text: &'a [u8],
        /// Objects in the chunks before this one.
        first: usize,
    },
}

/// The answer to an ingestion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Its identifier (a UUID).
    pub ingestion_id: String,
    /// The mode.
    pub mode: Mode,
    /// Objects of the request that were not there before.
    pub created: u64,
    /// Objects of the request that were there and changed, themselves or nested.
    pub updated: u64,
    /// Objects of the request that were there and stayed as they were.
    pub unchanged: u64,
    /// Objects removed, nested ones that nothing referred to any more included.
    pub deleted: u64,
    /// What became of each object, in the order of the request.
    pub objects: Vec<Outcome>,
    /// What the caller should know; nothing was dropped.
    pub warnings: Vec<Warning>,
}

/// What became of one object of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its place in `data`, from 0.
    pub index: usize,
    /// Its URI, given or minted.
    pub uri: String,
    /// What became of it.
    pub status: Status,
    /// The objects nested in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Nested>,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It was not there before.
    Created,
    /// It was there and changed.
    Updated,
    /// It was there and stayed as it was.
    Unchanged,
    /// It was removed.
    Deleted,
    /// It was to be removed and was not there.
    Absent,
}

/// One nested object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nested {
    /// Where it stood in the request (JSON Pointer).
    pub pointer: String,
    /// Its URI, given or minted.
    pub uri: String,
}

/// Something the caller should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Where in the request (JSON Pointer).
    pub pointer: String,
    /// What, in words.
    pub message: String,
}

/// The record of an ingestion, kept with the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Its identifier.
    pub id: String,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name then.
    pub business_object_name: String,
    /// The mode.
    pub mode: Mode,
    /// Who asked.
    pub caller: String,
    /// When it was committed (RFC 3339, UTC).
    pub at: String,
    /// The journal's sequence of its commit.
    pub sequence: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// As in the answer.
    pub created: u64,
    /// As in the answer.
    pub updated: u64,
    /// As in the answer.
    pub unchanged: u64,
    /// As in the answer.
    pub deleted: u64,
}

/// Does one ingestion: parses, checks, mints, commits, and answers only once it would survive a power cut.
///
/// # Errors
/// Every fault's `detail` begins `Ingestion failed: `; nothing is stored then. See the contract for the kinds.
pub fn ingest(store: &Store, limits: &Limits, request: &Request<'_>) -> Result<Answer, Fault> {
    let _ = (store, limits, request);
    todo!()
}

/// One record by id.
pub fn record(store: &Store, id: &str) -> Result<Option<Record>, Fault> {
    let _ = (store, id);
    todo!()
}

/// Records, newest first, those older than the one with the id `after`.
pub fn records(store: &Store, after: Option<&str>, limit: usize) -> Result<Vec<Record>, Fault> {
    let _ = (store, after, limit);
    todo!()
}
