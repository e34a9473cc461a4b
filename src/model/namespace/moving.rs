//! Moves a namespace to another base: rewrites every IRI of it, in all quads and in all documents that have IRIs.
//!
//! A move needs the store for itself. It is many commits of bounded size, and a document ([`StoredMove`]) says that it
//! is in progress. [`begin_move`] puts that document, and [`continue_move`] does the rest. Each commit can be the last
//! one before a power cut: whatever has been rewritten is recognized and left as it is, so [`continue_move`] starts
//! from the beginning. The commit that rewrites quads also requires a full export of each Business Object that shows
//! them. The gateway must not open a store with an unfinished move ([`find_pending_move`]): half of its references
//! would lead nowhere.
//!
//! [`plan_move`] refuses what could not be completed, before anything is changed.
//!
//! - `rebase` decides which IRIs are rewritten, and to what
//! - `plan` checks a move and counts what it rewrites
//! - `quads` rewrites the quads, `documents` rewrites the documents with IRIs
//! - `record` has a move in each of its states, and stores it; finished ones for the history of objects
//!
//! Literals stay, with their datatypes. So do texts for people, such as the audit trail and the warnings in records,
//! and the files of exports that are queued.

mod documents;
mod plan;
mod quads;
pub(crate) mod rebase;
mod record;
#[cfg(test)]
mod tests;

pub use plan::plan_move;
pub use record::{FinishedMove, MovePlan, MoveProgress, PendingMove, find_pending_move};

use crate::change_feed::Watch;
use crate::{catalogue, natural_key};
use penstock_base::disk::Disk;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Format, Store, Transaction};
use rebase::Rebase;
use record::{MOVES, StoredMove, read_last_move};
pub(crate) use record::{list_earlier_iris, list_rebases_since};

/// The store that a move works on.
#[derive(Debug, Clone, Copy)]
pub struct MoveTarget<'a> {
    /// The store, which nothing else uses.
    pub store: &'a Store,
    /// Its disk, whose reserve is kept free.
    pub disk: &'a Disk,
    /// Finds the Business Objects that need a full export, and has the clock.
    pub watch: &'a Watch,
}

/// Adds a write to the last commit of a move.
pub type FinishHook<'a> =
    &'a mut dyn FnMut(&mut Transaction<'_>, &FinishedMove) -> Result<(), GatewayError>;

/// Begins a planned move. From here on the gateway does not open the store until [`continue_move`] has finished.
///
/// # Errors
/// - `ErrorClass::InsufficientStorage` if the disk is full up to its reserve
/// - `ErrorClass::Damaged` if a move is in progress
pub fn begin_move(target: MoveTarget<'_>, plan: &MovePlan) -> Result<(), GatewayError> {
    target.disk.check_reserve()?;
    target.store.transact::<_, GatewayError>(|transaction| {
        if let Some(pending) = find_pending_move(transaction)? {
            return Err(pending.to_error());
        }
        // An older version would open a store with an unfinished move.
        transaction.require_format(Format::V3);
        let sequence = transaction.sequence();
        Ok(MOVES.put(transaction, sequence, &StoredMove::new(plan))?)
    })?;
    Ok(())
}

/// Continues and finishes the move in progress. `on_progress` is called after each commit.
/// Blocking.
///
/// # Errors
/// - `ErrorClass::NotFound` if no move is in progress
/// - `ErrorClass::InsufficientStorage` if the disk is full up to its reserve; the move stays in progress
pub fn continue_move(
    target: MoveTarget<'_>,
    on_progress: &mut dyn FnMut(MoveProgress),
    finish_hook: FinishHook<'_>,
) -> Result<FinishedMove, GatewayError> {
    let pending = read_last_move(&target.store.read())?.filter(|(_, stored)| !stored.is_finished());
    let (key, stored) = pending.ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, "no move of a namespace is in progress")
    })?;
    let rebase = stored.read_rebase(&target.store.read())?;
    let mut run = Run { target, rebase, key, stored, on_progress };
    run.rewrite_quads()?;
    run.rewrite_documents()?;
    natural_key::rebuild_index(target.store)?;
    run.finish(finish_hook)
}

/// A move in progress.
struct Run<'a> {
    target: MoveTarget<'a>,
    rebase: Rebase,
    /// The key of the document in [`record`].
    key: u64,
    /// The document as the last commit left it.
    stored: StoredMove,
    on_progress: &'a mut dyn FnMut(MoveProgress),
}

impl Run<'_> {
    /// Commits a part of the move with the updated document of it.
    fn commit(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>, &Rebase, &mut StoredMove) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        self.target.disk.check_reserve()?;
        let (stored, _) = self.target.store.transact::<_, GatewayError>(|transaction| {
            let mut stored = self.stored.clone();
            work(transaction, &self.rebase, &mut stored)?;
            MOVES.put(transaction, self.key, &stored)?;
            Ok(stored)
        })?;
        let StoredMove { quads, documents, .. } = stored;
        self.stored = stored;
        (self.on_progress)(MoveProgress { checked: 0, quads, documents });
        Ok(())
    }

    fn finish(mut self, hook: FinishHook<'_>) -> Result<FinishedMove, GatewayError> {
        let mut names = Vec::new();
        for (object, _) in catalogue::list_stored(&self.target.store.read())? {
            if self.stored.full_exports.contains(&object.id) {
                names.push(object.definition.name);
            }
        }
        let finished = self.stored.to_finished(names);
        self.commit(|transaction, _, stored| {
            stored.finished = Some(transaction.sequence());
            hook(transaction, &finished)
        })?;
        Ok(finished)
    }
}
