//! Which ingestion wrote an object.
use super::world::{World, machine};
use crate::ingest::{Mode, Writers, writers};
use crate::namespace::Generator;

fn named(world: &World, uri: &str) -> Vec<String> {
    writers(&world.store, uri).unwrap().named_by.into_iter().map(|record| record.id).collect()
}

#[test]
fn the_ingestions_that_changed_an_object_are_told_newest_first() {
    let world = World::new(machine());
    let first = world.add(r#"{"uri": "urn:m", "parts": [{"uri": "urn:p", "name": "a"}]}"#);
    world.add(r#"{"uri": "urn:m", "parts": [{"uri": "urn:p", "name": "a"}]}"#);
    world.add(r#"{"uri": "urn:other", "name": "a"}"#);
    let second = world.send(Mode::Update, r#"{"uri": "urn:m", "name": "b"}"#).unwrap();
    let gone = world.send(Mode::Delete, r#"{"uri": "urn:m"}"#).unwrap();
    let (first, second, gone) = (first.ingestion_id, second.ingestion_id, gone.ingestion_id);
    assert_eq!(named(&world, "urn:m"), [gone, second, first.clone()]);
    assert_eq!(named(&world, "urn:p").last(), Some(&first));
    let unknown = writers(&world.store, "urn:unknown").unwrap();
    assert_eq!((unknown.named_by, unknown.minted_by, unknown.silent), (vec![], None, 0));
}

#[test]
fn what_minted_a_uri_is_told_however_large_it_was() {
    let world = World::with(machine(), Generator::Uuid);
    world.add(r#"{"name": "before"}"#);
    let data: Vec<String> = (0..60).map(|i| format!(r#"{{"motor": {{"name": "{i}"}}}}"#)).collect();
    let large = world.add(&data.join(","));
    world.add(r#"{"name": "after"}"#);
    for uri in [&large.objects[0].uri, &large.objects[59].nested[0].uri] {
        let Writers { minted_by, named_by, silent, since } = writers(&world.store, uri).unwrap();
        assert_eq!(minted_by.map(|record| record.id), Some(large.ingestion_id.clone()), "{uri}");
        assert_eq!((named_by, silent), (vec![], 1));
        assert!(since.is_some());
    }
}

#[test]
fn an_ingestion_that_is_no_longer_recorded_is_not_guessed() {
    let mut world = World::with(machine(), Generator::Uuid);
    world.limits.history = 2;
    world.add(r#"{"name": "before"}"#);
    let answer = world.add(r#"{"name": "a"}"#);
    let uri = &answer.objects[0].uri;
    assert_eq!(named(&world, uri), [answer.ingestion_id]);
    for name in ["b", "c"] {
        world.add(&format!(r#"{{"name": "{name}"}}"#));
    }
    let told = writers(&world.store, uri).unwrap();
    assert_eq!((told.minted_by, told.named_by), (None, vec![]));
}
