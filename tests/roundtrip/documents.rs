//! Objects in documents, with values around them, are the same objects as in `data`.
use super::{data, fixture_of, mappings, text};
use penstock_base::json::Json;
use penstock_model::ingest::{Body, BodyForm, Mode, Request};
use penstock_model::mapping::{DocumentForm, Outer, Shape, Step};
use penstock_model::testing::Fixture;
use proptest::prelude::*;

/// Returns the form of documents in which each field of the root can be beside its object.
pub(crate) fn form_of(shape: &Shape) -> DocumentForm {
    let name = |name: &str| Step::Name(name.to_owned());
    let fields = shape.fields.iter().enumerate();
    let outer = fields
        .filter(|(_, field)| field.property().is_some() && !field.is_grouped())
        .map(|(index, field)| (index, Outer::Nearest(field.name.clone())));
    let items = vec![name("the list"), Step::Each, name("the item")];
    DocumentForm { items, outer: outer.collect() }
}

/// Moves every second field out of an object.
fn wrap(shape: &Shape, form: &DocumentForm, object: Json) -> Json {
    let Json::Object(members) = object else { panic!("{object}") };
    let movable = form.outer.iter().filter_map(|(index, _)| shape.fields.get(*index));
    let can_move = |name: &str| movable.clone().any(|field| field.name == name);
    let (mut around, mut inner) = (Vec::new(), Vec::new());
    for (index, member) in members.into_iter().enumerate() {
        if index % 2 == 1 && can_move(&member.0) {
            around.push(member);
        } else {
            inner.push(member);
        }
    }
    around.push(("the item".to_owned(), Json::Object(inner)));
    Json::Object(around)
}

/// Writes a document with these objects, and with values around them.
pub(crate) fn write(shape: &Shape, form: &DocumentForm, objects: &[Json]) -> String {
    let list = objects.iter().map(|object| wrap(shape, form, object.clone())).collect();
    Json::Object(vec![("the list".to_owned(), Json::Array(list))]).to_string()
}

/// Sends objects in a document.
pub(crate) fn send(fixture: &mut Fixture, shape: &Shape, mode: Mode, objects: &[Json]) {
    let form = form_of(shape);
    let document = write(shape, &form, objects);
    fixture.business_object.mapping.document = Some(Box::new(form));
    let request = fixture.request(mode, Body::Json(document.as_bytes()));
    fixture.run(&Request { form: BodyForm::Document, ..request }).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn objects_of_documents_are_those_of_data(
        (shape, objects) in data::with(mappings::tree(), data::named_objects),
    ) {
        let (plain, mut fixture) = (fixture_of(&shape), fixture_of(&shape));
        plain.send(Mode::Add, &text::elements(&objects)).unwrap();
        send(&mut fixture, &shape, Mode::Add, &objects);
        prop_assert_eq!(fixture.quads(), plain.quads());
    }
}
