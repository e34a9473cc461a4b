//! What more objects hold than a change is noted for, in the world of the model.
use super::{Kind, World};
use penstock_model::changes;
use penstock_model::ingest::Mode;

#[test]
fn what_many_objects_hold_is_exported_in_full_and_not_noted_for_each() {
    let mut world = World::noting(2);
    world.ingest(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![0]), (2, 1, vec![1])]);
    world.settle();
    let kinds = |world: &World| -> Vec<Kind> {
        let files = &world.consumer.files[&("north".to_owned(), "Plant".to_owned())];
        files.values().map(|(kind, _)| *kind).collect()
    };
    world.ingest(1, Mode::Update, &[(0, 2, vec![])]);
    world.settle();
    assert_eq!(kinds(&world), [Kind::Full, Kind::Incremental], "two are noted");

    world.ingest(0, Mode::Update, &[(2, 0, vec![0])]);
    world.settle();
    world.ingest(1, Mode::Update, &[(0, 0, vec![])]);
    let plant = world.catalogue.get("Plant").unwrap();
    let noted = {
        let store = world.store();
        let cursor = changes::cursor(&store.read(), &plant.object.id).unwrap().unwrap();
        changes::changed(&store.read(), &plant.object.id, cursor.open, None, 10).unwrap()
    };
    assert_eq!(noted, [], "three are not");
    let mut world = world.restart();
    world.settle();
    world.check();
    let expected = [Kind::Full, Kind::Incremental, Kind::Incremental, Kind::Full];
    assert_eq!(kinds(&world), expected);
    world.ingest(0, Mode::Update, &[(0, 0, vec![0])]);
    world.settle();
    assert_eq!(kinds(&world).last(), Some(&Kind::Incremental));
}
