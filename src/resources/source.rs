//! Sources and their connections.
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A source: an MQTT broker, and what the gateway subscribes to there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Its name.
    pub name: String,
    /// `mqtt`
    pub r#type: &'static str,
    /// The URL of the broker.
    pub url: String,
    /// The id of its service account; null before its first message. An Admin can disable the account.
    pub account: Option<String>,
    /// Whether that account is enabled. Messages of a source with a disabled one wait at the broker.
    pub enabled: bool,
    /// What it subscribes to.
    pub subscriptions: Vec<SourceSubscription>,
    /// Its connections, one for each Business Object.
    pub connections: Vec<SourceConnection>,
    /// What an operator should look at.
    pub warnings: Vec<Warning>,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceSubscription {
    /// The topic filter.
    pub topic: String,
    /// The Business Object that its messages are ingested into, as the configuration names it.
    pub business_object: String,
    /// The mode of the ingestions.
    pub mode: &'static str,
    /// `document` if its messages are documents that the objects are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<&'static str>,
    /// The fields that are taken from the topic.
    pub fields: BTreeMap<String, String>,
}

/// The connection of a source for one Business Object. The counts begin at the start of the gateway.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceConnection {
    /// The Business Object as the configuration names it.
    pub business_object: String,
    /// Its id; null while it is not defined.
    pub business_object_id: Option<String>,
    /// `connected`, `disconnected`, or `off` because the Business Object requires a review.
    #[schemars(with = "String")]
    pub state: ConnectionStatus,
    /// The client id of the session.
    pub client_id: String,
    /// `5` or `3.1.1`; null before the first connection.
    pub protocol: Option<&'static str>,
    /// Since when it is connected (RFC 3339).
    pub connected_since: Option<String>,
    /// Messages of the last minute.
    pub messages_per_minute: u64,
    /// Messages received, repeated ones included.
    pub received: u64,
    /// Messages acknowledged, after they were stored.
    pub acknowledged: u64,
    /// Messages and objects in messages that became dead letters.
    pub dead_letters: u64,
    /// Messages and objects in messages that were acknowledged and not kept: of removed subscriptions, or invalid ones
    /// beyond `service.limits.rejected.bytes`.
    pub dropped: u64,
    /// Messages that wait to be stored.
    pub waiting_messages: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// When the last message was received (RFC 3339).
    pub last_message: Option<String>,
    /// Why there is no connection, or why messages cannot be stored now.
    pub error: Option<String>,
    /// When that happened (RFC 3339); null while the gateway reads no sources at all.
    pub error_at: Option<String>,
}

/// Whether a source is connected for a Business Object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionStatus {
    /// It is connected.
    Connected,
    /// It is not connected. The gateway retries.
    Disconnected,
    /// It stays disconnected, because the Business Object requires a review.
    Off,
}

/// The result of a test of a source's connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceTest {
    /// The name of the source.
    pub source: String,
    /// Whether the broker accepted the connection.
    pub ok: bool,
    /// `5` or `3.1.1`; null without a connection.
    pub protocol: Option<&'static str>,
    /// Why it failed.
    pub cause: Option<String>,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
}
