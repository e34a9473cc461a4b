//! The open changes, and the objects that a change touches.
//!
//! The index is small and has no closed changes, so that a page can count what waits for somebody, and find the changes of
//! an object, without reading all changes.
use super::read::{Part, read_part};
use super::record::Change;
use crate::namespace::moving::list_earlier_iris;
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::table::{AsJson, Table};
use penstock_resources::change::ChangeState;
use penstock_store::{Read, ReadStore, Transaction};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The open changes, by id.
pub(super) const OPEN: Table<Uuid, AsJson<OpenChange>> =
    Table::new(collections::REVIEWED_CHANGES_OPEN);

/// The number of open changes that are read at a time.
const CHANGES_PER_READ: usize = 200;
/// The bytes of a hash of an object.
const HASH_BYTES: usize = 8;

/// An open change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenChange {
    /// Its id.
    pub id: String,
    /// The Business Object's id.
    pub business_object: String,
    /// Its state.
    pub state: ChangeState,
    /// The account that sent it.
    pub author: String,
}

/// The hashes of an object in differences.
#[derive(Debug)]
pub struct SubjectHashes(Vec<[u8; HASH_BYTES]>);

/// Adds the change to the index, or removes it if it is closed.
pub(super) fn update_open_changes(
    transaction: &mut Transaction<'_>,
    change: &Change,
) -> Result<(), GatewayError> {
    let key = change.uuid()?;
    if !change.state.is_open() {
        return Ok(OPEN.delete(transaction, key)?);
    }
    let Change { id, business_object, state, author, .. } = change.clone();
    Ok(OPEN.put(transaction, key, &OpenChange { id, business_object, state, author })?)
}

/// Iterates over the open changes, newest first. What cannot be read is missing, and does not hide the others.
pub fn iter_open_changes(
    store: &ReadStore,
) -> impl Iterator<Item = Result<OpenChange, GatewayError>> {
    let rows = OPEN.scan().reverse().pages(move || store.read(), CHANGES_PER_READ);
    rows.filter_map(|row| row.map(|row| row.value().ok()).map_err(Into::into).transpose())
}

impl SubjectHashes {
    /// Hashes the URI of an object, and its earlier URIs if its namespace was moved.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn of_object(read: &dyn Read, uri: &str) -> Result<Self, GatewayError> {
        let earlier = list_earlier_iris(read, uri)?;
        let uris = std::iter::once(uri).chain(earlier.iter().map(|(uri, _)| uri.as_str()));
        Ok(Self(uris.map(hash_subject).collect()))
    }
}

/// Returns whether the difference of a change has this object.
///
/// # Errors
/// The errors of the store.
pub fn is_touched(
    read: &dyn Read,
    change: &Change,
    object: &SubjectHashes,
) -> Result<bool, GatewayError> {
    let subjects = read_part(read, change, Part::Subjects)?;
    let (hashes, _) = subjects.as_chunks::<HASH_BYTES>();
    Ok(hashes.iter().any(|hash| object.0.contains(hash)))
}

/// Returns the beginning of the SHA-256 of a URI. Two objects of the open changes practically never share it.
pub(super) fn hash_subject(uri: &str) -> [u8; HASH_BYTES] {
    let digest: [u8; 32] = Sha256::digest(uri).into();
    digest.first_chunk().copied().unwrap_or_default()
}
