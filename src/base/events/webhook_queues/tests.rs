use super::super::{EventBus, EventOptions};
use super::pending::{MAX_PENDING_BYTES, MAX_PENDING_EVENTS};
use super::*;
use penstock_store::Options;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;

fn open_store(dir: &Path) -> Store {
    Store::open(dir, Options::default(), &mut |_| {}).unwrap()
}

/// Opens a store in a folder of its own, and a bus with queues of this size.
fn open(max_events: u64, max_bytes: u64) -> (tempfile::TempDir, Store, EventBus) {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path());
    (dir, store, open_bus(1, max_events, max_bytes))
}

fn open_bus(epoch: u32, max_events: u64, max_bytes: u64) -> EventBus {
    let webhook = |name: &str, kinds: &[EventKind]| WebhookSubscription {
        name: name.to_owned(),
        kinds: kinds.to_vec(),
    };
    let webhooks = WebhookQueueOptions {
        webhooks: vec![
            webhook("all", &EventKind::FOR_WEBHOOKS),
            webhook("exports", &[EventKind::Export]),
        ],
        max_events,
        max_bytes,
    };
    EventBus::new(EventOptions { epoch, webhooks, ..EventOptions::default() })
}

fn store_event(store: &Store, bus: &EventBus, kind: EventKind, subject: &str) {
    store
        .transact::<_, Error>(|t| bus.store(t, None, kind, subject, &json!({"n": subject})))
        .unwrap();
}

fn read_events(store: &Store, name: &str, until: u64) -> Vec<WaitingEvent> {
    read_queue_page(&store.read(), name, until, 100).unwrap().events
}

fn read_totals(store: &Store, name: &str) -> QueueTotals {
    read_queue_totals(&store.read(), name).unwrap()
}

/// Removes delivered events.
fn remove(store: &Store, bus: &EventBus, name: &str, numbers: &[u64]) {
    bus.webhooks().remove_events(store, name, numbers, &[], "now").unwrap();
}

/// Returns type and subject of what waits.
fn list_waiting(store: &Store, name: &str) -> Vec<(String, String)> {
    let events = read_events(store, name, u64::MAX);
    let parsed = events.iter().map(|event| serde_json::from_str::<Value>(&event.json).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    parsed.map(|event| (text(&event["type"]), text(&event["subject"]))).collect()
}

fn list_subjects(store: &Store, name: &str) -> Vec<String> {
    list_waiting(store, name).into_iter().map(|(_, subject)| subject).collect()
}

#[test]
fn an_event_waits_for_each_webhook_that_wants_it_and_keeps_its_id() {
    let (_dir, store, bus) = open(100, 1 << 20);
    store_event(&store, &bus, EventKind::Ingestion, "i-1");
    store_event(&store, &bus, EventKind::Export, "e-1");
    bus.publish_unstored(None, EventKind::Target, "t-1", &json!({}));
    assert_eq!(list_waiting(&store, "all").len(), 2);
    bus.webhooks().store_pending(&store).unwrap();
    bus.webhooks().store_pending(&store).unwrap();
    let of = |kind: EventKind, subject: &str| (kind.name().to_owned(), subject.to_owned());
    let expected = [
        of(EventKind::Ingestion, "i-1"),
        of(EventKind::Export, "e-1"),
        of(EventKind::Target, "t-1"),
    ];
    assert_eq!(list_waiting(&store, "all"), expected);
    assert_eq!(list_waiting(&store, "exports"), [of(EventKind::Export, "e-1")]);
    let ids = || -> Vec<String> {
        read_events(&store, "all", u64::MAX).into_iter().map(|event| event.id).collect()
    };
    let before = ids();
    // After a restart the ids are the same, and later events follow.
    let again = open_bus(2, 100, 1 << 20);
    assert_eq!(ids(), before);
    store_event(&store, &again, EventKind::Export, "e-2");
    assert_eq!(list_waiting(&store, "all").last(), Some(&of(EventKind::Export, "e-2")));
}

#[test]
fn an_event_of_a_commit_never_passes_a_pending_one() {
    let (_dir, store, bus) = open(100, 1 << 20);
    bus.publish_unstored(None, EventKind::Export, "first", &json!({}));
    store_event(&store, &bus, EventKind::Export, "second");
    bus.webhooks().store_pending(&store).unwrap();
    assert_eq!(list_subjects(&store, "all"), ["first", "second"]);
}

#[test]
fn a_reader_leaves_events_that_a_pending_one_may_precede() {
    let (_dir, store, bus) = open(100, 1 << 20);
    let queues = bus.webhooks();
    let until = queues.store_pending(&store).unwrap();
    bus.publish_unstored(None, EventKind::Export, "first", &json!({}));
    store_event(&store, &bus, EventKind::Export, "second");
    // The second one is stored, and the first one still in memory.
    assert_eq!(read_events(&store, "all", until), []);
    let until = queues.store_pending(&store).unwrap();
    assert_eq!(read_events(&store, "all", until).len(), 2);
    assert_eq!(queues.store_pending(&store).unwrap(), until);
}

#[test]
fn concurrent_readers_see_every_event_in_order() {
    let (_dir, store, bus) = open(1 << 20, 1 << 30);
    let total = 100;
    let read_all = || {
        let mut numbers: Vec<u64> = Vec::new();
        while numbers.len() < 2 * total {
            let until = bus.webhooks().store_pending(&store).unwrap();
            let (events, _) = store
                .transact::<_, Error>(|t| Ok(read_queue_page(t, "all", until, 4 * total)?.events))
                .unwrap();
            let seen: Vec<u64> = events.iter().map(|event| event.number).collect();
            assert_eq!(seen.get(..numbers.len()), Some(&*numbers), "an event came later");
            numbers = seen;
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..total {
                store_event(&store, &bus, EventKind::Export, &n.to_string());
            }
        });
        scope.spawn(|| {
            for n in 0..total {
                bus.publish_unstored(None, EventKind::Export, &n.to_string(), &json!({}));
            }
        });
        scope.spawn(read_all);
        scope.spawn(read_all);
    });
}

