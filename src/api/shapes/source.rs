//! Sources and their connections.
use penstock_base::time::format_rfc3339;
use penstock_config::Subscription;
use penstock_service::sources::{ConnectionInfo, ConnectionTest, SourceInfo};
use salvo_oapi::ToSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A source: an MQTT broker, and what the gateway subscribes to there.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Source"))]
pub(crate) struct Source {
    /// Its name.
    name: String,
    /// `mqtt`
    r#type: &'static str,
    /// The URL of the broker.
    url: String,
    /// The id of its service account; null before its first message. An Admin can disable the account.
    #[salvo(schema(required = true))]
    account: Option<String>,
    /// Whether that account is enabled. Messages of a source with a disabled one wait at the broker.
    enabled: bool,
    /// What it subscribes to.
    subscriptions: Vec<SourceSubscription>,
    /// Its connections, one for each Business Object.
    connections: Vec<SourceConnection>,
    /// What an operator should look at.
    warnings: Vec<String>,
}

/// A subscription.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "SourceSubscription"))]
pub(crate) struct SourceSubscription {
    /// The topic filter.
    topic: String,
    /// The Business Object that its messages are ingested into, as the configuration names it.
    business_object: String,
    /// The mode of the ingestions.
    mode: &'static str,
    /// The fields that are taken from the topic.
    #[salvo(schema(value_type = std::collections::BTreeMap<String, String>))]
    fields: BTreeMap<String, String>,
}

/// The connection of a source for one Business Object. The counts begin at the start of the gateway.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "SourceConnection"))]
pub(crate) struct SourceConnection {
    /// The Business Object as the configuration names it.
    business_object: String,
    /// Its id; null while it is not defined.
    #[salvo(schema(required = true))]
    business_object_id: Option<String>,
    /// `connected`, `disconnected`, or `off` because the Business Object requires a review.
    state: &'static str,
    /// The client id of the session.
    client_id: String,
    /// `5` or `3.1.1`; null before the first connection.
    #[salvo(schema(required = true))]
    protocol: Option<&'static str>,
    /// Since when it is connected (RFC 3339).
    #[salvo(schema(required = true))]
    connected_since: Option<String>,
    /// Messages of the last minute.
    messages_per_minute: u64,
    /// Messages received, repeated ones included.
    received: u64,
    /// Messages acknowledged, after they were stored.
    acknowledged: u64,
    /// Messages and objects in messages that became dead letters.
    dead_letters: u64,
    /// Messages and objects in messages that were acknowledged and not kept: of removed subscriptions, or invalid ones
    /// beyond `service.limits.rejected.bytes`.
    dropped: u64,
    /// Messages that wait to be stored.
    waiting_messages: u64,
    /// Their bytes.
    waiting_bytes: u64,
    /// When the last message was received (RFC 3339).
    #[salvo(schema(required = true))]
    last_message: Option<String>,
    /// Why there is no connection, or why messages cannot be stored now.
    #[salvo(schema(required = true))]
    error: Option<String>,
    /// When that happened (RFC 3339).
    #[salvo(schema(required = true))]
    error_at: Option<String>,
}

/// Every source.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Sources"))]
pub(crate) struct Sources {
    /// Ordered by name.
    pub(crate) items: Vec<Source>,
    /// Always null: all sources are on one page.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// The result of a test of a source's connection.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "SourceTest"))]
pub(crate) struct SourceTest {
    /// The name of the source.
    source: String,
    /// Whether the broker accepted the connection.
    ok: bool,
    /// `5` or `3.1.1`; null without a connection.
    #[salvo(schema(required = true))]
    protocol: Option<&'static str>,
    /// Why it failed.
    #[salvo(schema(required = true))]
    cause: Option<String>,
    /// How long it took, in milliseconds.
    milliseconds: u64,
}

impl From<SourceInfo> for Source {
    fn from(source: SourceInfo) -> Self {
        let SourceInfo { name, url, account, is_revoked, subscriptions, connections, warnings } =
            source;
        Self {
            name,
            r#type: "mqtt",
            url,
            account,
            enabled: !is_revoked,
            subscriptions: subscriptions.into_iter().map(Into::into).collect(),
            connections: connections.into_iter().map(Into::into).collect(),
            warnings,
        }
    }
}

impl From<Subscription> for SourceSubscription {
    fn from(subscription: Subscription) -> Self {
        let Subscription { topic, business_object, mode, fields } = subscription;
        Self { topic, business_object, mode, fields }
    }
}

impl From<ConnectionInfo> for SourceConnection {
    fn from(connection: ConnectionInfo) -> Self {
        let ConnectionInfo {
            business_object,
            business_object_id,
            status,
            messages_per_minute,
            state,
        } = connection;
        let error_at = state.error.as_ref().map(|error| format_rfc3339(error.at));
        Self {
            business_object,
            business_object_id,
            state: status.name(),
            client_id: state.client_id,
            protocol: state.protocol,
            connected_since: state.connected_since.map(format_rfc3339),
            messages_per_minute,
            received: state.received,
            acknowledged: state.acknowledged,
            dead_letters: state.dead_letters,
            dropped: state.dropped,
            waiting_messages: state.waiting_messages,
            waiting_bytes: state.waiting_bytes,
            last_message: state.last_message_at.map(format_rfc3339),
            error: state.error.map(|error| error.message),
            error_at,
        }
    }
}

impl SourceTest {
    pub(crate) fn new(source: &str, result: ConnectionTest) -> Self {
        let ConnectionTest { ok, protocol, cause, duration } = result;
        Self {
            source: source.to_owned(),
            ok,
            protocol,
            cause,
            milliseconds: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
