//! Retention: removes objects that have not changed for a time and that every target has.
//!
//! Ages are computed from the gateway's elapsed time, never from the clock. So setting the clock a year ahead removes
//! nothing. The age of an object starts with its last change. If the object existed before the retention was
//! set, it starts with the first check.
//!
//! Each export records which generations of changes it contains, and each object the generation of its last change.
//! A target has the current state of an object once no undelivered export can be the first to contain that change.
//! Objects in a parked export are not removed.
//!
//! Consumers are not notified and keep what they have. A later full export contains the remaining objects.
use super::queue::ExportQueue;
use super::record::EXPORTS;
use super::{ExporterParts, make};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_config::Limits;
use penstock_model::change_feed::{self, ExportCursor};
use penstock_model::ingest::{Body, KeptObjects, Mode, Request};
use penstock_model::members;
use penstock_model::resource::Compiled;
use penstock_resources::export::ExportStatus;
use penstock_store::{Error, Store};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The maximum number of URIs read at a time, and of objects removed in one commit.
const URIS_PER_PAGE: usize = 200;
/// A flag in the recorded generation of an object that existed before its retention was set. It means that the last
/// change of the object is in that generation or an earlier one.
const OR_BEFORE_FLAG: u64 = 1 << 63;
/// The caller in the ingestion records of these removals.
const RETENTION_CALLER: &str = "retention";

/// Returns the interval between two checks for objects past their retention.
pub(super) fn check_interval(retention: Duration) -> Duration {
    (retention / 10).clamp(Duration::from_secs(1), Duration::from_hours(1))
}

/// Removes the objects of a Business Object that are past their retention. Logs one warning if some of them stay.
/// Blocking.
pub(super) fn remove_expired(
    inner: &ExporterParts,
    business_object: &Compiled,
    retention: Duration,
) -> Result<(), GatewayError> {
    let mut kept = KeptObjects::default();
    let removed = remove_pages(inner, business_object, retention, &mut kept);
    kept.log(&business_object.object.definition.name);
    removed
}