#[test]
fn numbers_continue_after_the_stored_ones() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path());
    store_event(&store, &open_bus(7, 100, 1 << 20), EventKind::Export, "first");
    // The clock went back, and the epoch could not be stored.
    let bus = open_bus(6, 100, 1 << 20);
    bus.webhooks().continue_numbers(&store).unwrap();
    store_event(&store, &bus, EventKind::Export, "second");
    assert_eq!(list_subjects(&store, "exports"), ["first", "second"]);
}

#[test]
fn an_event_that_is_already_stored_is_not_counted_again() {
    let (_dir, store, bus) = open(100, 1 << 20);
    for _ in 0..2 {
        store
            .transact::<_, Error>(|t| bus.webhooks().add_to_queues(t, 4, EventKind::Export, "{}"))
            .unwrap();
    }
    assert_eq!(read_totals(&store, "exports").waiting, 1);
}

#[test]
fn an_aborted_commit_leaves_no_event() {
    let (dir, store, bus) = open(100, 1 << 20);
    let aborted = store.transact::<(), Error>(|t| {
        bus.store(t, None, EventKind::Export, "e", &json!({}))?;
        Err(Error::Io {
            action: "testing",
            path: dir.path().to_owned(),
            source: std::io::ErrorKind::Other.into(),
        })
    });
    assert!(aborted.is_err());
    assert_eq!(list_waiting(&store, "all"), []);
    assert_eq!(read_totals(&store, "all"), QueueTotals::default());
}

#[test]
fn a_full_queue_drops_later_events_and_says_so_at_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_store(dir.path());
    for (epoch, max_events, max_bytes) in [(1, 8, 1 << 20), (2, 100, 4000)] {
        let bus = open_bus(epoch, max_events, max_bytes);
        for n in 0..20 {
            store_event(&store, &bus, EventKind::Export, &n.to_string());
        }
        let QueueTotals { waiting: stored, missed, bytes, .. } = read_totals(&store, "exports");
        assert!(stored >= 3 && bytes <= max_bytes, "{stored} {bytes}");
        assert_eq!(missed, 20 - stored);
        let mut numbers: VecDeque<u64> =
            read_events(&store, "exports", u64::MAX).iter().map(|event| event.number).collect();
        // The queue takes events again once it is down to three quarters.
        let mut removed = 0;
        while read_totals(&store, "exports").missed > 0 {
            store_event(&store, &bus, EventKind::Export, "also dropped");
            let first = numbers.pop_front().unwrap();
            remove(&store, &bus, "exports", &[first]);
            removed += 1;
        }
        let totals = read_totals(&store, "exports");
        assert_eq!(totals.dropped, 20 - stored + removed);
        assert_eq!((totals.delivered, totals.waiting), (removed, stored - removed + 1));
        store_event(&store, &bus, EventKind::Export, "next");
        let waiting = read_events(&store, "exports", u64::MAX);
        let last: Vec<Value> = waiting
            .iter()
            .rev()
            .take(2)
            .map(|event| serde_json::from_str(&event.json).unwrap())
            .collect();
        assert_eq!(last[0]["subject"], "next");
        assert_eq!(last[1]["type"], "penstock.events.lost");
        assert_eq!(last[1]["data"]["count"], totals.dropped);
        let numbers: Vec<u64> = waiting.iter().map(|event| event.number).collect();
        remove(&store, &bus, "exports", &numbers);
        remove(&store, &bus, "exports", &numbers);
        let totals = read_totals(&store, "exports");
        assert_eq!((totals.waiting, totals.bytes), (0, 0));
        EventBus::default().webhooks().delete_removed_queues(&store).unwrap();
    }
}

#[test]
fn an_event_that_does_not_fit_leaves_the_place_to_the_next_ones() {
    let (_dir, store, bus) = open(100, 4000);
    store_event(&store, &bus, EventKind::Export, "first");
    store_event(&store, &bus, EventKind::Export, &"x".repeat(4000));
    assert_eq!(read_totals(&store, "exports").missed, 1);
    store_event(&store, &bus, EventKind::Export, "next");
    assert_eq!(list_subjects(&store, "exports"), ["first", "events", "next"]);
    let totals = read_totals(&store, "exports");
    assert_eq!((totals.waiting, totals.missed, totals.dropped), (3, 0, 1));
}

