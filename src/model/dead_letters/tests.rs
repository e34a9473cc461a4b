use super::*;
use crate::ingest::{Answer, Body, Mode, OnError, Request};
use crate::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use crate::testing::Fixture;
use oxrdf::NamedNode;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_store::{BackupFile, DocumentRange, Options, Read as _, Store};
use proptest::prelude::*;

fn fixture() -> Fixture {
    let predicate = NamedNode::new_unchecked("http://p/name");
    let value = Value::Literal(Literal::String);
    let property = Property { predicate, is_array: false, required: false, value };
    let field = Field { name: "name".to_owned(), kind: FieldKind::Property(property) };
    Fixture::new(Shape::new("Machine", vec![field]))
}

/// Sends rejected objects with texts of about this many bytes, on behalf of this API key.
fn reject(fixture: &Fixture, key: &str, count: usize, bytes: usize) -> Answer {
    let object = format!("\"{}\"", "x".repeat(bytes));
    let body = format!("{{\"data\": [{}]}}", vec![object; count].join(","));
    let request = Request {
        on_error: OnError::Skip,
        api_key: Some(key),
        ..fixture.request(Mode::Add, Body::Json(body.as_bytes()))
    };
    fixture.run(&request).unwrap()
}

fn count_of(fixture: &Fixture, key: &str) -> u64 {
    let origin = Origin::ApiKey(key.to_owned());
    shares::read_share(&fixture.store.read(), &origin.key()).unwrap().letters
}

fn count_documents(fixture: &Fixture, collection: &str) -> usize {
    let all = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    fixture.store.read().read_documents(collection, all).unwrap().len()
}

fn check_consistency(fixture: &Fixture) {
    let totals = read_totals(&fixture.store.read()).unwrap();
    for collection in [LETTERS, TEXTS, BY_INGESTION, BY_ORIGIN] {
        assert_eq!(count_documents(fixture, collection) as u64, totals.letters, "{collection}");
    }
    let shares = shares::list_origins(&fixture.store.read()).unwrap();
    assert_eq!(shares.iter().map(|(_, bytes)| bytes).sum::<u64>(), totals.bytes);
}

#[test]
fn a_flood_evicts_only_its_own_dead_letters() {
    let mut fixture = fixture();
    fixture.limits.rejected_bytes = 40_000;
    reject(&fixture, "quiet", 3, 1000);
    let before = count_of(&fixture, "quiet");
    for _ in 0..20 {
        reject(&fixture, "flood", 10, 1000);
    }
    assert_eq!(count_of(&fixture, "quiet"), before);
    let totals = read_totals(&fixture.store.read()).unwrap();
    assert!(totals.bytes <= 40_000 && totals.bytes > 37_000, "{totals:?}");
    assert_eq!(totals.letters + totals.evicted, 203);
    // Capacity that nobody uses was lent. Now it is needed, and both have half of it.
    reject(&fixture, "second", 30, 1000);
    let [flood, second] = ["flood", "second"].map(|key| count_of(&fixture, key));
    assert_eq!(count_of(&fixture, "quiet"), before);
    assert!(flood.abs_diff(second) <= 1, "{flood} {second}");
    check_consistency(&fixture);
}

#[test]
fn the_oldest_are_evicted_first_and_what_exceeds_the_limit_has_no_id() {
    let mut fixture = fixture();
    fixture.limits.rejected_bytes = 5_000;
    let first = reject(&fixture, "k", 2, 1000);
    let second = reject(&fixture, "k", 3, 1000);
    let exists = |answer: &Answer| -> Vec<bool> {
        let ids = answer.rejected.iter().map(|rejected| rejected.id.as_ref().unwrap());
        ids.map(|id| find_letter(&fixture.store.read(), id).unwrap().is_some()).collect()
    };
    assert_eq!((exists(&first), exists(&second)), (vec![false, false], vec![true; 3]));
    let large = reject(&fixture, "k", 2, 6_000);
    assert!(large.rejected.iter().all(|rejected| rejected.id.is_none()));
    assert_eq!(large.rejected.len(), 2);
    let mut none = fixture;
    none.limits.rejected_bytes = 0;
    let answer = reject(&none, "k", 1, 10);
    assert_eq!(answer.rejected[0].id, None);
    check_consistency(&none);
}

