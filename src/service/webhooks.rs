//! Webhooks: their state, and a test of their receivers.
use crate::audit::change_event;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_resources::webhook::{Webhook, WebhookTest};

/// Lists the webhooks, ordered by name.
///
/// # Errors
/// `ErrorClass::Forbidden` unless the caller is an Admin; the errors of the store.
pub async fn list_webhooks(
    gateway: &Gateway,
    by: &Authorized,
) -> Result<Vec<Webhook>, GatewayError> {
    gateway.run(by, Role::Admin, |gateway, _| gateway.webhooks.list()).await
}

/// Sends a test event to a webhook.
///
/// # Errors
/// `ErrorClass::Forbidden` unless the caller is an Admin; `ErrorClass::NotFound` if there is no such webhook.
pub async fn test_webhook(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
) -> Result<WebhookTest, GatewayError> {
    by.require_role(Role::Admin)?;
    let result = gateway.webhooks.test(name).await?;
    let event = change_event(by, "webhook.tested", format!("{name:?}"));
    gateway.auth.audit.record_event(event);
    Ok(result)
}
