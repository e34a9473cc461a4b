//! The request for one ingestion.
use super::{AuditHook, MessageBatch, Mode, ObjectCondition, OnError, ReviewStep};
use crate::change_feed::Watch;
use crate::csv::CsvHeader;
use crate::resource::Compiled;
use penstock_base::commit::{CommitCheck, NoClient};
use penstock_base::events::EventBus;
use penstock_config::{Limits, ShapesLimits};
use penstock_resources::ingestion::BodyForm;
use penstock_shapes::Cancellation;
use std::collections::BTreeMap;
use std::time::Instant;

/// Returns the limits of a validation that begins now.
pub(super) fn validation_limits(limits: &Limits) -> penstock_shapes::Limits {
    let ShapesLimits { time, memory } = limits.shapes;
    penstock_shapes::Limits {
        time,
        deadline: Some(Instant::now() + time),
        memory,
        violations: MAX_VIOLATIONS,
        cancellation: Cancellation::default(),
    }
}

/// The maximum number of violations of one shape in a request, with those of the shapes in it.
const MAX_VIOLATIONS: usize = 10_000;

/// The request for one ingestion.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The Business Object.
    pub business_object: &'a Compiled,
    /// The mode of the ingestion.
    pub mode: Mode,
    /// What to do if an object has an error.
    pub on_error: OnError,
    /// The id of the dead letter that the request retries. A success removes it in the same commit.
    pub retried_letter: Option<&'a str>,
    /// How it takes part in the review of a change.
    pub review: ReviewStep<'a>,
    /// Whether it may change objects of other Business Objects that require a review.
    pub bypass: bool,
    /// Adds audit events to the commit.
    pub audit: Option<AuditHook<'a>>,
    /// The check of the client, which runs in the commit.
    pub check: &'a dyn CommitCheck,
    /// The client's account, as stored in the record.
    pub caller: &'a str,
    /// The id of the API key of the request, as stored in the record.
    pub api_key: Option<&'a str>,
    /// The Business Objects that the credential is limited to: it cannot change objects of others. `None` without a
    /// limit.
    pub write_scope: Option<&'a [&'a Compiled]>,
    /// The trace of the request, as in the header `traceparent`.
    pub traceparent: Option<&'a str>,
    /// The header `Idempotency-Key`. VALIDATE ignores it, because it stores nothing.
    pub idempotency_key: Option<&'a str>,
    /// The state that the only object of the request must have.
    pub condition: Option<&'a ObjectCondition>,
    /// Whether the answer lists the outcome of each object. An omitted list is not stored under the key either, so the
    /// answers of a stream stay small whatever its length.
    pub lists_objects: bool,
    /// The languages of the client for the texts of shapes, the preferred one first.
    pub languages: &'a [String],
    /// Records changes for automatic exports, and has the clock.
    pub watch: &'a Watch,
    /// Where the ingestion is published after its commit.
    pub events: Option<&'a EventBus>,
    /// What the body has around its objects.
    pub form: BodyForm,
    /// The body.
    pub body: Body<'a>,
}

impl<'a> Request<'a> {
    /// Creates a request of the gateway itself. `caller` is stored in the record.
    pub fn of_gateway(
        business_object: &'a Compiled,
        mode: Mode,
        caller: &'a str,
        watch: &'a Watch,
        body: Body<'a>,
    ) -> Self {
        Self {
            business_object,
            mode,
            on_error: OnError::Abort,
            retried_letter: None,
            review: ReviewStep::None,
            bypass: false,
            audit: None,
            check: &NoClient,
            caller,
            api_key: None,
            write_scope: None,
            traceparent: None,
            idempotency_key: None,
            condition: None,
            lists_objects: true,
            languages: &[],
            watch,
            events: None,
            form: BodyForm::Data,
            body,
        }
    }

    /// Returns whether the credential is not limited to other Business Objects than the one with this name.
    pub(crate) fn may_see(&self, business_object: &str) -> bool {
        self.write_scope.is_none_or(|scope| {
            scope.iter().any(|one| one.object.definition.name == business_object)
        })
    }

    /// Returns whether errors and warnings may name a Business Object. Those about messages of a source are dead letters, which
    /// no limited credential reads.
    pub(crate) fn may_name(&self, business_object: &str) -> bool {
        matches!(self.body, Body::Messages(_)) || self.may_see(business_object)
    }
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// `{"data": [...]}`, or documents.
    Json(&'a [u8]),
    /// A chunk of NDJSON with one object or document per line.
    Lines {
        /// The lines, each but the last ending in `\n`. Blank ones do not count.
        text: &'a [u8],
        /// The number of objects or documents in the chunks before this one, which is the index of the first one in the
        /// whole stream.
        first: usize,
        /// The line numbers of the objects or documents in the whole stream, from 1.
        line_numbers: &'a [u64],
    },
    /// A chunk of CSV with one object per record.
    Records {
        /// The records, each but the last ending in `\n`.
        text: &'a [u8],
        /// The header of the stream.
        header: &'a CsvHeader,
        /// The number of objects in the chunks before this one.
        first: usize,
        /// The numbers of the records' first lines in the whole stream, from 1.
        line_numbers: &'a [u64],
    },
    /// One object.
    Object {
        /// Its text.
        text: &'a [u8],
        /// Its index in the request that it comes from.
        index: usize,
        /// The number of its first line, for the places of errors.
        first_line: u64,
        /// The values of fields from the topic of the message that it was in. Its own values override them.
        topic_fields: Option<&'a BTreeMap<String, String>>,
    },
    /// Messages of a source.
    Messages(MessageBatch<'a>),
}

impl Body<'_> {
    /// Returns its size in bytes.
    pub fn byte_len(&self) -> u64 {
        self.text().len() as u64
    }

    /// Returns the first line of the record with this index, in CSV.
    pub(super) fn record_line(&self, index: usize) -> Option<u64> {
        let Self::Records { first, line_numbers, .. } = self else { return None };
        line_numbers.get(index.checked_sub(*first)?).copied()
    }

    /// Returns the index of the message that has this place of the text; `None` in a body without messages.
    pub(super) fn find_message(&self, start: usize) -> Option<usize> {
        match self {
            Self::Messages(batch) => batch.find_index(start),
            Self::Json(_) | Self::Lines { .. } | Self::Records { .. } | Self::Object { .. } => None,
        }
    }

    pub(crate) fn text(&self) -> &[u8] {
        match self {
            Self::Json(text)
            | Self::Lines { text, .. }
            | Self::Records { text, .. }
            | Self::Object { text, .. } => text,
            Self::Messages(batch) => batch.text,
        }
    }
}
