//! Messages of sources, as they came from a broker, and what the sessions at brokers are subscribed to.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `source-sessions` | client id | [`StoredSession`] as JSON |
use bytes::Bytes;
use jiff::Timestamp;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{DocumentRange, Read as _, ReadStore, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const SESSIONS: &str = "source-sessions";

/// A message of a source.
#[derive(Debug, Clone)]
pub struct Message {
    /// The topic that it was published to.
    pub topic: String,
    /// The payload; only the beginning of it if it is longer than a request body may be.
    pub payload: Bytes,
    /// The length of the whole payload in bytes, if `payload` is only its beginning.
    pub truncated: Option<u64>,
    /// The index of its subscription in the settings of the source.
    pub subscription: usize,
    /// When it was received.
    pub received_at: Timestamp,
}

/// What a session at a broker is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredSession {
    /// The name of the source.
    #[serde(default)]
    pub source: String,
    /// The topic filters that the broker has confirmed.
    pub topics: BTreeSet<String>,
    /// The topic filters that were sent to the broker and not confirmed yet.
    #[serde(default)]
    pub pending: BTreeSet<String>,
}

/// Returns the session with this client id, if it is stored. One that cannot be read counts as not stored.
///
/// # Errors
/// The errors of the store.
pub fn read_session(
    store: &ReadStore,
    client_id: &str,
) -> Result<Option<StoredSession>, GatewayError> {
    let document = store.read().read_document(SESSIONS, client_id.as_bytes())?;
    Ok(document.and_then(|document| serde_json::from_slice(&document).ok()))
}

/// Returns all stored sessions with their client ids.
///
/// # Errors
/// The errors of the store.
pub fn list_sessions(store: &ReadStore) -> Result<Vec<(String, StoredSession)>, GatewayError> {
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let documents = store.read().read_documents(SESSIONS, range)?;
    let decode = |(key, value): (Vec<u8>, Vec<u8>)| {
        Some((String::from_utf8(key).ok()?, serde_json::from_slice(&value).ok()?))
    };
    Ok(documents.into_iter().filter_map(decode).collect())
}

/// Stores the session with this client id; `None` removes it.
///
/// # Errors
/// The errors of the store.
pub fn write_session(
    store: &GuardedStore,
    client_id: &str,
    session: Option<&StoredSession>,
) -> Result<(), GatewayError> {
    let document = session.map(serde_json::to_vec).transpose().map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("serializing a session failed: {error}"))
    })?;
    store.commit(&NoClient, |transaction: &mut Transaction<'_>| -> Result<(), GatewayError> {
        let key = client_id.as_bytes();
        match &document {
            Some(document) => transaction.put_document(SESSIONS, key, document)?,
            None => {
                transaction.delete_document(SESSIONS, key)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}
