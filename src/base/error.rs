//! Errors for clients and operators: what failed, the value, the place, the cause, and what to do.
use penstock_resources::ingestion;
use penstock_resources::problem::{self, ViolatedConstraint};
use penstock_resources::warning::Warning;
use penstock_store::{DiskFull, LostCause, UnreadableDocument};
use std::fmt;
use std::time::Duration;

/// An error of a request. The HTTP layer shows it as `application/problem+json` (RFC 9457), the command line as lines
/// of text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct GatewayError {
    /// The class of the error.
    pub class: ErrorClass,
    /// The description. It has no stack trace, no file path and no secret.
    pub detail: String,
    /// All findings, each with its place.
    pub findings: Vec<Finding>,
}

/// The class of an error; each has one HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// 400: the request cannot be parsed.
    Malformed,
    /// 401: the request has no valid credentials.
    Unauthorized,
    /// 403: the requester is not allowed to do this.
    Forbidden,
    /// 404: the resource does not exist.
    NotFound,
    /// 409: the request conflicts with the current state.
    Conflict,
    /// 409: the request would remove much that is probably still wanted; `force` overrides this.
    Unconfirmed,
    /// 412: the resource has changed in the meantime (`If-Match`).
    PreconditionFailed,
    /// 413: the request exceeds a limit.
    TooLarge,
    /// 415: the media type is not supported here.
    UnsupportedMediaType,
    /// 422: the request can be parsed and is not valid.
    Invalid,
    /// 429: too many requests; retry after this time.
    TooManyRequests(Duration),
    /// 503: temporarily not possible; retry after this time.
    Unavailable(Duration),
    /// 500: the data on disk is damaged, or was written by a newer version; it needs a person.
    Damaged,
    /// 507: the disk is full.
    InsufficientStorage,
    /// 500: an error of Penstock itself or of the machine; the log has more.
    Internal,
}

impl ErrorClass {
    /// Returns the HTTP status of the class.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict | Self::Unconfirmed => 409,
            Self::PreconditionFailed => 412,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests(_) => 429,
            Self::Unavailable(_) => 503,
            Self::InsufficientStorage => 507,
            Self::Internal | Self::Damaged => 500,
        }
    }

    /// Whether the same may succeed later without a change by anybody: the disk or the store is the cause.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::InsufficientStorage | Self::Unavailable(_) | Self::Internal)
    }
}

/// One finding and its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finding {
    /// The place of the finding.
    pub place: Place,
    /// The first line of the record that the pointer leads to, in a stream of CSV.
    pub record_line: Option<u64>,
    /// What is wrong there, and how to fix it.
    pub message: String,
    /// The message for people without the role Admin, if `message` names an account. Where only Admins get an error, it has
    /// no effect.
    pub public_message: Option<String>,
    /// Which constraint is violated, if the finding is about a shape.
    pub violation: Option<Box<ViolatedConstraint>>,
}

/// A place in a request or in a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
    /// The whole input, or a parameter that the message names.
    #[default]
    Whole,
}

impl GatewayError {
    /// Creates an error without findings.
    pub fn new(class: ErrorClass, detail: impl Into<String>) -> Self {
        Self { class, detail: detail.into(), findings: Vec::new() }
    }

    /// Creates an error with its findings.
    pub fn with_findings(
        class: ErrorClass,
        detail: impl Into<String>,
        findings: Vec<Finding>,
    ) -> Self {
        Self { class, detail: detail.into(), findings }
    }
}

impl Finding {
    /// Creates a finding at a JSON Pointer.
    pub fn at_pointer(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: Place::Pointer(pointer.into()), message: message.into(), ..Self::default() }
    }

    /// Creates a finding at a line and column.
    pub fn at_line(line: u64, column: u64, message: impl Into<String>) -> Self {
        Self { place: Place::Line { line, column }, message: message.into(), ..Self::default() }
    }

    /// Creates a finding about the whole input, or a parameter that the message names.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { place: Place::Whole, message: message.into(), ..Self::default() }
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        for finding in &self.findings {
            write!(f, "\n  {finding}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Pointer(pointer) if !pointer.is_empty() => {
                if let Some(line) = self.record_line {
                    write!(f, "line {line}, ")?;
                }
                write!(f, "{pointer}: {}", self.message)
            }
            Place::Line { line, column } => {
                write!(f, "line {line}, column {column}: {}", self.message)
            }
            // The empty pointer means the whole document.
            Place::Pointer(_) | Place::Whole => f.write_str(&self.message),
        }
    }
}

impl From<Finding> for Warning {
    fn from(Finding { place, message, .. }: Finding) -> Self {
        let (pointer, line, column) = match place {
            Place::Pointer(pointer) => (Some(pointer), None, None),
            Place::Line { line, column } => (None, Some(line), Some(column)),
            Place::Whole => (None, None, None),
        };
        Self { line, column, pointer, message }
    }
}

