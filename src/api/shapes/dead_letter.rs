//! Rejected objects and dead letters.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_base::error::Finding;
use penstock_http::problem::FindingDocument;
use penstock_model::dead_letters::ObjectError;
use penstock_model::ingest;
use penstock_service::dead_letters::DeadLetterText;
use salvo_oapi::ToSchema;
use serde::Serialize;

/// An object of a request that was left out because of errors.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "RejectedObject"))]
pub(crate) struct RejectedObject {
    /// The id of the dead letter. Absent if none was stored: in the mode `VALIDATE`, or beyond
    /// `service.limits.rejected.bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    id: Option<String>,
    /// Its index in the request or stream, from 0.
    index: u64,
    /// Its line in the stream, from 1; absent in a JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    line: Option<u64>,
    /// Its first ten errors.
    errors: Vec<FindingDocument>,
}

impl From<ingest::RejectedObject> for RejectedObject {
    fn from(rejected: ingest::RejectedObject) -> Self {
        let ingest::RejectedObject { id, index, line, errors } = rejected;
        Self { id, index: index as u64, line, errors: list_errors(errors) }
    }
}

/// A dead letter: a rejected object and its text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "DeadLetter"))]
pub(crate) struct DeadLetter {
    /// Its id.
    id: String,
    /// Its index in the request or stream, from 0.
    index: u64,
    /// Its line in the stream, from 1; absent in a JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    line: Option<u64>,
    /// The first ten errors of the last attempt.
    errors: Vec<FindingDocument>,
    /// The header of its stream of CSV, if `text` is a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    csv_header: Option<String>,
    /// The topic of the message that it was in, if a source sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    topic: Option<String>,
    /// The length of that message in bytes, if it was too long to be kept. `text` is its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    message_bytes: Option<u64>,
    /// Its text, as received; a record of CSV in UTF-8.
    text: String,
    /// The bytes of the text (RFC 4648, 4), if they are not UTF-8. `text` has U+FFFD in place of what is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    text_base64: Option<String>,
}

impl From<DeadLetterText> for DeadLetter {
    fn from(DeadLetterText { letter, text }: DeadLetterText) -> Self {
        let (text, text_base64) = match String::from_utf8(text) {
            Ok(text) => (text, None),
            Err(error) => {
                let bytes = error.as_bytes();
                (String::from_utf8_lossy(bytes).into_owned(), Some(STANDARD.encode(bytes)))
            }
        };
        Self {
            id: letter.id,
            index: letter.index as u64,
            line: letter.line,
            errors: list_errors(letter.errors),
            csv_header: letter.csv.map(|csv| csv.header),
            message_bytes: letter.message.as_ref().and_then(|message| message.whole_bytes),
            topic: letter.message.map(|message| message.topic),
            text,
            text_base64,
        }
    }
}

fn list_errors(errors: Vec<ObjectError>) -> Vec<FindingDocument> {
    errors.into_iter().map(|error| Finding::from(error).into()).collect()
}
