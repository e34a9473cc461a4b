//! Changes under review: who sees them, and who takes which step.
//!
//! Everybody who may not see a change gets the same answer as for one that does not exist. Each step checks in its commit
//! who takes it, from the accounts, groups and definitions that the commit sees.
use crate::audit::change_event;
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use crate::ingestions::{build_limits, find_compiled};
use penstock_auth::audit::Event;
use penstock_auth::{Authorized, Caller, Requester as _, Role};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::Audience;
use penstock_base::principal::Principal;
use penstock_base::telemetry::trace::Trace;
use penstock_model::changes::{
    self, Applicability, Change, ChangeAction, ChangeContent, Decision, DifferenceItem, Review,
    Selection, State, current_approvers, missing_change_error,
};
use penstock_model::resource::Compiled;
use penstock_store::Transaction;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

mod pending;

pub use pending::{
    TouchingChanges, count_waiting_changes, list_allowed_actions, list_touching_changes,
};

/// The maximum length of a comment in characters.
const MAX_COMMENT_CHARACTERS: usize = 2000;
/// The interval between two cleanups.
const CLEANUP_INTERVAL: Duration = Duration::from_hours(1);

/// The number of computed applicabilities that are kept.
const MAX_RECENT_CHECKS: usize = 64;
/// The longest pause that a reader waits for, before its change is computed again.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// What a caller is to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is independent of the others")]
pub struct Relation {
    /// Whether it has sent the change.
    pub is_author: bool,
    /// Whether the author has named it, or a group that it is in.
    pub is_owner: bool,
    /// Whether it decides about the change.
    pub is_approver: bool,
    /// Whether it sees all changes.
    pub is_admin: bool,
}

/// The roles that a list of changes can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationFilter {
    /// The changes that the caller has sent.
    Author,
    /// Those whose owner it is.
    Owner,
    /// The changes that it decides about.
    Approver,
}

/// Selects changes.
#[derive(Debug, Clone, Default)]
pub struct ChangeFilter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those in a state that a step can still change.
    pub only_open: bool,
    /// Only those of the Business Object with this id.
    pub business_object: Option<String>,
    /// Only those to which the caller has this relation.
    pub relation: Option<RelationFilter>,
}

/// A change as a caller sees it.
#[derive(Debug, Clone)]
pub struct VisibleChange {
    /// The change.
    pub change: Change,
    /// What the caller is to it.
    pub relation: Relation,
    /// Who approves it now; none if Admins do.
    pub approvers: Vec<Principal>,
    /// The owners that do not exist; `None` if the caller may not know, and in lists.
    pub unknown_owners: Option<Vec<Principal>>,
}

/// A page of visible changes.
#[derive(Debug, Default)]
pub struct VisibleChanges {
    /// The changes, newest first.
    pub changes: Vec<VisibleChange>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A change with a page of its difference.
#[derive(Debug)]
pub struct ChangeDetails {
    /// The change.
    pub visible: VisibleChange,
    /// The request and its warnings; only on the first page.
    pub content: Option<ChangeContent>,
    /// The page.
    pub difference: Vec<DifferenceItem>,
    /// The number of the next page.
    pub next_page: Option<u32>,
    /// Whether it would still do what the difference shows; only on the first page of an open change.
    pub applicability: Option<Applicability>,
}

/// A step that a client takes.
#[derive(Debug, Clone)]
pub struct Step {
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

impl Relation {
    /// Returns whether the caller sees the change.
    pub fn may_see(self) -> bool {
        self.is_author || self.is_owner || self.is_approver || self.is_admin
    }

    fn matches(self, filter: RelationFilter) -> bool {
        match filter {
            RelationFilter::Author => self.is_author,
            RelationFilter::Owner => self.is_owner,
            RelationFilter::Approver => self.is_approver,
        }
    }

