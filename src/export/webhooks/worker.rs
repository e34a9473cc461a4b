//! Delivers the queue of one webhook, in order.
use super::client::{SendFailure, WebhookClient};
use super::parts::{ConfiguredWebhook, Parts, STORE_RETRY_DELAY};
use crate::backoff::{FailureLogLimit, RetryRule};
use crate::delivery_loop::{DeliveryQueue, Next};
use penstock_base::error::GatewayError;
use penstock_base::events::webhook_queues::{QueuePage, WaitingEvent, read_queue_page};
use penstock_base::shared::Shared;
use penstock_base::time;
use penstock_store::Error;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The number of events that are read at a time.
const EVENTS_PER_PAGE: usize = 32;
/// The interval at which a hold of all events is checked again.
const HOLD_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum time between a delivery and its commit. A crash in between repeats the delivery.
const MAX_COMMIT_DELAY: Duration = Duration::from_secs(1);

/// Delivers the events of one webhook, until the gateway stops.
pub(super) struct WebhookWorker {
    parts: Shared<Parts>,
    name: String,
    webhook: Arc<ConfiguredWebhook>,
    /// Changes after each event for a webhook.
    added: watch::Receiver<u64>,
    /// The open client. It is opened again after each failure, so that a changed certificate takes effect.
    client: Option<WebhookClient>,
    /// The events that were read and not sent yet.
    events: VecDeque<WaitingEvent>,
    /// The numbers of delivered events that are still in the queue.
    delivered: Vec<u64>,
    /// The numbers of documents in the queue that are no events.
    unreadable: Vec<u64>,
    /// When deliveries were committed last, or the events were read.
    last_commit: Instant,
    failure_log_limit: FailureLogLimit,
    /// Whether the queue could not be read or written last time. Then this is in the log.
    has_queue_failed: bool,
}

impl DeliveryQueue for WebhookWorker {
    type Head = WaitingEvent;
    type Sent = Result<(), SendFailure>;

    async fn next_head(&mut self) -> Result<WaitingEvent, Next> {
        if self.parts.uplink.hold_reason().is_some() {
            return Err(Next::wait_for(tokio::time::sleep(HOLD_CHECK_INTERVAL)));
        }
        if self.events.is_empty() {
            // Before the queue is read, so that an event that is added meanwhile ends the wait.
            self.added.mark_unchanged();
            match self.read_events().await {
                Ok(next) => {
                    self.has_queue_failed = false;
                    if self.events.is_empty() {
                        return Err(next);
                    }
                }
                Err(error) => return Err(self.report_queue_failure(&error)),
            }
        }
        self.events.pop_front().ok_or(Next::Continue)
    }

    async fn send(&mut self, event: &mut WaitingEvent) -> Self::Sent {
        let client = match self.client.take() {
            Some(client) => client,
            None => self.parts.open_client(&self.webhook.settings)?,
        };
        client.send(&event.id, std::mem::take(&mut event.json)).await?;
        // After a failure it is not kept.
        self.client = Some(client);
        Ok(())
    }

    async fn record(&mut self, event: WaitingEvent, sent: Option<Self::Sent>) -> Next {
        let next = match sent {
            Some(Ok(())) => {
                self.record_success(event.number);
                if self.last_commit.elapsed() <= MAX_COMMIT_DELAY {
                    return Next::Continue;
                }
                self.last_commit = Instant::now();
                Next::Continue
            }
            // The failure counts, also if the commit fails.
            Some(Err(failure)) => {
                self.events.clear();
                self.handle_failure(failure)
            }
            None => return Next::Continue,
        };
        match self.commit_removals().await {
            Ok(()) => next,
            Err(error) => self.report_queue_failure(&error),
        }
    }

    async fn finish(&mut self) {
        if let Err(error) = self.commit_removals().await {
            self.report_queue_failure(&error);
        }
    }
}

impl WebhookWorker {
    pub(super) fn new(parts: Shared<Parts>, name: String, webhook: Arc<ConfiguredWebhook>) -> Self {
        let added = parts.events.webhooks().subscribe();
        Self {
            parts,
            name,
            webhook,
            added,
            client: None,
            events: VecDeque::new(),
            delivered: Vec::new(),
            unreadable: Vec::new(),
            last_commit: Instant::now(),
            failure_log_limit: FailureLogLimit::default(),
            has_queue_failed: false,
        }
    }

