//! The failure of a delivery: a cause for the operator, and a class. The class decides how soon to retry, and
//! whether to probe the link in the meantime.
use std::time::Duration;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The server cannot be reached: DNS failure, no route, connection refused, or connect timeout.
    Unreachable,
    /// The connection broke, or no answer arrived in time.
    Broken,
    /// The server is overloaded or has an internal error.
    Busy,
    /// The server rejects the credentials.
    Credentials,
    /// The bucket does not exist.
    Bucket,
    /// The credentials may not write to the bucket.
    Policy,
    /// The quota of the bucket or the disk space of the directory is used up.
    Quota,
    /// The TLS certificate is not trusted, not valid now, or for another name.
    Certificate,
    /// The clocks of the gateway and of the server differ.
    Clock,
    /// Another object already exists under the key.
    Conflict,
    /// The gateway's own settings or files cause the failure.
    Gateway,
    /// The server refuses for a reason that the gateway does not recognize.
    Refused,
    /// Not a failure: the delivery window closed, or the gateway stops.
    Closed,
}

impl FailureClass {
    /// Returns the name in events and in GraphQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
            Self::Busy => "busy",
            Self::Credentials => "credentials",
            Self::Bucket => "bucket",
            Self::Policy => "policy",
            Self::Quota => "quota",
            Self::Certificate => "certificate",
            Self::Clock => "clock",
            Self::Conflict => "conflict",
            Self::Gateway => "gateway",
            Self::Refused => "refused",
            Self::Closed => "closed",
        }
    }

    /// Returns whether the failure may recover without an operator.
    pub(super) fn is_transient(self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken | Self::Busy)
    }

    /// Returns whether the link is down, so that it is worth probing.
    pub(super) fn is_link(self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken)
    }

    /// Returns whether the target was reached, or `None` if it was not contacted.
    pub(super) fn target_reached(self) -> Option<bool> {
        match self {
            Self::Unreachable | Self::Broken | Self::Certificate => Some(false),
            Self::Gateway | Self::Closed => None,
            _ => Some(true),
        }
    }
}

/// The failure of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeliveryFailure {
    pub(super) class: FailureClass,
    /// The cause and what to do about it, as text without secrets.
    pub(super) cause: String,
    /// What the server answered: the status and its words. `None` without an error answer.
    pub(super) answer: Option<String>,
    /// The server's `Retry-After`.
    pub(super) retry_after: Option<Duration>,
    /// Whether the server received the whole file, but the result is unknown or was not recorded. Then the object
    /// may exist, or appear later.
    pub(super) outcome_unknown: bool,
}

impl DeliveryFailure {
    pub(super) fn new(class: FailureClass, cause: impl Into<String>) -> Self {
        let cause = cause.into();
        Self { class, cause, answer: None, retry_after: None, outcome_unknown: false }
    }

    /// Creates a failure that the gateway itself causes.
    pub(super) fn of_gateway(cause: impl Into<String>) -> Self {
        Self::new(FailureClass::Gateway, cause)
    }
}
