//! One listener: where it is, and what it asked for.
use super::{Event, Events, Kind};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Bytes of events that a listener takes at once, but for one larger event.
const BATCH: usize = 32 << 10;

/// One listener. It holds no events: one that is slow costs no memory, and is told what it missed.
#[derive(Debug)]
pub struct Listener {
    events: Events,
    newest: watch::Receiver<u64>,
    /// Everything up to this one was told, or not asked for.
    after: u64,
    kinds: Vec<Kind>,
    _permit: OwnedSemaphorePermit,
}

impl Listener {
    pub(super) fn new(
        events: Events,
        newest: watch::Receiver<u64>,
        after: u64,
        kinds: Vec<Kind>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self { events, newest, after, kinds, _permit: permit }
    }

    /// The identifier after which it goes on.
    pub fn at(&self) -> u64 {
        self.after
    }

    /// Returns an event that says only where the listener is, so that its client can go on from there.
    pub fn position(&self) -> Event {
        self.events.event(self.after, None, Kind::Position, "events", &json!({}))
    }

    /// Waits for the next events. It may be left off at any await.
    pub async fn next(&mut self) -> Vec<Event> {
        loop {
            // Marked before looking: what comes in between ends the wait.
            self.newest.mark_unchanged();
            let events = self.take();
            if !events.is_empty() {
                return events;
            }
            if self.newest.changed().await.is_err() {
                // The bus lives at least as long as this, which holds it.
                std::future::pending::<()>().await;
            }
        }
    }

    fn take(&mut self) -> Vec<Event> {
        let ring = self.events.ring();
        let Some(missed) = ring.missed(self.after) else {
            let (events, seen) = ring.after(self.after, &self.kinds, BATCH);
            self.after = seen;
            return events;
        };
        drop(ring);
        let data = json!({
            "lastSeen": self.after.to_string(),
            "count": missed.count,
            "message": "events are gone that were not told here; read the resources again",
        });
        self.after = missed.up_to;
        vec![self.events.event(missed.up_to, None, Kind::Lost, "events", &data)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;
    use futures_util::FutureExt;
    use serde_json::Value;

    fn bus(depth: usize) -> Events {
        Events::new(Options { epoch: 7, depth, listeners: 2, ..Options::default() })
    }

    fn value(event: &Event) -> Value {
        serde_json::from_str(&event.json).unwrap()
    }

    #[tokio::test]
    async fn an_event_is_a_cloud_event_and_wakes_who_waits() {
        let bus = bus(10);
        let mut listener = bus.listen(None, &[Kind::Export]).unwrap();
        assert!(listener.next().now_or_never().is_none());
        let publisher = bus.clone();
        let publishing = tokio::spawn(async move {
            publisher.publish(Kind::Target, "bucket", &json!({}));
            publisher.publish(Kind::Export, "e-1", &json!({"line": "a\nb"}));
        });
        let events = listener.next().await;
        publishing.await.unwrap();
        assert_eq!(events.len(), 1);
        let event = value(&events[0]);
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["id"], ((7_u64 << 32) + 2).to_string());
        assert_eq!(event["type"], "penstock.export.changed");
        assert_eq!((&event["subject"], &event["data"]["line"]), (&json!("e-1"), &json!("a\nb")));
        assert!(!events[0].json.contains('\n'));
        assert_eq!(listener.at(), events[0].id);
    }

    #[tokio::test]
    async fn who_was_away_goes_on_or_is_told_what_is_gone() {
        let bus = bus(3);
        let seen = bus.listen(None, &[]).unwrap().at();
        for n in 0..5 {
            bus.publish(Kind::Ingestion, "i", &n);
        }
        let mut near = bus.listen(Some(seen + 3), &Kind::ALL).unwrap();
        assert_eq!(near.next().await.len(), 2);
        let mut far = bus.listen(Some(seen + 1), &[Kind::Export]).unwrap();
        let lost = far.next().await;
        assert_eq!((lost.len(), lost[0].kind, lost[0].id), (1, Kind::Lost, seen + 2));
        let data = &value(&lost[0])["data"];
        assert_eq!(
            (&data["count"], &data["lastSeen"]),
            (&json!(1), &json!((seen + 1).to_string()))
        );
        assert!(far.next().now_or_never().is_none(), "it is told once");
        drop(near);
        let mut of_another_run = bus.listen(Some(5), &Kind::ALL).unwrap();
        assert_eq!(value(&of_another_run.next().await[0])["data"]["count"], Value::Null);
        assert_eq!(of_another_run.next().await.len(), 3);
    }

    #[test]
    fn only_so_many_listen_at_once() {
        let bus = bus(3);
        let (_first, second) = (bus.listen(None, &[]).unwrap(), bus.listen(None, &[]).unwrap());
        assert!(bus.listen(None, &[]).is_none());
        drop(second);
        assert!(bus.listen(None, &[]).is_some());
    }
}
