use super::skip::letters;
use super::*;
use crate::dead_letters::{self, DeadLetter, find_letter};
use penstock_store::faults::{Failure, Faults};

/// Rejects one object and returns its dead letter.
fn reject(fixture: &Fixture, mode: Mode, object: &str) -> DeadLetter {
    let answer = fixture.skip(mode, object).unwrap();
    letters(&fixture.store, &answer.ingestion_id).remove(0).0
}

fn retry(fixture: &Fixture, letter: &DeadLetter, text: &str) -> Result<Answer, GatewayError> {
    fixture.run(&retry_request(fixture, letter, text))
}

fn retry_request<'a>(fixture: &'a Fixture, letter: &'a DeadLetter, text: &'a str) -> Request<'a> {
    let body = Body::Object {
        text: text.as_bytes(),
        index: letter.index,
        first_line: 1,
        topic_fields: None,
    };
    Request { retried_letter: Some(&letter.id), ..fixture.request(letter.mode, body) }
}

fn find(fixture: &Fixture, letter: &DeadLetter) -> Option<DeadLetter> {
    find_letter(&fixture.store.read(), &letter.id).unwrap()
}

#[test]
fn a_success_removes_the_dead_letter_and_a_second_retry_finds_none() {
    let fixture = Fixture::new(machine());
    let letter = reject(&fixture, Mode::Add, "{\"name\": 1}");
    let sequence = fixture.store.stats().sequence;
    let answer = retry(&fixture, &letter, " {\"name\":\n \"a\"} ").unwrap();
    assert_eq!((answer.created, answer.mode), (1, Mode::Add));
    assert_eq!(fixture.store.stats().sequence, sequence + 1, "one commit");
    assert_eq!(find(&fixture, &letter), None);
    assert_eq!(letters(&fixture.store, &letter.ingestion_id), []);
    let totals = dead_letters::read_totals(&fixture.store.read()).unwrap();
    assert_eq!((totals.letters, totals.bytes), (0, 0));
    let records = list_records(&fixture.store, None, 9).unwrap();
    assert_eq!((records[0].id.clone(), records.len()), (answer.ingestion_id, 2));
    let again = retry(&fixture, &letter, "{\"name\": \"b\"}").unwrap_err();
    assert_eq!(again.class, ErrorClass::NotFound);
    assert_eq!(fixture.members().len(), 1);
}

#[test]
fn an_object_with_errors_stays_with_the_new_errors_and_its_text() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:a", "name": "a"}"#);
    let before = fixture.quads();
    let letter = reject(&fixture, Mode::Add, "{\"name\": 1}");
    for (text, class, message) in [
        ("{\"weight\": \"x\"}", ErrorClass::Invalid, "number"),
        (r#"{"uri": "urn:a", "weight": 1, "name": "b"}"#, ErrorClass::Conflict, "one value"),
        ("{\"weight\": ", ErrorClass::Malformed, "cut short"),
    ] {
        let error = retry(&fixture, &letter, text).unwrap_err();
        assert_eq!(error.class, class, "{error}");
        let (kept, stored) = letters(&fixture.store, &letter.ingestion_id).remove(0);
        assert_eq!(stored, "{\"name\": 1}");
        assert!(kept.errors[0].message.contains(message), "{:?}", kept.errors);
        assert_eq!(fixture.quads(), before);
    }
    // A request that fails for another reason leaves the dead letter as it is.
    let kept = find(&fixture, &letter);
    let mut small = fixture;
    small.limits.values = 1;
    let error = retry(&small, &letter, "{\"name\": \"a\"}").unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
    assert_eq!(find(&small, &letter), kept);
    assert_eq!(list_records(&small.store, None, 9).unwrap().len(), 2);
}

#[test]
fn a_retry_has_the_mode_of_the_ingestion_and_the_rights_of_its_caller() {
    let fixture = Fixture::new(machine());
    let letter = reject(&fixture, Mode::Update, r#"{"uri": "urn:a", "name": "a"}"#);
    let error = retry(&fixture, &letter, r#"{"uri": "urn:a", "name": "a"}"#).unwrap_err();
    assert!(error.detail.contains("UPDATE changes only existing ones"), "{error}");
    fixture.insert("urn:a", "http://p/name", oxrdf::Literal::from("x"), "http://elsewhere/");
    let text = r#"{"uri": "urn:a", "name": "a"}"#;
    let own = [&fixture.business_object];
    let request = Request {
        api_key: Some("k"),
        write_scope: Some(&own),
        ..retry_request(&fixture, &letter, text)
    };
    let error = fixture.run(&request).unwrap_err();
    assert!(error.detail.contains("This credential can only change objects of"), "{error}");
    assert_eq!(retry(&fixture, &letter, text).unwrap().updated, 1);
}

#[test]
fn the_places_of_errors_are_those_of_the_first_attempt() {
    let fixture = Fixture::new(machine());
    let letter = reject(&fixture, Mode::Add, "{\"name\": 1}");
    let body = Body::Object { text: b"{\"name\": 2}", index: 7, first_line: 9, topic_fields: None };
    let request = Request { retried_letter: Some(&letter.id), ..fixture.request(Mode::Add, body) };
    let error = fixture.run(&request).unwrap_err();
    assert_eq!(pointers(&error), ["/data/7/name"]);
    let body = Body::Object { text: b"{\"name\": ", index: 7, first_line: 9, topic_fields: None };
    let request = Request { body, ..request };
    let error = fixture.run(&request).unwrap_err();
    assert!(error.detail.contains("line 9, column"), "{error}");
}

#[test]
fn a_power_cut_leaves_either_the_dead_letter_or_the_object() {
    for nth in 1.. {
        let fixture = Fixture::new(machine());
        let letter = reject(&fixture, Mode::Add, "{\"name\": 1}");
        let faults = Faults::inject_below(fixture.dir());
        faults.fail_nth(nth, Failure::ShortWrite, true);
        let done = retry(&fixture, &letter, "{\"name\": \"a\"}");
        let has_failed = faults.first_failure().is_some();
        faults.clear_plan();
        fixture.store.reopen(&mut |_| {}).unwrap();
        let (is_kept, stored) = (find(&fixture, &letter).is_some(), fixture.members().len());
        assert_eq!(stored, usize::from(!is_kept), "after {nth}");
        assert_eq!(done.is_err(), is_kept, "after {nth}");
        let totals = dead_letters::read_totals(&fixture.store.read()).unwrap();
        assert_eq!(totals.letters, u64::from(is_kept));
        if is_kept {
            // The client retries after the error.
            retry(&fixture, &letter, "{\"name\": \"a\"}").unwrap();
        }
        if !has_failed {
            assert!(nth > 1);
            return;
        }
    }
}
