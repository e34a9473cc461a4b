//! One listener: its position, and the kinds of events that it asked for.
use super::EventBus;
use super::event::{Audience, Event};
use crate::permits::Permit;
use penstock_resources::event::EventKind;
use serde_json::json;
use std::fmt;
use tokio::sync::watch;

/// The maximum bytes of events in one batch; a larger event is a batch of its own.
const MAX_BATCH_BYTES: usize = 32 << 10;

/// One listener. It holds no events, so a slow listener costs no memory. It is notified if it missed events.
#[derive(Debug)]
pub struct Listener {
    events: EventBus,
    newest: watch::Receiver<u64>,
    /// Every event up to this identifier was sent, or skipped because the listener did not ask for its kind.
    after: u64,
    selection: Selection,
    _permit: Permit<String>,
}

/// The events that a listener gets.
struct Selection {
    /// The kinds that it asked for.
    kinds: Vec<EventKind>,
    /// Whether it is in the audience of an event that has one.
    is_member: Box<dyn Fn(&Audience) -> bool + Send + Sync>,
}

impl Selection {
    /// Returns whether the listener gets the event.
    fn includes(&self, event: &Event) -> bool {
        self.kinds.contains(&event.kind)
            && event.audience.as_ref().is_none_or(|audience| (self.is_member)(audience))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("kinds", &self.kinds).finish_non_exhaustive()
    }
}

impl EventBus {
    /// Creates a listener for new events, or for the events after the identifier `after`. It gets no event with an
    /// audience. Returns `None` when the maximum number of listeners, or that of this account, is reached.
    pub fn listen(
        &self,
        account: &str,
        after: Option<u64>,
        kinds: &[EventKind],
    ) -> Option<Listener> {
        self.listen_as(account, after, kinds, |_| false)
    }

    /// Creates a listener as [`Self::listen`], which gets the events whose audience `is_member` of.
    pub fn listen_as(
        &self,
        account: &str,
        after: Option<u64>,
        kinds: &[EventKind],
        is_member: impl Fn(&Audience) -> bool + Send + Sync + 'static,
    ) -> Option<Listener> {
        let permit = self.inner.listener_permits.try_acquire(account, 1)?;
        let newest = self.inner.newest.subscribe();
        let after = after.unwrap_or_else(|| self.lock_ring().newest_id());
        let selection = Selection { kinds: kinds.to_vec(), is_member: Box::new(is_member) };
        Some(Listener::new(self.clone(), newest, after, selection, permit))
    }
}

impl Listener {
    fn new(
        events: EventBus,
        newest: watch::Receiver<u64>,
        after: u64,
        selection: Selection,
        permit: Permit<String>,
    ) -> Self {
        Self { events, newest, after, selection, _permit: permit }
    }

    /// Returns the identifier after which the listener continues.
    pub fn last_id(&self) -> u64 {
        self.after
    }

    /// Returns an event with only the listener's position, from which its client can continue.
    pub fn position_event(&self) -> Event {
        self.events.build_event(self.after, None, EventKind::Position, "events", &json!({}))
    }

    /// Waits for the next events. Cancel safe.
    pub async fn next(&mut self) -> Vec<Event> {
        loop {
            // Mark this before reading the ring, so that an event published in between ends the wait.
            self.newest.mark_unchanged();
            let events = self.take_available();
            if !events.is_empty() {
                return events;
            }
            if self.newest.changed().await.is_err() {
                // Unreachable: this listener holds the bus, and with it the sender.
                std::future::pending::<()>().await;
            }
        }
    }

    fn take_available(&mut self) -> Vec<Event> {
        let ring = self.events.lock_ring();
        let Some(missed) = ring.missed_after(self.after) else {
            let (events, seen) = ring.events_after(
                self.after,
                &|event| self.selection.includes(event),
                MAX_BATCH_BYTES,
            );
            self.after = seen;
            return events;
        };
        drop(ring);
        let data = json!({
            "lastSeen": self.after.to_string(),
            "count": missed.count,
            "message": "events were dropped before this client read them; read the resources again",
        });
        self.after = missed.up_to;
        vec![self.events.build_event(missed.up_to, None, EventKind::Lost, "events", &data)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::EventOptions;
    use super::*;
    use futures_util::FutureExt;
    use serde_json::Value;

    fn bus_with_depth(depth: usize) -> EventBus {
        EventBus::new(EventOptions { epoch: 7, depth, listeners: 2, ..EventOptions::default() })
    }

    fn parse_event(event: &Event) -> Value {
        serde_json::from_str(&event.json).unwrap()
    }

    #[tokio::test]
    async fn an_event_is_a_cloud_event_and_wakes_a_waiting_listener() {
        let bus = bus_with_depth(10);
        let mut listener = bus.listen("a", None, &[EventKind::Export]).unwrap();
        assert!(listener.next().now_or_never().is_none());
        let publisher = bus.clone();
        let publishing = tokio::spawn(async move {
            publisher.publish(EventKind::Target, "bucket", &json!({}));
            publisher.publish(EventKind::Export, "e-1", &json!({"line": "a\nb"}));
        });
        let events = listener.next().await;
        publishing.await.unwrap();
        assert_eq!(events.len(), 1);
        let event = parse_event(&events[0]);
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["id"], ((7_u64 << 32) + 2).to_string());
        assert_eq!(event["type"], "penstock.export.changed");
        assert_eq!((&event["subject"], &event["data"]["line"]), (&json!("e-1"), &json!("a\nb")));
        assert!(!events[0].json.contains('\n'));
        assert_eq!(listener.last_id(), events[0].id);
    }

    #[tokio::test]
    async fn a_listener_that_was_away_continues_or_learns_what_it_missed() {
        let bus = bus_with_depth(3);
        let seen = bus.listen("a", None, &[]).unwrap().last_id();
        for n in 0..5 {
            bus.publish(EventKind::Ingestion, "i", &n);
        }
        let mut near = bus.listen("a", Some(seen + 3), &EventKind::ALL).unwrap();
        assert_eq!(near.next().await.len(), 2);
        let mut far = bus.listen("b", Some(seen + 1), &[EventKind::Export]).unwrap();
        let lost = far.next().await;
        assert_eq!((lost.len(), lost[0].kind, lost[0].id), (1, EventKind::Lost, seen + 2));
        let data = &parse_event(&lost[0])["data"];
        assert_eq!(
            (&data["count"], &data["lastSeen"]),
            (&json!(1), &json!((seen + 1).to_string()))
        );
        assert!(far.next().now_or_never().is_none(), "a loss is reported once");
        drop(near);
        let mut of_another_run = bus.listen("a", Some(5), &EventKind::ALL).unwrap();
        assert_eq!(parse_event(&of_another_run.next().await[0])["data"]["count"], Value::Null);
        assert_eq!(of_another_run.next().await.len(), 3);
    }

    #[test]
    fn concurrent_listeners_are_limited() {
        let bus = bus_with_depth(3);
        let (_first, second) =
            (bus.listen("a", None, &[]).unwrap(), bus.listen("b", None, &[]).unwrap());
        assert!(bus.listen("c", None, &[]).is_none());
        drop(second);
        // One account has half of them.
        assert!(bus.listen("a", None, &[]).is_none());
        assert!(bus.listen("c", None, &[]).is_some());
    }
}