impl From<Finding> for problem::Finding {
    fn from(Finding { place, record_line, message, violation, .. }: Finding) -> Self {
        let (pointer, line, column) = match place {
            Place::Pointer(pointer) => (Some(pointer), record_line, None),
            Place::Line { line, column } => (None, Some(line), Some(column)),
            Place::Whole => (None, record_line, None),
        };
        Self { pointer, line, column, message, violation }
    }
}

impl From<problem::Finding> for Finding {
    fn from(finding: problem::Finding) -> Self {
        let problem::Finding { pointer, line, column, message, violation } = finding;
        let (place, record_line) = match (pointer, line, column) {
            (Some(pointer), line, _) => (Place::Pointer(pointer), line),
            (None, Some(line), Some(column)) => (Place::Line { line, column }, None),
            _ => (Place::Whole, None),
        };
        Self { place, record_line, message, violation, ..Self::default() }
    }
}

impl From<Finding> for ingestion::Warning {
    fn from(Finding { place, message, violation, .. }: Finding) -> Self {
        let pointer = match place {
            Place::Pointer(pointer) => pointer,
            Place::Line { .. } | Place::Whole => String::new(),
        };
        Self { pointer, message, violation: violation.map(|violation| *violation) }
    }
}

/// Describes how much disk space is needed and how much is free.
pub fn describe_shortage(DiskFull { needed, free }: DiskFull) -> String {
    format!("{} are needed, and {} are free", format_mebibytes(needed), format_mebibytes(free))
}

/// Formats a number of bytes as mebibytes with one decimal, cut off.
pub fn format_mebibytes(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

/// Describes why a reader could not keep the state of one commit, with the setting that limits it.
pub fn describe_lost_snapshot(cause: LostCause) -> String {
    let limit = match cause {
        LostCause::Memory { limit_bytes } => {
            format!("service.limits.snapshot.memory is {}", format_mebibytes(limit_bytes))
        }
        LostCause::Disk { limit_bytes } => {
            format!("service.limits.snapshot.disk is {}", format_mebibytes(limit_bytes))
        }
        LostCause::DiskFull { free_bytes } => format!(
            "the gateway's disk has {} free, too little above service.limits.disk-reserve",
            format_mebibytes(free_bytes)
        ),
        _ => {
            return "what later commits changed could not be written to the gateway's disk, or read from it; the \
                    gateway's log has the cause"
                .to_owned();
        }
    };
    format!("later commits changed more than can be kept for readers ({limit})")
}

impl From<penstock_store::Error> for GatewayError {
    fn from(error: penstock_store::Error) -> Self {
        use penstock_store::Error;
        match &error {
            Error::UnsupportedTerm { .. } => Self::new(ErrorClass::Invalid, error.to_string()),
            Error::TooLarge { .. } => Self::new(ErrorClass::TooLarge, error.to_string()),
            Error::TimedOut => Self::new(
                ErrorClass::TooLarge,
                "the search was given up at the time limit of one request, while it listed objects; ask for less",
            ),
            error if error.is_disk_full() => {
                let full =
                    error.disk_full_details().map(|full| format!(": {}", describe_shortage(full)));
                let why = full.unwrap_or_default();
                Self::new(
                    ErrorClass::InsufficientStorage,
                    format!("the gateway's disk is full{why}"),
                )
            }
            Error::Poisoned { .. } => {
                tracing::warn!(%error, "The store refused a commit.");
                Self::new(
                    ErrorClass::Unavailable(Duration::from_secs(10)),
                    "the store refuses changes because a write to the disk failed or its index is damaged; it reopens automatically when the disk accepts writes again, and the gateway's log has the cause",
                )
            }
            Error::FormatRaised => {
                Self::new(ErrorClass::Unavailable(Duration::from_secs(1)), error.to_string())
            }
            Error::SnapshotLost { cause } => Self::new(
                ErrorClass::Unavailable(Duration::from_secs(1)),
                format!("{}; repeat the request", describe_lost_snapshot(*cause)),
            ),
            Error::Reopening => Self::new(
                ErrorClass::Unavailable(Duration::from_secs(2)),
                "the store is reopening after a failed write to the disk or damage of its index; retry in a few seconds",
            ),
            Error::Unreadable(error) => {
                log_unreadable(error);
                let (first, rest) = error.document.split_at(1);
                Self::new(
                    ErrorClass::Internal,
                    format!(
                        "{}{rest} could not be read; the log has the cause",
                        first.to_lowercase()
                    ),
                )
            }
            _ => {
                tracing::error!(%error, "The store failed.");
                Self::new(ErrorClass::Internal, "the store failed; the gateway's log has the cause")
            }
        }
    }
}

/// Logs that a document could not be read.
pub(crate) fn log_unreadable(error: &UnreadableDocument) {
    let UnreadableDocument { document, place, .. } = error;
    tracing::error!(%error, place, "{document} could not be read.");
}

impl From<UnreadableDocument> for GatewayError {
    fn from(error: UnreadableDocument) -> Self {
        penstock_store::Error::from(error).into()
    }
}
