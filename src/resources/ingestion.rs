//! Ingestions: their responses and records.
use crate::dead_letter::RejectedObject;
use crate::export::Doubt;
use crate::names::wire_names;
use crate::problem::ViolatedConstraint;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The response to an ingestion, sent after the data is synced to disk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingestion {
    /// Its identifier.
    pub ingestion_id: String,
    /// The mode.
    pub mode: Mode,
    /// For a chunk of a stream, the index of its first object in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub first_index: Option<usize>,
    /// For a chunk of a stream, the index of its last object in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub last_index: Option<usize>,
    /// Objects of the request that did not exist before.
    pub created: u64,
    /// Objects of the request that existed and were changed.
    pub updated: u64,
    /// Objects of the request that were not changed.
    pub unchanged: u64,
    /// Removed objects, including nested ones without any remaining reference.
    pub deleted: u64,
    /// The result of each object, in the order of the request; absent with `objects=false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<IngestedObject>>,
    /// The objects that were left out because of errors, in the order of the request; only with `onError=skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Vec<RejectedObject>>,
    /// What the caller should know; nothing was dropped.
    pub warnings: Vec<Warning>,
}

impl Ingestion {
    /// Adds the place of the chunk in its stream.
    #[must_use]
    pub fn with_place(self, place: ChunkPlace) -> Self {
        Self { first_index: Some(place.first_index), last_index: Some(place.last_index), ..self }
    }
}

/// The place of a chunk in a stream: the indexes of its first and its last object, from 0.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkPlace {
    /// That of the first one.
    pub first_index: usize,
    /// That of the last one.
    pub last_index: usize,
}

/// How an ingestion changes stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// Adds values and never removes any; a contradiction is an error.
    #[default]
    Add,
    /// Replaces the values of all fields of the mapping. Fields that the request does not give become empty.
    Replace,
    /// Replaces the values of the fields that the request gives.
    Update,
    /// Creates objects, or replaces the values of the fields that the request gives (RFC 7396): `null` removes them.
    Merge,
    /// Removes the named objects.
    Delete,
    /// Stores nothing and returns the answer of `Add`.
    Validate,
}

wire_names!(Mode {
    Add: "ADD",
    Replace: "REPLACE",
    Update: "UPDATE",
    Merge: "MERGE",
    Delete: "DELETE",
    Validate: "VALIDATE",
});

/// What an ingestion does if an object has an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum OnError {
    /// Stores nothing of the request, or of the chunk of a stream.
    #[default]
    Abort,
    /// Rejects the object and stores the others.
    Skip,
}

/// What the body of an ingestion has around its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum BodyForm {
    /// Only `data`, or nothing in a line of a stream and in a message.
    #[default]
    Data,
    /// The document of a system, in which the mapping says where the objects are.
    Document,
}

impl BodyForm {
    /// Returns the form with this name.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "data" => Ok(Self::Data),
            "document" => Ok(Self::Document),
            _ => Err(format!("the query parameter form is {name:?}; it must be data or document")),
        }
    }
}

/// The result of one object of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IngestedObject {
    /// Its index in `data`, or among the objects of documents, from 0.
    pub index: usize,
    /// Its URI, given or minted.
    pub uri: String,
    /// The result.
    pub status: IngestedStatus,
    /// The objects nested in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<NestedObject>,
}

/// The result of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IngestedStatus {
    /// It did not exist before.
    Created,
    /// It existed and changed.
    Updated,
    /// It existed and did not change.
    Unchanged,
    /// It was removed.
    Deleted,
    /// A DELETE named it, but it did not exist.
    Absent,
}

/// One nested object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NestedObject {
    /// Its place in the request (JSON Pointer).
    pub pointer: String,
    /// Its URI, given or minted.
    pub uri: String,
}

/// Something the caller should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IngestionWarning")]
pub struct Warning {
    /// The place in the request (JSON Pointer).
    pub pointer: String,
    /// The message.
    pub message: String,
    /// Which constraint is violated, if the warning is about a shape.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub violation: Option<ViolatedConstraint>,
}

/// The record of an ingestion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestionRecord {
    /// Its identifier.
    pub id: String,
    /// The Business Object's id; absent for an update in SPARQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub business_object: Option<String>,
    /// The Business Object's name at that time; absent for an update in SPARQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub business_object_name: Option<String>,
    /// The mode.
    pub mode: RecordMode,
    /// The id of the caller's account.
    pub caller: String,
    /// The id of the API key of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// The author of the change that it published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The account that approved the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// The trace that the request was part of (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// When it was committed (RFC 3339, UTC); never before an earlier one.
    pub at: String,
    /// Why that time may be wrong; absent if it is reliable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Doubt>,
    /// The journal's sequence of its commit.
    pub sequence: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// Like in the response.
    pub created: u64,
    /// Like in the response.
    pub updated: u64,
    /// Like in the response.
    pub unchanged: u64,
    /// Like in the response.
    pub deleted: u64,
    /// Objects that were left out because of errors.
    #[serde(default)]
    #[schemars(!default)]
    pub rejected: u64,
    /// The quads that an update in SPARQL changed. Its objects are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quads: Option<QuadCounts>,
}

/// The mode of a recorded ingestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordMode {
    /// An update in SPARQL, or a graph that was written or deleted.
    #[serde(rename = "SPARQL")]
    Sparql,
    /// An ingestion into a Business Object.
    #[serde(untagged)]
    Ingestion(Mode),
}

impl RecordMode {
    /// Returns the name, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sparql => "SPARQL",
            Self::Ingestion(mode) => mode.name(),
        }
    }
}

impl JsonSchema for RecordMode {
    fn schema_name() -> Cow<'static, str> {
        "RecordMode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let modes = Mode::ALL.map(Self::Ingestion).into_iter().chain([Self::Sparql]);
        json_schema!({
            "description": "The mode of a recorded ingestion.",
            "type": "string",
            "enum": modes.map(Self::name).collect::<Vec<_>>(),
        })
    }
}

/// The number of quads that an update changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QuadCounts {
    /// Quads that were not stored before.
    pub inserted: u64,
    /// Quads that are no longer stored.
    pub removed: u64,
}

/// The answer to an update in SPARQL, sent after its commit is synced to disk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SparqlUpdate {
    /// The identifier of its record.
    pub ingestion_id: String,
    /// Quads that were not stored before.
    pub inserted: u64,
    /// Quads that are no longer stored.
    pub removed: u64,
}
