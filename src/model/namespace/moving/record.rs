//! A move while it is planned, in progress and finished, and the documents of moves.
use super::rebase::Rebase;
use crate::namespace::{self, Namespace};
use penstock_base::collections;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::table::{AsJson, Table};
use penstock_store::{Error, Read};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The moves, by the sequence of the commit that began it.
pub(super) const MOVES: Table<u64, AsJson<StoredMove>> = Table::new(collections::NAMESPACE_MOVES);

/// The maximum number of earlier IRIs that are followed back for one object.
const MAX_EARLIER_IRIS: usize = 20;

/// A move that can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovePlan {
    /// The name of the namespace.
    pub name: String,
    /// Its base.
    pub from: String,
    /// Its new base.
    pub to: String,
    /// The number of quads that have an IRI of the namespace.
    pub quads: u64,
    /// What is valid and needs attention.
    pub warnings: Vec<String>,
}

/// The progress of a move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoveProgress {
    /// The number of quads that were checked; 0 once the move has begun.
    pub checked: u64,
    /// The number of quads that the move has rewritten, or that it would rewrite.
    pub quads: u64,
    /// The number of documents that the move has rewritten.
    pub documents: u64,
}

/// A stored move. It counts what was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredMove {
    name: String,
    from: String,
    to: String,
    /// When it began (RFC 3339, UTC).
    started_at: String,
    pub(super) quads: u64,
    pub(super) documents: u64,
    /// The ids of the Business Objects whose next export is full because of it.
    pub(super) full_exports: BTreeSet<String>,
    /// The sequence of the commit that finished it; `None` while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) finished: Option<u64>,
}

/// A move in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingMove {
    /// The name of the namespace.
    pub name: String,
    /// The new base.
    pub uri_base: String,
}

/// A finished move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedMove {
    /// The name of the namespace.
    pub name: String,
    /// The old base.
    pub from: String,
    /// The new base.
    pub to: String,
    /// The number of quads that were rewritten.
    pub quads: u64,
    /// The number of documents that were rewritten.
    pub documents: u64,
    /// The names of the Business Objects with automatic exports or a retention whose next export is full.
    pub full_exports: Vec<String>,
}

impl StoredMove {
    pub(super) fn new(plan: &MovePlan) -> Self {
        Self {
            name: plan.name.clone(),
            from: plan.from.clone(),
            to: plan.to.clone(),
            started_at: penstock_base::time::now_rfc3339(),
            quads: 0,
            documents: 0,
            full_exports: BTreeSet::new(),
            finished: None,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Returns the change of the base, whether or not the namespace has its new base already.
    pub(super) fn read_rebase(&self, read: &dyn Read) -> Result<Rebase, GatewayError> {
        let namespace = namespace::get(read, &self.name)?.ok_or_else(|| {
            GatewayError::new(
                ErrorClass::NotFound,
                format!("the namespace {:?}, which is being moved, does not exist", self.name),
            )
        })?;
        let from = Namespace { uri_base: self.from.clone(), ..namespace };
        Ok(Rebase::read(read, &from, &self.to)?)
    }

    pub(super) fn to_finished(&self, full_exports: Vec<String>) -> FinishedMove {
        FinishedMove {
            name: self.name.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            quads: self.quads,
            documents: self.documents,
            full_exports,
        }
    }
}

impl PendingMove {
    /// Returns the error for everything that must wait until the move is finished.
    pub fn to_error(&self) -> GatewayError {
        GatewayError::new(ErrorClass::Damaged, self.to_string())
    }
}

impl fmt::Display for PendingMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, uri_base } = self;
        write!(
            f,
            "moving the namespace {name:?} to <{uri_base}> was interrupted; run \
             `penstock namespace move {name:?} '{uri_base}'` again, which continues it"
        )
    }
}

/// Returns the move in progress.
pub fn find_pending_move(read: &dyn Read) -> Result<Option<PendingMove>, Error> {
    let last = read_last_move(read)?.filter(|(_, last)| !last.is_finished());
    Ok(last.map(|(_, last)| PendingMove { name: last.name, uri_base: last.to }))
}

/// Reads the newest move, the only one that can be in progress, with its key.
pub(super) fn read_last_move(read: &dyn Read) -> Result<Option<(u64, StoredMove)>, Error> {
    let last = MOVES.scan().reverse().first(read)?;
    Ok(last.map(|row| row.entry()).transpose()?)
}

/// Lists the IRIs that an object had before moves, newest first, each with the sequence of the first commit that no
/// longer uses it.
pub(crate) fn list_earlier_iris(read: &dyn Read, iri: &str) -> Result<Vec<(String, u64)>, Error> {
    let mut earlier: Vec<(String, u64)> = Vec::new();
    for row in MOVES.scan().reverse().read_all(read)? {
        let (began, stored) = row.entry()?;
        let base = |uri_base: String| Namespace {
            name: String::new(),
            uri_base,
            generator: namespace::Generator::default(),
            created_at: String::new(),
        };
        let (from, to) = (base(stored.from), base(stored.to));
        let current = earlier.last().map_or(iri, |(iri, _)| iri.as_str());
        let origin = if current == to.uri_base {
            Some(from.uri_base)
        } else {
            let local = current.strip_prefix(&to.identifier_prefix());
            local.map(|local| format!("{}{local}", from.identifier_prefix()))
        };
        earlier.extend(origin.map(|origin| (origin, began)));
        if earlier.len() == MAX_EARLIER_IRIS {
            break;
        }
    }
    Ok(earlier)
}

/// Returns the changes of bases by the moves that began after the commit with this sequence, oldest first. Moves of
/// namespaces that do not exist any more are left out.
pub(crate) fn list_rebases_since(
    read: &dyn Read,
    sequence: u64,
) -> Result<Vec<Rebase>, GatewayError> {
    let mut rebases = Vec::new();
    for row in MOVES.scan().after(Some(sequence)).read_all(read)? {
        let stored = row.value()?;
        if namespace::get(read, &stored.name)?.is_some() {
            rebases.push(stored.read_rebase(read)?);
        }
    }
    Ok(rebases)
}
