//! Whatever fits a mapping comes back from the view as it was given.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod agreement;
mod data;
mod derive;
mod mappings;
mod text;
mod world;

use penstock_base::json::Json;
use penstock_model::ingest::{Mode, Status};
use proptest::prelude::*;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_was_ingested_comes_back_from_the_view(
        (shape, objects) in mappings::tree().prop_flat_map(|shape| {
            let objects = data::objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let world = World::new(&shape);
        let answer = world.send(Mode::Add, &objects).unwrap();
        prop_assert_eq!(answer.created, objects.len() as u64);
        for (object, outcome) in objects.iter().zip(&answer.objects) {
            let expected = text::expected(&shape, object, &format!("/data/{}", outcome.index), outcome);
            prop_assert_eq!(text::normal(&world.view(&outcome.uri)), expected);
        }
    }

    #[test]
    fn adding_twice_changes_nothing(
        (shape, objects) in mappings::tree().prop_flat_map(|shape| {
            let objects = data::named_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let world = World::new(&shape);
        world.send(Mode::Add, &objects).unwrap();
        let quads = world.quads();
        for mode in [Mode::Add, Mode::Update, Mode::Replace] {
            let again = world.send(mode, &objects).unwrap();
            prop_assert!(again.objects.iter().all(|o| o.status == Status::Unchanged), "{:?}", again);
            prop_assert_eq!(&world.quads(), &quads);
        }
    }

    #[test]
    fn the_order_of_fields_elements_and_objects_does_not_matter(
        (shape, objects) in mappings::tree().prop_flat_map(|shape| {
            let objects = data::named_objects(&shape);
            (Just(shape), objects)
        }),
        seed in any::<u64>(),
    ) {
        let mut shuffled = Json::Array(objects.clone());
        data::shuffle(&mut shuffled, &mut seed.max(1));
        let Json::Array(shuffled) = shuffled else { unreachable!() };
        for mode in [Mode::Add, Mode::Replace] {
            let (one, other) = (World::new(&shape), World::new(&shape));
            one.send(mode, &objects).unwrap();
            other.send(mode, &shuffled).unwrap();
            prop_assert_eq!(one.quads(), other.quads());
        }
    }

    #[test]
    fn an_export_into_an_empty_store_is_the_same_graph(
        (shape, objects) in mappings::linked().prop_flat_map(|shape| {
            let objects = data::linked_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let world = World::new(&shape);
        world.send(Mode::Add, &objects).unwrap();
        let exported = world.export();
        let other = World::new(&shape);
        other.send_text(Mode::Replace, &format!("{{\"data\":[{}]}}", exported.join(","))).unwrap();
        prop_assert_eq!(world.quads(), other.quads());
        prop_assert_eq!(exported, other.export());
    }

    #[test]
    fn replacing_leaves_nothing_of_what_was_there(
        (shape, [old, new]) in mappings::tree().prop_flat_map(|shape| {
            let versions = data::versions(&shape);
            (Just(shape), versions)
        }),
    ) {
        let (world, fresh) = (World::new(&shape), World::new(&shape));
        world.send(Mode::Add, &old).unwrap();
        world.send(Mode::Replace, &new).unwrap();
        fresh.send(Mode::Replace, &new).unwrap();
        prop_assert_eq!(world.quads(), fresh.quads());
    }

    #[test]
    fn deleting_everything_leaves_nothing(
        (shape, objects) in mappings::linked().prop_flat_map(|shape| {
            let objects = data::linked_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let world = World::new(&shape);
        let answer = world.send(Mode::Add, &objects).unwrap();
        let roots: Vec<String> =
            answer.objects.iter().map(|o| format!("{{\"uri\":\"{}\"}}", o.uri)).collect();
        world.send_text(Mode::Delete, &format!("{{\"data\":[{}]}}", roots.join(","))).unwrap();
        prop_assert_eq!(world.quads(), Vec::<String>::new());
    }
}
