//! Delivers the queue of one webhook, in order.
use super::client::{SendFailure, WebhookClient};
use super::{ConfiguredWebhook, Parts};
use crate::backoff::FailureLogLimit;
use crate::cause::DeliveryFailure;
use crate::deliver::SHUTDOWN_GRACE;
use penstock_base::error::GatewayError;
use penstock_base::events::webhook_queues::{QueuePage, WaitingEvent, read_queue_page};
use penstock_base::shared::Shared;
use penstock_base::time;
use penstock_resources::export::Cause;
use penstock_store::Error;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The number of events that are read at a time.
const EVENTS_PER_PAGE: usize = 32;
/// The maximum time between a delivery and its commit. A crash in between repeats the delivery.
const MAX_COMMIT_DELAY: Duration = Duration::from_secs(1);
/// The maximum delay while the clocks differ. That of the gateway is often set soon after the start.
const MAX_CLOCK_DELAY: Duration = Duration::from_secs(30);

/// Delivers the events of one webhook.
pub(super) struct WebhookWorker {
    parts: Shared<Parts>,
    name: String,
    stop: watch::Receiver<bool>,
    /// Changes after each event for a webhook.
    added: watch::Receiver<u64>,
    /// The open client. It is opened again after each failure, so that a changed certificate takes effect.
    client: Option<WebhookClient>,
    /// The numbers of delivered events that are still in the queue.
    delivered: Vec<u64>,
    /// The numbers of documents in the queue that are no events.
    unreadable: Vec<u64>,
    failure_log_limit: FailureLogLimit,
    /// Whether the queue could not be read or written last time. Then this is in the log.
    has_queue_failed: bool,
}

/// What the worker does next.
enum Next {
    /// Reads the queue again.
    Continue,
    /// Waits for further events.
    WaitForEvents,
    /// Waits, or until an operator asks for another attempt.
    Wait(Duration),
    /// Sends nothing until a test succeeds or the gateway starts again.
    Disabled,
}

impl WebhookWorker {
    pub(super) fn new(parts: Shared<Parts>, name: String, stop: watch::Receiver<bool>) -> Self {
        let added = parts.exporter.options.events.webhooks().subscribe();
        Self {
            parts,
            name,
            stop,
            added,
            client: None,
            delivered: Vec::new(),
            unreadable: Vec::new(),
            failure_log_limit: FailureLogLimit::default(),
            has_queue_failed: false,
        }
    }

    /// Delivers until the gateway stops.
    pub(super) async fn deliver_events(mut self) {
        let mut stop = self.stop.clone();
        while !*stop.borrow() {
            // Before the queue is read, so that an event that is added meanwhile ends the wait.
            self.added.mark_unchanged();
            let delivered = self.deliver_page().await;
            let next = self.check_queue(delivered);
            let Some(webhook) = self.parts.webhooks.get(&self.name) else { return };
            let stopped = stop.wait_for(|stop| *stop);
            match next {
                Next::Continue => {}
                Next::WaitForEvents => {
                    tokio::select! {
                        // An error means that the bus is gone, which this worker prevents.
                        _ = self.added.changed() => {}
                        _ = stopped => {}
                    }
                }
                Next::Wait(delay) => {
                    tokio::select! {
                        () = tokio::time::sleep(delay) => {}
                        () = webhook.wake.notified() => {}
                        _ = stopped => {}
                    }
                }
                Next::Disabled => {
                    tokio::select! {
                        () = webhook.wake.notified() => {
                            webhook.lock_state().enable();
                            tracing::info!(webhook = self.name, "A webhook was enabled again by a test.");
                        }
                        _ = stopped => {}
                    }
                }
            }
        }
    }

    /// Reports the first error of the queue in a row, and returns what to do next.
    fn check_queue(&mut self, delivered: Result<Next, GatewayError>) -> Next {
        match delivered {
            Ok(next) => {
                self.has_queue_failed = false;
                next
            }
            Err(error) => {
                if !std::mem::replace(&mut self.has_queue_failed, true) {
                    tracing::warn!(webhook = self.name, %error, "The queue of a webhook could not be read or written; the gateway retries.");
                }
                Next::Wait(super::STORE_RETRY_DELAY)
            }
        }
    }

