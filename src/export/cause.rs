//! The failure of a delivery: a cause for the operator, and a class. The class decides how soon to retry, and
//! whether to probe the link in the meantime.
use penstock_resources::export::Cause;
use std::time::Duration;

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
