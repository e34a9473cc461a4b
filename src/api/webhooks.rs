//! `/api/v1/webhooks`: the webhooks, their state, and a test of their receivers.
use crate::shapes;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::webhooks;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Lists every webhook of the configuration.
#[endpoint(
    operation_id = "listWebhooks",
    tags("Gateway"),
    responses((status_code = 200, description = "All webhooks.", body = shapes::Webhooks)),
)]
pub(super) async fn list_webhooks(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let all = webhooks::list_webhooks(&gateway(depot)?, caller(depot)).await?;
    let items = all.into_iter().map(shapes::Webhook::from).collect();
    Reply::json(&shapes::Webhooks { items, next: None })
}

/// Sends an event of the type `penstock.webhook.test` to a webhook, once and outside of its queue.
///
/// A failed test has its reason in `cause`; the status is 200 then, too. After a successful test the gateway retries the
/// first waiting event at once, also if the receiver had answered 410 Gone.
#[endpoint(
    operation_id = "testWebhook",
    tags("Gateway"),
    parameters(("name" = String, Path, description = "The name of the webhook.")),
    responses((status_code = 200, description = "The result of the test.", body = shapes::WebhookTest)),
)]
pub(super) async fn test_webhook(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let result = webhooks::test_webhook(&gateway(depot)?, caller(depot), name).await?;
    Reply::json(&shapes::WebhookTest::from(result))
}
