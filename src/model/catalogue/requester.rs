//! The requester of a change of the catalogue, and the hook that adds to the commit of the change.
use super::entry::Entry;
use crate::members::Loss;
use crate::namespace::Namespace;
use penstock_base::Put;
use penstock_base::commit::CommitCheck;
use penstock_base::error::GatewayError;
use penstock_store::Transaction;

/// A function that runs in the commit of a change. Its failure undoes the change.
pub type CommitHook<'a> =
    &'a (dyn Fn(&mut Transaction<'_>, &Change<'_>) -> Result<(), GatewayError> + 'a);

/// The requester of a change of the catalogue.
#[derive(Clone, Copy)]
pub struct Requester<'a> {
    /// The check that runs in the commit, before anything is changed.
    pub check: &'a dyn CommitCheck,
    /// The id for records and logs: of an account, or `local`.
    pub id: &'a str,
    /// Whether the change may remove many objects from a Business Object, and leave out protections.
    pub force: bool,
    /// Whether the change may delete objects that require a review.
    pub bypass: bool,
    /// A hook that adds to the commit of the change, such as its audit event.
    pub on_commit: Option<CommitHook<'a>>,
}

/// A change of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What the change does with the Business Object.
    pub action: Action,
    /// The id of the Business Object.
    pub id: &'a str,
    /// The name of the Business Object.
    pub name: &'a str,
    /// The version of the Business Object; the last one if it was deleted.
    pub version: u64,
    /// The namespaces that were created or changed with it.
    pub namespaces: &'a [Put<Namespace>],
    /// The objects that a change with `force` removes from the Business Object.
    pub forced: Option<Loss>,
    /// Whether the change deletes objects although they require a review.
    pub bypassed: bool,
}

/// What a change does with a Business Object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The Business Object is new.
    Created,
    /// The Business Object has another definition.
    Replaced,
    /// The Business Object is deleted.
    Deleted,
    /// The deletion of the Business Object with this number of members begins.
    DeletionBegun(u64),
    /// The Business Object is deleted, and before it this number of members.
    DeletedWithObjects(u64),
}

impl<'a> Change<'a> {
    /// Creates a change of a stored Business Object that concerns no namespace.
    pub(super) fn of_entry(action: Action, entry: &'a Entry) -> Self {
        let Entry { id, name, version, .. } = entry;
        Self { action, id, name, version: *version, namespaces: &[], forced: None, bypassed: false }
    }
}

impl<'a> Requester<'a> {
    /// Creates a requester without `force`, `bypass` and a hook.
    pub fn new(check: &'a dyn CommitCheck, id: &'a str) -> Self {
        Self { check, id, force: false, bypass: false, on_commit: None }
    }

    /// Runs the hook of the commit.
    pub(super) fn add_to_commit(
        &self,
        transaction: &mut Transaction<'_>,
        change: &Change<'_>,
    ) -> Result<(), GatewayError> {
        self.on_commit.map_or(Ok(()), |hook| hook(transaction, change))
    }
}
