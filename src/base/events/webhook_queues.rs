//! The queues of events for webhooks, in the store.
//!
//! An event about something that is committed is stored in the same commit ([`EventBus::store`](super::EventBus::store)).
//! Other events wait in memory until [`WebhookQueues::store_pending`] commits them, which follows within moments.
//!
//! Invariants:
//! - Numbers are assigned in the order of the events. An event can be committed after one with a higher number. So a
//!   reader first calls [`WebhookQueues::store_pending`], and then reads only up to the number that it returned. Of
//!   these events none is committed later.
//! - The numbers of events are even. The number before an event's is for the event of the type `penstock.events.lost`
//!   that reports the dropped ones before it.
//! - A queue at its limit takes no event until it is down to three quarters. Then `penstock.events.lost` is stored with
//!   their number, before the next event.
mod pending;
mod stored;

pub use stored::{QueuePage, QueueTotals, WaitingEvent, read_queue_page, read_queue_totals};

use super::event::{EventOrigin, new_event_id, render_event};
use parking_lot::{Mutex, MutexGuard};
use pending::{PendingEvent, PendingEvents};
use penstock_resources::event::EventKind;
use penstock_store::{Error, Store, Transaction};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use stored::{EVENTS, QUEUES, delete_some_events};
use tokio::sync::watch;

/// The webhooks and the limits of their queues.
#[derive(Debug, Clone, Default)]
pub struct WebhookQueueOptions {
    /// The webhooks.
    pub webhooks: Vec<WebhookSubscription>,
    /// `service.limits.webhooks.events`: the maximum number of events that wait for one webhook.
    pub max_events: u64,
    /// `service.limits.webhooks.bytes`: the maximum bytes of these events.
    pub max_bytes: u64,
}

/// The name of a webhook, and the events that it gets.
#[derive(Debug, Clone)]
pub struct WebhookSubscription {
    /// Its name.
    pub name: String,
    /// The kinds of events that it gets.
    pub kinds: Vec<EventKind>,
}

/// The queues of all webhooks.
#[derive(Debug)]
pub struct WebhookQueues {
    options: WebhookQueueOptions,
    source: String,
    /// The number of the newest event.
    newest_number: AtomicU64,
    pending: Mutex<PendingEvents>,
    /// Held while pending events are committed, so that another reader does not pass them.
    committing: Mutex<()>,
    /// Changes after each event for a webhook.
    added: watch::Sender<u64>,
}

impl WebhookQueues {
    pub(super) fn new(options: WebhookQueueOptions, source: String, epoch: u32) -> Self {
        Self {
            options,
            source,
            newest_number: AtomicU64::new(u64::from(epoch) << 32),
            pending: Mutex::default(),
            committing: Mutex::default(),
            added: watch::Sender::new(0),
        }
    }

