//! Webhooks and their tests.
use super::export::Cause;
use penstock_export::{WebhookState, WebhookTest as TestResult};
use salvo_oapi::ToSchema;
use serde::Serialize;

/// A webhook and its state.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Webhook"))]
pub(crate) struct Webhook {
    /// Its name.
    name: String,
    /// The scheme, host and port of its URL. The rest may have a token.
    url: String,
    /// The types of events that it gets.
    events: Vec<&'static str>,
    /// Number of waiting events.
    waiting: u64,
    /// Bytes of waiting events.
    bytes: u64,
    /// When the oldest waiting event happened (RFC 3339).
    #[salvo(schema(required = true))]
    oldest: Option<String>,
    /// Events dropped because too many waited, since the webhook was configured.
    dropped: u64,
    /// Events delivered since the webhook was configured.
    delivered: u64,
    /// When the last one was delivered (RFC 3339).
    #[salvo(schema(required = true))]
    last_delivery: Option<String>,
    /// Why the first waiting event cannot be delivered, in words.
    #[salvo(schema(required = true))]
    blocked: Option<String>,
    /// The kind of cause.
    #[salvo(schema(required = true))]
    blocked_by: Option<Cause>,
    /// When that event first failed since the start (RFC 3339).
    #[salvo(schema(required = true))]
    blocked_since: Option<String>,
    /// Failed attempts of that event since the start.
    attempts: u64,
    /// When the next attempt is due (RFC 3339).
    #[salvo(schema(required = true))]
    next_attempt: Option<String>,
    /// Since when the webhook is disabled because the receiver answered 410 Gone (RFC 3339). A successful test or the
    /// next start enables it.
    #[salvo(schema(required = true))]
    disabled_since: Option<String>,
}

/// Every webhook.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Webhooks"))]
pub(crate) struct Webhooks {
    /// Ordered by name.
    pub(crate) items: Vec<Webhook>,
    /// Always null: all webhooks are on one page.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// The result of a test of a webhook.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "WebhookTest"))]
pub(crate) struct WebhookTest {
    /// The name of the webhook.
    webhook: String,
    /// Whether the receiver accepted the event.
    ok: bool,
    /// Why it did not, in words.
    #[salvo(schema(required = true))]
    cause: Option<String>,
    /// The response time in milliseconds.
    milliseconds: u64,
}

impl From<WebhookState> for Webhook {
    fn from(state: WebhookState) -> Self {
        Self {
            name: state.name,
            url: state.url,
            events: state.events,
            waiting: state.waiting,
            bytes: state.bytes,
            oldest: state.oldest,
            dropped: state.dropped,
            delivered: state.delivered,
            last_delivery: state.last_delivery,
            blocked: state.blocked,
            blocked_by: state.blocked_by.and_then(Cause::from_class),
            blocked_since: state.blocked_since,
            attempts: state.attempts,
            next_attempt: state.next_attempt,
            disabled_since: state.disabled_since,
        }
    }
}

impl From<TestResult> for WebhookTest {
    fn from(result: TestResult) -> Self {
        let TestResult { webhook, ok, cause, milliseconds } = result;
        Self { webhook, ok, cause, milliseconds }
    }
}
