//! Tests a change to an object that is nested in more objects than one change may record.
use super::*;
use penstock_model::change_feed;

#[test]
fn a_change_to_an_object_in_many_others_causes_a_full_export() {
    let mut fixture = Fixture::with_max_holders(2);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![0]), (2, 1, vec![1])]);
    fixture.settle_all();
    let kinds = |fixture: &Fixture| fixture.consumer.plant_kinds("north");
    fixture.ingest_objects(1, Mode::Update, &[(0, 2, vec![])]);
    fixture.settle_all();
    assert_eq!(
        kinds(&fixture),
        [ExportKind::Full, ExportKind::Incremental],
        "a change that affects two objects is recorded"
    );

    fixture.ingest_objects(0, Mode::Update, &[(2, 0, vec![0])]);
    fixture.settle_all();
    fixture.ingest_objects(1, Mode::Update, &[(0, 0, vec![])]);
    let plant = fixture.catalogue.get("Plant").unwrap();
    let noted = {
        let store = fixture.store();
        let cursor = change_feed::read_cursor(&store.read(), &plant.object.id).unwrap().unwrap();
        change_feed::list_changed(&store.read(), &plant.object.id, cursor.open, None, 10).unwrap()
    };
    assert_eq!(noted, [], "a change that affects three objects is not recorded");
    let mut fixture = fixture.restart();
    fixture.settle_all();
    fixture.assert_consumers_match();
    let expected =
        [ExportKind::Full, ExportKind::Incremental, ExportKind::Incremental, ExportKind::Full];
    assert_eq!(kinds(&fixture), expected);
    fixture.ingest_objects(0, Mode::Update, &[(0, 0, vec![0])]);
    fixture.settle_all();
    assert_eq!(kinds(&fixture).last(), Some(&ExportKind::Incremental));
}
