//! The events that wait in memory for their commit.
use penstock_resources::event::EventKind;
use std::collections::{BTreeMap, VecDeque};

/// The maximum number of events that wait in memory.
pub(super) const MAX_PENDING_EVENTS: usize = 1000;
/// The maximum bytes of these events.
pub(super) const MAX_PENDING_BYTES: usize = 1 << 20;

/// The events that wait for their commit, in order.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    pub(super) events: VecDeque<PendingEvent>,
    bytes: usize,
    /// The number of events of each kind that did not fit.
    pub(super) dropped: BTreeMap<EventKind, u64>,
}

/// An event that waits for its commit.
#[derive(Debug)]
pub(super) struct PendingEvent {
    pub(super) number: u64,
    pub(super) kind: EventKind,
    pub(super) json: String,
}

impl PendingEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.dropped.is_empty()
    }

    /// Adds an event, or counts it as dropped. After the first one that does not fit, none is added until the next
    /// commit, so that no queue gets a later event before it knows of the loss.
    pub(super) fn push(&mut self, event: PendingEvent) {
        let bytes = self.bytes.saturating_add(event.json.len());
        let fits = self.events.len() < MAX_PENDING_EVENTS && bytes <= MAX_PENDING_BYTES;
        if fits && self.dropped.is_empty() {
            self.bytes = bytes;
            self.events.push_back(event);
        } else {
            self.count_dropped(event.kind, 1);
        }
    }

    /// Puts back the events of a failed commit, before the ones that were added meanwhile.
    pub(super) fn restore(&mut self, earlier: Self) {
        let later = std::mem::replace(self, earlier);
        for event in later.events {
            self.push(event);
        }
        for (kind, count) in later.dropped {
            self.count_dropped(kind, count);
        }
    }

    fn count_dropped(&mut self, kind: EventKind, count: u64) {
        *self.dropped.entry(kind).or_default() += count;
    }
}
