//! Tests changes to objects that more objects contain than a change is recorded for.
use super::{Fixture, Kind};
use penstock_model::changes;
use penstock_model::ingest::Mode;

#[test]
fn a_change_to_an_object_in_many_others_causes_a_full_export() {
    let mut fixture = Fixture::with_max_holders(2);
    fixture.ingest(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![0]), (2, 1, vec![1])]);
    fixture.settle();
    let kinds = |fixture: &Fixture| -> Vec<Kind> {
        let files = &fixture.consumer.files[&("north".to_owned(), "Plant".to_owned())];
        files.values().map(|(kind, _)| *kind).collect()
    };
    fixture.ingest(1, Mode::Update, &[(0, 2, vec![])]);
    fixture.settle();
    assert_eq!(kinds(&fixture), [Kind::Full, Kind::Incremental], "two are recorded");

    fixture.ingest(0, Mode::Update, &[(2, 0, vec![0])]);
    fixture.settle();
    fixture.ingest(1, Mode::Update, &[(0, 0, vec![])]);
    let plant = fixture.catalogue.get("Plant").unwrap();
    let noted = {
        let store = fixture.store();
        let cursor = changes::cursor(&store.read(), &plant.object.id).unwrap().unwrap();
        changes::changed(&store.read(), &plant.object.id, cursor.open, None, 10).unwrap()
    };
    assert_eq!(noted, [], "three are not");
    let mut fixture = fixture.restart();
    fixture.settle();
    fixture.check();
    let expected = [Kind::Full, Kind::Incremental, Kind::Incremental, Kind::Full];
    assert_eq!(kinds(&fixture), expected);
    fixture.ingest(0, Mode::Update, &[(0, 0, vec![0])]);
    fixture.settle();
    assert_eq!(kinds(&fixture).last(), Some(&Kind::Incremental));
}
