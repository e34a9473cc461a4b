//! The steps of changes. Each checks in its commit who takes it, from the accounts, groups and definitions that the commit
//! sees.
use super::audit_events::{bypass_event, describe_change, step_event};
use super::relation::Viewer;
use super::visible::{VisibleChange, add_unknown_owners, find_visible, show_in_list};
use crate::gateway::Gateway;
use crate::ingestions::find_compiled;
use penstock_auth::audit::Event;
use penstock_auth::{Authorized, Requester as _, Role};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::principal::Principal;
use penstock_base::telemetry::trace::Trace;
use penstock_model::changes::{
    self, Change, ChangeAction, Decision, Review, current_approvers, missing_change_error,
};
use penstock_model::resource::Compiled;
use penstock_resources::change::ChangeState;
use penstock_store::Transaction;
use std::sync::Arc;
use std::time::Duration;

/// The maximum length of a comment in characters.
const MAX_COMMENT_CHARACTERS: usize = 2000;
/// The interval between two cleanups.
const CLEANUP_INTERVAL: Duration = Duration::from_hours(1);

/// A step that a client takes.
#[derive(Debug, Clone)]
pub struct ChangeStep {
    /// The id of the change.
    pub id: String,
    /// The step.
    pub action: ChangeAction,
    /// The version that the client has seen.
    pub if_match: IfMatch,
    /// The client's comment.
    pub comment: Option<String>,
    /// The trace of the request.
    pub trace: Trace,
}

/// Takes a step of a change. Repeating it answers the same.
///
/// # Errors
/// - `ErrorClass::NotFound` if the caller sees no such change
/// - `ErrorClass::Forbidden` if it may not take the step
/// - `ErrorClass::Conflict` if the state does not allow it, and if the change cannot be published
/// - `ErrorClass::PreconditionFailed` for another version
/// - `ErrorClass::Invalid` for a comment that is too long
pub async fn take_step(
    gateway: &Gateway,
    by: &Authorized,
    step: ChangeStep,
) -> Result<VisibleChange, GatewayError> {
    let by = by.with_current_role()?;
    gateway
        .run(&by, minimum_role(step.action), move |gateway, by| commit_step(gateway, by, &step))
        .await
}

/// Returns the minimum role for a step.
pub(super) fn minimum_role(action: ChangeAction) -> Role {
    match action {
        ChangeAction::Approve | ChangeAction::Reject => Role::Contributor,
        ChangeAction::Submit | ChangeAction::Withdraw | ChangeAction::Rebase => Role::User,
    }
}

fn commit_step(
    gateway: &Gateway,
    by: &Authorized,
    step: &ChangeStep,
) -> Result<VisibleChange, GatewayError> {
    if let Some(comment) = &step.comment
        && comment.chars().count() > MAX_COMMENT_CHARACTERS
    {
        return Err(GatewayError::new(
            ErrorClass::Invalid,
            format!("the comment has more than {MAX_COMMENT_CHARACTERS} characters"),
        ));
    }
    // The commit checks it again.
    let seen = find_visible(gateway, by, &step.id)?.change;
    gateway.auth.audit.flush();
    let store = &gateway.store;
    let change = with_hooks(gateway, by, step, |review| match step.action {
        // Repeating it publishes nothing, so it needs no space and no definition.
        ChangeAction::Approve if seen.state != ChangeState::Approved => {
            gateway.disk.check_reserve()?;
            with_definitions(gateway, &seen, |decision| {
                changes::publish_change(store, review, decision)
            })
        }
        ChangeAction::Rebase => {
            gateway.disk.check_reserve()?;
            with_definitions(gateway, &seen, |decision| {
                changes::rebase_change(store, review, decision)
            })
        }
        action => changes::take_step(store, review, action),
    })?;
    if change.version != seen.version {
        tracing::info!(
            change = change.id,
            business_object = change.business_object_name,
            action = step.action.name(),
            state = change.state.name(),
            caller = by.id(),
            "A step of a change was taken."
        );
    }
    let approvers = current_approvers(&store.read(), gateway.catalogue.watch(), &change)?;
    let viewer = Viewer { gateway, by, transaction: None };
    let relation = viewer.relation_to(&change, &approvers)?;
    Ok(add_unknown_owners(gateway, show_in_list(change, relation, approvers)))
}

