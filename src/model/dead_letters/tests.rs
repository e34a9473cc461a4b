use super::record::{BY_INGESTION, BY_ORIGIN, LETTERS, TEXTS};
use super::shares::Share;
use super::*;
use crate::ingest::{Answer, Body, Mode, OnError, Request};
use crate::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use crate::testing::Fixture;
use oxrdf::NamedNode;
use penstock_base::collections::Collection;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::ErrorClass;
use penstock_store::{BackupFile, Document, DocumentRange, Error, Options, Read as _, Store};
use proptest::prelude::*;
use uuid::Uuid;

fn fixture() -> Fixture {
    let predicate = NamedNode::new_unchecked("http://p/name");
    let value = Value::Literal(Literal::String);
    let property = Property::new(predicate, value);
    let field = Field::new("name", FieldKind::Property(property));
    Fixture::new(Shape::new("Machine", vec![field]))
}

/// Sends rejected objects with texts of about this many bytes, on behalf of this API key.
fn reject(fixture: &Fixture, key: &str, count: usize, bytes: usize) -> Answer {
    reject_from(fixture, "local", key, count, bytes)
}

/// Sends rejected objects on behalf of this API key of this account.
fn reject_from(fixture: &Fixture, account: &str, key: &str, count: usize, bytes: usize) -> Answer {
    let object = format!("\"{}\"", "x".repeat(bytes));
    let body = format!("{{\"data\": [{}]}}", vec![object; count].join(","));
    let request = Request {
        on_error: OnError::Skip,
        caller: account,
        api_key: Some(key),
        ..fixture.request(Mode::Add, Body::Json(body.as_bytes()))
    };
    fixture.run(&request).unwrap()
}

fn count_of(fixture: &Fixture, key: &str) -> u64 {
    share_of(fixture, "local", key).letters
}

fn share_of(fixture: &Fixture, account: &str, key: &str) -> Share {
    let origin = Origin::ApiKey(key.to_owned());
    let origin = origin.to_string();
    shares::read_share(&fixture.store.read(), Some((account, &origin))).unwrap()
}

fn first_id(answer: &Answer) -> &str {
    answer.rejected[0].id.as_ref().unwrap()
}

/// Retries a dead letter with a text that has ten errors with long names.
fn retry_with_long_errors(fixture: &Fixture, id: &str) {
    let fields: Vec<String> = (0..10).map(|n| format!("\"{}{n}\": 1", "x".repeat(1000))).collect();
    let text = format!("{{{}}}", fields.join(","));
    let body = Body::Object { text: text.as_bytes(), index: 0, first_line: 1, topic_fields: None };
    let request = fixture.request(Mode::Add, body);
    let request = Request { retried_letter: Some(id), ..request };
    assert_eq!(fixture.run(&request).unwrap_err().class, ErrorClass::Invalid);
}

fn read_documents(fixture: &Fixture, collection: Collection) -> Vec<Document> {
    let all = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    fixture.store.read().read_documents(collection.name, all).unwrap()
}

fn check_consistency(fixture: &Fixture) {
    let totals = read_totals(&fixture.store.read()).unwrap();
    let (letters, texts) = (LETTERS.collection(), TEXTS.collection());
    for collection in [letters, texts, BY_INGESTION.collection(), BY_ORIGIN.collection()] {
        let count = read_documents(fixture, collection).len();
        assert_eq!(count as u64, totals.letters, "{collection:?}");
    }
    let shares = shares::list_origins(&fixture.store.read()).unwrap();
    assert_eq!(shares.iter().map(|(_, bytes)| bytes).sum::<u64>(), totals.bytes);
    let documents = [letters, texts].map(|collection| read_documents(fixture, collection));
    let stored: usize = documents.iter().flatten().map(|(_, value)| value.len()).sum();
    assert_eq!(stored as u64, totals.bytes);
}

#[test]
fn an_account_with_many_keys_evicts_only_its_own_dead_letters() {
    let mut fixture = fixture();
    fixture.limits.rejected_bytes = 60_000;
    reject_from(&fixture, "quiet", "sensor", 15, 1000);
    let before = share_of(&fixture, "quiet", "sensor");
    for key in 0..50 {
        reject_from(&fixture, "flood", &format!("key-{key}"), 3, 1000);
    }
    assert_eq!(share_of(&fixture, "quiet", "sensor"), before);
    let letters = |key: usize| share_of(&fixture, "flood", &format!("key-{key}")).letters;
    assert!((0..49).all(|key| letters(key) <= 1), "its keys have equal shares");
    assert!(read_totals(&fixture.store.read()).unwrap().bytes > 58_000);
    check_consistency(&fixture);
}

