//! One ingestion to be done.
use super::Mode;
use crate::changes::Watch;
use crate::resource::Compiled;
use penstock_base::commit::CommitCheck;
use penstock_base::events::Events;

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `service.limits.nesting`
    pub nesting: usize,
    /// `service.limits.objects`
    pub objects: usize,
    /// `service.limits.values`
    pub values: usize,
    /// `service.limits.idempotency-keys`: answers kept for 24 h, the oldest given up first.
    pub idempotency_keys: usize,
    /// `service.limits.idempotency-bytes`: of those answers, the newest always kept.
    pub idempotency_bytes: u64,
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
    /// The check of whoever asks, made in the commit.
    pub check: &'a dyn CommitCheck,
    /// The account that asks, as it stands in the record.
    pub caller: &'a str,
    /// The API key that it asks with.
    pub api_key: Option<ApiKey<'a>>,
    /// The trace that it is part of, as the header `traceparent`.
    pub traceparent: Option<&'a str>,
    /// The `Idempotency-Key` header; VALIDATE, which stores nothing, does not look at it.
    pub idempotency_key: Option<&'a str>,
    /// Whether the answer tells what became of each object. What is not told is not kept under the key
    /// either: so the answers of a stream of any length stay small.
    pub tells_objects: bool,
    /// Where changes are noted for exports by themselves, and what time it is.
    pub watch: &'a Watch,
    /// Where it is told once it is committed.
    pub events: Option<&'a Events>,
    /// The body.
    pub body: Body<'a>,
}

/// The API key of a request.
#[derive(Debug, Clone, Copy)]
pub struct ApiKey<'a> {
    /// Its id, as it stands in the record.
    pub id: &'a str,
    /// It is for the Business Object of the request alone, so that objects of others are not changed with it.
    pub is_bound: bool,
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

impl Body<'_> {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.text().len() as u64
    }

    pub(super) fn text(&self) -> &[u8] {
        match self {
            Self::Json(text) | Self::Lines { text, .. } => text,
        }
    }
}
