//! Webhooks: signed requests with events, by Standard Webhooks.
//!
//! `penstock_base::events::webhook_queues` keeps the events. Each webhook has one worker, which sends the first event of
//! its queue and retries until the receiver accepts it. So the receiver gets every event in order, and one of them twice
//! only with the same `webhook-id`.
//!
//! - `client` signs and sends a request, and explains what is no success.
//! - `parts` is what the webhooks share.
//! - `worker` delivers the queue of one webhook.
//! - `state` is what the operator sees.
mod client;
mod parts;
mod state;
mod worker;

use super::Exporter;
use super::delivery_loop::deliver_queue;
use parking_lot::Mutex;
use parts::{ConfiguredWebhook, Parts, STORE_RETRY_DELAY};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::webhook_queues::{QueuePage, WebhookQueues, read_queue_page};
use penstock_base::shared::Shared;
use penstock_config::Webhook;
use penstock_resources::webhook::{self, WebhookTest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::JoinSet;
use worker::WebhookWorker;

/// The webhooks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Webhooks {
    parts: Shared<Parts>,
}

impl Webhooks {
    /// Prepares these webhooks. The events come from the bus of the exporter, and share its uplink.
    pub fn new(exporter: &Exporter, webhooks: &BTreeMap<String, Webhook>) -> Self {
        let prepare = |settings: &Webhook| ConfiguredWebhook {
            settings: settings.clone(),
            state: Mutex::default(),
            wake: Arc::default(),
        };
        let prepared = webhooks.iter().map(|(name, one)| (name.clone(), Arc::new(prepare(one))));
        let exporter = &exporter.inner;
        Self {
            parts: Shared::new(Parts {
                events: exporter.options.events.clone(),
                queue: exporter.queue.clone(),
                timings: exporter.options.timings,
                uplink: Arc::clone(&exporter.uplink),
                webhooks: prepared.collect(),
                transaction: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Delivers events until `stop` becomes true. [`Self::store_last_events`] follows.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let parts = &self.parts;
        self.delete_removed_queues().await;
        let mut tasks = JoinSet::new();
        if !parts.webhooks.is_empty() {
            tasks.spawn(store_pending_events(parts.clone(), stop.clone()));
        }
        for (name, webhook) in &parts.webhooks {
            let worker = WebhookWorker::new(parts.clone(), name.clone(), Arc::clone(webhook));
            tasks.spawn(deliver_queue(worker, stop.clone()));
        }
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "A task of the webhooks ended unexpectedly.");
            }
        }
    }

    /// Stores the events that wait in memory, after everything that publishes events has ended.
    pub async fn store_last_events(&self) {
        if let Err(error) = self.parts.store_pending().await {
            tracing::warn!(%error, "The last events for webhooks could not be stored and are lost.");
        }
    }

    async fn delete_removed_queues(&self) {
        let deleted = self.parts.run_transaction(WebhookQueues::delete_removed_queues);
        match deleted.await {
            Ok(deleted) => {
                for (webhook, events) in deleted {
                    tracing::warn!(
                        webhook,
                        events,
                        "A webhook is no longer configured; its waiting events were deleted."
                    );
                }
            }
            Err(error) => {
                tracing::warn!(%error, "The queues of removed webhooks could not be deleted.");
            }
        }
    }

    /// Lists the webhooks, ordered by name. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn list(&self) -> Result<Vec<webhook::Webhook>, GatewayError> {
        let read = self.parts.queue.store.read();
        let describe =
            |(name, webhook): (&String, &Arc<ConfiguredWebhook>)| -> Result<_, GatewayError> {
                let QueuePage { totals, mut events, .. } =
                    read_queue_page(&read, name, u64::MAX, 1)?;
                let oldest = events.pop().map(|event| event.time);
                Ok(webhook.state.lock().describe(name, &webhook.settings, totals, oldest))
            };
        self.parts.webhooks.iter().map(describe).collect()
    }

    /// Sends a test event to a webhook, once and outside of its queue. If that succeeds, waiting events are sent too, also
    /// if the webhook was disabled.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if there is no such webhook.
    pub async fn test(&self, name: &str) -> Result<WebhookTest, GatewayError> {
        let Some(webhook) = self.parts.webhooks.get(name) else {
            let message = format!("there is no webhook {name:?}; service.webhooks configures them");
            return Err(GatewayError::new(ErrorClass::NotFound, message));
        };
        let begun = Instant::now();
        let (id, json) = self.parts.events.render_test_event(name);
        let sent = match self.parts.open_client(&webhook.settings) {
            Ok(client) => client.send(&id, json).await,
            Err(failure) => Err(failure),
        };
        if sent.is_ok() {
            webhook.wake.notify_one();
        }
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(WebhookTest {
            webhook: name.to_owned(),
            ok: sent.is_ok(),
            cause: sent.err().map(|failure| failure.failure.cause),
            milliseconds,
        })
    }
}

/// Commits events that are in no other commit, soon after they were published.
async fn store_pending_events(parts: Shared<Parts>, mut stop: watch::Receiver<bool>) {
    let mut added = parts.events.webhooks().subscribe();
    let mut has_failed = false;
    loop {
        added.mark_unchanged();
        let delay = match parts.store_pending().await {
            Ok(()) => {
                has_failed = false;
                None
            }
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::warn!(%error, "Events for webhooks could not be stored; the gateway retries.");
                }
                Some(STORE_RETRY_DELAY)
            }
        };
        let wait = async {
            match delay {
                Some(delay) => tokio::time::sleep(delay).await,
                None => {
                    // An error means that the bus is gone, which this task prevents.
                    let _ = added.changed().await;
                }
            }
        };
        tokio::select! {
            () = wait => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}