#[test]
fn all_waiting_events_can_be_dropped_and_the_webhook_gets_their_number() {
    let (_dir, store, bus) = open(100, 1 << 20);
    for n in 0..3 {
        store_event(&store, &bus, EventKind::Export, &n.to_string());
    }
    assert_eq!(bus.webhooks().drop_waiting_events(&store).unwrap(), 6);
    assert_eq!(list_waiting(&store, "exports"), []);
    remove(&store, &bus, "exports", &[]);
    let events = read_events(&store, "exports", u64::MAX);
    let lost: Value = serde_json::from_str(&events[0].json).unwrap();
    assert_eq!((events.len(), &lost["type"]), (1, &json!("penstock.events.lost")));
    assert_eq!(lost["data"]["count"], 3);
    let totals = read_totals(&store, "exports");
    assert_eq!((totals.waiting, totals.dropped, totals.delivered), (1, 3, 0));
}

#[test]
fn unreadable_documents_do_not_stop_a_queue() {
    let (_dir, store, bus) = open(100, 1 << 20);
    for json in ["no JSON", "{}"] {
        let number = bus.webhooks().take_number();
        store
            .transact::<_, Error>(|t| {
                bus.webhooks().add_to_queues(t, number, EventKind::Export, json)
            })
            .unwrap();
    }
    store_event(&store, &bus, EventKind::Export, "after them");
    let page = read_queue_page(&store.read(), "exports", u64::MAX, 100).unwrap();
    assert_eq!((page.events.len(), page.unreadable.len(), page.totals.waiting), (1, 2, 3));
    bus.webhooks().remove_events(&store, "exports", &[], &page.unreadable, "now").unwrap();
    let totals = read_totals(&store, "exports");
    assert_eq!((totals.dropped, totals.missed, totals.delivered), (2, 0, 0));
    assert_eq!(list_waiting(&store, "exports").len(), 2, "the event, and that about the others");
}

#[test]
fn a_page_ends_after_many_bytes() {
    let (_dir, store, bus) = open(100, 1 << 30);
    for _ in 0..5 {
        store_event(&store, &bus, EventKind::Export, &"x".repeat(50 << 10));
    }
    assert_eq!(read_events(&store, "exports", u64::MAX).len(), 3);
}

#[test]
fn the_queue_of_a_removed_webhook_is_deleted() {
    let (_dir, store, bus) = open(10_000, 1 << 20);
    for n in 0..3 {
        store_event(&store, &bus, EventKind::Ingestion, &n.to_string());
    }
    assert_eq!(bus.webhooks().delete_removed_queues(&store).unwrap(), []);
    let other = EventBus::default();
    let deleted = other.webhooks().delete_removed_queues(&store).unwrap();
    assert_eq!(deleted, [("all".to_owned(), 3)]);
    assert_eq!(list_waiting(&store, "all"), []);
    assert_eq!(other.webhooks().delete_removed_queues(&store).unwrap(), []);
}

#[test]
fn what_does_not_fit_into_memory_counts_as_dropped() {
    let (_dir, store, bus) = open(1 << 20, 1 << 30);
    for n in 0..MAX_PENDING_EVENTS + 5 {
        bus.publish_unstored(None, EventKind::Export, &n.to_string(), &json!({}));
    }
    bus.webhooks().store_pending(&store).unwrap();
    let totals = read_totals(&store, "exports");
    assert_eq!((totals.waiting, totals.missed), (MAX_PENDING_EVENTS as u64, 5));
    remove(&store, &bus, "exports", &[]);
    let totals = read_totals(&store, "exports");
    assert_eq!((totals.waiting, totals.missed), (MAX_PENDING_EVENTS as u64 + 1, 0));
}

#[test]
fn large_events_in_memory_are_bounded_by_their_bytes() {
    let (_dir, store, bus) = open(1 << 20, 1 << 30);
    let large = "x".repeat(MAX_PENDING_BYTES / 4);
    for _ in 0..5 {
        bus.publish_unstored(None, EventKind::Export, &large, &json!({}));
    }
    bus.webhooks().store_pending(&store).unwrap();
    let totals = read_totals(&store, "exports");
    assert_eq!((totals.waiting, totals.missed), (3, 2));
}

#[test]
fn events_of_a_failed_commit_stay_before_later_ones() {
    let event = |number| PendingEvent { number, kind: EventKind::Export, json: String::new() };
    let (mut earlier, mut pending) = (PendingEvents::default(), PendingEvents::default());
    for number in 0..MAX_PENDING_EVENTS as u64 - 1 {
        earlier.push(event(number));
    }
    for number in 2000..2003 {
        pending.push(event(number));
    }
    pending.restore(earlier);
    let last: Vec<u64> = pending.events.iter().rev().take(2).map(|event| event.number).collect();
    assert_eq!(last, [2000, MAX_PENDING_EVENTS as u64 - 2]);
    assert_eq!(
        (pending.events.len(), pending.dropped[&EventKind::Export]),
        (MAX_PENDING_EVENTS, 2)
    );
}
