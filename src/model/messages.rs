//! Messages of sources, as they came from a broker, and what the sessions at brokers are subscribed to.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `source-sessions` | source, 0, client id | [`StoredSession`] as JSON |
use bytes::Bytes;
use jiff::Timestamp;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{DocumentRange, Read as _, ReadStore, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

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
    /// The index of its subscription in the settings of the source; `None` if no subscription matches its topic.
    pub subscription: Option<usize>,
    /// When it was received.
    pub received_at: Timestamp,
}

/// What identifies a session: two sources may use the same client id at different brokers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId {
    /// The name of the source, which has no byte 0.
    pub source: String,
    /// The client id at its broker.
    pub client_id: String,
}

impl SessionId {
    fn to_key(&self) -> Vec<u8> {
        format!("{}\0{}", self.source, self.client_id).into_bytes()
    }

    fn parse_key(key: Vec<u8>) -> Option<Self> {
        let key = String::from_utf8(key).ok()?;
        let (source, client_id) = key.split_once('\0')?;
        Some(Self { source: source.to_owned(), client_id: client_id.to_owned() })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.client_id)
    }
}

/// What a session at a broker is subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredSession {
    /// The topic filters that the broker has confirmed.
    pub topics: BTreeSet<String>,
    /// The topic filters that were sent to the broker and not confirmed yet.
    #[serde(default)]
    pub pending: BTreeSet<String>,
    /// The topic filters that the settings no longer have. The broker may still have messages for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
}

/// Returns this session, if it is stored. One that cannot be read counts as not stored.
///
/// # Errors
/// The errors of the store.
pub fn read_session(
    store: &ReadStore,
    id: &SessionId,
) -> Result<Option<StoredSession>, GatewayError> {
    let document = store.read().read_document(SESSIONS, &id.to_key())?;
    Ok(document.and_then(|document| serde_json::from_slice(&document).ok()))
}

/// Returns the ids of all stored sessions.
///
/// # Errors
/// The errors of the store.
pub fn list_sessions(store: &ReadStore) -> Result<Vec<SessionId>, GatewayError> {
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let documents = store.read().read_documents(SESSIONS, range)?;
    Ok(documents.into_iter().filter_map(|(key, _)| SessionId::parse_key(key)).collect())
}

/// Stores this session; `None` removes it.
///
/// # Errors
/// The errors of the store.
pub fn write_session(
    store: &GuardedStore,
    id: &SessionId,
    session: Option<&StoredSession>,
) -> Result<(), GatewayError> {
    let document = session.map(serde_json::to_vec).transpose().map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("serializing a session failed: {error}"))
    })?;
    store.commit(&NoClient, |transaction: &mut Transaction<'_>| -> Result<(), GatewayError> {
        let key = id.to_key();
        match &document {
            Some(document) => transaction.put_document(SESSIONS, &key, document)?,
            None => {
                transaction.delete_document(SESSIONS, &key)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}
