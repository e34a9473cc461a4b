use super::world::{World, machine, many, number, required, shape, string};
use crate::ingest::{Mode, Status};
use penstock_base::fault::Kind;

#[test]
fn the_fields_present_are_replaced_and_the_others_stay() {
    let world = World::new(machine());
    world.add(r#"{"uri": "urn:m", "name": "Press", "weight": 1, "tags": ["a", "b"], "motor": {"uri": "urn:e", "name": "e", "power": 1}}"#);
    let answer = world
        .send(
            Mode::Update,
            r#"{"uri": "urn:m", "weight": 2, "tags": ["b", "c"], "motor": {"power": 9}}"#,
        )
        .unwrap();
    assert_eq!(answer.objects[0].status, Status::Updated);
    assert_eq!(
        world.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"Press","weight":2,"tags":["b","c"],"motor":{"uri":"urn:e","name":"e","power":9},"parts":[]}"#
    );
    let again = world.send(Mode::Update, r#"{"uri": "urn:m", "weight": 2}"#).unwrap();
    assert_eq!((again.updated, again.unchanged), (0, 1));
}

#[test]
fn an_empty_array_clears_and_null_does_not() {
    let world = World::new(machine());
    world.add(
        r#"{"uri": "urn:m", "name": "x", "tags": ["a"], "parts": [{"uri": "urn:p", "name": "p"}]}"#,
    );
    assert_eq!(
        world
            .send(Mode::Update, r#"{"uri": "urn:m", "name": null, "tags": null}"#)
            .unwrap()
            .unchanged,
        1
    );
    let answer = world.send(Mode::Update, r#"{"uri": "urn:m", "tags": [], "parts": []}"#).unwrap();
    assert_eq!((answer.updated, answer.deleted), (1, 0));
    assert_eq!(
        world.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"x","tags":[],"parts":[]}"#
    );
    assert_eq!(world.quads().len(), 2, "UPDATE removes no nested objects");
}

#[test]
fn an_unknown_or_missing_uri_is_refused() {
    let world = World::new(machine());
    let data = r#"{"uri": "urn:m", "name": "x"}, {"name": "y"}"#;
    assert_eq!(world.refused(Mode::Update, data, Kind::Invalid), ["/data/0", "/data/1"]);
}

#[test]
fn what_is_required_cannot_be_emptied() {
    let world = World::new(shape("Machine", vec![required(many(string("tags"))), number("n")]));
    world.add(r#"{"uri": "urn:m", "tags": ["x"]}"#);
    let empty = r#"{"uri": "urn:m", "tags": []}"#;
    assert_eq!(world.refused(Mode::Update, empty, Kind::Invalid), ["/data/0/tags"]);
    assert_eq!(world.send(Mode::Update, r#"{"uri": "urn:m", "n": 1}"#).unwrap().updated, 1);
}

#[test]
fn one_object_twice_must_say_the_same() {
    let world = World::new(machine());
    world.add(r#"{"uri": "urn:m", "name": "x"}"#);
    let data = r#"{"uri": "urn:m", "name": "y"}, {"uri": "urn:m", "name": "z"}"#;
    assert_eq!(world.refused(Mode::Update, data, Kind::Invalid), ["/data/1/name"]);
    let data = r#"{"uri": "urn:m", "tags": ["a", "b"]}, {"uri": "urn:m", "tags": ["b", "a"]}"#;
    let answer = world.send(Mode::Update, data).unwrap();
    assert_eq!((answer.updated, answer.unchanged), (1, 1));
}

#[test]
fn values_in_other_graphs_are_replaced_too() {
    let world = World::new(machine());
    world.add(r#"{"uri": "urn:m", "name": "x"}"#);
    world.insert("urn:m", "http://p/name", oxrdf::Literal::from("old"), "urn:other");
    world.send(Mode::Update, r#"{"uri": "urn:m", "name": "new"}"#).unwrap();
    assert_eq!(world.quads(), ["<urn:m> <http://p/name> \"new\" <http://x/Machine/>"]);
}