    /// Delivers the first events of the queue.
    async fn deliver_page(&mut self) -> Result<Next, GatewayError> {
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
        if events.is_empty() && self.unreadable.is_empty() {
            if totals.missed == 0 {
                // If the queue has later events, they were added after this page was read, and end the wait.
                return Ok(Next::WaitForEvents);
            }
            // Stores the event about the dropped ones.
            self.remove_events().await?;
            return Ok(Next::Continue);
        }
        let mut last_commit = Instant::now();
        for event in events {
            let number = event.number;
            match self.send_unless_stopped(event).await {
                None => break,
                Some(Ok(())) => self.record_success(number),
                Some(Err(failure)) => {
                    // The failure counts, also if the commit fails.
                    let next = self.handle_failure(&failure);
                    self.commit_removals().await?;
                    return Ok(next);
                }
            }
            if last_commit.elapsed() > MAX_COMMIT_DELAY {
                self.commit_removals().await?;
                last_commit = Instant::now();
            }
        }
        self.commit_removals().await?;
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

    /// Sends an event. Returns `None` if the gateway stops and the receiver takes too long.
    async fn send_unless_stopped(
        &mut self,
        event: WaitingEvent,
    ) -> Option<Result<(), SendFailure>> {
        let mut stop = self.stop.clone();
        if *stop.borrow() {
            return None;
        }
        let grace_end = async {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(SHUTDOWN_GRACE).await;
        };
        tokio::select! {
            sent = self.send(event) => Some(sent),
            () = grace_end => None,
        }
    }

    async fn send(&mut self, event: WaitingEvent) -> Result<(), SendFailure> {
        let client = if let Some(client) = self.client.take() {
            client
        } else {
            let Some(webhook) = self.webhook() else { return Ok(()) };
            self.parts.open_client(&webhook.settings)?
        };
        client.send(&event.id, event.json).await?;
        // After a failure it is not kept.
        self.client = Some(client);
        Ok(())
    }

    fn record_success(&mut self, number: u64) {
        self.delivered.push(number);
        if let Some(webhook) = self.webhook() {
            webhook.lock_state().record_success();
        }
        if self.failure_log_limit.reset_after_success() {
            tracing::info!(webhook = self.name, "A webhook accepts events again.");
        }
    }

    /// Records and reports a failure.
    fn handle_failure(&mut self, SendFailure { failure, is_gone }: &SendFailure) -> Next {
        let timings = self.parts.exporter.options.timings;
        let DeliveryFailure { class, cause, retry_after, .. } = failure;
        let (failures, delay) = match self.parts.webhooks.get(&self.name) {
            Some(webhook) => {
                let mut state = webhook.lock_state();
                if *is_gone {
                    state.disable();
                }
                state.record_failure(failure, |failures| {
                    let delay = timings.next_delay(failure, failures);
                    let is_clock = *class == Cause::Clock;
                    let delay = if is_clock { delay.min(MAX_CLOCK_DELAY) } else { delay };
                    delay.max(retry_after.unwrap_or_default())
                })
            }
            None => return Next::Disabled,
        };
        if *is_gone {
            tracing::warn!(
                webhook = self.name,
                cause,
                "A webhook was disabled until a test of it succeeds or the gateway starts again."
            );
            return Next::Disabled;
        }
        if self.failure_log_limit.should_log(*class, Instant::now()) {
            tracing::warn!(
                webhook = self.name,
                attempts = failures,
                cause,
                "Sending an event to a webhook failed; the gateway retries it."
            );
        }
        Next::Wait(delay)
    }

    fn webhook(&self) -> Option<&ConfiguredWebhook> {
        self.parts.webhooks.get(&self.name)
    }
}