#[test]
fn the_errors_of_a_failed_retry_count_against_the_limit() {
    let mut fixture = fixture();
    let retried = reject(&fixture, "k", 1, 10);
    reject(&fixture, "k", 20, 1000);
    let before = read_totals(&fixture.store.read()).unwrap();
    retry_with_long_errors(&fixture, first_id(&retried));
    check_consistency(&fixture);
    let after = read_totals(&fixture.store.read()).unwrap();
    assert_eq!((after.letters, after.evicted), (21, 0));
    assert!(after.bytes > before.bytes + 5_000, "{after:?}");

    // Now the errors evict others. The retried dead letter stays, although it is the oldest by then.
    fixture.limits.rejected_bytes = after.bytes;
    reject(&fixture, "k", 1, 10);
    fixture.limits.rejected_bytes = read_totals(&fixture.store.read()).unwrap().bytes;
    let oldest = list_letters(&fixture.store, None, None, 99).unwrap().letters.pop().unwrap().id;
    retry_with_long_errors(&fixture, &oldest);
    check_consistency(&fixture);
    let full = read_totals(&fixture.store.read()).unwrap();
    assert!(full.bytes <= fixture.limits.rejected_bytes && full.evicted > 3, "{full:?}");
    assert!(find_letter(&fixture.store.read(), &oldest).unwrap().is_some());
}

#[test]
fn a_lowered_limit_takes_effect_in_commits_of_bounded_size() {
    let mut fixture = fixture();
    let store = GuardedStore::from(fixture.store.clone());
    reject(&fixture, "a", 1200, 10);
    let before = read_totals(&fixture.store.read()).unwrap();
    // The commit of a client only evicts what makes place for what it adds.
    fixture.limits.rejected_bytes = before.bytes / 2;
    reject(&fixture, "b", 1, 10);
    let after = read_totals(&fixture.store.read()).unwrap();
    assert!(after.evicted <= 2 && after.bytes <= before.bytes, "{after:?}");
    let sequence = fixture.store.stats().sequence;
    evict_letters(&store, before.bytes / 2).unwrap();
    assert_eq!(fixture.store.stats().sequence, sequence + 2);
    let half = read_totals(&fixture.store.read()).unwrap();
    assert!(half.bytes <= before.bytes / 2 && half.letters >= 598, "{half:?}");
    check_consistency(&fixture);
    assert_eq!(evict_letters(&store, 0).unwrap(), half.letters);
    let none = read_totals(&fixture.store.read()).unwrap();
    assert_eq!((none.letters, none.bytes, none.evicted), (0, 0, 1201));
    check_consistency(&fixture);
}

#[test]
fn an_unreadable_dead_letter_hides_no_other_and_expires_too() {
    let fixture = fixture();
    let store = GuardedStore::from(fixture.store.clone());
    let answer = reject(&fixture, "a", 3, 10);
    reject(&fixture, "b", 1, 10);
    let id = Uuid::parse_str(first_id(&answer)).unwrap().into_bytes();
    fixture.store.transact::<_, Error>(|t| t.put_document("dead-letters", &id, b"{")).unwrap();
    let listed =
        list_ingestion_letters(&fixture.store, &answer.ingestion_id, None, None, 9).unwrap();
    assert_eq!(listed.letters.len(), 2);
    assert_eq!(list_letters(&fixture.store, None, None, 9).unwrap().letters.len(), 3);
    let now = fixture.watch.elapsed() + 61_000;
    assert_eq!(expire_letters(&store, now, 60_000).unwrap(), 4);
    check_consistency(&fixture);
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
    let newest = list_letters(&fixture.store, None, None, 6).unwrap();
    let indexes: Vec<_> = newest.letters.iter().map(|letter| letter.index).collect();
    assert_eq!(indexes, [4, 3, 2, 1, 0, 449]);
    let rest = list_letters(&fixture.store, None, newest.next.as_deref(), 500).unwrap();
    assert_eq!((rest.letters.len(), rest.next), (449, None));
}

#[test]
fn deleting_removes_everything_about_a_dead_letter() {
    let fixture = fixture();
    let store = GuardedStore::from(fixture.store.clone());
    let answer = reject(&fixture, "a", 2, 10);
    let id = answer.rejected[0].id.as_ref().unwrap();
    let delete =
        |id: &str| store.commit(&NoClient, |transaction| delete_letter(transaction, id)).unwrap().0;
    assert!(delete(id));
    assert!(!delete(id));
    assert!(!delete("no id"));
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
            let share = |key: &str| share_of(&fixture, "local", key);
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
