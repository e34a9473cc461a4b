use super::*;
use crate::change_feed::Watch;
use crate::ingest::idempotency::{REQUEST_ORDER, StoredAnswer, put_answer};
use penstock_store::{DocumentRange, Read as _};

const A: &[u8] = br#"{"data": [{"name": "a"}]}"#;
const B: &[u8] = br#"{"data": [{"name": "b"}]}"#;

fn send(fixture: &Fixture, key: &str, body: &[u8]) -> Result<Answer, GatewayError> {
    let request = fixture.request(Mode::Add, Body::Json(body));
    fixture.run(&Request { idempotency_key: Some(key), ..request })
}

#[test]
fn the_same_key_and_body_give_the_first_answer() {
    let fixture = Fixture::new(machine());
    let first = send(&fixture, "k", A).unwrap();
    let sequence = fixture.store.stats().sequence;
    assert_eq!(send(&fixture, "k", A).unwrap(), first);
    assert_eq!(fixture.store.stats().sequence, sequence);
    assert_eq!(list_records(&fixture.store, None, 10).unwrap().len(), 1);
    assert_ne!(send(&fixture, "l", A).unwrap().ingestion_id, first.ingestion_id);
}

#[test]
fn another_body_under_a_used_key_is_refused() {
    let fixture = Fixture::new(machine());
    send(&fixture, "k", A).unwrap();
    let error = send(&fixture, "k", B).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.starts_with("Ingestion failed: "), "{error}");
}

#[test]
fn a_key_is_scoped_to_caller_business_object_mode_and_chunk() {
    let mut fixture = Fixture::new(machine());
    let first = send(&fixture, "k", A).unwrap();
    let request =
        Request { idempotency_key: Some("k"), ..fixture.request(Mode::Add, Body::Json(A)) };
    let other = fixture.run(&Request { caller: "someone", ..request }).unwrap();
    assert_ne!(other.ingestion_id, first.ingestion_id);
    let replace = fixture.run(&Request { mode: Mode::Replace, ..request }).unwrap();
    assert_eq!(replace.mode, Mode::Replace);
    let chunk = |first| Body::Lines { text: b"{\"name\": \"x\"}\n", first, line_numbers: &[1] };
    let request = Request { idempotency_key: Some("stream"), ..request };
    let one = fixture.run(&Request { body: chunk(0), ..request }).unwrap();
    let two = fixture.run(&Request { body: chunk(1), ..request }).unwrap();
    assert_ne!(one.ingestion_id, two.ingestion_id);
    assert_eq!(fixture.run(&Request { body: chunk(1), ..request }).unwrap(), two);
    fixture.business_object.object.id = "bo-2".to_owned();
    assert_ne!(send(&fixture, "k", B).unwrap().ingestion_id, first.ingestion_id);
}

