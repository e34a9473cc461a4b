//! The state of webhooks, for the operator.
use crate::cause::DeliveryFailure;
use penstock_base::events::EventKind;
use penstock_base::events::webhook_queues::QueueTotals;
use penstock_base::time;
use penstock_config::{Webhook, display_origin};
use penstock_resources::export::Cause;
use penstock_resources::webhook;
use std::time::Duration;

/// What a worker knows about its webhook.
#[derive(Debug, Default)]
pub(super) struct WorkerState {
    failing: Option<FailingEvent>,
    disabled_since: Option<String>,
}

/// The event at the head of the queue, which cannot be delivered.
#[derive(Debug)]
struct FailingEvent {
    failures: u64,
    cause: String,
    class: Cause,
    since: String,
    next_attempt: String,
}

impl WorkerState {
    /// Records a failed attempt. Returns the number of failures in a row, and the delay that `wait` computes from it.
    pub(super) fn record_failure(
        &mut self,
        failure: &DeliveryFailure,
        wait: impl FnOnce(u64) -> Duration,
    ) -> (u64, Duration) {
        let before = self.failing.take();
        let failures = before.as_ref().map_or(0, |failing| failing.failures) + 1;
        let delay = wait(failures);
        self.failing = Some(FailingEvent {
            failures,
            cause: failure.cause.clone(),
            class: failure.class,
            since: before.map_or_else(time::now_rfc3339, |failing| failing.since),
            next_attempt: time::rfc3339_after(delay),
        });
        (failures, delay)
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
            blocked: failing.map(|failing| failing.cause.clone()),
            blocked_by: failing.map(|failing| failing.class),
            blocked_since: failing.map(|failing| failing.since.clone()),
            attempts: failing.map_or(0, |failing| failing.failures),
            next_attempt: failing
                .filter(|_| is_enabled)
                .map(|failing| failing.next_attempt.clone()),
            disabled_since: self.disabled_since.clone(),
        }
    }
}
