//! Data that fits a mapping round-trips through the view.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreement;
mod data;
mod derive;
mod fixture;
mod mappings;
mod text;

use fixture::Fixture;
use penstock_base::json::Json;
use penstock_model::ingest::{Mode, Status};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ingested_data_round_trips_through_the_view(
        (shape, objects) in mappings::tree().prop_flat_map(|shape| {
            let objects = data::objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let fixture = Fixture::new(&shape);
        let answer = fixture.send(Mode::Add, &objects).unwrap();
        prop_assert_eq!(answer.created, objects.len() as u64);
        for (object, outcome) in objects.iter().zip(&answer.objects) {
            let expected = text::expected(&shape, object, &format!("/data/{}", outcome.index), outcome);
            prop_assert_eq!(text::normal(&fixture.view(&outcome.uri)), expected);
        }
    }

    #[test]
    fn adding_twice_has_no_effect(
        (shape, objects) in mappings::tree().prop_flat_map(|shape| {
            let objects = data::named_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let fixture = Fixture::new(&shape);
        fixture.send(Mode::Add, &objects).unwrap();
        let quads = fixture.quads();
        for mode in [Mode::Add, Mode::Update, Mode::Replace] {
            let again = fixture.send(mode, &objects).unwrap();
            prop_assert!(again.objects.iter().all(|o| o.status == Status::Unchanged), "{:?}", again);
            prop_assert_eq!(&fixture.quads(), &quads);
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
            let (one, other) = (Fixture::new(&shape), Fixture::new(&shape));
            one.send(mode, &objects).unwrap();
            other.send(mode, &shuffled).unwrap();
            prop_assert_eq!(one.quads(), other.quads());
        }
    }

    #[test]
    fn an_export_ingested_into_an_empty_store_gives_the_same_graph(
        (shape, objects) in mappings::linked().prop_flat_map(|shape| {
            let objects = data::linked_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let fixture = Fixture::new(&shape);
        fixture.send(Mode::Add, &objects).unwrap();
        let exported = fixture.export();
        let other = Fixture::new(&shape);
        other.send_text(Mode::Replace, &format!("{{\"data\":[{}]}}", exported.join(","))).unwrap();
        prop_assert_eq!(fixture.quads(), other.quads());
        prop_assert_eq!(exported, other.export());
    }

    #[test]
    fn replacing_removes_all_previous_values(
        (shape, [old, new]) in mappings::tree().prop_flat_map(|shape| {
            let versions = data::versions(&shape);
            (Just(shape), versions)
        }),
    ) {
        let (fixture, fresh) = (Fixture::new(&shape), Fixture::new(&shape));
        fixture.send(Mode::Add, &old).unwrap();
        fixture.send(Mode::Replace, &new).unwrap();
        fresh.send(Mode::Replace, &new).unwrap();
        prop_assert_eq!(fixture.quads(), fresh.quads());
    }

    #[test]
    fn deleting_everything_empties_the_store(
        (shape, objects) in mappings::linked().prop_flat_map(|shape| {
            let objects = data::linked_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        let fixture = Fixture::new(&shape);
        let answer = fixture.send(Mode::Add, &objects).unwrap();
        let roots: Vec<String> =
            answer.objects.iter().map(|o| format!("{{\"uri\":\"{}\"}}", o.uri)).collect();
        fixture.send_text(Mode::Delete, &format!("{{\"data\":[{}]}}", roots.join(","))).unwrap();
        prop_assert_eq!(fixture.quads(), Vec::<String>::new());
    }
}
