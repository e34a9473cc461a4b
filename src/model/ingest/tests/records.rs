use super::*;
use crate::change_feed::Watch;
use crate::ingest::record::store_record;
use crate::ingest::{
    UpdateToRecord, WrittenObjects, find_write_history, read_record, store_update_record,
};
use oxrdf::Literal;
use penstock_resources::ingestion::{IngestionRecord, QuadCounts, RecordMode};
use penstock_store::Format;

#[test]
fn each_ingestion_is_recorded_with_its_counts() {
    let fixture = Fixture::new(machine());
    let answer = fixture.add(r#"{"uri": "urn:m", "name": "a"}"#);
    let kept = read_record(&fixture.store, &answer.ingestion_id).unwrap().unwrap();
    let add = RecordMode::Ingestion(Mode::Add);
    assert_eq!((kept.mode, kept.created, kept.caller.as_str()), (add, 1, "local"));
    assert_eq!(kept.sequence, fixture.store.stats().sequence);
    assert_eq!(
        (kept.business_object.as_deref(), kept.business_object_name.as_deref()),
        (Some("bo-1"), Some("Machine"))
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
fn an_update_of_quads_is_recorded_with_the_objects_that_it_changed() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "a"}"#);
    assert_eq!(fixture.store.format(), Format::V2);
    let node = NamedNode::new_unchecked;
    let quad = Quad::new(node("urn:m"), node("urn:p"), Literal::from("x"), GraphName::DefaultGraph);
    let quads = QuadCounts { inserted: 1, removed: 0 };
    let update =
        UpdateToRecord { caller: "local", api_key: None, traceparent: "00-1", bytes: 5, quads };
    let commit = fixture.store.transact::<_, GatewayError>(|transaction| {
        transaction.insert(quad.as_ref())?;
        store_update_record(transaction, &update, &Watch::default(), 10)
    });
    let (record, _) = commit.unwrap();
    assert_eq!((record.mode.name(), record.quads), ("SPARQL", Some(quads)));
    assert_eq!(list_records(&fixture.store, None, 1).unwrap(), std::slice::from_ref(&record));
    let history = find_write_history(&fixture.store, "urn:m").unwrap();
    assert_eq!(history.named_by.first(), Some(&record));
    // An older program would fail to list such records.
    assert_eq!(fixture.store.format(), Format::V3);
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

#[test]
fn a_lowered_limit_of_records_is_reached_over_several_ingestions() {
    let mut fixture = Fixture::new(machine());
    let answer = fixture.add(r#"{"name": "a"}"#);
    let first = read_record(&fixture.store, &answer.ingestion_id).unwrap().unwrap();
    let wrote = WrittenObjects::default();
    let stored = fixture.store.transact::<_, GatewayError>(|transaction| {
        for sequence in 1_000..1_600_u64 {
            let id = sequence.to_string();
            let record = IngestionRecord { id, sequence, ..first.clone() };
            store_record(transaction, &record, &wrote, 10_000)?;
        }
        Ok(())
    });
    stored.unwrap();
    fixture.limits.history = 1;
    for left in [102, 1] {
        fixture.add(r#"{"name": "b"}"#);
        assert_eq!(list_records(&fixture.store, None, 1_000).unwrap().len(), left);
    }
}