#[test]
fn a_key_is_of_one_body_or_of_one_stream() {
    let fixture = Fixture::new(machine());
    let send_lines = |key| {
        let body = Body::Lines { text: b"{\"name\": \"x\"}\n", first: 0, line_numbers: &[1] };
        let request = fixture.request(Mode::Add, body);
        fixture.run(&Request { idempotency_key: Some(key), ..request })
    };
    let whole = send(&fixture, "whole", A).unwrap();
    let stream = send_lines("stream").unwrap();
    assert_eq!(send_lines("whole").unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(send(&fixture, "stream", A).unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(send(&fixture, "whole", A).unwrap(), whole);
    assert_eq!(send_lines("stream").unwrap(), stream);
}

#[test]
fn a_refused_request_leaves_its_key_free() {
    let fixture = Fixture::new(machine());
    send(&fixture, "k", br#"{"data": [{"name": 1}]}"#).unwrap_err();
    assert_eq!(send(&fixture, "k", A).unwrap().created, 1);
}

#[test]
fn a_replay_works_after_the_business_object_was_disabled() {
    let mut fixture = Fixture::new(machine());
    let first = send(&fixture, "k", A).unwrap();
    fixture.business_object.object.definition.enabled = false;
    assert_eq!(send(&fixture, "k", A).unwrap(), first);
    assert_eq!(send(&fixture, "l", A).unwrap_err().class, ErrorClass::Conflict);
}

#[test]
fn the_oldest_keys_are_removed_first() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.idempotency_keys = 2;
    let first = send(&fixture, "1", A).unwrap();
    let second = send(&fixture, "2", A).unwrap();
    assert_eq!(send(&fixture, "1", A).unwrap(), first);
    send(&fixture, "3", A).unwrap();
    assert_eq!(send(&fixture, "2", A).unwrap(), second);
    assert_ne!(send(&fixture, "1", A).unwrap(), first);
}

/// Sends a chunk of a stream, whose first object has this index.
fn send_chunk(fixture: &Fixture, key: &str, first: usize) -> Answer {
    let body = Body::Lines { text: b"{\"name\": \"x\"}\n", first, line_numbers: &[1] };
    let request = fixture.request(Mode::Add, body);
    let request = Request { idempotency_key: Some(key), lists_objects: false, ..request };
    fixture.run(&request).unwrap()
}

#[test]
fn a_stream_counts_as_one_request_and_its_chunks_evict_each_other_only_by_their_bytes() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.idempotency_keys = 2;
    let whole = send(&fixture, "whole", A).unwrap();
    let send_stream = |fixture: &Fixture| -> Vec<Answer> {
        (0..9).map(|n| send_chunk(fixture, "s", n)).collect()
    };
    let first = send_stream(&fixture);
    assert_eq!(send_stream(&fixture), first);
    assert_eq!(send(&fixture, "whole", A).unwrap(), whole);
    let count = |fixture: &Fixture| {
        let range = DocumentRange { limit: 1_000, ..DocumentRange::default() };
        fixture.store.read().read_documents("idempotency", range).unwrap().len()
    };
    assert_eq!(count(&fixture), 10);
    // A further request evicts the oldest one, not a chunk.
    send(&fixture, "further", A).unwrap();
    assert_eq!(send_stream(&fixture), first);
    assert_ne!(send(&fixture, "whole", A).unwrap(), whole);
    // The bytes of all are limited.
    fixture.limits.idempotency_bytes = 0;
    send_chunk(&fixture, "t", 1);
    assert_eq!(count(&fixture), 1);
}

#[test]
fn a_lowered_limit_of_answers_is_reached_over_several_ingestions() {
    let mut fixture = Fixture::new(machine());
    let answer = send(&fixture, "k", A).unwrap();
    let stored = fixture.store.transact::<_, GatewayError>(|transaction| {
        for sequence in 1_000..1_600_u64 {
            let mut scope = [0; 32];
            scope[..8].copy_from_slice(&sequence.to_be_bytes());
            let (body, answer) = (String::new(), answer.clone());
            let stored = StoredAnswer { body, at: u64::MAX, sequence, answer };
            put_answer(transaction, &REQUEST_ORDER, scope, &stored)?;
        }
        Ok(())
    });
    stored.unwrap();
    fixture.limits.idempotency_keys = 1;
    for (key, left) in [("l", 102), ("m", 1)] {
        send(&fixture, key, A).unwrap();
        let range = DocumentRange { limit: 1_000, ..DocumentRange::default() };
        let answers = fixture.store.read().read_documents("idempotency", range).unwrap();
        assert_eq!(answers.len(), left);
    }
}

#[test]
fn a_key_is_visible_ascii_of_bounded_length() {
    let fixture = Fixture::new(machine());
    for wrong in ["", "a b", "é", "a\n", &"x".repeat(256)] {
        assert_eq!(send(&fixture, wrong, A).unwrap_err().class, ErrorClass::Malformed, "{wrong:?}");
    }
    send(&fixture, &"x".repeat(255), A).unwrap();
}

#[test]
fn concurrent_duplicates_are_executed_once() {
    let fixture = Fixture::new(machine());
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| send(&fixture, "k", A).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(fixture.quads().len(), 1);
}

#[test]
fn a_long_answer_is_kept_whole() {
    let fixture = Fixture::new(machine());
    let objects: Vec<String> =
        (0..2000).map(|i| format!(r#"{{"parts": [{{"name": "{i}"}}]}}"#)).collect();
    let body = format!("{{\"data\": [{}]}}", objects.join(","));
    let first = send(&fixture, "k", body.as_bytes()).unwrap();
    assert_eq!(first.created, 2000);
    assert_eq!(send(&fixture, "k", body.as_bytes()).unwrap(), first);
}

#[test]
fn beyond_the_byte_limit_the_oldest_answers_are_removed() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.idempotency_bytes = 900;
    let first = send(&fixture, "1", A).unwrap();
    let second = send(&fixture, "2", A).unwrap();
    assert_eq!(send(&fixture, "1", A).unwrap(), first);
    let third = send(&fixture, "3", A).unwrap();
    assert_eq!(send(&fixture, "3", A).unwrap(), third);
    assert_eq!(send(&fixture, "2", A).unwrap(), second);
    assert_ne!(send(&fixture, "1", A).unwrap(), first);
    fixture.limits.idempotency_bytes = 0;
    let last = send(&fixture, "4", A).unwrap();
    assert_eq!(send(&fixture, "4", A).unwrap(), last);
    assert_ne!(send(&fixture, "3", A).unwrap(), third);
}

#[test]
fn an_omitted_list_of_objects_is_not_stored() {
    let fixture = Fixture::new(machine());
    let request = Request {
        idempotency_key: Some("k"),
        lists_objects: false,
        ..fixture.request(Mode::Add, Body::Json(A))
    };
    let first = fixture.run(&request).unwrap();
    assert_eq!((first.created, first.objects.len()), (1, 0));
    assert_eq!(fixture.run(&Request { lists_objects: true, ..request }).unwrap(), first);
}

#[test]
fn a_key_is_kept_for_24_hours_of_elapsed_time() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let fixture = Fixture::new(machine());
    let start = 5 * DAY;
    let at = |elapsed| {
        let request = fixture.request(Mode::Add, Body::Json(A));
        let watch = Watch::new(move || elapsed);
        fixture.run(&Request { idempotency_key: Some("k"), watch: &watch, ..request }).unwrap()
    };
    let first = at(start);
    assert_eq!(at(start + DAY), first);
    // A restored store can contain answers from the future.
    assert_eq!(at(0), first);
    assert_ne!(at(start + DAY + 1), first);
}
