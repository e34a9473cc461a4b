//! Preview: shows what an ingestion would change, object by object, and commits nothing.
use super::change::{Applied, apply_whole_request};
use super::run::check_accepts;
use super::{Answer, Limits, Request, value_limit};
use crate::changes::{DifferenceItem, for_each_item};
use penstock_base::commit::GuardedStore;
use penstock_base::error::GatewayError;
use penstock_store::Transaction;
use std::ops::ControlFlow;

/// The maximum number of objects whose differences are kept.
const MAX_ITEMS: usize = 100;

/// What an ingestion would change.
#[derive(Debug)]
pub struct Preview {
    /// The answer. URIs that it would mint are examples.
    pub answer: Answer,
    /// The objects that it would create, change or remove: first those of the request, then nested ones.
    pub items: Vec<DifferenceItem>,
    /// How many further ones there are.
    pub omitted: usize,
}

/// Runs the request in a transaction that is not committed, with every check of an ingestion. Blocking; ingestions wait
/// meanwhile.
///
/// # Errors
/// The errors of the ingestion, without their prefix.
pub fn preview_ingestion(
    store: &GuardedStore,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<Preview, GatewayError> {
    value_limit::check_body(request.body, limits.values)?;
    store.dry_run(request.check, |transaction| compute_preview(transaction, limits, request))
}

fn compute_preview(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<Preview, GatewayError> {
    check_accepts(transaction, request)?;
    let Applied { answer, removed, .. } = apply_whole_request(transaction, limits, request)?;
    let mut items = Vec::new();
    let omitted = for_each_item(transaction, request, &answer, &removed, &mut |item| {
        items.push(item);
        Ok(if items.len() < MAX_ITEMS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(Preview { answer, items, omitted })
}
