//! Objects in documents, with values around them, are the same objects as in `data`.
use super::{data, fixture_of, mappings, text};
use penstock_base::json::{self, Json, MAX_NESTING};
use penstock_model::ingest::{Body, BodyForm, Mode, Request};
use penstock_model::mapping::{DocumentForm, Outer, Shape, Step};
use proptest::prelude::*;

/// Returns the form of documents in which each field of the root can be beside its object.
fn form_of(shape: &Shape) -> DocumentForm {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn objects_of_documents_are_those_of_data(
        (shape, objects) in data::with(mappings::tree(), data::named_objects),
    ) {
        let elements = text::elements(&objects);
        let plain = fixture_of(&shape);
        plain.send(Mode::Add, &elements).unwrap();

        let mut fixture = fixture_of(&shape);
        let form = form_of(&shape);
        let list = json::parse(format!("[{elements}]").as_bytes(), MAX_NESTING).unwrap();
        let Json::Array(list) = list else { panic!("{list}") };
        let list = list.into_iter().map(|object| wrap(&shape, &form, object)).collect();
        let document = Json::Object(vec![("the list".to_owned(), Json::Array(list))]).to_string();
        fixture.business_object.mapping.document = Some(Box::new(form));
        let body = Body::Json(document.as_bytes());
        let request = fixture.request(Mode::Add, body);
        fixture.run(&Request { form: BodyForm::Document, ..request }).unwrap();
        prop_assert_eq!(fixture.quads(), plain.quads());
    }
}