/// Calls `take` with the checks of a step.
fn with_hooks<T>(
    gateway: &Gateway,
    by: &Authorized,
    step: &ChangeStep,
    take: impl FnOnce(&Review<'_>) -> Result<T, GatewayError>,
) -> Result<T, GatewayError> {
    let allows_self_approval = gateway.settings.review.allows_self_approval;
    let authorize = |transaction: &Transaction<'_>, change: &Change, approvers: &[Principal]| {
        let viewer = Viewer { gateway, by, transaction: Some(transaction) };
        let relation = viewer.relation_to(change, approvers)?;
        if !relation.may_see() {
            return Err(missing_change_error(&change.id));
        }
        // Memory may not know yet that the account was demoted.
        by.check_role(transaction)?;
        relation.check_action(step.action, allows_self_approval)?;
        if step.action == ChangeAction::Approve && change.state == ChangeState::Submitted {
            check_author(gateway, transaction, change)?;
        }
        Ok(())
    };
    let on_commit = |transaction: &mut Transaction<'_>, change: &Change| {
        let event = step_event(by, change, step.action, step.comment.as_deref());
        gateway.auth.audit.add_event(transaction, &event)?;
        match &change.bypassed {
            Some(names) if step.action == ChangeAction::Approve && !names.is_empty() => {
                gateway.auth.audit.add_event(transaction, &bypass_event(by, change, names))
            }
            _ => Ok(()),
        }
    };
    let traceparent = step.trace.to_string();
    take(&Review {
        id: &step.id,
        check: by,
        authorize: &authorize,
        on_commit: &on_commit,
        by: by.id(),
        if_match: step.if_match,
        comment: step.comment.as_deref(),
        traceparent: Some(&traceparent),
        watch: gateway.catalogue.watch(),
        events: Some(&gateway.events),
    })
}

/// Calls `take` with the definitions that a change is computed with.
pub(super) fn with_definitions<T>(
    gateway: &Gateway,
    change: &Change,
    take: impl FnOnce(Decision<'_>) -> Result<T, GatewayError>,
) -> Result<T, GatewayError> {
    let business_object = gateway
        .catalogue
        .get(&change.business_object)
        .filter(|found| found.object.id == change.business_object);
    let Some(business_object) = business_object else {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the Business Object {:?} of the change was deleted, or does not compile in this version",
                change.business_object_name
            ),
        ));
    };
    let scope =
        change.write_scope.as_deref().map(|ids| find_compiled(gateway, ids, &business_object));
    let scope: Option<Vec<&Compiled>> =
        scope.as_ref().map(|found: &Vec<Arc<Compiled>>| found.iter().map(|one| &**one).collect());
    take(Decision {
        business_object: &business_object,
        write_scope: scope.as_deref(),
        limits: &gateway.settings.limits,
    })
}

/// Checks that the author of a change is still enabled, and still an Admin if the change bypasses other reviews.
pub(super) fn check_author(
    gateway: &Gateway,
    transaction: &Transaction<'_>,
    change: &Change,
) -> Result<(), GatewayError> {
    let message = match gateway.auth.role_in(transaction, &change.author)? {
        None => {
            "the account or API key that sent the change was disabled, revoked or deleted; an enabled account sends it again"
        }
        Some(role) if change.bypassed.is_some() && role < Role::Admin => {
            "the account or API key that sent the change with bypass=true is no Admin any more; an Admin sends it again"
        }
        Some(_) => return Ok(()),
    };
    Err(GatewayError::new(ErrorClass::Conflict, message))
}

/// Withdraws the changes of Business Objects that were deleted. Blocking.
///
/// # Errors
/// The errors of the store.
pub(crate) fn withdraw_abandoned(gateway: &Gateway) -> Result<u64, GatewayError> {
    let on_commit = |transaction: &mut Transaction<'_>, change: &Change| {
        let detail = format!("{}, which was deleted", describe_change(change));
        let event = Event { what: "change.withdrawn", account: None, by: None, from: None, detail };
        gateway.auth.audit.add_event(transaction, &event)
    };
    let watch = gateway.catalogue.watch();
    changes::withdraw_abandoned(&gateway.store, watch, &gateway.events, &on_commit)
}

/// Removes the changes that were closed longer ago than `service.review.history`, and withdraws those of deleted Business
/// Objects, at the start and every hour until this future is dropped.
pub async fn clean_up_changes(gateway: Gateway) {
    loop {
        let removed = gateway.read(|gateway| {
            withdraw_abandoned(gateway)?;
            let max_age = gateway.settings.review.history.as_millis();
            let max_age = u64::try_from(max_age).unwrap_or(u64::MAX);
            changes::expire_changes(&gateway.store, gateway.clock.elapsed(), max_age)
        });
        match removed.await {
            Ok(0) => {}
            Ok(expired) => {
                tracing::info!(expired, "Removed closed changes beyond service.review.history.");
            }
            Err(error) => tracing::warn!(
                cause = error.detail,
                "Cleaning up changes failed; the gateway retries in an hour."
            ),
        }
        tokio::time::sleep(CLEANUP_INTERVAL).await;
    }
}
