//! Messages of sources, as they came from a broker, and what the sessions at brokers are subscribed to.
use bytes::Bytes;
use jiff::Timestamp;
use penstock_base::collections;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::GatewayError;
use penstock_base::table::{AsJson, Table};
use penstock_store::{Error, ReadStore, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The sessions, by source and client id.
const SESSIONS: Table<(String, String), AsJson<StoredSession>> =
    Table::new(collections::SOURCE_SESSIONS);

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
    /// The topic filters that were sent to the broker and not confirmed yet. After a restore, those of `topics` too.
    #[serde(default)]
    pub pending: BTreeSet<String>,
    /// The topic filters that the settings no longer have. The broker may still have messages for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
}

impl StoredSession {
    /// Returns the topic filters that the broker certainly has, if it still has the session.
    pub fn list_confirmed(&self) -> BTreeSet<String> {
        self.topics.difference(&self.pending).cloned().collect()
    }
}

/// Returns this session, if it is stored. One that cannot be read counts as not stored.
///
/// # Errors
/// The errors of the store.
pub fn read_session(
    store: &ReadStore,
    id: &SessionId,
) -> Result<Option<StoredSession>, GatewayError> {
    Ok(SESSIONS.get_readable(&store.read(), (&id.source, &id.client_id))?)
}

/// Returns the ids of all stored sessions.
///
/// # Errors
/// The errors of the store.
pub fn list_sessions(store: &ReadStore) -> Result<Vec<SessionId>, GatewayError> {
    let rows = SESSIONS.scan().read_all(&store.read())?;
    let keys = rows.iter().filter_map(|row| row.key().ok());
    Ok(keys.map(|(source, client_id)| SessionId { source, client_id }).collect())
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
    let key = (id.source.as_str(), id.client_id.as_str());
    store.commit::<_, GatewayError>(&NoClient, |transaction| match session {
        Some(session) => Ok(SESSIONS.put(transaction, key, session)?),
        None => Ok(SESSIONS.delete(transaction, key)?),
    })?;
    Ok(())
}

/// Marks what all sessions are subscribed to as not confirmed, after a restore: the broker may have got other subscriptions
/// since the backup.
///
/// # Errors
/// The errors of the store.
pub fn unconfirm_sessions(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    for row in SESSIONS.scan().read_all(transaction)? {
        let Some(((source, client_id), mut session)) = row.entry_or_log() else { continue };
        session.pending.extend(session.topics.iter().cloned());
        SESSIONS.put(transaction, (&source, &client_id), &session)?;
    }
    Ok(())
}
