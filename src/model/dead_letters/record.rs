//! The stored form of a dead letter, and the tables that find it.
use crate::csv::{CsvFormat, CsvHeader};
use crate::ingest::Mode;
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::store_as_fields;
use penstock_base::table::{AsJson, Table};
use penstock_resources::problem::Finding;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use uuid::Uuid;

/// The dead letters, by id.
pub(super) const LETTERS: Table<Uuid, AsJson<DeadLetter>> = Table::new(collections::DEAD_LETTERS);
/// The texts as received, by id.
pub(super) const TEXTS: Table<Uuid, Vec<u8>> = Table::new(collections::DEAD_LETTER_TEXTS);
/// The ids of each ingestion: its id, and that of the dead letter.
pub(super) const BY_INGESTION: Table<(Uuid, Uuid), ()> =
    Table::new(collections::DEAD_LETTERS_BY_INGESTION);
/// The order of each origin: the sequence of the commit, and the number in the commit.
pub(super) const BY_ORIGIN: Table<(OriginKey, u64, u32), OrderEntry> =
    Table::new(collections::DEAD_LETTERS_BY_ORIGIN);

/// The account that sent dead letters, and the text of their origin. No id contains the byte 0.
pub(super) type OriginKey = (String, String);

/// The key of an entry in the order of an origin.
pub(super) type OrderKey<'k> = ((&'k str, &'k str), u64, u32);

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