fn remove_pages(
    inner: &ExporterParts,
    business_object: &Compiled,
    retention: Duration,
    kept: &mut KeptObjects,
) -> Result<(), GatewayError> {
    let store = &inner.queue.store;
    let id = business_object.object.id.as_str();
    let (mut after, mut delivered): (Option<NamedNode>, Option<DeliveredState>) = (None, None);
    while !inner.stopping.load(Ordering::Relaxed) {
        let instance = store.read().instance();
        let from = after.as_ref().map(NamedNode::as_str);
        let page = members::list_current_members(store, business_object, from, URIS_PER_PAGE)?;
        let Some(last) = page.last().cloned() else { return Ok(()) };
        after = Some(last);
        let Some(cursor) = read_cursor(inner, business_object)? else { return Ok(()) };
        if delivered.is_none() {
            let exports = cursor.exports;
            delivered = DeliveredState::collect(&inner.queue, id, cursor, instance)?;
            // A delivery that was collected may have shown meanwhile that its target lacks data.
            let again = read_cursor(inner, business_object)?;
            if again.is_none_or(|again| again.exports != exports) {
                return Ok(());
            }
        }
        let Some(delivered) = delivered.as_ref().filter(|delivered| delivered.instance == instance)
        else {
            return Ok(());
        };
        let now = inner.options.catalogue.watch().elapsed();
        let (mut without_age, mut expired) = (Vec::new(), Vec::new());
        let read = store.read();
        for uri in page {
            match change_feed::read_age(&read, id, uri.as_str())? {
                None => without_age.push(uri),
                Some(age) if delivered.is_expired(age, now, retention) => expired.push(uri),
                Some(_) => {}
            }
        }
        drop(read);
        if !without_age.is_empty() {
            start_ages(store, id, &without_age, now)?;
        }
        if expired.is_empty() {
            continue;
        }
        match remove_objects(inner, business_object, retention, delivered, &expired)? {
            Some(more) => kept.append(more),
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Starts the ages of objects now. Their last change may be one that is not exported yet.
fn start_ages(store: &Store, id: &str, uris: &[NamedNode], now: u64) -> Result<(), GatewayError> {
    store.transact::<_, Error>(|t| {
        let Some(cursor) = change_feed::read_cursor(t, id)? else { return Ok(()) };
        let last =
            if change_feed::has_changes(t, id, &cursor)? { cursor.open } else { cursor.done };
        for uri in uris {
            if change_feed::read_age(t, id, uri.as_str())?.is_none() {
                change_feed::AGES.put(t, (id, uri.as_str()), (now, last | OR_BEFORE_FLAG))?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Removes those of these objects that are still past their retention. Returns the objects that a review keeps, or
/// `None` if the definition was replaced, because then the new one applies.
pub(super) fn remove_objects(
    inner: &ExporterParts,
    business_object: &Compiled,
    retention: Duration,
    delivered: &DeliveredState,
    uris: &[NamedNode],
) -> Result<Option<KeptObjects>, GatewayError> {
    let id = business_object.object.id.as_str();
    let watch = inner.options.catalogue.watch();
    let limits = Limits { history: inner.options.history, ..Limits::default() };
    let (mode, body) = (Mode::Delete, Body::Json(b""));
    let request = Request {
        events: Some(&inner.options.events),
        ..Request::of_gateway(business_object, mode, RETENTION_CALLER, watch, body)
    };
    penstock_model::ingest::remove_expired(
        &inner.queue.store,
        &limits,
        &request,
        uris,
        &mut |t, uri| {
            // The store was reopened, which may have cut off the commit of a delivery that the state counts.
            if t.instance() != delivered.instance {
                return Ok(false);
            }
            // The object may have changed since the check.
            let age = change_feed::read_age(t, id, uri.as_str())?;
            Ok(age.is_some_and(|age| delivered.is_expired(age, watch.elapsed(), retention)))
        },
    )
}

/// Returns the change cursor, or `None` if there is no target or cursor, or if a target still needs a full export.
pub(super) fn read_cursor(
    inner: &ExporterParts,
    business_object: &Compiled,
) -> Result<Option<ExportCursor>, GatewayError> {
    let id = business_object.object.id.as_str();
    if make::all_targets(business_object).is_empty() {
        return Ok(None);
    }
    let Some(cursor) = change_feed::read_cursor(&inner.queue.store.read(), id)? else {
        return Ok(None);
    };
    let has_all = make::targets_without_full(inner, business_object, &cursor)?.is_empty();
    Ok(has_all.then_some(cursor))
}

/// What every target has. The state may be out of date, because exports created later are for later generations than
/// the cursor's.
pub(super) struct DeliveredState {
    /// The instance of the store's index that the state was read from.
    instance: u64,
    cursor: ExportCursor,
    undelivered: UndeliveredGenerations,
}

/// The generations of changes that undelivered exports contain, so that a lookup does not read every export.
#[derive(Debug)]
struct UndeliveredGenerations {
    /// The lowest generation after which an export begins.
    lowest_from: Option<u64>,
    /// Ranges without overlaps, in order: after the first number, up to and including the second.
    ranges: Vec<(u64, u64)>,
}

impl UndeliveredGenerations {
    /// Merges what each export contains ([`super::record::Record::covers`]).
    fn merge(mut covers: Vec<(u64, u64)>) -> Self {
        let lowest_from = covers.iter().map(|(from, _)| *from).min();
        covers.retain(|(from, to)| from < to);
        covers.sort_unstable();
        covers.dedup_by(|next, before| {
            let continues = next.0 <= before.1;
            if continues {
                before.1 = before.1.max(next.1);
            }
            continues
        });
        Self { lowest_from, ranges: covers }
    }

    /// Returns whether an export may be the first one with a change in this generation, or with `or_before` in this or an
    /// earlier one.
    fn may_have_first(&self, generation: u64, or_before: bool) -> bool {
        if or_before {
            return self.lowest_from.is_some_and(|from| from < generation);
        }
        let begun = self.ranges.partition_point(|(from, _)| *from < generation);
        let last = self.ranges.get(..begun).and_then(<[_]>::last);
        last.is_some_and(|(_, to)| generation <= *to)
    }
}

impl DeliveredState {
    /// Collects the state. `cursor` was read before, from the index with this `instance`. Returns `None` if there are
    /// unreadable queue records.
    pub(super) fn collect(
        queue: &ExportQueue,
        id: &str,
        cursor: ExportCursor,
        instance: u64,
    ) -> Result<Option<Self>, GatewayError> {
        let Some(orders) = queue.lock_state().undelivered_orders() else { return Ok(None) };
        let mut covers = Vec::new();
        for orders in orders.chunks(URIS_PER_PAGE) {
            let read = queue.store.read();
            for order in orders {
                match EXPORTS.get_or_log(&read, *order)? {
                    Some(record) if record.entry.business_object != id => {}
                    Some(record) if record.entry.status == ExportStatus::Delivered => {}
                    Some(record) => covers.push(record.covers.unwrap_or((0, u64::MAX))),
                    // The entry was delivered in the meantime and removed from the history.
                    None => {}
                }
            }
        }
        let undelivered = UndeliveredGenerations::merge(covers);
        Ok(Some(Self { instance, cursor, undelivered }))
    }

    /// Returns whether an object is old enough and every target has it.
    fn is_expired(&self, (at, flagged): (u64, u64), now: u64, retention: Duration) -> bool {
        let (generation, or_before) = (flagged & !OR_BEFORE_FLAG, flagged & OR_BEFORE_FLAG != 0);
        Duration::from_millis(now.saturating_sub(at)) >= retention
            && generation <= self.cursor.done
            && !self.undelivered.may_have_first(generation, or_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_generations_answer_as_all_exports_do(
            covers in prop::collection::vec((0..20_u64, 0..20_u64), 0..8),
            is_unknown in any::<bool>(),
        ) {
            let unknown = is_unknown.then_some((7, u64::MAX));
            let covers: Vec<(u64, u64)> = covers.into_iter().chain(unknown).collect();
            let merged = UndeliveredGenerations::merge(covers.clone());
            for generation in (0..25).chain([OR_BEFORE_FLAG - 1]) {
                for or_before in [false, true] {
                    let may_be_first = |&(from, to): &(u64, u64)| {
                        from < generation && (or_before || generation <= to)
                    };
                    assert_eq!(
                        merged.may_have_first(generation, or_before),
                        covers.iter().any(may_be_first),
                        "generation {generation} in {covers:?}"
                    );
                }
            }
        }
    }
}
