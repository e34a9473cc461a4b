//! What goes wrong, in words for whoever asked: the thing, the value, the place, the cause, the mend.
use crate::disk::shortage;
use std::fmt;
use std::time::Duration;

/// A fault of a request. The HTTP layer shows it as `application/problem+json` (RFC 9457), the
/// command line as lines of text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// Which class of fault it is.
    pub kind: Kind,
    /// The cause in words. It shows no stack, no file path and no secret.
    pub detail: String,
    /// Every single finding, each with its place.
    pub errors: Vec<Finding>,
}

/// The class of a fault; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 400: it cannot be read at all.
    Malformed,
    /// 401: nobody known asks for it.
    Unauthorized,
    /// 403: it is understood and not allowed.
    Forbidden,
    /// 404: there is no such thing.
    NotFound,
    /// 409: it contradicts what is there.
    Conflict,
    /// 409: it would remove much that is probably still wanted; `force` does it all the same.
    Unconfirmed,
    /// 412: it has been changed in the meantime (`If-Match`).
    PreconditionFailed,
    /// 413: it is over a limit.
    TooLarge,
    /// 415: its media type is none that is taken here.
    UnsupportedMediaType,
    /// 422: it can be read, and it is wrong.
    Invalid,
    /// 429: too often; try again after this time.
    TooMany(Duration),
    /// 503: not now; try again after this time.
    Unavailable(Duration),
    /// 500: what is on the disk is damaged, or was written by a newer version; only a person can mend it.
    Damaged,
    /// 507: there is no room on the disk.
    NoRoom,
    /// 500: a fault of Penstock itself or of the machine; the log has more.
    Internal,
}

/// One finding and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where it is.
    pub place: Place,
    /// What is wrong there, and how to mend it.
    pub message: String,
}

/// Where in a request something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A JSON Pointer (RFC 6901) into the body.
    Pointer(String),
    /// A line and column of a text, both from 1, the column in characters.
    Line {
        /// The line.
        line: u64,
        /// The column.
        column: u64,
    },
    /// The whole, or a parameter that the message names.
    Whole,
}

impl Fault {
    /// A fault without single findings.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), errors: Vec::new() }
    }

    /// A fault with its findings.
    pub fn with(kind: Kind, detail: impl Into<String>, errors: Vec<Finding>) -> Self {
        Self { kind, detail: detail.into(), errors }
    }
}

impl Finding {
    /// A finding at a JSON Pointer.
    pub fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: Place::Pointer(pointer.into()), message: message.into() }
    }

    /// A finding at a line and column.
    pub fn line(line: u64, column: u64, message: impl Into<String>) -> Self {
        Self { place: Place::Line { line, column }, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        for finding in &self.errors {
            write!(f, "\n  {finding}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Pointer(pointer) if !pointer.is_empty() => {
                write!(f, "{pointer}: {}", self.message)
            }
            Place::Line { line, column } => {
                write!(f, "line {line}, column {column}: {}", self.message)
            }
            // The empty pointer is the whole document.
            Place::Pointer(_) | Place::Whole => f.write_str(&self.message),
        }
    }
}

impl From<penstock_store::Error> for Fault {
    fn from(error: penstock_store::Error) -> Self {
        use penstock_store::Error;
        match &error {
            Error::TooLarge { .. } => Self::new(Kind::TooLarge, error.to_string()),
            error if error.is_no_room() => {
                let full = error.disk_full().map(|full| format!(": {}", shortage(full)));
                let why = full.unwrap_or_default();
                Self::new(Kind::NoRoom, format!("there is no room on the disk of the gateway{why}"))
            }
            Error::Poisoned { .. } => {
                tracing::warn!(%error, "The store refused a commit.");
                Self::new(
                    Kind::Unavailable(Duration::from_secs(10)),
                    "the store takes no changes since a write to the disk failed or its index was found damaged; it is opened anew by itself once the disk lets it, and the log says why it does not",
                )
            }
            Error::Reopening => Self::new(
                Kind::Unavailable(Duration::from_secs(2)),
                "the store is being opened anew, since a write to the disk had failed or its index was damaged",
            ),
            _ => {
                tracing::error!(%error, "The store failed.");
                Self::new(Kind::Internal, "the store failed; the gateway's log says why")
            }
        }
    }
}
