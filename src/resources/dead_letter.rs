//! Rejected objects and dead letters.
use crate::problem::Finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object of a request that was left out because of errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedObject {
    /// The id of the dead letter. Absent if none was stored: in the mode `VALIDATE`, or beyond
    /// `service.limits.rejected.bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its index in the request or stream, from 0.
    pub index: usize,
    /// Its line in the stream, from 1; absent in a JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Its first ten errors.
    pub errors: Vec<Finding>,
}

/// A dead letter: a rejected object and its text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// Its index in the request or stream, from 0.
    pub index: usize,
    /// Its line in the stream, from 1; absent in a JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The first ten errors of the last attempt.
    pub errors: Vec<Finding>,
    /// The header of its stream of CSV, if `text` is a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csv_header: Option<String>,
    /// The topic of the message that it was in, if a source sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// The length of that message in bytes, if it was too long to be kept. `text` is its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Its text, as received; a record of CSV in UTF-8.
    pub text: String,
    /// The bytes of the text (RFC 4648, 4), if they are not UTF-8. `text` has U+FFFD in place of what is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_base64: Option<String>,
}
