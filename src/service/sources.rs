//! Sources: what a broker publishes is ingested, and acknowledged once it is durable.
//!
//! The crate `penstock-sources` keeps the connections. It stores messages with [`store_messages`], keeps what a session
//! is subscribed to with [`load_session`] and [`store_session`], and reports connections with [`report_connected`] and
//! [`report_disconnected`].
mod list;
pub(crate) mod states;
mod store;

pub(crate) use list::collect_sources;
pub use list::{list_sources, read_source, test_source};
pub use penstock_model::messages::{Message, SessionId, StoredSession};
pub use states::{ConnectionError, ConnectionState, ConnectionTester};
pub use store::{
    NotStored, NotStoredCode, Stored, check_connectable, check_storable, store_messages,
};

use crate::gateway::Gateway;
use jiff::Timestamp;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::EventKind;
use penstock_config::Source;
use penstock_model::messages;
use states::PublishedConnection;

/// Returns the settings of a source.
///
/// # Errors
/// `ErrorClass::NotFound`
pub(crate) fn require_source<'g>(
    gateway: &'g Gateway,
    name: &str,
) -> Result<&'g Source, GatewayError> {
    gateway.settings.sources.get(name).ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, format!("there is no source {name:?}"))
    })
}

/// Returns what this session is subscribed to, or `None` if it is not stored. Blocking.
///
/// # Errors
/// `ErrorClass::Internal` if the disk fails.
pub fn load_session(
    gateway: &Gateway,
    id: &SessionId,
) -> Result<Option<StoredSession>, GatewayError> {
    messages::read_session(&gateway.store, id)
}

/// Returns the ids of all stored sessions, so that those of removed subscriptions can be ended. Blocking.
///
/// # Errors
/// `ErrorClass::Internal` if the disk fails.
pub fn list_sessions(gateway: &Gateway) -> Result<Vec<SessionId>, GatewayError> {
    messages::list_sessions(&gateway.store)
}

/// Stores what this session is subscribed to; `None` removes it. Blocking.
///
/// # Errors
/// `ErrorClass::Internal` or `ErrorClass::InsufficientStorage` if the disk fails or is full.
pub fn store_session(
    gateway: &Gateway,
    id: &SessionId,
    session: Option<&StoredSession>,
) -> Result<(), GatewayError> {
    messages::write_session(&gateway.store, id, session)
}

/// Reports that a connection was opened. `protocol` is `5` or `3.1.1`.
pub fn report_connected(
    gateway: &Gateway,
    source: &str,
    business_object: &str,
    protocol: &'static str,
) {
    let mut was_connected = false;
    gateway.sources.update(source, business_object, |state| {
        was_connected = state.connected_since.is_some();
        state.connected_since = Some(Timestamp::now());
        state.protocol = Some(protocol);
        state.error = None;
    });
    if !was_connected {
        tracing::info!(source, business_object, protocol, "A source connected to its broker.");
        let data = PublishedConnection::now(source, business_object, None);
        gateway.events.publish_unstored(None, EventKind::SourceConnected, source, &data);
    }
}

/// Reports that a connection ended, or could not be opened. Repeated failures publish one event.
pub fn report_disconnected(gateway: &Gateway, source: &str, business_object: &str, cause: &str) {
    let mut is_news = false;
    gateway.sources.update(source, business_object, |state| {
        is_news = state.connected_since.take().is_some()
            || state.error.as_ref().is_none_or(|error| error.message != cause);
        state.error = Some(ConnectionError::now(cause));
    });
    if is_news {
        tracing::warn!(
            source,
            business_object,
            cause,
            "A source is not connected to its broker; the gateway retries."
        );
        let data = PublishedConnection::now(source, business_object, Some(cause));
        gateway.events.publish_unstored(None, EventKind::SourceDisconnected, source, &data);
    }
}

#[cfg(test)]
mod tests;