#[test]
fn dead_letters_expire_by_elapsed_time() {
    let fixture = fixture();
    let store = GuardedStore::from(fixture.store.clone());
    reject(&fixture, "a", 600, 10);
    reject(&fixture, "b", 1, 10);
    let now = fixture.watch.elapsed();
    assert_eq!(expire_letters(&store, now, 60_000).unwrap(), 0);
    assert_eq!(expire_letters(&store, now + 61_000, 60_000).unwrap(), 601);
    let totals = read_totals(&fixture.store.read()).unwrap();
    assert_eq!(totals, Totals { letters: 0, bytes: 0, evicted: 0, expired: 601 });
    check_consistency(&fixture);
}

#[test]
fn lists_are_read_in_pages() {
    let fixture = fixture();
    let answer = reject(&fixture, "a", 450, 10);
    reject(&fixture, "b", 5, 10);
    let page = |origin: Option<&Origin>, after: Option<&str>, limit| {
        list_ingestion_letters(&fixture.store, &answer.ingestion_id, origin, after, limit).unwrap()
    };
    let (mut found, mut after) = (Vec::new(), None::<String>);
    loop {
        let listed = page(None, after.as_deref(), 100);
        found.extend(listed.letters.into_iter().map(|letter| letter.index));
        after = listed.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, (0..450).collect::<Vec<_>>());
    let (own, other) = (Origin::ApiKey("a".to_owned()), Origin::ApiKey("b".to_owned()));
    assert_eq!(page(Some(&own), None, 500).letters.len(), 450);
    assert_eq!(page(Some(&other), None, 500).letters.len(), 0);
    let newest = list_letters(&fixture.store, None, 6).unwrap();
    let indexes: Vec<_> = newest.letters.iter().map(|letter| letter.index).collect();
    assert_eq!(indexes, [4, 3, 2, 1, 0, 449]);
    let rest = list_letters(&fixture.store, newest.next.as_deref(), 500).unwrap();
    assert_eq!((rest.letters.len(), rest.next), (449, None));
}

#[test]
fn deleting_removes_everything_about_a_dead_letter() {
    let fixture = fixture();
    let store = GuardedStore::from(fixture.store.clone());
    let answer = reject(&fixture, "a", 2, 10);
    let id = answer.rejected[0].id.as_ref().unwrap();
    assert!(delete_letter(&store, &NoClient, id).unwrap());
    assert!(!delete_letter(&store, &NoClient, id).unwrap());
    assert!(!delete_letter(&store, &NoClient, "no id").unwrap());
    assert_eq!(count_of(&fixture, "a"), 1);
    check_consistency(&fixture);
}

#[test]
fn a_backup_has_the_dead_letters() {
    let fixture = fixture();
    let answer = reject(&fixture, "a", 1, 10);
    let dir = tempfile::tempdir().unwrap();
    let (backup, restored) = (dir.path().join("backup"), dir.path().join("store"));
    fixture.store.write_backup(&mut std::fs::File::create(&backup).unwrap()).unwrap();
    BackupFile::open(&backup).unwrap().restore_into(&restored, &[]).unwrap();
    let store = Store::open(&restored, Options::default(), &mut |_| {}).unwrap();
    let id = answer.rejected[0].id.as_ref().unwrap();
    assert_eq!(read_text(&store.read(), id).unwrap().unwrap(), b"\"xxxxxxxxxx\"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nobody_below_an_equal_share_loses_a_dead_letter(
        sent in prop::collection::vec((0..4_usize, 1..8_usize, 1..1500_usize), 1..25),
    ) {
        const LIMIT: u64 = 20_000;
        let mut fixture = fixture();
        fixture.limits.rejected_bytes = LIMIT;
        let keys = ["a", "b", "c", "d"];
        for (key, count, bytes) in sent {
            let share = |key: &str| {
                let origin = Origin::ApiKey(key.to_owned());
                shares::read_share(&fixture.store.read(), &origin.key()).unwrap()
            };
            let before = keys.map(share);
            reject(&fixture, keys[key], count, bytes);
            let after = keys.map(share);
            for (place, (before, after)) in before.iter().zip(&after).enumerate() {
                if place != key && before.bytes <= LIMIT / 4 {
                    prop_assert_eq!(before, after);
                }
            }
            check_consistency(&fixture);
            prop_assert!(read_totals(&fixture.store.read()).unwrap().bytes <= LIMIT);
        }
    }
}