    /// Checks that the caller may take a step.
    fn check_action(
        self,
        action: ChangeAction,
        allows_self_approval: bool,
    ) -> Result<(), GatewayError> {
        let allowed = match action {
            ChangeAction::Approve if self.is_author && !allows_self_approval => {
                return Err(GatewayError::new(
                    ErrorClass::Forbidden,
                    "the author of a change cannot approve it; another approver does, unless service.review.self-approval is true",
                ));
            }
            ChangeAction::Approve | ChangeAction::Reject => self.is_approver,
            ChangeAction::Submit | ChangeAction::Withdraw => self.is_author || self.is_owner,
            ChangeAction::Rebase => self.is_author || self.is_owner || self.is_approver,
        };
        if allowed {
            return Ok(());
        }
        let who = match action {
            ChangeAction::Approve | ChangeAction::Reject => "an approver",
            ChangeAction::Submit | ChangeAction::Withdraw => "its author or a change owner",
            ChangeAction::Rebase => "its author, a change owner or an approver",
        };
        Err(GatewayError::new(
            ErrorClass::Forbidden,
            format!("only {who} may {} this change", action.name()),
        ))
    }
}

/// Determines relations from the accounts and groups in memory, or as a transaction sees them.
struct Viewer<'v> {
    gateway: &'v Gateway,
    by: &'v Caller,
    transaction: Option<&'v Transaction<'v>>,
}

impl Viewer<'_> {
    fn relation_to(
        &self,
        change: &Change,
        approvers: &[Principal],
    ) -> Result<Relation, GatewayError> {
        if self.by.business_objects().is_some() {
            // A key with a write scope sees only what it has sent itself.
            let is_author =
                self.by.api_key_id().is_some() && change.api_key.as_deref() == self.by.api_key_id();
            return Ok(Relation { is_author, ..Relation::default() });
        }
        let is_admin = self.by.role == Role::Admin;
        Ok(Relation {
            is_author: change.author == self.by.id(),
            is_owner: self.is_any_of(&change.owners)?,
            is_approver: self.is_approver(approvers)?,
            is_admin,
        })
    }

    fn is_approver(&self, approvers: &[Principal]) -> Result<bool, GatewayError> {
        if approvers.is_empty() {
            return Ok(self.by.role == Role::Admin);
        }
        self.is_any_of(approvers)
    }

    fn is_any_of(&self, principals: &[Principal]) -> Result<bool, GatewayError> {
        let Some(account) = &self.by.account else { return Ok(false) };
        let groups = &self.gateway.auth.groups;
        if let Some(transaction) = self.transaction {
            return groups.is_any_of_in(transaction, &account.id, principals);
        }
        // The request's copy of the account may be older than its last sign-in.
        let current = self.gateway.auth.accounts.get(&account.id);
        Ok(current.is_some_and(|account| groups.is_any_of(&account, principals)))
    }
}

/// Returns whether the caller is in the audience of an event about a change. Never blocks.
pub fn is_in_audience(gateway: &Gateway, by: &Authorized, audience: &Audience) -> bool {
    let Ok(by) = by.with_current_role() else { return false };
    if by.business_objects().is_some() {
        return false;
    }
    let viewer = Viewer { gateway, by: &by, transaction: None };
    by.role == Role::Admin
        || audience.author == by.id()
        || viewer.is_any_of(&audience.owners).unwrap_or(false)
        || viewer.is_any_of(&audience.approvers).unwrap_or(false)
}

/// Lists the changes that the caller may see and that the filter selects, newest first: at most `limit` after the one with
/// the id `after`.
///
/// # Errors
/// The errors of the store.
pub async fn list_changes(
    gateway: &Gateway,
    by: &Authorized,
    filter: ChangeFilter,
    after: Option<String>,
    limit: usize,
) -> Result<VisibleChanges, GatewayError> {
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || list_visible(&gateway, &by, &filter, after.as_deref(), limit)).await
}

