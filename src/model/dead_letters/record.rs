//! The stored form of a dead letter.
use super::IdBytes;
use crate::csv::{CsvFormat, CsvHeader};
use crate::ingest::Mode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::problem::Finding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

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
    /// The errors of the last attempt, at most [`MAX_LISTED_ERRORS`](super::MAX_LISTED_ERRORS).
    pub errors: Vec<Finding>,
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

    /// Returns the key of its totals. `account` is the account that sent the dead letters. No id contains the byte 0.
    pub(super) fn totals_key(&self, account: &str) -> Vec<u8> {
        format!("{account}\0{self}").into_bytes()
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

impl DeadLetter {
    /// Returns the key of the totals that it counts in.
    pub(super) fn totals_key(&self) -> Vec<u8> {
        self.origin.totals_key(&self.caller)
    }

    /// Returns the key of its entry in the order of its origin.
    pub(super) fn order_key(&self) -> Vec<u8> {
        let (sequence, number) = (self.sequence.to_be_bytes(), self.number.to_be_bytes());
        [self.totals_key().as_slice(), &[0], &sequence, &number].concat()
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, GatewayError> {
        serde_json::to_vec(self).map_err(|error| {
            let detail = format!("serializing a dead letter failed: {error}");
            GatewayError::new(ErrorClass::Internal, detail)
        })
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self, GatewayError> {
        serde_json::from_slice(value).map_err(|error| {
            tracing::error!(%error, "A dead letter could not be read.");
            GatewayError::new(
                ErrorClass::Internal,
                "a dead letter could not be read; the log has the cause",
            )
        })
    }
}

/// An entry of the order in which the dead letters of one origin are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderEntry {
    pub(super) id: IdBytes,
    /// The id of its ingestion.
    pub(super) ingestion: IdBytes,
    /// The bytes that it counts for.
    pub(super) bytes: u64,
    /// When it was added, in elapsed milliseconds.
    pub(super) at: u64,
}

impl OrderEntry {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (bytes, at) = (self.bytes.to_be_bytes(), self.at.to_be_bytes());
        [self.id.as_slice(), &self.ingestion, &bytes, &at].concat()
    }

    pub(super) fn decode(value: &[u8]) -> Option<Self> {
        let (id, rest) = value.split_first_chunk()?;
        let (ingestion, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let (at, _) = rest.split_first_chunk()?;
        let (bytes, at) = (u64::from_be_bytes(*bytes), u64::from_be_bytes(*at));
        Some(Self { id: *id, ingestion: *ingestion, bytes, at })
    }
}
