//! The state of each target, for the operator.
use super::record::EXPORTS;
use super::state::FailingEntry;
use super::{Exporter, ExporterParts, make, target};
use penstock_base::error::GatewayError;
use penstock_base::events::EventKind;
use penstock_resources::export::{Cause, Target};
use std::collections::BTreeSet;

impl Exporter {
    /// Lists the targets that the configuration, a Business Object or the queue names, sorted by name.
    pub fn list_targets(&self) -> Result<Vec<Target>, GatewayError> {
        let ExporterParts { options, queue, .. } = &*self.inner;
        let mut names: BTreeSet<String> = options.targets.named.keys().cloned().collect();
        names.extend(queue.lock_state().queues.keys().cloned());
        for business_object in options.catalogue.list() {
            names.extend(make::all_targets(&business_object));
        }
        names.into_iter().map(|name| self.inner.target_state(name)).collect()
    }
}

impl ExporterParts {
    /// Returns the state of the target with this name.
    pub(super) fn target_state(&self, name: String) -> Result<Target, GatewayError> {
        let Self { options, queue, .. } = self;
        let cause = target::check_target(options, &name).err();
        let mut target = Target {
            kind: target::type_name(options, &name),
            reachable: None,
            blocked_by: cause.as_ref().map(|_| Cause::Gateway),
            blocked: cause,
            answer: None,
            blocked_since: None,
            attempts: 0,
            next_attempt: None,
            paused: self.uplink.pause_reason(),
            remark: None,
            warnings: target::collect_warnings(&options.targets, &name),
            depth: 0,
            waiting: self.waiting.count_for_target(&name),
            bytes: 0,
            oldest: None,
            oldest_age_seconds: None,
            last_delivery: None,
            name,
        };
        let state = queue.lock_state();
        let Some(target_queue) = state.queues.get(&target.name) else { return Ok(target) };
        target.reachable = target_queue.reachable;
        target.depth = target_queue.waiting.len() as u64;
        target.bytes = target_queue.bytes;
        target.remark = target_queue.remark();
        target.last_delivery.clone_from(&target_queue.last_delivery);
        if let Some(FailingEntry { attempts, .. }) = &target_queue.failing {
            target.blocked = Some(attempts.last.cause.clone());
            target.blocked_by = Some(attempts.last.class);
            target.answer.clone_from(&attempts.last.answer);
            target.blocked_since = Some(attempts.since.clone());
            target.attempts = attempts.count;
            target.next_attempt =
                Some(attempts.next_attempt.clone()).filter(|_| target_queue.delivering.is_none());
        }
        if let Some((_, (order, _))) = target_queue.waiting.first_key_value() {
            let head = EXPORTS.get_or_log(&queue.store.read(), *order)?;
            target.oldest = head.map(|record| record.entry.created_at);
            target.oldest_age_seconds = target.oldest.as_deref().map(|at| self.age_seconds(at));
        }
        Ok(target)
    }

    /// Publishes an event with the current state of a target, and another one to webhooks if it is newly blocked.
    pub(super) fn publish_target(&self, name: &str, is_newly_blocked: bool) {
        // A store error is reported to the next caller that reads the target's state.
        let Ok(target) = self.target_state(name.to_owned()) else { return };
        let events = &self.options.events;
        events.publish_unstored(None, EventKind::Target, name, &target);
        // An operator may have ended the backoff meanwhile.
        if is_newly_blocked && target.blocked.is_some() {
            events.notify_webhooks(None, EventKind::TargetBlocked, name, &target);
        }
    }

    /// Returns the seconds since this time (RFC 3339).
    fn age_seconds(&self, at: &str) -> u64 {
        let Ok(at) = at.parse::<jiff::Timestamp>() else { return 0 };
        let age = self.options.catalogue.watch().now().duration_since(at);
        u64::try_from(age.as_secs()).unwrap_or_default()
    }
}
