use super::*;
use crate::ingest::Mode;
use crate::mapping::compile;
use crate::testing::{Fixture, ingest_body, insert_quad};
use penstock_base::commit::GuardedStore;
use serde_json::json;

const MAPPING: &str = "
type: object
path: Plant:.
fields:
  name: {type: string, path: <urn:name>}
  owner: {type: resource, path: <urn:owner>}
  areas: {type: array, path: <urn:area>, elements: {type: object, path: Area:., fields: {label: {type: string, path: <urn:label>}, rooms: {type: array, path: <urn:room>, elements: {type: object, path: Room:., fields: {label: {type: string, path: <urn:label>}}}}}}}
";

fn fixture() -> Fixture {
    let fixture = Fixture::new(compile(MAPPING).unwrap().root);
    let store = GuardedStore::from(fixture.store.clone());
    let rooms =
        json!([{"uri": "urn:room:1", "label": "Hall"}, {"uri": "urn:room:2", "label": "Shed"}]);
    let plants = json!([
        {"uri": "urn:plant:1", "name": "North", "owner": "urn:owner", "areas": [{"uri": "urn:area:1", "label": "Intake", "rooms": rooms}]},
        {"uri": "urn:plant:2", "name": "South", "owner": "urn:owner"},
    ]);
    let body = json!({ "data": plants }).to_string();
    ingest_body(&store, &fixture.watch, &fixture.business_object, Mode::Replace, &body).unwrap();
    fixture
}

fn node(uri: &str) -> NamedNode {
    NamedNode::new_unchecked(uri)
}

#[test]
fn ancestors_lead_from_the_member_to_the_object_that_contains_it() {
    let fixture = fixture();
    let business_object = &fixture.business_object;
    let read = fixture.store.read();
    let find = |steps: &[usize], uri: &str| -> Vec<(String, Option<String>, String)> {
        let found = find_ancestors(&read, business_object, steps, &node(uri)).unwrap();
        let parts = |one: Ancestor| (one.uri.into_string(), one.label, one.field);
        found.into_iter().map(parts).collect()
    };
    let plant = ("urn:plant:1".to_owned(), Some("North".to_owned()), "areas".to_owned());
    let area = ("urn:area:1".to_owned(), Some("Intake".to_owned()), "rooms".to_owned());
    assert_eq!(find(&[2, 1], "urn:room:2"), [plant.clone(), area]);
    assert_eq!(find(&[2], "urn:area:1"), [plant]);
    assert_eq!(find(&[], "urn:plant:1"), []);
    assert_eq!(find(&[2, 1], "urn:room:9"), []);
}

#[test]
fn neighbours_are_counted_and_the_first_ones_are_named() {
    let fixture = fixture();
    insert_quad(&fixture.store, "urn:plant:1", rdf::TYPE.as_str(), node("urn:Plant"), "urn:g");
    let find = |uri: &str, limit: usize| {
        let read = fixture.store.read();
        let quads = read.quads_about(&NamedOrBlankNode::from(node(uri))).unwrap();
        find_neighbours(&read, &node(uri), &quads, |_| limit).unwrap()
    };
    let owner = find("urn:owner", 1);
    assert_eq!(owner.outgoing, []);
    let plants =
        LinkedObjects { predicate: node("urn:owner"), uris: vec![node("urn:plant:1")], total: 2 };
    assert_eq!((owner.incoming, owner.is_complete), (vec![plants], true));
    let plant = find("urn:plant:1", 5);
    let names: Vec<_> = plant.outgoing.iter().map(|one| one.predicate.as_str()).collect();
    assert_eq!(names, ["urn:area", "urn:owner"]);
    assert_eq!(plant.incoming, []);
    let rooms = vec![node("urn:room:1"), node("urn:room:2")];
    assert_eq!(find("urn:area:1", 5).outgoing[0].uris, rooms);
}
