//! How many changes wait for the approval of a caller.
use super::relation::Viewer;
use super::waiting_counts::KeptCount;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::GatewayError;
use penstock_model::changes::{iter_open_changes, read_totals};
use penstock_resources::business_object::Review;
use penstock_resources::change::ChangeState;
use std::collections::HashSet;
use std::time::Instant;

/// Counts the submitted changes that the caller may approve, up to `max_count`. Returns `None` if it approves changes of no
/// Business Object. After a change of a definition or a group, the count may be of some seconds before.
///
/// # Errors
/// The errors of the store.
pub async fn count_waiting_changes(
    gateway: &Gateway,
    by: &Authorized,
    max_count: usize,
) -> Result<Option<usize>, GatewayError> {
    if by.role < Role::Contributor || by.business_objects().is_some() {
        return Ok(None);
    }
    gateway
        .run(by, Role::Contributor, move |gateway, by| {
            let (key, at) = ((by.id().to_owned(), by.role), Instant::now());
            let totals = read_totals(&gateway.store.read())?;
            if let Some(kept) = gateway.waiting_counts.find_count(&key, totals, at) {
                return Ok(kept.count);
            }
            let count = count_waiting(gateway, by, max_count)?;
            gateway.waiting_counts.keep_count(key, KeptCount { count, totals, at });
            Ok(count)
        })
        .await
}

fn count_waiting(
    gateway: &Gateway,
    by: &Caller,
    max_count: usize,
) -> Result<Option<usize>, GatewayError> {
    let viewer = Viewer { gateway, by, transaction: None };
    let own = Some(by.id()).filter(|_| !gateway.settings.review.allows_self_approval);
    let mut approved = HashSet::new();
    let mut has_reviews = false;
    for compiled in gateway.catalogue.list() {
        let definition = &compiled.object.definition;
        if viewer.is_approver(definition.approvers())? {
            has_reviews |= definition.review() != Review::Off;
            approved.insert(compiled.object.id.clone());
        }
    }
    let mut count = 0;
    if !approved.is_empty() {
        for open in iter_open_changes(&gateway.store) {
            let open = open?;
            let is_waiting = open.state == ChangeState::Submitted
                && own != Some(open.author.as_str())
                && approved.contains(&open.business_object);
            count += usize::from(is_waiting);
            if count >= max_count {
                break;
            }
        }
    }
    Ok(Some(count).filter(|count| has_reviews || *count > 0))
}
