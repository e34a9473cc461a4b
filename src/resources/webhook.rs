//! Webhooks and their tests.
use crate::export::Cause;
use schemars::JsonSchema;
use serde::Serialize;

/// A webhook and its state.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// The scheme, host and port of its URL. The rest may have a token.
    pub url: String,
    /// The types of events that it gets.
    pub events: Vec<&'static str>,
    /// Number of waiting events.
    pub waiting: u64,
    /// Bytes of waiting events.
    pub bytes: u64,
    /// When the oldest waiting event happened (RFC 3339).
    pub oldest: Option<String>,
    /// Events dropped because too many waited, since the webhook was configured.
    pub dropped: u64,
    /// Events delivered since the webhook was configured.
    pub delivered: u64,
    /// When the last one was delivered (RFC 3339).
    pub last_delivery: Option<String>,
    /// Why the first waiting event cannot be delivered, in words.
    pub blocked: Option<String>,
    /// The kind of cause.
    pub blocked_by: Option<Cause>,
    /// When that event first failed since the start (RFC 3339).
    pub blocked_since: Option<String>,
    /// Failed attempts of that event since the start.
    pub attempts: u64,
    /// When the next attempt is due (RFC 3339).
    pub next_attempt: Option<String>,
    /// Since when the webhook is disabled because the receiver answered 410 Gone (RFC 3339). A successful test or the
    /// next start enables it.
    pub disabled_since: Option<String>,
}

/// The result of a test of a webhook.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookTest {
    /// The name of the webhook.
    pub webhook: String,
    /// Whether the receiver accepted the event.
    pub ok: bool,
    /// Why it did not, in words.
    pub cause: Option<String>,
    /// The response time in milliseconds.
    pub milliseconds: u64,
}