/// Lists changes as [`list_changes`] does. Blocking.
///
/// # Errors
/// The errors of the store.
pub fn list_visible(
    gateway: &Gateway,
    by: &Caller,
    filter: &ChangeFilter,
    after: Option<&str>,
    limit: usize,
) -> Result<VisibleChanges, GatewayError> {
    let viewer = Viewer { gateway, by, transaction: None };
    let mut relations = Vec::new();
    let mut failure = None;
    let mut is_wanted = |change: &Change, approvers: &[Principal]| {
        let is_selected = filter.state.is_none_or(|state| state == change.state)
            && (!filter.only_open || change.state.is_open())
            && filter.business_object.as_ref().is_none_or(|id| *id == change.business_object);
        if !is_selected {
            return false;
        }
        match viewer.relation_to(change, approvers) {
            Ok(relation) => {
                let is_wanted = relation.may_see()
                    && filter.relation.is_none_or(|filter| relation.matches(filter));
                if is_wanted {
                    relations.push((relation, approvers.to_vec()));
                }
                is_wanted
            }
            Err(error) => {
                failure = Some(error);
                false
            }
        }
    };
    let watch = gateway.catalogue.watch();
    let is_open = filter.only_open || filter.state.is_some_and(State::is_open);
    let selection = if is_open { Selection::Open } else { Selection::All };
    let listed =
        changes::list_changes(&gateway.store, watch, selection, after, limit, &mut is_wanted)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let show = |(change, (relation, approvers))| VisibleChange {
        change,
        relation,
        approvers,
        // Looking each of them up is for one change.
        unknown_owners: None,
    };
    let changes = listed.changes.into_iter().zip(relations).map(show).collect();
    Ok(VisibleChanges { changes, has_more: listed.has_more })
}

fn show_change(
    gateway: &Gateway,
    change: Change,
    relation: Relation,
    approvers: Vec<Principal>,
) -> VisibleChange {
    let may_probe = relation.is_approver || relation.is_admin;
    let unknown = |owner: &&Principal| !gateway.auth.groups.exists(owner);
    let unknown_owners = may_probe.then(|| change.owners.iter().filter(unknown).cloned().collect());
    VisibleChange { change, relation, approvers, unknown_owners }
}

/// Returns the change with this id.
fn find_visible(gateway: &Gateway, by: &Caller, id: &str) -> Result<VisibleChange, GatewayError> {
    let read = gateway.store.read();
    let change = changes::find_change(&read, id)?.ok_or_else(|| missing_change_error(id))?;
    let approvers = current_approvers(&read, gateway.catalogue.watch(), &change)?;
    let viewer = Viewer { gateway, by, transaction: None };
    let relation = viewer.relation_to(&change, &approvers)?;
    if !relation.may_see() {
        return Err(missing_change_error(id));
    }
    Ok(show_change(gateway, change, relation, approvers))
}

/// Returns the memory in bytes for reading a change, or for running its request again. It is at most
/// `service.limits.in-flight`, so that a single change fits.
///
/// # Errors
/// `ErrorClass::NotFound` if the caller sees no such change.
pub async fn measure_change(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
) -> Result<u64, GatewayError> {
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || {
        let change = find_visible(&gateway, &by, &id)?.change;
        Ok(change.memory_bytes().min(gateway.settings.limits.in_flight_bytes))
    })
    .await
}

/// Returns a change without its difference.
///
/// # Errors
/// `ErrorClass::NotFound` if the caller sees no such change.
pub async fn read_visible_change(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
) -> Result<VisibleChange, GatewayError> {
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || find_visible(&gateway, &by, &id)).await
}

/// Returns a change with a page of its difference, from 0. `version` is that of the page before.
///
/// # Errors
/// - `ErrorClass::NotFound` if the caller sees no such change
/// - `ErrorClass::Conflict` if it has another version
pub async fn read_change(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
    version: Option<u64>,
    page: u32,
) -> Result<ChangeDetails, GatewayError> {
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || {
        let mut visible = find_visible(&gateway, &by, &id)?;
        let is_checked = page == 0 && visible.change.state.is_open();
        let applicability =
            is_checked.then(|| check_applicability(&gateway, &by, &visible.change)).flatten();
        // A rebase replaces all parts in one commit, which one reader sees or not.
        let read = gateway.store.read();
        visible.change =
            changes::find_change(&read, &id)?.ok_or_else(|| missing_change_error(&id))?;
        if version.is_some_and(|version| version != visible.change.version) {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the change {id} is another version now; read it again from its first page"
                ),
            ));
        }
        let content = match page {
            0 => Some(changes::read_content(&read, &visible.change)?),
            _ => None,
        };
        let difference = changes::read_difference(&read, &visible.change, page)?;
        let next_page = Some(page + 1).filter(|next| *next < visible.change.pages);
        Ok(ChangeDetails { visible, content, difference, next_page, applicability })
    })
    .await
}

