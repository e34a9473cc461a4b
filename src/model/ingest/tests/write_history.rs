//! Finding the ingestions that wrote an object.
use super::*;
use crate::ingest::{WriteHistory, find_write_history};

fn named(fixture: &Fixture, uri: &str) -> Vec<String> {
    find_write_history(&fixture.store, uri)
        .unwrap()
        .named_by
        .into_iter()
        .map(|record| record.id)
        .collect()
}

#[test]
fn the_ingestions_that_changed_an_object_are_listed_newest_first() {
    let fixture = Fixture::new(machine());
    let first = fixture.add(r#"{"uri": "urn:m", "parts": [{"uri": "urn:p", "name": "a"}]}"#);
    fixture.add(r#"{"uri": "urn:m", "parts": [{"uri": "urn:p", "name": "a"}]}"#);
    fixture.add(r#"{"uri": "urn:other", "name": "a"}"#);
    let second = fixture.send(Mode::Update, r#"{"uri": "urn:m", "name": "b"}"#).unwrap();
    let gone = fixture.send(Mode::Delete, r#"{"uri": "urn:m"}"#).unwrap();
    let (first, second, gone) = (first.ingestion_id, second.ingestion_id, gone.ingestion_id);
    assert_eq!(named(&fixture, "urn:m"), [gone, second, first.clone()]);
    assert_eq!(named(&fixture, "urn:p").last(), Some(&first));
    let unknown = find_write_history(&fixture.store, "urn:unknown").unwrap();
    assert_eq!((unknown.named_by, unknown.minted_by, unknown.without_hashes), (vec![], None, 0));
}

#[test]
fn the_minting_ingestion_is_found_whatever_its_size() {
    let fixture = Fixture::with_generator(machine(), Generator::Uuid);
    fixture.add(r#"{"name": "before"}"#);
    let data: Vec<String> = (0..60).map(|i| format!(r#"{{"motor": {{"name": "{i}"}}}}"#)).collect();
    let large = fixture.add(&data.join(","));
    fixture.add(r#"{"name": "after"}"#);
    for uri in [&large.objects[0].uri, &large.objects[59].nested[0].uri] {
        let WriteHistory { minted_by, named_by, without_hashes: silent, since } =
            find_write_history(&fixture.store, uri).unwrap();
        assert_eq!(minted_by.map(|record| record.id), Some(large.ingestion_id.clone()), "{uri}");
        assert_eq!((named_by, silent), (vec![], 1));
        assert!(since.is_some());
    }
}

#[test]
fn an_ingestion_that_is_no_longer_recorded_is_not_guessed() {
    let mut fixture = Fixture::with_generator(machine(), Generator::Uuid);
    fixture.limits.history = 2;
    fixture.add(r#"{"name": "before"}"#);
    let answer = fixture.add(r#"{"name": "a"}"#);
    let uri = &answer.objects[0].uri;
    assert_eq!(named(&fixture, uri), [answer.ingestion_id]);
    for name in ["b", "c"] {
        fixture.add(&format!(r#"{{"name": "{name}"}}"#));
    }
    let history = find_write_history(&fixture.store, uri).unwrap();
    assert_eq!((history.minted_by, history.named_by), (None, vec![]));
}
