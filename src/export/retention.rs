//! Retention: objects that have not changed for a time, and that every target has, are removed.
//!
//! What time passes is counted by the gateway's elapsed time, never by the clock: one that is set a year
//! ahead removes nothing. An object begins to count when it changes, and one that was there before its
//! retention was asked for, when it is first looked at.
//!
//! A target has an object as it is now once no export is left undelivered that could be the first to bring
//! its last change: each export says which generations of changes it brings, and each object in which of them
//! it changed last. A parked export holds its objects back.
//!
//! Consumers are not told: they keep what they have. A full export made afterwards holds what is left.
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

/// URIs looked at, and objects removed in one commit.
const PAGE: usize = 200;
/// Set in the generation of an object that was there before its retention was asked for: it changed last in
/// that one, or in any before.
const OR_BEFORE: u64 = 1 << 63;
/// The name in whose name objects are removed.
const CALLER: &str = "retention";

/// How often it is looked for objects whose time is over.
pub(super) fn interval(retention: Duration) -> Duration {
    (retention / 10).clamp(Duration::from_secs(1), Duration::from_hours(1))
}

/// Removes the objects of a Business Object whose time is over. Blocks.
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

/// Lets objects count from now on. What is not exported yet may be what they changed last.
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

/// False when another definition took the place of this one, which is to decide.
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
        // A delivery that reopening the store cut off was none.
        if t.instance() != had.instance {
            return Ok(false);
        }
        // Since it was looked at, it may have changed.
        let age = changes::age(t, id, uri.as_str())?;
        Ok(age.is_some_and(|age| had.is_over(age, watch.elapsed(), retention)))
    })
}

/// How far the exports have come; `None` while some target has not had everything.
pub(super) fn cursor(inner: &Inner, business_object: &Compiled) -> Result<Option<Cursor>, Fault> {
    let id = business_object.object.id.as_str();
    if make::all_targets(business_object).is_empty() {
        return Ok(None);
    }
    let Some(cursor) = changes::cursor(&inner.queue.store.read(), id)? else { return Ok(None) };
    let has_all = make::without_full(inner, business_object, &cursor)?.is_empty();
    Ok(has_all.then_some(cursor))
}

/// What every target has. It may be some time ago: what is exported meanwhile is of later generations than
/// the cursor says.
pub(super) struct Had {
    /// The index that all of this was read from.
    instance: u64,
    cursor: Cursor,
    /// The generations of each export that is not delivered.
    undelivered: Vec<(u64, u64)>,
}

impl Had {
    /// With a cursor that was read before, from the index of that instance; `None` when that cannot be told.
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
                    // It was delivered since, and fell out of the history.
                    None => {}
                }
            }
        }
        Ok(Some(Self { instance, cursor, undelivered }))
    }

    /// Whether an object is old enough and every target has it.
    fn is_over(&self, (at, noted): (u64, u64), now: u64, retention: Duration) -> bool {
        let (generation, or_before) = (noted & !OR_BEFORE, noted & OR_BEFORE != 0);
        let may_bring =
            |&(from, to): &(u64, u64)| from < generation && (or_before || generation <= to);
        Duration::from_millis(now.saturating_sub(at)) >= retention
            && generation <= self.cursor.done
            && !self.undelivered.iter().any(may_bring)
    }
}
