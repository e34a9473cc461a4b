//! `/api/v1/webhooks`: the webhooks, their state, and a test of their receivers.
use penstock_http::access::MinimumRole::Admin;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::PageQuery;
use penstock_http::query::TextCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::webhook::{Webhook, WebhookTest};
use penstock_service::webhooks;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/webhooks", Admin, list_webhooks)
            .describe(
                "listWebhooks",
                "Gateway",
                "Lists every webhook of the configuration, ordered by name.",
            )
            .answer::<Page<Webhook>>(200, "A page.")
            .problems(&[400]),
        post("/api/v1/webhooks/{name}/test", Admin, test_webhook)
            .describe(
                "testWebhook",
                "Gateway",
                "Sends an event of the type `penstock.webhook.test` to a webhook, once and outside of its queue.\n\nA \
                 failed test has its reason in `cause`; the status is 200 then, too. After a successful test the \
                 gateway retries the first waiting event at once, also if the receiver had answered 410 Gone.",
            )
            .parameter("name", "The name of the webhook.")
            .answer::<WebhookTest>(200, "The result of the test.")
            .problems(&[400, 404]),
    ]
}

async fn list_webhooks(call: Call<'_>, query: PageQuery<TextCursor>) -> ReplyResult {
    let all = webhooks::list_webhooks(&call.gateway()?, call.caller()).await?;
    Reply::json(&query.page_of_all(all, |webhook| webhook.name.as_str()))
}

async fn test_webhook(call: Call<'_>) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path("name"));
    Reply::json(&webhooks::test_webhook(&gateway, call.caller(), name).await?)
}
