//! The stored form of a dead letter.
use super::OrderKey;
use crate::csv::{CsvFormat, CsvHeader};
use crate::ingest::Mode;
use penstock_base::error::{Finding, GatewayError, Place, ViolatedConstraint};
use penstock_base::store_as_fields;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// A dead letter without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// The id of the ingestion that rejected it.
    pub ingestion_id: String,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name at that time.
    pub business_object_name: String,
    /// The mode of the ingestion. A retry uses it too.
    pub mode: Mode,
    /// What sent it.
    pub origin: Origin,
    /// The account that sent it, as in the record of the ingestion.
    pub caller: String,
    /// When it was rejected (RFC 3339, UTC).
    pub at: String,
    /// The object's index in the request or stream, from 0.
    pub index: usize,
    /// The object's line in the stream, from 1; `None` in a JSON body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The form of its text, if it is a record of CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<CsvRecordForm>,
    /// The message of a source that it was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageForm>,
    /// The errors of the last attempt, at most [`ObjectError::MAX_LISTED`].
    pub errors: Vec<ObjectError>,
    /// The bytes of its text.
    pub text_bytes: u64,
    /// The journal's sequence of its commit.
    pub(crate) sequence: u64,
    /// Its number in that commit, from 0.
    pub(crate) number: u32,
}

/// What is kept of a message of a source beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageForm {
    /// The topic that it was published to.
    pub topic: String,
    /// The values of fields from the topic.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// The length of the whole message in bytes, if only its beginning is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_bytes: Option<u64>,
}

/// What is needed to read a record of CSV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsvRecordForm {
    /// The text of the header.
    pub header: String,
    /// The format of the record.
    #[serde(flatten)]
    pub format: CsvFormat,
}

impl CsvRecordForm {
    /// Returns the form of the records with this header.
    pub(crate) fn of_header(header: &CsvHeader) -> Self {
        Self { header: header.text.clone(), format: header.format }
    }

    /// Reads the header.
    ///
    /// # Errors
    /// As [`CsvHeader::read`].
    pub fn read_header(&self) -> Result<CsvHeader, GatewayError> {
        CsvHeader::read(self.header.as_bytes(), self.format, 1)
    }
}

/// What sent a dead letter. Each origin has a fair share of the stored bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "id")]
pub enum Origin {
    /// The API key with this id.
    ApiKey(String),
    /// The account with this id, with a session or an access token. `local` is local administration.
    Account(String),
    /// The source of this name.
    Source(String),
}

impl Origin {
    /// Returns the origin of a request.
    pub fn of_request(caller: &str, api_key: Option<&str>) -> Self {
        match api_key {
            Some(id) => Self::ApiKey(id.to_owned()),
            None => Self::Account(caller.to_owned()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, id) = match self {
            Self::ApiKey(id) => ("key", id),
            Self::Account(id) => ("account", id),
            Self::Source(name) => ("source", name),
        };
        write!(f, "{kind}:{id}")
    }
}

/// An error of a rejected object, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectError {
    /// JSON Pointer (RFC 6901) into the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The line, from 1, if the text is not JSON; with a pointer, the first line of the record in CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// What is wrong, and how to fix it.
    pub message: String,
    /// Which constraint is violated, if the error is about a shape.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<Box<ViolatedConstraint>>,
}

impl ObjectError {
    /// The maximum number of errors that are kept of one object.
    pub const MAX_LISTED: usize = 10;
    /// The maximum length of a pointer or a message that is kept, in bytes.
    const MAX_TEXT_BYTES: usize = 500;

    /// Returns the error of an object whose errors are no longer stored.
    pub(crate) fn not_stored() -> Self {
        let message =
            "the object was rejected; only the first answer to the request had its errors";
        Self::whole(message.to_owned())
    }

    /// Returns an error of the whole object.
    fn whole(message: String) -> Self {
        Self { pointer: None, line: None, column: None, message, violation: None }
    }

    /// Returns about how many bytes the error takes.
    pub(crate) fn byte_len(&self) -> usize {
        let violation = self.violation.as_ref().map_or(0, |violation| {
            let ViolatedConstraint { focus_node, path, value, shape, constraint, severity } =
                &**violation;
            let optional = [path, value].map(|text| text.as_ref().map_or(0, String::len));
            let texts = [focus_node, shape, constraint, severity].map(String::len);
            texts.iter().chain(&optional).sum()
        });
        self.message.len() + self.pointer.as_ref().map_or(0, String::len) + violation
    }

    /// Returns the first errors of an object.
    pub(crate) fn list_first(error: &GatewayError) -> Vec<Self> {
        if error.findings.is_empty() {
            return vec![Self::whole(cut_text(error.detail.clone()))];
        }
        error.findings.iter().take(Self::MAX_LISTED).cloned().map(Self::from).collect()
    }
}

impl From<Finding> for ObjectError {
    fn from(Finding { place, record_line, message, violation, .. }: Finding) -> Self {
        let (pointer, line, column) = match place {
            Place::Pointer(pointer) => (Some(pointer), record_line, None),
            Place::Line { line, column } => (None, Some(line), Some(column)),
            Place::Whole => (None, None, None),
        };
        let mut violation = violation;
        if let Some(violation) = &mut violation {
            violation.value = violation.value.take().map(cut_text);
        }
        Self { pointer: pointer.map(cut_text), line, column, message: cut_text(message), violation }
    }
}

/// Shortens what is too long to be kept: names of fields are in errors, and come from outside.
fn cut_text(mut text: String) -> String {
    if text.len() > ObjectError::MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(ObjectError::MAX_TEXT_BYTES));
        text.push_str("...");
    }
    text
}

impl From<ObjectError> for Finding {
    fn from(error: ObjectError) -> Self {
        let (place, record_line) = match (&error.pointer, error.line, error.column) {
            (Some(pointer), line, _) => (Place::Pointer(pointer.clone()), line),
            (None, Some(line), Some(column)) => (Place::Line { line, column }, None),
            _ => (Place::Whole, None),
        };
        let ObjectError { message, violation, .. } = error;
        Self { place, record_line, message, violation, ..Self::default() }
    }
}

impl DeadLetter {
    /// Returns the key of its entry in the order of its origin, which has this text.
    pub(super) fn order_key<'k>(&'k self, origin: &'k str) -> OrderKey<'k> {
        ((&self.caller, origin), self.sequence, self.number)
    }
}

/// An entry of the order in which the dead letters of one origin are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderEntry {
    pub(super) id: Uuid,
    /// The id of its ingestion.
    pub(super) ingestion: Uuid,
    /// The bytes that it counts for.
    pub(super) bytes: u64,
    /// When it was added, in elapsed milliseconds.
    pub(super) at: u64,
}

store_as_fields!(OrderEntry: id: Uuid, ingestion: Uuid, bytes: u64, at: u64);
