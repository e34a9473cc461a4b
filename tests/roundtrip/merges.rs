//! A MERGE of a field, or of a group, changes nothing else, in a document too.
use crate::{data, documents, fixture_of, mappings, text};
use penstock_base::json::Json;
use penstock_model::ingest::Mode;
use penstock_model::mapping::{Field, Property, Shape};
use proptest::prelude::*;

/// Returns whether a field can be cleared, or get other values, without any effect on other objects or on defaults.
fn is_plain(property: &Property) -> bool {
    property.value.shape().is_none() && property.default_value().is_none()
}

/// Changes a field, or clears a group, of an object. Returns what a MERGE of it sends; `None` if the object would have no value
/// left.
fn change_part(shape: &Shape, object: &mut Json, new: &Json, seed: &mut u64) -> Option<Json> {
    let plain: Vec<&Field> = shape
        .iter_properties()
        .filter(|(_, _, property)| is_plain(property))
        .map(|(_, field, _)| field)
        .collect();
    let field = *plain.get(data::draw(seed, plain.len().max(1)))?;
    let mut changed = object.clone();
    let mut part = Json::Object(vec![("uri".to_owned(), object.member("uri")?.clone())]);
    let group: Vec<&Field> =
        shape.fields.iter().filter(|other| other.path().next() == field.path().next()).collect();
    let is_plain_group = group.iter().all(|field| field.property().is_some_and(is_plain));
    if field.is_grouped() && is_plain_group && data::draw(seed, 2) == 0 {
        for field in group {
            field.set_value(&mut changed, None);
        }
        let Json::Object(members) = &mut part else { return None };
        members.push((field.path().next()?.to_owned(), Json::Null));
    } else {
        // A MERGE of a language map keeps the languages that it does not give.
        let clears = field.property()?.value.language_map().is_some() || data::draw(seed, 3) == 0;
        let value = field.value_in(new).filter(|_| !clears).cloned().unwrap_or(Json::Null);
        field.set_value(&mut changed, Some(value.clone()));
        field.set_value(&mut part, Some(value));
    }
    if !data::has_value(shape, &changed) {
        return None;
    }
    *object = changed;
    Some(part)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_merge_changes_only_what_it_gives(
        (shape, [old, new]) in data::with(mappings::tree(), data::versions),
        seed in 1..u64::MAX,
    ) {
        let (mut changed, mut seed) = (old.clone(), seed);
        let pairs = changed.iter_mut().zip(&new);
        let parts: Vec<Json> = pairs
            .filter_map(|(object, new)| change_part(&shape, object, new, &mut seed))
            .collect();
        prop_assume!(!parts.is_empty());
        let (fixture, fresh) = (fixture_of(&shape), fixture_of(&shape));
        fixture.send(Mode::Add, &text::elements(&old)).unwrap();
        fixture.send(Mode::Merge, &text::elements(&parts)).unwrap();
        fresh.send(Mode::Add, &text::elements(&changed)).unwrap();
        prop_assert_eq!(fixture.quads(), fresh.quads());

        let mut fixture = fixture_of(&shape);
        fixture.send(Mode::Add, &text::elements(&old)).unwrap();
        documents::send(&mut fixture, &shape, Mode::Merge, &parts);
        prop_assert_eq!(fixture.quads(), fresh.quads());
    }
}
