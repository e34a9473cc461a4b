//! The state of webhooks, for the operator.
use crate::backoff::{FailedAttempts, RetryRule};
use crate::cause::DeliveryFailure;
use penstock_base::events::EventKind;
use penstock_base::events::webhook_queues::QueueTotals;
use penstock_base::time;
use penstock_config::{Webhook, display_origin};
use penstock_resources::webhook;
use std::time::Duration;

/// What a worker knows about its webhook.
#[derive(Debug, Default)]
pub(super) struct WorkerState {
    /// The failures of the event at the head of the queue.
    failing: Option<FailedAttempts>,
    disabled_since: Option<String>,
}

impl WorkerState {
    /// Records a failed attempt. Returns the number of failures in a row, and the delay before the next attempt.
    pub(super) fn record_failure(
        &mut self,
        failure: DeliveryFailure,
        rule: &RetryRule,
    ) -> (u64, Duration) {
        let attempts = FailedAttempts::add(self.failing.take(), failure, rule);
        let attempts = self.failing.insert(attempts);
        (attempts.count, attempts.delay)
    }

    pub(super) fn record_success(&mut self) {
        self.failing = None;
    }

    /// Records that the receiver wants no more events.
    pub(super) fn disable(&mut self) {
        self.disabled_since = Some(time::now_rfc3339());
    }

    /// Records that events are sent again.
    pub(super) fn enable(&mut self) {
        self.disabled_since = None;
    }

    pub(super) fn describe(
        &self,
        name: &str,
        settings: &Webhook,
        totals: QueueTotals,
        oldest: Option<String>,
    ) -> webhook::Webhook {
        let QueueTotals { waiting, bytes, dropped, delivered, last_delivery, .. } = totals;
        let failing = self.failing.as_ref();
        let is_enabled = self.disabled_since.is_none();
        webhook::Webhook {
            name: name.to_owned(),
            url: display_origin(&settings.url),
            events: settings.events.iter().copied().map(EventKind::name).collect(),
            waiting,
            bytes,
            oldest,
            dropped,
            delivered,
            last_delivery,
            blocked: failing.map(|failing| failing.last.cause.clone()),
            blocked_by: failing.map(|failing| failing.last.class),
            blocked_since: failing.map(|failing| failing.since.clone()),
            attempts: failing.map_or(0, |failing| failing.count),
            next_attempt: failing
                .filter(|_| is_enabled)
                .map(|failing| failing.next_attempt.clone()),
            disabled_since: self.disabled_since.clone(),
        }
    }
}
