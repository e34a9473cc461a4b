//! Objects removed since their time is over: a DELETE that nobody sent.
use super::change::removed;
use super::wrote::Wrote;
use super::{Answer, Limits, Mode, Record, Request, record};
use crate::{catalogue, changes};
use oxrdf::NamedNode;
use penstock_base::events;
use penstock_base::fault::Fault;
use penstock_store::{Store, Transaction};
use std::collections::BTreeSet;

/// Removes those of these objects that `is_over` still says so of, with what is nested in them and nothing
/// else refers to, in one commit with its record. `request` says in whose name; its body is not looked at.
/// The Business Object itself is not told of it as of a change: what holds its exports is to keep them.
///
/// False when the definition that `request` has was replaced or deleted, and with it what said how long
/// objects are kept: nothing is removed then.
///
/// # Errors
/// As the store's; nothing is removed then.
pub fn expire(
    store: &Store,
    limits: &Limits,
    request: &Request<'_>,
    uris: &[NamedNode],
    is_over: &mut dyn FnMut(&Transaction<'_>, &NamedNode) -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    let object = &request.business_object.object;
    let mut decides = true;
    let (expired, _) = store.transact(|transaction| -> Result<_, Fault> {
        if catalogue::version(transaction, &object.id)? != Some(object.version) {
            decides = false;
            return Ok(None);
        }
        let mut over = BTreeSet::new();
        for uri in uris {
            if is_over(transaction, uri)? {
                over.insert(uri.clone());
            }
        }
        if over.is_empty() {
            return Ok(None);
        }
        let mut answer = Answer::new(Mode::Delete);
        answer.deleted = removed(transaction, request.business_object, &over)?;
        let id = &object.id;
        changes::note_but(transaction, request.watch, id, &over)?;
        for uri in &over {
            changes::forget_age(transaction, id, uri.as_str())?;
        }
        let wrote = Wrote::of_uris(over.iter().map(NamedNode::as_str));
        Ok(Some(record::keep(transaction, request, &answer, &wrote, limits.history)?))
    })?;
    let Some(record) = expired else { return Ok(decides) };
    if let Some(events) = request.events {
        events.publish(events::Kind::Ingestion, &record.id, &record);
    }
    tell(&record);
    Ok(decides)
}

fn tell(record: &Record) {
    tracing::info!(
        ingestion_id = record.id,
        business_object = record.business_object_name,
        deleted = record.deleted,
        "Objects were removed, since they had not changed for the time of their retention and every target \
         has them."
    );
}
