//! What a session needs of the gateway.
use penstock_base::error::GatewayError;
use penstock_service::gateway::Gateway;
use penstock_service::sources::{
    self, ConnectionState, Message, NotStored, SessionId, Stored, StoredSession,
};
use std::sync::Arc;

/// Stores the messages of one session and what it is subscribed to, and shows the state of its connection. All of it
/// may block. Tests break what is behind it.
pub(crate) trait MessageStore: Send + Sync + 'static {
    /// Checks that the session may connect.
    fn check_connectable(&self) -> Result<(), NotStored>;
    /// Checks that a message of this many bytes could be stored now.
    fn check_storable(&self, bytes: usize) -> Result<(), NotStored>;
    /// Stores messages in their order: all of them, or only the first ones if the next one cannot be stored. Returns once
    /// they are synced to disk.
    fn store_messages(&self, messages: &[Message]) -> Result<Stored, NotStored>;
    /// Returns what the session is subscribed to; nothing if it is new.
    fn load_session(&self) -> Result<StoredSession, GatewayError>;
    /// Stores what the session is subscribed to.
    fn save_session(&self, session: &StoredSession) -> Result<(), GatewayError>;
    /// Reports that the connection was opened with this version of the protocol.
    fn report_connected(&self, protocol: &'static str);
    /// Reports that the connection ended, or could not be opened.
    fn report_disconnected(&self, cause: &str);
    /// Changes the state that clients see.
    fn update_state(&self, change: &mut dyn FnMut(&mut ConnectionState));
}

/// The gateway, for one session.
#[derive(Debug)]
pub(crate) struct GatewayStore {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) business_object: String,
    pub(crate) id: SessionId,
}

impl MessageStore for GatewayStore {
    fn check_connectable(&self) -> Result<(), NotStored> {
        sources::check_connectable(&self.gateway, &self.business_object)
    }

    fn check_storable(&self, bytes: usize) -> Result<(), NotStored> {
        sources::check_storable(&self.gateway, &self.id.source, &self.business_object, bytes)
    }

    fn store_messages(&self, messages: &[Message]) -> Result<Stored, NotStored> {
        sources::store_messages(&self.gateway, &self.id.source, &self.business_object, messages)
    }

    fn load_session(&self) -> Result<StoredSession, GatewayError> {
        Ok(sources::load_session(&self.gateway, &self.id)?.unwrap_or_default())
    }

    fn save_session(&self, session: &StoredSession) -> Result<(), GatewayError> {
        sources::store_session(&self.gateway, &self.id, Some(session))
    }

    fn report_connected(&self, protocol: &'static str) {
        sources::report_connected(&self.gateway, &self.id.source, &self.business_object, protocol);
    }

    fn report_disconnected(&self, cause: &str) {
        sources::report_disconnected(&self.gateway, &self.id.source, &self.business_object, cause);
    }

    fn update_state(&self, change: &mut dyn FnMut(&mut ConnectionState)) {
        self.gateway.sources.update(&self.id.source, &self.business_object, change);
    }
}