    /// Reports the first failure of the queue in a row. The worker reads the queue again later.
    fn report_queue_failure(&mut self, error: &GatewayError) -> Next {
        self.events.clear();
        if !std::mem::replace(&mut self.has_queue_failed, true) {
            tracing::warn!(webhook = self.name, %error, "The queue of a webhook could not be read or written; the gateway retries.");
        }
        Next::retry_after(STORE_RETRY_DELAY, Arc::clone(&self.webhook.wake))
    }

    /// Reads the first events of the queue. Returns what to do if there are none.
    async fn read_events(&mut self) -> Result<Next, GatewayError> {
        self.commit_removals().await?;
        let QueuePage { events, unreadable, totals } = self.read_page().await?;
        if !unreadable.is_empty() {
            tracing::error!(
                webhook = self.name,
                count = unreadable.len(),
                "Events for a webhook could not be read; they count as dropped."
            );
            self.unreadable = unreadable;
        }
        if events.is_empty() && self.unreadable.is_empty() && totals.missed == 0 {
            // If the queue has later events, they were added after this page was read, and end the wait.
            let mut added = self.added.clone();
            return Ok(Next::wait_for(async move {
                // An error means that the bus is gone, which this worker prevents.
                let _ = added.changed().await;
            }));
        }
        if events.is_empty() {
            // Stores the event about the dropped ones.
            self.remove_events().await?;
        }
        self.events = events.into();
        self.last_commit = Instant::now();
        Ok(Next::Continue)
    }

    /// Reads the first events. A transaction that changes nothing returns once what it has read is synced, so that no
    /// event is sent whose commit a power cut could still undo.
    async fn read_page(&self) -> Result<QueuePage, GatewayError> {
        let name = self.name.clone();
        let transaction = self.parts.run_transaction(move |queues, store| {
            let until = queues.store_pending(store)?;
            let (page, _) = store.transact::<_, Error>(|transaction| {
                read_queue_page(transaction, &name, until, EVENTS_PER_PAGE)
            })?;
            Ok(page)
        });
        transaction.await
    }

    /// Commits which events were delivered, if there are any.
    async fn commit_removals(&mut self) -> Result<(), GatewayError> {
        if self.delivered.is_empty() && self.unreadable.is_empty() {
            return Ok(());
        }
        self.remove_events().await
    }

    /// Removes what was delivered from the queue, and stores the event about dropped ones if it is due.
    async fn remove_events(&mut self) -> Result<(), GatewayError> {
        let name = self.name.clone();
        let (delivered, unreadable) = (self.delivered.clone(), self.unreadable.clone());
        let transaction = self.parts.run_transaction(move |queues, store| {
            let now = time::now_rfc3339();
            queues.remove_events(store, &name, &delivered, &unreadable, &now)
        });
        transaction.await?;
        self.delivered.clear();
        self.unreadable.clear();
        Ok(())
    }

    fn record_success(&mut self, number: u64) {
        self.delivered.push(number);
        self.webhook.state.lock().record_success();
        if self.failure_log_limit.reset_after_success() {
            tracing::info!(webhook = self.name, "A webhook accepts events again.");
        }
    }

    /// Records and reports a failure.
    fn handle_failure(&mut self, SendFailure { failure, is_gone }: SendFailure) -> Next {
        let (class, cause) = (failure.class, failure.cause.clone());
        let (failures, delay) = {
            let mut state = self.webhook.state.lock();
            if is_gone {
                state.disable();
            }
            state.record_failure(failure, &RetryRule::of_webhooks(self.parts.timings))
        };
        if is_gone {
            tracing::warn!(
                webhook = self.name,
                cause,
                "A webhook was disabled until a test of it succeeds or the gateway starts again."
            );
            return self.wait_until_enabled();
        }
        if self.failure_log_limit.should_log(class, Instant::now()) {
            tracing::warn!(
                webhook = self.name,
                attempts = failures,
                cause,
                "Sending an event to a webhook failed; the gateway retries it."
            );
        }
        Next::retry_after(delay, Arc::clone(&self.webhook.wake))
    }

    /// Sends nothing until a test succeeds or the gateway starts again.
    fn wait_until_enabled(&self) -> Next {
        let (name, webhook) = (self.name.clone(), Arc::clone(&self.webhook));
        Next::wait_for(async move {
            webhook.wake.notified().await;
            webhook.state.lock().enable();
            tracing::info!(webhook = name, "A webhook was enabled again by a test.");
        })
    }
}
