//! The state of each target, for the operator.
use super::cause::FailureClass;
use super::record::EXPORTS;
use super::{Exporter, Inner, make, target};
use penstock_base::error::GatewayError;
use std::collections::BTreeSet;

/// The state of a target.
#[derive(Debug, Clone)]
pub struct TargetState {
    /// The bucketName.
    pub name: String,
    /// `directory`, `s3` or `sparql`.
    pub kind: &'static str,
    /// Whether the last attempt reached the target, null before the first attempt.
    pub reachable: Option<bool>,
    /// The cause of the last failure of the entry at the head of its queue, as text.
    pub blocked: Option<String>,
    /// The class of that cause.
    pub blocked_by: Option<FailureClass>,
    /// What the server answered to the last attempt: the status and its words. `None` if it sent no error answer.
    pub answer: Option<String>,
    /// When the entry at the head first failed (RFC 3339).
    pub blocked_since: Option<String>,
    /// Failed attempts of the entry at the head, since it became the head or since the start.
    pub attempts: u64,
    /// When the next attempt is due (RFC 3339). It starts earlier if the link recovers.
    pub next_attempt: Option<String>,
    /// Why deliveries are paused although nothing failed, as text.
    pub paused: Option<String>,
    /// What an operator should know although nothing failed, as text.
    pub remark: Option<String>,
    /// The number of queued exports.
    pub depth: u64,
    /// The number of Business Objects whose automatic exports wait for spool capacity.
    pub waiting: u64,
    /// The bytes of the queued exports.
    pub bytes: u64,
    /// When the oldest queued export was created (RFC 3339).
    pub oldest: Option<String>,
    /// The age of that export in seconds, 0 if it was created in the future according to the clock.
    pub oldest_age_seconds: Option<u64>,
    /// When the last export was delivered (RFC 3339).
    pub last_delivery: Option<String>,
}

impl Exporter {
    /// Lists the targets that the configuration, a Business Object or the queue names, sorted by name.
    pub fn list_targets(&self) -> Result<Vec<TargetState>, GatewayError> {
        let Inner { options, queue, .. } = &*self.inner;
        let mut names: BTreeSet<String> = options.targets.named.keys().cloned().collect();
        names.extend(queue.lock_state().queues.keys().cloned());
        for business_object in options.catalogue.list() {
            names.extend(make::all_targets(&business_object));
        }
        names.into_iter().map(|name| self.inner.target_state(name)).collect()
    }
}

impl Inner {
    /// Returns the state of the target with this name.
    pub(super) fn target_state(&self, name: String) -> Result<TargetState, GatewayError> {
        let Self { options, queue, .. } = self;
        let cause = target::check_target(options, &name).err();
        let mut target = TargetState {
            kind: target::type_name(options, &name),
            reachable: None,
            blocked_by: cause.as_ref().map(|_| FailureClass::Gateway),
            blocked: cause,
            answer: None,
            blocked_since: None,
            attempts: 0,
            next_attempt: None,
            paused: self.uplink.pause_reason(),
            remark: None,
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
        if let Some(failing) = &target_queue.failing {
            target.blocked = Some(failing.error.clone());
            target.blocked_by = Some(failing.class);
            target.answer.clone_from(&failing.answer);
            target.blocked_since = Some(failing.since.clone());
            target.attempts = failing.failures;
            target.next_attempt =
                Some(failing.next_attempt.clone()).filter(|_| target_queue.delivering.is_none());
        }
        if let Some((_, (order, _))) = target_queue.waiting.first_key_value() {
            let head = EXPORTS.get_or_log(&queue.store.read(), *order)?;
            target.oldest = head.map(|record| record.entry.created_at);
            target.oldest_age_seconds = target.oldest.as_deref().map(|at| self.age_seconds(at));
        }
        Ok(target)
    }
}

impl Inner {
    /// Returns the seconds since this time (RFC 3339).
    fn age_seconds(&self, at: &str) -> u64 {
        let Ok(at) = at.parse::<jiff::Timestamp>() else { return 0 };
        let age = self.options.catalogue.watch().now().duration_since(at);
        u64::try_from(age.as_secs()).unwrap_or_default()
    }
}
