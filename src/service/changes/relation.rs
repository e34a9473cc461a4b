//! What a caller is to a change, which decides what it sees and which steps it takes.
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::Audience;
use penstock_base::principal::Principal;
use penstock_model::changes::{Change, ChangeAction};
use penstock_resources::change::ChangeRole;
use penstock_store::Transaction;

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
    /// The changes that it may approve: not its own, unless `service.review.self-approval` is true.
    Decider,
}

impl From<ChangeRole> for RelationFilter {
    fn from(role: ChangeRole) -> Self {
        match role {
            ChangeRole::Author => Self::Author,
            ChangeRole::Owner => Self::Owner,
            ChangeRole::Approver => Self::Approver,
        }
    }
}

impl Relation {
    /// Returns whether the caller sees the change.
    pub fn may_see(self) -> bool {
        self.is_author || self.is_owner || self.is_approver || self.is_admin
    }

    pub(super) fn matches(self, filter: RelationFilter, allows_self_approval: bool) -> bool {
        match filter {
            RelationFilter::Author => self.is_author,
            RelationFilter::Owner => self.is_owner,
            RelationFilter::Approver => self.is_approver,
            RelationFilter::Decider => {
                self.is_approver && (allows_self_approval || !self.is_author)
            }
        }
    }

    /// Checks that the caller may take a step.
    pub(super) fn check_action(
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
pub(super) struct Viewer<'v> {
    pub(super) gateway: &'v Gateway,
    pub(super) by: &'v Caller,
    pub(super) transaction: Option<&'v Transaction<'v>>,
}

impl Viewer<'_> {
    pub(super) fn relation_to(
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

    pub(super) fn is_approver(&self, approvers: &[Principal]) -> Result<bool, GatewayError> {
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
