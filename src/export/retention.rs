//! Retention: removes objects that have not changed for a time and that every target has.
//!
//! Ages are measured with the gateway's elapsed time, never with the clock: a clock set a year ahead removes
//! nothing. The age of an object starts with its last change. If the object existed before the retention was
//! set, it starts with the first check.
//!
//! A target has the current state of an object once no undelivered export could be the first to contain its
//! last change. Each export records which generations of changes it contains, and each object in which of them
//! it changed last. A parked export keeps its objects.
//!
//! Consumers are not notified and keep what they have. A later full export contains the remaining objects.
use super::entry::Status;
use super::{Inner, make, record};
use oxrdf::NamedNode;
use penstock_base::commit::NoClient;
use penstock_base::fault::Fault;
use penstock_model::changes::{self, Cursor};
use penstock_model::ingest::{Body, Limits, Mode, Request, expire};
use penstock_model::members;
use penstock_model::resource::Compiled;
use penstock_store::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// URIs per page, and objects removed in one commit.
const PAGE: usize = 200;
/// A flag in the generation of an object that existed before its retention was set: it changed last in that
/// generation or an earlier one.
const OR_BEFORE: u64 = 1 << 63;
/// The caller in the records of these removals.
const CALLER: &str = "retention";

/// Returns the interval between two checks for objects past their retention.
pub(super) fn interval(retention: Duration) -> Duration {
    (retention / 10).clamp(Duration::from_secs(1), Duration::from_hours(1))
}

/// Removes the objects of a Business Object that are past their retention. Blocking.
pub(super) fn sweep(
    inner: &Inner,
    business_object: &Compiled,
    retention: Duration,
) -> Result<(), Fault> {
    let store = &inner.queue.store;
    let id = business_object.object.id.as_str();
    let (mut after, mut had): (Option<NamedNode>, Option<Had>) = (None, None);
    while !inner.stopping.load(Ordering::Relaxed) {
        let instance = store.read().instance();
        let from = after.as_ref().map(NamedNode::as_str);
        let (page, _) = members::page_of(store, business_object, from, PAGE)?;
        let Some(last) = page.last().cloned() else { return Ok(()) };
        after = Some(last);
        let Some(cursor) = cursor(inner, business_object)? else { return Ok(()) };
        if had.is_none() {
            had = Had::find(inner, id, cursor, instance)?;
        }
        let Some(had) = had.as_ref().filter(|had| had.instance == instance) else { return Ok(()) };
        let now = inner.options.catalogue.watch().elapsed();
        let (mut unknown, mut over) = (Vec::new(), Vec::new());
        let read = store.read();
        for uri in page {
            match changes::age(&read, id, uri.as_str())? {
                None => unknown.push(uri),
                Some(age) if had.is_over(age, now, retention) => over.push(uri),
                Some(_) => {}
            }
        }
        drop(read);
        if !unknown.is_empty() {
            begin(inner, id, &unknown, now)?;
        }
        if !over.is_empty() && !remove(inner, business_object, retention, had, &over)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Starts the ages of objects now. Their last change may be one that is not exported yet.
fn begin(inner: &Inner, id: &str, uris: &[NamedNode], now: u64) -> Result<(), Fault> {
    inner.queue.store.transact::<_, Error>(|t| {
        let Some(cursor) = changes::cursor(t, id)? else { return Ok(()) };
        let last = if changes::has_changes(t, id, &cursor)? { cursor.open } else { cursor.done };
        for uri in uris {
            if changes::age(t, id, uri.as_str())?.is_none() {
                changes::put_age(t, id, uri.as_str(), now, last | OR_BEFORE)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Removes these objects if they are still past their retention. Returns false if the definition was replaced;
/// then the new one decides.
pub(super) fn remove(
    inner: &Inner,
    business_object: &Compiled,
    retention: Duration,
    had: &Had,
    uris: &[NamedNode],
) -> Result<bool, Fault> {
    let id = business_object.object.id.as_str();
    let watch = inner.options.catalogue.watch();
    let limits = Limits {
        nesting: 0,
        objects: 0,
        values: 0,
        idempotency_keys: 0,
        idempotency_bytes: 0,
        history: inner.options.history,
    };
    let request = Request {
        business_object,
        mode: Mode::Delete,
        check: &NoClient,
        caller: CALLER,
        api_key: None,
        traceparent: None,
        idempotency_key: None,
        tells_objects: false,
        watch,
        events: Some(&inner.options.events),
        body: Body::Json(b""),
    };
    expire(&inner.queue.store, &limits, &request, uris, &mut |t, uri| {
        // A delivery whose commit was cut off when the store was reopened did not happen.
        if t.instance() != had.instance {
            return Ok(false);
        }
        // It may have changed since the check.
        let age = changes::age(t, id, uri.as_str())?;
        Ok(age.is_some_and(|age| had.is_over(age, watch.elapsed(), retention)))
    })
}

/// Returns the cursor of the exported changes, or `None` while a target has not received everything.
pub(super) fn cursor(inner: &Inner, business_object: &Compiled) -> Result<Option<Cursor>, Fault> {
    let id = business_object.object.id.as_str();
    if make::all_targets(business_object).is_empty() {
        return Ok(None);
    }
    let Some(cursor) = changes::cursor(&inner.queue.store.read(), id)? else { return Ok(None) };
    let has_all = make::without_full(inner, business_object, &cursor)?.is_empty();
    Ok(has_all.then_some(cursor))
}

/// What every target has. It may be out of date: later exports belong to later generations than the cursor's.
pub(super) struct Had {
    /// The index instance that all of this was read from.
    instance: u64,
    cursor: Cursor,
    /// The generations that each undelivered export contains.
    undelivered: Vec<(u64, u64)>,
}

impl Had {
    /// Collects the state for a cursor that was read before from the index of `instance`. Returns `None` if
    /// queue records cannot be read.
    pub(super) fn find(
        inner: &Inner,
        id: &str,
        cursor: Cursor,
        instance: u64,
    ) -> Result<Option<Self>, Fault> {
        let Some(orders) = inner.queue.state().undelivered() else { return Ok(None) };
        let mut undelivered = Vec::new();
        for orders in orders.chunks(PAGE) {
            let read = inner.queue.store.read();
            for order in orders {
                match record::by_order(&read, *order)? {
                    Some(record) if record.entry.business_object != id => {}
                    Some(record) if record.entry.status == Status::Delivered => {}
                    Some(record) => undelivered.push(record.covers.unwrap_or((0, u64::MAX))),
                    // It has been delivered since and was removed from the history.
                    None => {}
                }
            }
        }
        Ok(Some(Self { instance, cursor, undelivered }))
    }

    /// Returns whether an object is old enough and every target has it.
    fn is_over(&self, (at, noted): (u64, u64), now: u64, retention: Duration) -> bool {
        let (generation, or_before) = (noted & !OR_BEFORE, noted & OR_BEFORE != 0);
        let may_bring =
            |&(from, to): &(u64, u64)| from < generation && (or_before || generation <= to);
        Duration::from_millis(now.saturating_sub(at)) >= retention
            && generation <= self.cursor.done
            && !self.undelivered.iter().any(may_bring)
    }
}