/// The last computations of whether changes still do what their differences show. Each runs the request again, and other
/// commits wait meanwhile, so all together take at most a fifth of the time.
#[derive(Debug, Default)]
pub struct ApplicabilityChecks(Mutex<RecentChecks>);

#[derive(Debug, Default)]
struct RecentChecks {
    /// The newest last.
    results: VecDeque<RecentCheck>,
    /// When the next computation may begin.
    next: Option<Instant>,
}

#[derive(Debug)]
struct RecentCheck {
    id: String,
    version: u64,
    /// The newest sequence of the store then.
    sequence: u64,
    result: Applicability,
}

/// Computes whether an open change would still do what its difference shows; `None` if that cannot be computed now.
fn check_applicability(
    gateway: &Gateway,
    by: &Authorized,
    change: &Change,
) -> Option<Applicability> {
    let Ok(mut recent) = gateway.applicability_checks.0.try_lock() else { return None };
    let sequence = gateway.store.stats().sequence;
    let is_it = |check: &&RecentCheck| {
        check.id == change.id && check.version == change.version && check.sequence == sequence
    };
    if let Some(check) = recent.results.iter().find(is_it) {
        return Some(check.result.clone());
    }
    if let Some(pause) = recent.next.map(|next| next.saturating_duration_since(Instant::now())) {
        if pause > MAX_PAUSE {
            return None;
        }
        std::thread::sleep(pause);
    }
    let begun = Instant::now();
    let result = compute_applicability(gateway, by, change);
    recent.next = Some(Instant::now() + begun.elapsed() * 4);
    let result = match result {
        Ok(result) => result,
        Err(error) if can_fail_with(&error.class) => Applicability::Fails(error),
        Err(_) => return None,
    };
    if recent.results.len() == MAX_RECENT_CHECKS {
        recent.results.pop_front();
    }
    recent.results.push_back(RecentCheck {
        id: change.id.clone(),
        version: change.version,
        sequence,
        result: result.clone(),
    });
    Some(result)
}

/// Returns whether an error says that the change cannot be published, and not that the gateway cannot do it now.
fn can_fail_with(class: &ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Malformed
            | ErrorClass::Conflict
            | ErrorClass::Invalid
            | ErrorClass::TooLarge
            | ErrorClass::Damaged
    )
}

