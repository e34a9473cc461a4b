//! The newest events, bounded in number and in bytes.
use super::{Event, Kind};
use std::collections::VecDeque;

/// Bytes of all events kept, whatever `service.events.depth` allows.
const MOST_BYTES: usize = 4 << 20;

/// The newest events, whose identifiers follow each other without a gap.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    /// The identifier of the last event that is gone, or the one before the first.
    gone: u64,
    /// The identifier before the first event of all.
    before: u64,
    depth: usize,
}

/// What a listener has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed {
    /// How many events; `None` when that is not known, since the gateway has been started anew.
    pub(super) count: Option<u64>,
    /// It goes on after this one.
    pub(super) up_to: u64,
}

impl Ring {
    pub(super) fn new(before: u64, depth: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, gone: before, before, depth }
    }

    /// The identifier of the newest event.
    pub(super) fn newest(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    /// Takes up the event whose identifier is that after the newest.
    pub(super) fn push(&mut self, event: Event) {
        debug_assert_eq!(event.id, self.newest() + 1, "identifiers follow each other");
        self.bytes += event.json.len();
        self.events.push_back(event);
        while (self.events.len() > self.depth || self.bytes > MOST_BYTES)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.json.len();
            self.gone = oldest.id;
        }
    }

    /// What somebody who has seen everything up to `after` has missed, if anything is gone.
    pub(super) fn missed(&self, after: u64) -> Option<Missed> {
        if (self.gone..=self.newest()).contains(&after) {
            return None;
        }
        // An identifier of the future is another gateway's, or of one whose store was lost.
        let count = (self.before..self.gone).contains(&after).then(|| self.gone - after);
        Some(Missed { count, up_to: self.gone })
    }

    /// Events of these kinds after this one, which is not missed, until they have so many bytes; and
    /// the identifier up to which it was looked.
    pub(super) fn after(&self, after: u64, kinds: &[Kind], bytes: usize) -> (Vec<Event>, u64) {
        let (mut found, mut taken, mut seen) = (Vec::new(), 0, after);
        let skipped = usize::try_from(after.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        for event in self.events.iter().skip(skipped) {
            if taken >= bytes {
                break;
            }
            if kinds.contains(&event.kind) {
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

    fn filled(events: usize, bytes: usize) -> Ring {
        let mut ring = Ring::new(100, 3);
        for _ in 0..events {
            let kind = if ring.newest().is_multiple_of(2) { Kind::Export } else { Kind::Target };
            ring.push(Event { id: ring.newest() + 1, kind, json: "x".repeat(bytes).into() });
        }
        ring
    }

    fn ids(ring: &Ring, after: u64, kinds: &[Kind]) -> (Vec<u64>, u64) {
        let (events, seen) = ring.after(after, kinds, 1000);
        (events.iter().map(|event| event.id).collect(), seen)
    }

    #[test]
    fn it_keeps_the_newest_and_says_what_is_gone() {
        let ring = filled(5, 1);
        assert_eq!(ring.newest(), 105);
        assert_eq!(ids(&ring, 102, &Kind::ALL), (vec![103, 104, 105], 105));
        assert_eq!(ids(&ring, 104, &Kind::ALL), (vec![105], 105));
        assert_eq!(ids(&ring, 105, &Kind::ALL), (vec![], 105));
        assert_eq!(ids(&ring, 102, &[Kind::Target]), (vec![104], 105));
        for seen in 102..=105 {
            assert_eq!(ring.missed(seen), None);
        }
        assert_eq!(ring.missed(100), Some(Missed { count: Some(2), up_to: 102 }));
        for other in [0, 99, 106, u64::MAX] {
            assert_eq!(ring.missed(other), Some(Missed { count: None, up_to: 102 }), "{other}");
        }
    }

    #[test]
    fn bytes_are_bounded_too() {
        let ring = filled(3, MOST_BYTES / 2);
        assert_eq!((ring.events.len(), ring.gone), (2, 101));
        assert_eq!(filled(1, MOST_BYTES + 1).missed(100).unwrap().up_to, 101);
        let (some, seen) = ring.after(101, &Kind::ALL, 1);
        assert_eq!((some.len(), seen), (1, 102));
    }
}
