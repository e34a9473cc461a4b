//! The result of a delivery: its outcome, or a failure with a cause for the operator, and a class. The class decides how
//! soon to retry, and whether to probe the link in the meantime.
use penstock_resources::export::Cause;
use std::fmt::Display;
use std::time::Duration;

/// What a delivery has shown about the target, besides that it has the export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DeliveryOutcome {
    /// What is notable about the delivery.
    pub(super) warning: Option<String>,
    /// Whether the target may lack data, so that it needs a full export.
    pub(super) needs_full: bool,
    /// Whether only a push creates that export.
    pub(super) needs_push: bool,
    /// What the gateway cannot check at this target.
    pub(super) remark: Option<&'static str>,
}

impl DeliveryOutcome {
    /// Returns an outcome with a warning, without its full stop.
    pub(super) fn with_warning(warning: String, needs_full: bool) -> Self {
        Self { warning: Some(warning), needs_full, ..Self::default() }
    }

    /// Returns both outcomes in one, with the first warning.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            warning: self.warning.or(other.warning),
            needs_full: self.needs_full || other.needs_full,
            needs_push: self.needs_push || other.needs_push,
            remark: self.remark.or(other.remark),
        }
    }
}

/// The failure of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeliveryFailure {
    pub(super) class: Cause,
    /// The cause and what to do about it, as text without secrets.
    pub(super) cause: String,
    /// What the server answered: the status and its words. `None` without an error answer.
    pub(super) answer: Option<String>,
    /// The server's `Retry-After`.
    pub(super) retry_after: Option<Duration>,
    /// Whether the server received the whole file, but the result is unknown or was not recorded. Then the object
    /// may exist, or appear later.
    pub(super) outcome_unknown: bool,
    /// Whether nothing failed: the delivery window closed, or the gateway stops.
    pub(super) is_interruption: bool,
}

impl DeliveryFailure {
    pub(super) fn new(class: Cause, cause: impl Into<String>) -> Self {
        Self {
            class,
            cause: cause.into(),
            answer: None,
            retry_after: None,
            outcome_unknown: false,
            is_interruption: false,
        }
    }

    /// Creates a failure that the gateway itself causes.
    pub(super) fn of_gateway(cause: impl Into<String>) -> Self {
        Self::new(Cause::Gateway, cause)
    }

    /// Ends a delivery that did not fail.
    pub(super) fn interrupt(cause: impl Into<String>) -> Self {
        Self { is_interruption: true, ..Self::of_gateway(cause) }
    }

    /// Returns whether the failure may recover without an operator.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self.class, Cause::Unreachable | Cause::Broken | Cause::Busy)
    }

    /// Returns whether the link is down, so that it is worth probing.
    pub(super) fn is_link(&self) -> bool {
        matches!(self.class, Cause::Unreachable | Cause::Broken)
    }

    /// Returns whether the target was reached, or `None` if it was not contacted.
    pub(super) fn target_reached(&self) -> Option<bool> {
        match self.class {
            Cause::Unreachable | Cause::Broken | Cause::Certificate => Some(false),
            Cause::Gateway => None,
            _ => Some(true),
        }
    }
}

/// Returns the failure for a file of the spool that cannot be read.
pub(super) fn unreadable_file_failure(error: &dyn Display) -> DeliveryFailure {
    DeliveryFailure::of_gateway(format!("the file in the spool cannot be read: {error}"))
}