fn compute_applicability(
    gateway: &Gateway,
    by: &Authorized,
    change: &Change,
) -> Result<Applicability, GatewayError> {
    let authorize = |transaction: &Transaction<'_>, change: &Change, _: &[Principal]| {
        check_author(gateway, transaction, change)
    };
    let review = Review {
        id: &change.id,
        check: by,
        authorize: &authorize,
        on_commit: &|_, _| Ok(()),
        by: by.id(),
        if_match: IfMatch::Any,
        comment: None,
        traceparent: None,
        watch: gateway.catalogue.watch(),
        events: None,
    };
    with_definitions(gateway, change, |decision| {
        changes::check_applicability(&gateway.store, &review, decision)
    })
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
    step: Step,
) -> Result<VisibleChange, GatewayError> {
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || {
        let by = by.with_current_role()?;
        if let Some(comment) = &step.comment
            && comment.chars().count() > MAX_COMMENT_CHARACTERS
        {
            return Err(GatewayError::new(
                ErrorClass::Invalid,
                format!("the comment has more than {MAX_COMMENT_CHARACTERS} characters"),
            ));
        }
        // The commit checks it again.
        let seen = find_visible(&gateway, &by, &step.id)?.change;
        gateway.auth.audit.flush();
        let store = &gateway.store;
        let change = match step.action {
            ChangeAction::Approve => {
                gateway.disk.check_reserve()?;
                with_hooks(&gateway, &by, &step, |review| {
                    with_definitions(&gateway, &seen, |decision| {
                        changes::publish_change(store, review, decision)
                    })
                })?
            }
            ChangeAction::Rebase => {
                gateway.disk.check_reserve()?;
                with_hooks(&gateway, &by, &step, |review| {
                    with_definitions(&gateway, &seen, |decision| {
                        changes::rebase_change(store, review, decision)
                    })
                })?
            }
            action => with_hooks(&gateway, &by, &step, |review| {
                changes::take_step(store, review, action)
            })?,
        };
        tracing::info!(
            change = change.id,
            business_object = change.business_object_name,
            action = step.action.name(),
            state = change.state.name(),
            caller = by.id(),
            "A step of a change was taken."
        );
        let approvers = current_approvers(&store.read(), gateway.catalogue.watch(), &change)?;
        let viewer = Viewer { gateway: &gateway, by: &by, transaction: None };
        let relation = viewer.relation_to(&change, &approvers)?;
        Ok(show_change(&gateway, change, relation, approvers))
    })
    .await
}

/// Calls `take` with the checks of a step.
fn with_hooks<T>(
    gateway: &Gateway,
    by: &Authorized,
    step: &Step,
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
        if step.action == ChangeAction::Approve && change.state == State::Submitted {
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
fn with_definitions<T>(
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
    let limits = build_limits(gateway);
    take(Decision {
        business_object: &business_object,
        write_scope: scope.as_deref(),
        limits: &limits,
    })
}

/// Checks that the author of a change is still enabled, and still an Admin if the change bypasses other reviews.
fn check_author(
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

/// Builds the audit event of a step.
fn step_event(by: &Caller, change: &Change, action: ChangeAction, comment: Option<&str>) -> Event {
    let what = match action {
        ChangeAction::Submit => "change.submitted",
        ChangeAction::Approve => "change.approved",
        ChangeAction::Reject => "change.rejected",
        ChangeAction::Withdraw => "change.withdrawn",
        ChangeAction::Rebase => "change.rebased",
    };
    let said = comment.map_or_else(String::new, |comment| format!(": {comment}"));
    change_event(by, what, format!("{}, version {}{said}", describe_change(change), change.version))
}

/// Builds the audit event of the publication of a change that changes objects of other Business Objects that require a
/// review.
fn bypass_event(by: &Caller, change: &Change, names: &[String]) -> Event {
    let detail = format!(
        "{}, sent by {} with bypass=true, changed objects of the Business Objects {names:?}, which require a review",
        describe_change(change),
        change.author
    );
    change_event(by, "review.bypassed", detail)
}

/// Builds the audit event of a new change.
pub(crate) fn submission_event(by: &Caller, change: &Change) -> Event {
    let what = if change.state == State::Draft { "change.drafted" } else { "change.submitted" };
    let owners: Vec<String> = change.owners.iter().map(ToString::to_string).collect();
    let owners = match owners.as_slice() {
        [] => String::new(),
        owners => format!(", with the owners {}", owners.join(", ")),
    };
    let bypass = match change.bypassed.as_deref() {
        None => String::new(),
        Some([]) => ", with bypass=true".to_owned(),
        Some(names) => format!(", with bypass=true for the Business Objects {names:?}"),
    };
    change_event(by, what, format!("{}{owners}{bypass}", describe_change(change)))
}

fn describe_change(change: &Change) -> String {
    format!("{} of the Business Object {:?}", change.id, change.business_object_name)
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
        let gateway_then = gateway.clone();
        let removed = run_blocking(move || {
            withdraw_abandoned(&gateway_then)?;
            let max_age = gateway_then.settings.review.history.as_millis();
            let max_age = u64::try_from(max_age).unwrap_or(u64::MAX);
            changes::expire_changes(&gateway_then.store, gateway_then.clock.elapsed(), max_age)
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
