//! Data that fits a mapping round-trips through the view.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agreement;
mod codes;
mod data;
mod derive;
mod documents;
mod incremental;
mod lists;
mod mappings;
mod maps;
mod merges;
mod readings;
mod recipes;
mod shapes;
mod structures;
mod text;
mod values;

use data::ROOT;
use penstock_base::json::Json;
use penstock_model::ingest::Mode;
use penstock_model::mapping::Shape;
use penstock_model::testing::Fixture;
use penstock_resources::ingestion::IngestedStatus;
use penstock_resources::namespace::Generator;
use proptest::prelude::*;

/// Generates mappings with every kind of field: trees with groups, maps, ordered arrays, and these below each other.
fn any_shape() -> BoxedStrategy<Shape> {
    prop_oneof![
        3 => mappings::tree(),
        1 => maps::simple(),
        1 => lists::simple(),
        1 => structures::object_with_structures("Root", 1),
    ]
    .boxed()
}

/// Creates a fixture with this mapping.
fn fixture_of(shape: &Shape) -> Fixture {
    Fixture::with_generator(shape.clone(), Generator::Uuid)
}

/// Returns the objects in the form of the view.
fn view_all(fixture: &Fixture) -> Vec<String> {
    fixture.members().iter().map(|uri| fixture.view(uri)).collect()
}

/// Checks that what the view shows of the object [`ROOT`] changes nothing in any mode. Checks that it gives the same quads in
/// an empty store, and that its deletion leaves no quad.
fn check_round_trip(shape: &Shape, object: &Json) -> Result<(), TestCaseError> {
    let fixture = fixture_of(shape);
    fixture.send(Mode::Add, &text::write(object)).unwrap();
    let (quads, shown) = (fixture.quads(), view_all(&fixture).join(","));
    for mode in [Mode::Add, Mode::Update, Mode::Replace, Mode::Merge] {
        let again = fixture.send(mode, &shown).unwrap();
        let is_unchanged = again.objects.iter().all(|o| o.status == IngestedStatus::Unchanged);
        prop_assert!(is_unchanged, "{:?}", again);
        prop_assert_eq!(&fixture.quads(), &quads);
    }
    let other = fixture_of(shape);
    other.send(Mode::Replace, &shown).unwrap();
    prop_assert_eq!(other.quads(), quads);
    fixture.send(Mode::Delete, &format!(r#"{{"uri":"{ROOT}"}}"#)).unwrap();
    prop_assert_eq!(fixture.quads(), Vec::<String>::new());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn ingested_data_round_trips_through_the_view(
        (shape, objects) in data::with(mappings::tree(), data::objects),
    ) {
        let fixture = fixture_of(&shape);
        let answer = fixture.send(Mode::Add, &text::elements(&objects)).unwrap();
        prop_assert_eq!(answer.created, objects.len() as u64);
        for (object, outcome) in objects.iter().zip(&answer.objects) {
            let expected = text::expected(&shape, object, &format!("/data/{}", outcome.index), outcome);
            prop_assert_eq!(text::normal(&fixture.view(&outcome.uri)), expected);
        }
    }

    #[test]
    fn adding_twice_has_no_effect(
        (shape, objects) in data::with(mappings::tree(), data::named_objects),
    ) {
        let fixture = fixture_of(&shape);
        fixture.send(Mode::Add, &text::elements(&objects)).unwrap();
        let quads = fixture.quads();
        for mode in [Mode::Add, Mode::Update, Mode::Replace] {
            let again = fixture.send(mode, &text::elements(&objects)).unwrap();
            prop_assert!(again.objects.iter().all(|o| o.status == IngestedStatus::Unchanged), "{:?}", again);
            prop_assert_eq!(&fixture.quads(), &quads);
        }
    }

    #[test]
    fn values_in_other_forms_give_the_same_graph(
        (shape, objects) in data::with(any_shape(), data::named_objects),
        seed in any::<u64>(),
    ) {
        let (mut others, mut seed) = (objects.clone(), seed.max(1));
        for object in &mut others {
            readings::rewrite(&shape, object, &mut seed);
        }
        for mode in [Mode::Add, Mode::Replace, Mode::Merge] {
            let (one, other) = (fixture_of(&shape), fixture_of(&shape));
            one.send(mode, &text::elements(&objects)).unwrap();
            other.send(mode, &text::elements(&others)).unwrap();
            prop_assert_eq!(one.quads(), other.quads());
        }
    }

    #[test]
    fn the_order_of_fields_elements_and_objects_does_not_matter(
        (shape, objects) in data::with(mappings::tree(), data::named_objects),
        seed in any::<u64>(),
    ) {
        let mut shuffled = Json::Array(objects.clone());
        data::shuffle(&mut shuffled, &mut seed.max(1));
        let Json::Array(shuffled) = shuffled else { unreachable!() };
        for mode in [Mode::Add, Mode::Replace] {
            let (one, other) = (fixture_of(&shape), fixture_of(&shape));
            one.send(mode, &text::elements(&objects)).unwrap();
            other.send(mode, &text::elements(&shuffled)).unwrap();
            prop_assert_eq!(one.quads(), other.quads());
        }
    }

    #[test]
    fn an_export_ingested_into_an_empty_store_gives_the_same_graph(
        (shape, objects) in data::with(mappings::linked(), data::linked_objects),
    ) {
        let fixture = fixture_of(&shape);
        fixture.send(Mode::Add, &text::elements(&objects)).unwrap();
        let exported = view_all(&fixture);
        let other = fixture_of(&shape);
        other.send(Mode::Replace, &exported.join(",")).unwrap();
        prop_assert_eq!(fixture.quads(), other.quads());
        prop_assert_eq!(exported, view_all(&other));
    }

    #[test]
    fn replacing_removes_all_previous_values(
        (shape, [old, new]) in data::with(mappings::tree(), data::versions),
    ) {
        let (fixture, fresh) = (fixture_of(&shape), fixture_of(&shape));
        fixture.send(Mode::Add, &text::elements(&old)).unwrap();
        fixture.send(Mode::Replace, &text::elements(&new)).unwrap();
        fresh.send(Mode::Replace, &text::elements(&new)).unwrap();
        prop_assert_eq!(fixture.quads(), fresh.quads());
    }

    #[test]
    fn deleting_everything_empties_the_store(
        (shape, objects) in data::with(mappings::linked(), data::linked_objects),
    ) {
        let fixture = fixture_of(&shape);
        let answer = fixture.send(Mode::Add, &text::elements(&objects)).unwrap();
        let roots: Vec<String> =
            answer.objects.iter().map(|o| format!("{{\"uri\":\"{}\"}}", o.uri)).collect();
        fixture.send(Mode::Delete, &roots.join(",")).unwrap();
        prop_assert_eq!(fixture.quads(), Vec::<String>::new());
    }
}