    /// Continues after the numbers of the stored events, also if the epoch is not greater than theirs.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn continue_numbers(&self, store: &Store) -> Result<(), Error> {
        let read = store.read();
        for webhook in &self.options.webhooks {
            if let Some(last) = stored::read_last_number(&read, &webhook.name)? {
                self.newest_number.fetch_max(last.next_multiple_of(2), Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// Returns whether a webhook gets events of this kind.
    pub(super) fn wants(&self, kind: EventKind) -> bool {
        self.options.webhooks.iter().any(|webhook| webhook.kinds.contains(&kind))
    }

    /// Reports that an event may have been added.
    pub(super) fn report_added(&self, kind: EventKind) {
        if self.wants(kind) {
            self.added.send_modify(|count| *count += 1);
        }
    }

    /// Returns a receiver that changes after each event for a webhook.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.added.subscribe()
    }

    /// Adds an event to the queues in the commit of what it is about.
    pub(super) fn store_event(
        &self,
        transaction: &mut Transaction<'_>,
        kind: EventKind,
        json: &str,
    ) -> Result<(), Error> {
        let number = self.take_number();
        self.add_to_queues(transaction, number, kind, json)
    }

    /// Keeps an event in memory until its commit.
    pub(super) fn add_pending(&self, kind: EventKind, json: String) {
        let mut pending = self.lock_pending();
        // Under the lock, so that `store_pending` takes every event up to the number that it returns.
        let number = self.take_number();
        pending.push(PendingEvent { number, kind, json });
        drop(pending);
        self.report_added(kind);
    }

    /// Commits the events that wait in memory. Returns a number: every later reader of the store sees all events up to
    /// it. Blocking.
    ///
    /// # Errors
    /// The errors of the store. The events then stay in memory.
    pub fn store_pending(&self, store: &Store) -> Result<u64, Error> {
        let _committing = self.committing.lock();
        let mut pending = self.lock_pending();
        let newest = self.newest_number.load(Ordering::SeqCst);
        let taken = std::mem::take(&mut *pending);
        drop(pending);
        if taken.is_empty() {
            return Ok(newest);
        }
        let stored = store.transact::<_, Error>(|transaction| {
            for PendingEvent { number, kind, json } in &taken.events {
                self.add_to_queues(transaction, *number, *kind, json)?;
            }
            for (kind, count) in &taken.dropped {
                for name in self.list_names(*kind) {
                    let mut totals = read_queue_totals(transaction, name)?;
                    count_dropped(name, &mut totals, *count);
                    QUEUES.put(transaction, name, &totals)?;
                }
            }
            Ok(())
        });
        stored.map(|_| newest).inspect_err(|_| self.lock_pending().restore(taken))
    }

    /// Removes delivered events from the queue of a webhook, and unreadable ones, which count as dropped. Stores the
    /// event about dropped ones if it is due. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn remove_events(
        &self,
        store: &Store,
        name: &str,
        delivered: &[u64],
        unreadable: &[u64],
        now: &str,
    ) -> Result<(), Error> {
        store.transact::<_, Error>(|transaction| {
            let mut totals = read_queue_totals(transaction, name)?;
            for number in delivered {
                if take_event(transaction, name, *number, &mut totals)? {
                    totals.delivered += 1;
                    totals.last_delivery = Some(now.to_owned());
                }
            }
            for number in unreadable {
                if take_event(transaction, name, *number, &mut totals)? {
                    totals.count_dropped(1);
                }
            }
            if totals.missed > 0 {
                let number = self.take_number();
                self.store_loss_if_due(transaction, name, number, &mut totals)?;
            }
            QUEUES.put(transaction, name, &totals)
        })?;
        Ok(())
    }

    /// Deletes all waiting events, and counts them as dropped. So each webhook gets an event with their number. Returns
    /// the number of events. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn drop_waiting_events(&self, store: &Store) -> Result<usize, Error> {
        let mut dropped = 0;
        for webhook in &self.options.webhooks {
            loop {
                let (count, _) = store.transact::<_, Error>(|transaction| {
                    let mut totals = read_queue_totals(transaction, &webhook.name)?;
                    let deleted = delete_some_events(transaction, &webhook.name)?;
                    for bytes in &deleted {
                        totals.remove(*bytes);
                    }
                    totals.count_dropped(deleted.len() as u64);
                    if !deleted.is_empty() {
                        QUEUES.put(transaction, &webhook.name, &totals)?;
                    }
                    Ok(deleted.len())
                })?;
                dropped += count;
                if count == 0 {
                    break;
                }
            }
        }
        Ok(dropped)
    }

