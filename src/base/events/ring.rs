//! A ring of the newest events, limited in number and in bytes.
use super::event::Event;
use std::collections::VecDeque;

/// The maximum bytes of all events kept, whatever `service.events.depth` allows.
const MAX_TOTAL_BYTES: usize = 4 << 20;

/// The newest events. Their identifiers have no gaps.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    /// The identifier of the last dropped event, or the one before the first event.
    last_dropped_id: u64,
    /// The identifier before the first event of this process.
    start_id: u64,
    depth: usize,
}

/// The events that a listener has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissedEvents {
    /// The number of events; `None` if unknown because the gateway has restarted.
    pub(super) count: Option<u64>,
    /// The identifier after which the listener continues.
    pub(super) up_to: u64,
}

impl Ring {
    pub(super) fn new(start_id: u64, depth: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, last_dropped_id: start_id, start_id, depth }
    }

    /// Returns the identifier of the newest event.
    pub(super) fn newest_id(&self) -> u64 {
        self.last_dropped_id + self.events.len() as u64
    }

    /// Adds an event, whose identifier must follow that of the newest, and drops the oldest ones over the limits.
    pub(super) fn push(&mut self, event: Event) {
        debug_assert_eq!(event.id, self.newest_id() + 1, "identifiers follow each other");
        self.bytes += event.json.len();
        self.events.push_back(event);
        while (self.events.len() > self.depth || self.bytes > MAX_TOTAL_BYTES)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.json.len();
            self.last_dropped_id = oldest.id;
        }
    }

    /// Returns what a listener that has seen everything up to `after` has missed, if any events were dropped.
    pub(super) fn missed_after(&self, after: u64) -> Option<MissedEvents> {
        if (self.last_dropped_id..=self.newest_id()).contains(&after) {
            return None;
        }
        // An identifier in the future comes from another gateway, or from before this gateway lost its store.
        let count = (self.start_id..self.last_dropped_id)
            .contains(&after)
            .then(|| self.last_dropped_id - after);
        Some(MissedEvents { count, up_to: self.last_dropped_id })
    }

    /// Returns the events after `after` that are wanted, until they reach `bytes`, and the identifier of the last event
    /// that was looked at. No event after `after` may have been dropped.
    pub(super) fn events_after(
        &self,
        after: u64,
        is_wanted: &dyn Fn(&Event) -> bool,
        bytes: usize,
    ) -> (Vec<Event>, u64) {
        let (mut found, mut taken, mut seen) = (Vec::new(), 0, after);
        let skipped =
            usize::try_from(after.saturating_sub(self.last_dropped_id)).unwrap_or(usize::MAX);
        for event in self.events.iter().skip(skipped) {
            if taken >= bytes {
                break;
            }
            if is_wanted(event) {
                taken += event.json.len();
                found.push(event.clone());
            }
            seen = event.id;
        }
        (found, seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_resources::event::EventKind;

    fn filled_ring(events: usize, bytes: usize) -> Ring {
        let mut ring = Ring::new(100, 3);
        for _ in 0..events {
            let kind = if ring.newest_id().is_multiple_of(2) {
                EventKind::Export
            } else {
                EventKind::Target
            };
            let json = "x".repeat(bytes).into();
            ring.push(Event { id: ring.newest_id() + 1, kind, json, audience: None });
        }
        ring
    }

    fn ids_after(ring: &Ring, after: u64, kinds: &[EventKind]) -> (Vec<u64>, u64) {
        let (events, seen) = ring.events_after(after, &|event| kinds.contains(&event.kind), 1000);
        (events.iter().map(|event| event.id).collect(), seen)
    }

    #[test]
    fn the_newest_events_are_kept_and_dropped_ones_are_counted() {
        let ring = filled_ring(5, 1);
        assert_eq!(ring.newest_id(), 105);
        assert_eq!(ids_after(&ring, 102, &EventKind::ALL), (vec![103, 104, 105], 105));
        assert_eq!(ids_after(&ring, 104, &EventKind::ALL), (vec![105], 105));
        assert_eq!(ids_after(&ring, 105, &EventKind::ALL), (vec![], 105));
        assert_eq!(ids_after(&ring, 102, &[EventKind::Target]), (vec![104], 105));
        for seen in 102..=105 {
            assert_eq!(ring.missed_after(seen), None);
        }
        assert_eq!(ring.missed_after(100), Some(MissedEvents { count: Some(2), up_to: 102 }));
        for other in [0, 99, 106, u64::MAX] {
            assert_eq!(
                ring.missed_after(other),
                Some(MissedEvents { count: None, up_to: 102 }),
                "{other}"
            );
        }
    }

    #[test]
    fn bytes_are_limited_too() {
        let ring = filled_ring(3, MAX_TOTAL_BYTES / 2);
        assert_eq!((ring.events.len(), ring.last_dropped_id), (2, 101));
        assert_eq!(filled_ring(1, MAX_TOTAL_BYTES + 1).missed_after(100).unwrap().up_to, 101);
        let (some, seen) = ring.events_after(101, &|_| true, 1);
        assert_eq!((some.len(), seen), (1, 102));
    }
}
