use super::fixture::machine;
use crate::ingest::{Mode, list_records, read_record};
use crate::testing::Fixture;
use penstock_base::error::ErrorClass;

#[test]
fn each_ingestion_is_recorded_with_its_counts() {
    let fixture = Fixture::new(machine());
    let answer = fixture.add(r#"{"uri": "urn:m", "name": "a"}"#);
    let kept = read_record(&fixture.store, &answer.ingestion_id).unwrap().unwrap();
    assert_eq!((kept.mode, kept.created, kept.caller.as_str()), (Mode::Add, 1, "local"));
    assert_eq!(kept.sequence, fixture.store.stats().sequence);
    assert_eq!(
        (kept.business_object.as_str(), kept.business_object_name.as_str()),
        ("bo-1", "Machine")
    );
    assert_eq!(kept.bytes, r#"{"data": [{"uri": "urn:m", "name": "a"}]}"#.len() as u64);
    let unchanged = fixture.add(r#"{"uri": "urn:m", "name": "a"}"#);
    assert_eq!(read_record(&fixture.store, &unchanged.ingestion_id).unwrap().unwrap().unchanged, 1);
    fixture.send(Mode::Validate, r#"{"name": "b"}"#).unwrap();
    fixture.send(Mode::Add, r#"{"name": 1}"#).unwrap_err();
    assert_eq!(list_records(&fixture.store, None, 10).unwrap().len(), 2);
    assert_eq!(read_record(&fixture.store, "unknown").unwrap(), None);
}

#[test]
fn records_are_paged_newest_first_and_bounded() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.history = 3;
    let ids: Vec<String> =
        (0..5).map(|i| fixture.add(&format!(r#"{{"name": "{i}"}}"#)).ingestion_id).collect();
    let page = |after: Option<&str>, limit| -> Vec<String> {
        list_records(&fixture.store, after, limit).unwrap().into_iter().map(|r| r.id).collect()
    };
    assert_eq!(page(None, 2), [ids[4].clone(), ids[3].clone()]);
    assert_eq!(page(Some(&ids[3]), 2), [ids[2].clone()]);
    assert_eq!(page(Some(&ids[2]), 2), Vec::<String>::new());
    assert_eq!(read_record(&fixture.store, &ids[1]).unwrap(), None);
    assert_eq!(
        list_records(&fixture.store, Some(&ids[0]), 2).unwrap_err().class,
        ErrorClass::Malformed
    );
}
