//! What the webhooks share, and each of them.
use super::client::{SendFailure, WebhookClient};
use super::state::WorkerState;
use crate::backoff::DeliveryTimings;
use crate::blocking::run_blocking;
use crate::queue::ExportQueue;
use crate::uplink::Uplink;
use parking_lot::Mutex;
use penstock_base::error::GatewayError;
use penstock_base::events::EventBus;
use penstock_base::events::webhook_queues::WebhookQueues;
use penstock_base::shared::Shared;
use penstock_config::Webhook;
use penstock_store::{Error, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The delay after events could not be stored.
pub(super) const STORE_RETRY_DELAY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) events: EventBus,
    /// The export queue, whose store has the queues of the webhooks too.
    pub(super) queue: Shared<ExportQueue>,
    pub(super) timings: DeliveryTimings,
    pub(super) uplink: Arc<Uplink>,
    pub(super) webhooks: BTreeMap<String, Arc<ConfiguredWebhook>>,
    /// Held during a transaction, so that webhooks occupy one thread at a time.
    pub(super) transaction: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(super) struct ConfiguredWebhook {
    pub(super) settings: Webhook,
    pub(super) state: Mutex<WorkerState>,
    /// Ends the backoff, and enables a webhook that was disabled.
    pub(super) wake: Arc<Notify>,
}

impl Parts {
    pub(super) fn open_client(&self, webhook: &Webhook) -> Result<WebhookClient, SendFailure> {
        WebhookClient::open(webhook, &self.timings, &self.uplink)
    }

    /// Commits the events that wait in memory.
    pub(super) async fn store_pending(&self) -> Result<(), GatewayError> {
        self.run_transaction(|queues, store| queues.store_pending(store).map(|_| ())).await
    }

    /// Runs a transaction on a thread that may block, one at a time.
    pub(super) async fn run_transaction<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WebhookQueues, &Store) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let _one_at_a_time = self.transaction.lock().await;
        let events = self.events.clone();
        run_blocking(&self.queue, move |queue| Ok(work(events.webhooks(), &queue.store)?)).await
    }
}
