use super::world::{World, machine};
use crate::changes::Watch;
use crate::ingest::{Answer, Body, Mode, Request, records};
use penstock_base::fault::{Fault, Kind};

const A: &[u8] = br#"{"data": [{"name": "a"}]}"#;
const B: &[u8] = br#"{"data": [{"name": "b"}]}"#;

fn send(world: &World, key: &str, body: &[u8]) -> Result<Answer, Fault> {
    let request = world.request(Mode::Add, Body::Json(body));
    world.run(&Request { idempotency_key: Some(key), ..request })
}

#[test]
fn the_same_key_and_body_give_the_first_answer() {
    let world = World::new(machine());
    let first = send(&world, "k", A).unwrap();
    let sequence = world.store.stats().sequence;
    assert_eq!(send(&world, "k", A).unwrap(), first);
    assert_eq!(world.store.stats().sequence, sequence);
    assert_eq!(records(&world.store, None, 10).unwrap().len(), 1);
    assert_ne!(send(&world, "l", A).unwrap().ingestion_id, first.ingestion_id);
}

#[test]
fn another_body_under_a_used_key_is_refused() {
    let world = World::new(machine());
    send(&world, "k", A).unwrap();
    let fault = send(&world, "k", B).unwrap_err();
    assert_eq!(fault.kind, Kind::Conflict);
    assert!(fault.detail.starts_with("Ingestion failed: "), "{fault}");
}

#[test]
fn a_key_is_scoped_to_caller_business_object_mode_and_chunk() {
    let mut world = World::new(machine());
    let first = send(&world, "k", A).unwrap();
    let request = Request { idempotency_key: Some("k"), ..world.request(Mode::Add, Body::Json(A)) };
    let other = world.run(&Request { caller: "someone", ..request }).unwrap();
    assert_ne!(other.ingestion_id, first.ingestion_id);
    let replace = world.run(&Request { mode: Mode::Replace, ..request }).unwrap();
    assert_eq!(replace.mode, Mode::Replace);
    let chunk = |first| Body::Lines { text: b"{\"name\": \"x\"}\n", first };
    let one = world.run(&Request { body: chunk(0), ..request }).unwrap();
    let two = world.run(&Request { body: chunk(1), ..request }).unwrap();
    assert_ne!(one.ingestion_id, two.ingestion_id);
    assert_eq!(world.run(&Request { body: chunk(1), ..request }).unwrap(), two);
    world.business_object.object.id = "bo-2".to_owned();
    assert_ne!(send(&world, "k", B).unwrap().ingestion_id, first.ingestion_id);
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    let world = World::new(machine());
    send(&world, "k", br#"{"data": [{"name": 1}]}"#).unwrap_err();
    assert_eq!(send(&world, "k", A).unwrap().created, 1);
}

#[test]
fn a_replay_is_answered_though_the_business_object_is_disabled_now() {
    let mut world = World::new(machine());
    let first = send(&world, "k", A).unwrap();
    world.business_object.object.definition.enabled = false;
    assert_eq!(send(&world, "k", A).unwrap(), first);
    assert_eq!(send(&world, "l", A).unwrap_err().kind, Kind::Conflict);
}

#[test]
fn the_oldest_keys_are_given_up_first() {
    let mut world = World::new(machine());
    world.limits.idempotency_keys = 2;
    let first = send(&world, "1", A).unwrap();
    let second = send(&world, "2", A).unwrap();
    assert_eq!(send(&world, "1", A).unwrap(), first);
    send(&world, "3", A).unwrap();
    assert_eq!(send(&world, "2", A).unwrap(), second);
    assert_ne!(send(&world, "1", A).unwrap(), first);
}

#[test]
fn a_key_is_visible_ascii_of_bounded_length() {
    let world = World::new(machine());
    for wrong in ["", "a b", "é", "a\n", &"x".repeat(256)] {
        assert_eq!(send(&world, wrong, A).unwrap_err().kind, Kind::Malformed, "{wrong:?}");
    }
    send(&world, &"x".repeat(255), A).unwrap();
}

#[test]
fn concurrent_doubles_are_done_once() {
    let world = World::new(machine());
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| send(&world, "k", A).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(world.quads().len(), 1);
}

#[test]
fn a_long_answer_is_kept_whole() {
    let world = World::new(machine());
    let objects: Vec<String> =
        (0..2000).map(|i| format!(r#"{{"parts": [{{"name": "{i}"}}]}}"#)).collect();
    let body = format!("{{\"data\": [{}]}}", objects.join(","));
    let first = send(&world, "k", body.as_bytes()).unwrap();
    assert_eq!(first.created, 2000);
    assert_eq!(send(&world, "k", body.as_bytes()).unwrap(), first);
}

#[test]
fn past_the_bytes_the_oldest_answers_go_and_the_newest_stays() {
    let mut world = World::new(machine());
    world.limits.idempotency_bytes = 900;
    let first = send(&world, "1", A).unwrap();
    let second = send(&world, "2", A).unwrap();
    assert_eq!(send(&world, "1", A).unwrap(), first);
    let third = send(&world, "3", A).unwrap();
    assert_eq!(send(&world, "3", A).unwrap(), third);
    assert_eq!(send(&world, "2", A).unwrap(), second);
    assert_ne!(send(&world, "1", A).unwrap(), first);
    world.limits.idempotency_bytes = 0;
    let last = send(&world, "4", A).unwrap();
    assert_eq!(send(&world, "4", A).unwrap(), last);
    assert_ne!(send(&world, "3", A).unwrap(), third);
}

#[test]
fn what_is_not_told_is_not_kept() {
    let world = World::new(machine());
    let request = Request {
        idempotency_key: Some("k"),
        tells_objects: false,
        ..world.request(Mode::Add, Body::Json(A))
    };
    let first = world.run(&request).unwrap();
    assert_eq!((first.created, first.objects.len()), (1, 0));
    assert_eq!(world.run(&Request { tells_objects: true, ..request }).unwrap(), first);
}

#[test]
fn a_key_is_kept_for_24_hours_of_elapsed_time() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let world = World::new(machine());
    let begun = 5 * DAY;
    let at = |elapsed| {
        let request = world.request(Mode::Add, Body::Json(A));
        let watch = Watch::new(move || elapsed);
        world.run(&Request { idempotency_key: Some("k"), watch: &watch, ..request }).unwrap()
    };
    let first = at(begun);
    assert_eq!(at(begun + DAY), first);
    // What a restored store kept may be from a time still to come.
    assert_eq!(at(0), first);
    assert_ne!(at(begun + DAY + 1), first);
}