    /// Deletes the queues of webhooks that are no longer configured. Returns each name with the number of events that
    /// waited. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn delete_removed_queues(&self, store: &Store) -> Result<Vec<(String, u64)>, Error> {
        // Not in the head of the loop: a reader that stays open would block the commits below.
        let queues = QUEUES.scan().read_all(&store.read())?;
        let mut deleted = Vec::new();
        for row in queues {
            let name = row.key()?;
            if self.options.webhooks.iter().any(|webhook| webhook.name == name) {
                continue;
            }
            let mut has_more = true;
            while has_more {
                (has_more, _) = store.transact::<_, Error>(|transaction| {
                    let found = delete_some_events(transaction, &name)?;
                    if found.is_empty() {
                        row.delete(transaction)?;
                    }
                    Ok(!found.is_empty())
                })?;
            }
            deleted.push((name, row.value().unwrap_or_default().waiting));
        }
        Ok(deleted)
    }

    fn add_to_queues(
        &self,
        transaction: &mut Transaction<'_>,
        number: u64,
        kind: EventKind,
        json: &str,
    ) -> Result<(), Error> {
        for name in self.list_names(kind) {
            let key = (name, number);
            // After an error it can be unknown whether the commit exists. Then it is repeated.
            if EVENTS.contains(transaction, key)? {
                continue;
            }
            let mut totals = read_queue_totals(transaction, name)?;
            self.store_loss_if_due(transaction, name, number - 1, &mut totals)?;
            if totals.missed == 0 && self.has_capacity_for(&totals, json) {
                totals.add(json.len());
                EVENTS.put(transaction, key, json.as_bytes())?;
            } else {
                count_dropped(name, &mut totals, 1);
            }
            QUEUES.put(transaction, name, &totals)?;
        }
        Ok(())
    }

    /// Stores the event about dropped ones under this number, once the queue takes events again.
    fn store_loss_if_due(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        number: u64,
        totals: &mut QueueTotals,
    ) -> Result<(), Error> {
        if totals.missed == 0 || !self.has_capacity_again(totals) {
            return Ok(());
        }
        let data = json!({
            "count": totals.missed,
            "message": "events for this webhook were dropped; read the resources again",
        });
        let id = new_event_id();
        let origin = EventOrigin { source: &self.source, trace: None };
        let json = render_event(&id, origin, EventKind::Lost, "events", &data);
        totals.missed = 0;
        totals.add(json.len());
        EVENTS.put(transaction, (name, number), json.as_bytes())
    }

    /// Returns the names of the webhooks that get events of this kind.
    fn list_names(&self, kind: EventKind) -> impl Iterator<Item = &str> {
        let webhooks = self.options.webhooks.iter();
        webhooks.filter(move |one| one.kinds.contains(&kind)).map(|one| one.name.as_str())
    }

    fn has_capacity_for(&self, totals: &QueueTotals, json: &str) -> bool {
        totals.waiting < self.options.max_events
            && totals.bytes.saturating_add(json.len() as u64) <= self.options.max_bytes
    }

    /// Returns whether a queue that was full takes events again.
    fn has_capacity_again(&self, totals: &QueueTotals) -> bool {
        let is_low = |value: u64, max: u64| value <= max / 4 * 3;
        is_low(totals.waiting, self.options.max_events)
            && is_low(totals.bytes, self.options.max_bytes)
    }

    /// Returns the next even number.
    fn take_number(&self) -> u64 {
        self.newest_number.fetch_add(2, Ordering::SeqCst) + 2
    }

    fn lock_pending(&self) -> MutexGuard<'_, PendingEvents> {
        self.pending.lock()
    }
}

/// Counts dropped events, and logs the first one since the last event about dropped ones.
fn count_dropped(name: &str, totals: &mut QueueTotals, count: u64) {
    if totals.missed == 0 {
        tracing::warn!(
            webhook = name,
            waiting = totals.waiting,
            bytes = totals.bytes,
            "Events for a webhook do not fit into its queue; they are dropped until three quarters of it are left."
        );
    }
    totals.count_dropped(count);
}

/// Deletes an event from a queue. Returns whether the queue had it.
fn take_event(
    transaction: &mut Transaction<'_>,
    name: &str,
    number: u64,
    totals: &mut QueueTotals,
) -> Result<bool, Error> {
    let key = (name, number);
    let Some(json) = EVENTS.get(transaction, key)? else { return Ok(false) };
    EVENTS.delete(transaction, key)?;
    totals.remove(json.len());
    Ok(true)
}

#[cfg(test)]
mod tests;
