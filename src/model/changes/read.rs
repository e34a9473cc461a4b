//! Reads the parts of a change that have documents of their own.
use super::compression::decompress;
use super::record::Change;
use crate::ingest::MintedIdentifier;
use penstock_base::collections;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::table::Table;
use penstock_resources::ingestion::Warning;
use penstock_store::Read;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// The compressed parts ([`Part`]), by the id of the change, their kind and their number.
pub(super) const PARTS: Table<(Uuid, u8, u32), Vec<u8>> =
    Table::new(collections::REVIEWED_CHANGES_PARTS);

/// A part of a change that has a document of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The request as received.
    Request,
    /// The identifiers that were minted.
    Minted,
    /// The warnings of the ingestion.
    Warnings,
    /// The page of the difference with this number, from 0.
    Page(u32),
    /// The hashes of the objects in the difference.
    Subjects,
}

/// What was sent as a change, and what the ingestion warned of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeContent {
    /// The request as received.
    pub request: Vec<u8>,
    /// The warnings.
    pub warnings: Vec<Warning>,
}

impl Part {
    /// Returns its key.
    pub(super) fn key(self, id: Uuid) -> (Uuid, u8, u32) {
        let (kind, number) = match self {
            Self::Request => (0, 0),
            Self::Minted => (1, 0),
            Self::Warnings => (2, 0),
            Self::Page(number) => (3, number),
            Self::Subjects => (4, 0),
        };
        (id, kind, number)
    }
}

/// Returns what was sent as a change.
///
/// # Errors
/// The errors of the store.
pub fn read_content(read: &dyn Read, change: &Change) -> Result<ChangeContent, GatewayError> {
    let request = read_part(read, change, Part::Request)?;
    Ok(ChangeContent { request, warnings: read_json(read, change, Part::Warnings)? })
}

/// Returns the identifiers that were minted for a change.
pub(super) fn read_minted(
    read: &dyn Read,
    change: &Change,
) -> Result<Vec<MintedIdentifier>, GatewayError> {
    read_json(read, change, Part::Minted)
}

/// Returns a part of a change that is stored as JSON.
pub(super) fn read_json<T: DeserializeOwned>(
    read: &dyn Read,
    change: &Change,
    part: Part,
) -> Result<T, GatewayError> {
    serde_json::from_slice(&read_part(read, change, part)?).map_err(|error| {
        tracing::error!(%error, change = change.id, ?part, "A part of a change could not be read.");
        unreadable_error(change)
    })
}

/// Returns a part of a change.
pub(super) fn read_part(
    read: &dyn Read,
    change: &Change,
    part: Part,
) -> Result<Vec<u8>, GatewayError> {
    let document = PARTS.get(read, part.key(change.uuid()?))?;
    decompress(&document.ok_or_else(|| unreadable_error(change))?)
}

fn unreadable_error(change: &Change) -> GatewayError {
    GatewayError::new(
        ErrorClass::Internal,
        format!("a part of the change {} could not be read; the log has the cause", change.id),
    )
}
