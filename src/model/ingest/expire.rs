//! Retention: removes expired objects, as a DELETE that no client sent.
use super::change::remove_objects;
use super::written_objects::WrittenObjects;
use super::{Answer, Limits, Mode, Request, record};
use crate::{catalogue, change_feed};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_base::events;
use penstock_resources::ingestion::IngestionRecord;
use penstock_store::{Store, Transaction};
use std::collections::BTreeSet;

/// The objects that retention leaves in place, because a Business Object that requires a review has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptObjects {
    /// Their number.
    pub count: u64,
    /// The URI of the first one.
    pub first: Option<String>,
}

impl KeptObjects {
    /// Adds the objects that another commit kept.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }

    fn add(&mut self, uri: &NamedNode) {
        self.count += 1;
        self.first.get_or_insert_with(|| uri.as_str().to_owned());
    }

    /// Logs one warning, if there are any.
    pub fn log(&self, business_object: &str) {
        let Some(first) = &self.first else { return };
        tracing::warn!(
            business_object,
            objects = self.count,
            first,
            "Objects past their retention were not removed, because they also belong to a Business Object that requires \
             a review."
        );
    }
}

/// Removes the objects for which `is_expired` still holds, and the nested objects that nothing else refers to. One
/// commit contains the removal and its record. `request` names the caller; its body is ignored.
///
/// An object that also belongs to another Business Object that requires a review stays, and so does one nested in it.
/// Returns how many such objects stay, and the first.
///
/// The removal is not recorded as a change of this Business Object, because the targets must keep the objects that were
/// exported to them.
///
/// Returns `None`, and removes nothing, if the definition in `request` was replaced or deleted, because its retention
/// period no longer applies.
///
/// # Errors
/// Returns the errors of the store. The transaction is then rolled back.
pub fn remove_expired(
    store: &Store,
    limits: &Limits,
    request: &Request<'_>,
    uris: &[NamedNode],
    is_expired: &mut dyn FnMut(&Transaction<'_>, &NamedNode) -> Result<bool, GatewayError>,
) -> Result<Option<KeptObjects>, GatewayError> {
    let object = &request.business_object.object;
    let (mut is_current, mut kept) = (true, KeptObjects::default());
    let (expired, _) = store.transact(|transaction| -> Result<_, GatewayError> {
        if !catalogue::is_current(transaction, object)? {
            is_current = false;
            return Ok(None);
        }
        let definitions = request.watch.current_definitions(transaction)?;
        let mut over = BTreeSet::new();
        for uri in uris {
            if !is_expired(transaction, uri)? {
                continue;
            }
            match definitions.find_reviewed_holder(transaction, &object.id, uri)? {
                None => drop(over.insert(uri.clone())),
                Some(_) => kept.add(uri),
            }
        }
        if over.is_empty() {
            return Ok(None);
        }
        let mut answer = Answer::new(Mode::Delete);
        let reviewed = definitions.list_reviewed_members(&object.id);
        let removed = remove_objects(transaction, request.business_object, &over, &reviewed)?;
        answer.deleted = removed.deleted;
        removed.kept.iter().for_each(|uri| kept.add(uri));
        let id = &object.id;
        change_feed::record_changes_except(transaction, request.watch, id, &over)?;
        for uri in &over {
            change_feed::AGES.delete(transaction, (id, uri.as_str()))?;
        }
        let wrote = WrittenObjects::from_uris(over.iter().map(NamedNode::as_str));
        let record = record::new_record(transaction, request, &answer);
        record::store_record(transaction, &record, &wrote, limits.history)?;
        if let Some(events) = request.events {
            let kind = events::EventKind::Ingestion;
            events.store(transaction, None, kind, &record.id, &record)?;
        }
        Ok(Some(record))
    })?;
    let Some(record) = expired else { return Ok(is_current.then_some(kept)) };
    if let Some(events) = request.events {
        events.publish(events::EventKind::Ingestion, &record.id, &record);
    }
    log_removal(&record);
    Ok(Some(kept))
}

fn log_removal(record: &IngestionRecord) {
    tracing::info!(
        ingestion_id = record.id,
        business_object = record.business_object_name.as_deref(),
        deleted = record.deleted,
        "Removed objects that had not changed for their retention period. Every target \
         has them."
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_objects_of_all_commits_are_counted() {
        let kept = |count, first: &str| KeptObjects { count, first: Some(first.to_owned()) };
        let mut all = KeptObjects::default();
        for (more, expected) in [
            (KeptObjects::default(), KeptObjects::default()),
            (kept(2, "urn:a"), kept(2, "urn:a")),
            (kept(3, "urn:b"), kept(5, "urn:a")),
        ] {
            all.append(more);
            assert_eq!(all, expected);
        }
    }
}
