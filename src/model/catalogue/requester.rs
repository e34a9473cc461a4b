//! Who changes the catalogue, and what the commit of the change holds besides.
use crate::members::Loss;
use crate::namespace::Namespace;
use penstock_base::commit::CommitCheck;
use penstock_base::fault::Fault;
use penstock_store::Transaction;

/// Runs in the commit of a change: its failure undoes the change.
pub type CommitHook<'a> = &'a (dyn Fn(&mut Transaction<'_>, &Change<'_>) -> Result<(), Fault> + 'a);

/// Who asks for a change of the catalogue.
#[derive(Clone, Copy)]
pub struct Requester<'a> {
    /// Is made in the commit, before anything is changed.
    pub check: &'a dyn CommitCheck,
    /// The id that records and logs name: an account's, or `local`.
    pub id: &'a str,
    /// Whether a change is made although it takes many objects out of a Business Object.
    pub force: bool,
    /// Adds to the commit of the change, such as its audit event.
    pub on_commit: Option<CommitHook<'a>>,
}

/// A change of the catalogue.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What happened to the Business Object.
    pub action: Action,
    /// Its id.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its version; of a deleted one the last.
    pub version: u64,
    /// The namespaces that were created (true) or changed with it.
    pub namespaces: &'a [(Namespace, bool)],
    /// With `force`: what the change takes out of the Business Object.
    pub forced: Option<Loss>,
}

/// What happened to a Business Object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is new.
    Created,
    /// It has another definition.
    Replaced,
    /// It is gone.
    Deleted,
}

impl<'a> Requester<'a> {
    /// A requester whose changes leave no audit event, and who does not use `force`.
    pub fn new(check: &'a dyn CommitCheck, id: &'a str) -> Self {
        Self { check, id, force: false, on_commit: None }
    }

    /// Runs the hook.
    pub(super) fn add_to_commit(
        &self,
        transaction: &mut Transaction<'_>,
        change: &Change<'_>,
    ) -> Result<(), Fault> {
        self.on_commit.map_or(Ok(()), |hook| hook(transaction, change))
    }
}
