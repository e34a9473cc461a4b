//! Empties a Business Object that is deleted with its objects, as DELETEs that no client sent.
use super::change::{RemovedObjects, remove_objects};
use super::written_objects::WrittenObjects;
use super::{Answer, Mode, Request, record};
use crate::change_feed::{self, WatchedDefinitions};
use crate::members::{list_members, satisfies_any};
use crate::resource::Deletion;
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_resources::ingestion::IngestionRecord;
use penstock_store::{Read, SubjectFilter, Transaction};

/// The number of URIs that are listed at a time, and the maximum number of members removed in one commit.
const MAX_REMOVED_MEMBERS: usize = 200;
/// The maximum number of members that are looked at in one commit.
const MAX_VISITED_MEMBERS: u64 = 2000;
/// The number of removed quads after which a commit ends. The last object may exceed it.
const MAX_REMOVED_QUADS: u64 = 10_000;

/// What one commit removes.
#[derive(Debug, Default)]
pub(crate) struct RemovedMembers {
    /// The number of members that were looked at.
    pub(crate) visited: u64,
    /// The number of members that were removed.
    pub(crate) removed: u64,
    /// The URI of the last member that was looked at; `None` if there are no members after it.
    pub(crate) last_visited: Option<String>,
    /// The record of the deletion, once something was removed.
    pub(crate) record: Option<IngestionRecord>,
}

/// Returns whether the deletion of a Business Object leaves an object in place: it satisfies one of the filters of the
/// other Business Objects, or is nested in a member of one that requires a review.
pub(crate) fn is_kept(
    read: &dyn Read,
    definitions: &WatchedDefinitions,
    own_id: &str,
    others: &[SubjectFilter],
    uri: &NamedNode,
) -> Result<bool, GatewayError> {
    Ok(satisfies_any(read, others, uri)?
        || definitions.find_reviewed_holder(read, own_id, uri)?.is_some())
}

/// Removes the next members of a deletion, and the objects nested in them that nothing else refers to. What
/// [`is_kept`] with the filters `others` stays. `request` names the caller; its body is ignored. All commits of the
/// deletion have one record.
///
/// The number of members and quads is bounded, so that a commit takes a bounded time.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) fn remove_next_members(
    transaction: &mut Transaction<'_>,
    request: &Request<'_>,
    max_records: usize,
    deletion: &Deletion,
    others: &[SubjectFilter],
) -> Result<RemovedMembers, GatewayError> {
    let business_object = request.business_object;
    let definitions = request.watch.current_definitions(transaction)?;
    let own_id = business_object.object.id.as_str();
    let mut answer = Answer::new(Mode::Delete);
    let mut last_visited = deletion.last_visited.clone();
    let (mut visited, mut removed) = (0, Vec::new());
    let is_full = |transaction: &Transaction<'_>, visited, removed: &[NamedNode]| {
        visited >= MAX_VISITED_MEMBERS
            || removed.len() >= MAX_REMOVED_MEMBERS
            || transaction.removed_quads() >= MAX_REMOVED_QUADS
    };
    while !is_full(transaction, visited, &removed) {
        let page = list_members(
            transaction,
            business_object,
            last_visited.as_deref(),
            MAX_REMOVED_MEMBERS,
        )?;
        last_visited = None;
        for uri in page {
            visited += 1;
            last_visited = Some(uri.as_str().to_owned());
            if !is_kept(transaction, &definitions, own_id, others, &uri)? {
                let RemovedObjects { deleted, .. } =
                    remove_objects(transaction, business_object, [&uri], others)?;
                answer.deleted += deleted;
                // It may be nested in a member before it, and removed with that.
                if deleted > 0 {
                    removed.push(uri);
                }
            }
            if is_full(transaction, visited, &removed) {
                break;
            }
        }
        if last_visited.is_none() {
            break;
        }
    }
    let mut record = deletion.record.clone();
    if !removed.is_empty() {
        change_feed::record_changes(transaction, request.watch)?;
        let uris = removed.iter().map(NamedNode::as_str);
        record = Some(if let Some(mut record) = record {
            record.deleted = record.deleted.saturating_add(answer.deleted);
            record::update_record(transaction, &record, uris)?;
            record
        } else {
            let wrote = WrittenObjects::from_uris(uris);
            let record = record::new_record(transaction, request, &answer);
            record::store_record(transaction, &record, &wrote, max_records)?;
            record
        });
    }
    Ok(RemovedMembers { visited, removed: removed.len() as u64, last_visited, record })
}
