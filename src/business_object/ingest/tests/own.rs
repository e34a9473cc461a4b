//! What may be changed with an API key for one Business Object alone.
use super::world::{World, machine, pointers};
use crate::business_object::ingest::{Answer, ApiKey, Body, Mode};
use crate::fault::{Fault, Kind};
use oxrdf::{Literal, NamedNode};

const BOILER: [&str; 3] = [
    "<urn:boiler> <http://p/name> \"secret\" <http://x/Boiler/>",
    "<urn:boiler> <http://p/parts> <urn:part> <http://x/Boiler/>",
    "<urn:part> <http://p/name> \"secret\" <http://x/Boiler/>",
];

/// With a boiler of another Business Object, whose part is its own too.
fn world() -> World {
    let world = World::new(machine());
    world.insert("urn:boiler", "http://p/name", Literal::from("secret"), "http://x/Boiler/");
    let part = NamedNode::new_unchecked("urn:part");
    world.insert("urn:boiler", "http://p/parts", part, "http://x/Boiler/");
    world.insert("urn:part", "http://p/name", Literal::from("secret"), "http://x/Boiler/");
    assert_eq!(world.quads(), BOILER);
    world
}

fn send(world: &World, is_bound: bool, mode: Mode, data: &str) -> Result<Answer, Fault> {
    let body = format!("{{\"data\": [{data}]}}");
    let mut request = world.request(mode, Body::Json(body.as_bytes()));
    request.api_key = Some(ApiKey { id: "key", is_bound });
    world.run(&request)
}

#[test]
fn an_object_of_another_business_object_is_neither_changed_nor_told_of() {
    let world = world();
    for (mode, data, pointer) in [
        (Mode::Add, r#"{"uri": "urn:boiler", "name": "x"}"#, "/data/0"),
        (Mode::Add, r#"{"uri": "urn:boiler", "name": "secret"}"#, "/data/0"),
        (Mode::Validate, r#"{"uri": "urn:boiler", "name": "x"}"#, "/data/0"),
        (Mode::Update, r#"{"uri": "urn:boiler", "name": "x"}"#, "/data/0"),
        (Mode::Replace, r#"{"uri": "urn:boiler", "weight": 1}"#, "/data/0"),
        (Mode::Delete, r#"{"uri": "urn:nothing"}, {"uri": "urn:boiler"}"#, "/data/1"),
        (Mode::Add, r#"{"motor": {"uri": "urn:boiler", "power": 1}}"#, "/data/0/motor"),
        (
            Mode::Replace,
            r#"{"uri": "urn:m", "parts": [{"uri": "urn:part", "weight": 1}]}"#,
            "/data/0/parts/0",
        ),
    ] {
        let fault = send(&world, true, mode, data).unwrap_err();
        assert_eq!(
            (fault.kind, pointers(&fault)),
            (Kind::Invalid, vec![pointer.to_owned()]),
            "{fault}"
        );
        assert!(!fault.to_string().contains("secret"), "{fault}");
        assert_eq!(world.quads(), BOILER);
    }
    send(&world, false, Mode::Delete, r#"{"uri": "urn:boiler"}"#).unwrap();
    assert_eq!(world.quads(), Vec::<String>::new());
}

#[test]
fn what_is_referred_to_stays_when_the_reference_goes() {
    for mode in [Mode::Replace, Mode::Delete] {
        let world = world();
        send(
            &world,
            true,
            Mode::Add,
            r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:boiler"}}"#,
        )
        .unwrap();
        // The motor is the one that is linked, and that one is not for this key.
        let fault = send(&world, true, Mode::Update, r#"{"uri": "urn:m", "motor": {"power": 1}}"#)
            .unwrap_err();
        assert_eq!(pointers(&fault), ["/data/0/motor"]);
        let data = if mode == Mode::Delete {
            r#"{"uri": "urn:m"}"#
        } else {
            r#"{"uri": "urn:m", "name": "m"}"#
        };
        let answer = send(&world, true, mode, data).unwrap();
        assert_eq!(answer.deleted, u64::from(mode == Mode::Delete));
        let left: Vec<String> =
            world.quads().into_iter().filter(|quad| !quad.starts_with("<urn:m>")).collect();
        assert_eq!(left, BOILER);
    }
}

#[test]
fn its_own_objects_are_changed_as_with_any_key() {
    let world = world();
    let whole = r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:e", "name": "e"}}"#;
    send(&world, true, Mode::Add, whole).unwrap();
    world.insert("urn:m", "http://p/weight", Literal::from(7), "http://x/Elsewhere/");
    send(&world, true, Mode::Update, r#"{"uri": "urn:m", "weight": 8, "motor": {"power": 5}}"#)
        .unwrap();
    send(&world, true, Mode::Replace, whole).unwrap();
    // It is no member, and stands in the graph of a namespace of the mapping.
    send(&world, true, Mode::Add, r#"{"uri": "urn:e", "tags": ["x"]}"#).unwrap();
    send(&world, true, Mode::Delete, r#"{"uri": "urn:e"}, {"uri": "urn:m"}"#).unwrap();
    assert_eq!(world.quads(), BOILER);
}
