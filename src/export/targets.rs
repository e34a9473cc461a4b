//! How each target is, for the operator.
use super::cause::Class;
use super::{Exporter, Inner, make, record, target};
use penstock_base::fault::Fault;
use serde::Serialize;
use std::collections::BTreeSet;

/// A target and how it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetState {
    /// The bucketName.
    pub name: String,
    /// `directory` or `s3`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the last attempt reached it; null before the first.
    pub reachable: Option<bool>,
    /// Why its head of the queue does not get through, in words.
    pub blocked: Option<String>,
    /// What kind of cause that is.
    pub blocked_by: Option<Class>,
    /// When its head first failed (RFC 3339).
    pub blocked_since: Option<String>,
    /// Failed attempts at its head since it came there, or since the start.
    pub attempts: u64,
    /// When the next attempt is due (RFC 3339), unless the link is back before.
    pub next_attempt: Option<String>,
    /// Why nothing is delivered now though nothing is wrong, in words.
    pub paused: Option<String>,
    /// Exports that wait for it.
    pub depth: u64,
    /// Business Objects whose exports by themselves wait for room in the spool.
    pub waiting: u64,
    /// Bytes that wait for it.
    pub bytes: u64,
    /// When the oldest that waits was made (RFC 3339).
    pub oldest: Option<String>,
    /// Seconds that it has waited; 0 where the clock says that it was made later.
    pub oldest_age_seconds: Option<u64>,
    /// When the last one was delivered (RFC 3339).
    pub last_delivery: Option<String>,
}

impl Exporter {
    /// Every target that the configuration, a Business Object or the queue names, by name.
    pub fn targets(&self) -> Result<Vec<TargetState>, Fault> {
        let Inner { options, queue, .. } = &*self.inner;
        let mut names: BTreeSet<String> = options.targets.named.keys().cloned().collect();
        names.extend(queue.state().lines.keys().cloned());
        for business_object in options.catalogue.list() {
            names.extend(make::all_targets(&business_object));
        }
        names.into_iter().map(|name| self.inner.target(name)).collect()
    }
}

impl Inner {
    /// How the target of this name is.
    pub(super) fn target(&self, name: String) -> Result<TargetState, Fault> {
        let Self { options, queue, .. } = self;
        let wrong = target::check(options, &name).err();
        let mut target = TargetState {
            kind: target::type_name(options, &name).to_owned(),
            reachable: None,
            blocked_by: wrong.as_ref().map(|_| Class::Gateway),
            blocked: wrong,
            blocked_since: None,
            attempts: 0,
            next_attempt: None,
            paused: self.uplink.paused(),
            depth: 0,
            waiting: self.waiting.for_target(&name),
            bytes: 0,
            oldest: None,
            oldest_age_seconds: None,
            last_delivery: None,
            name,
        };
        let state = queue.state();
        let Some(line) = state.lines.get(&target.name) else { return Ok(target) };
        target.reachable = line.reachable;
        target.depth = line.waiting.len() as u64;
        target.bytes = line.bytes;
        target.last_delivery.clone_from(&line.last_delivery);
        if let Some(failing) = &line.failing {
            target.blocked = Some(failing.error.clone());
            target.blocked_by = Some(failing.class);
            target.blocked_since = Some(failing.since.clone());
            target.attempts = failing.failures;
            target.next_attempt = Some(failing.next.clone()).filter(|_| line.under_way.is_none());
        }
        if let Some((_, (order, _))) = line.waiting.first_key_value() {
            let head = record::by_order(&queue.store.read(), *order)?;
            target.oldest = head.map(|record| record.entry.created_at);
            target.oldest_age_seconds = target.oldest.as_deref().map(|at| self.age(at));
        }
        Ok(target)
    }
}

impl Inner {
    /// Seconds since this time (RFC 3339).
    fn age(&self, at: &str) -> u64 {
        let Ok(at) = at.parse::<jiff::Timestamp>() else { return 0 };
        let age = self.options.catalogue.watch().now().duration_since(at);
        u64::try_from(age.as_secs()).unwrap_or_default()
    }
}
