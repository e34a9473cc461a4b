//! What may be changed with an API key for one Business Object alone.
use super::world::{World, machine, pointers};
use crate::ingest::{Answer, ApiKey, Body, Mode, Status};
use crate::namespace::{self, Generator, Namespace};
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use penstock_base::fault::{Fault, Kind};

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
    // The quad in a graph of no namespace of the mapping stays.
    let weight = "<urn:m> <http://p/weight> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://x/Elsewhere/>";
    let mut left = [&BOILER[..], &[weight]].concat();
    left.sort_unstable();
    assert_eq!(world.quads(), left);
}

/// Defines the namespace of the boilers, which the mapping does not name, and one whose base holds all others.
fn define_others(world: &World) {
    for (name, base) in [("Boiler", "http://x/Boiler/"), ("Everything", "http://x")] {
        let namespace = Namespace {
            name: name.to_owned(),
            uri_base: base.to_owned(),
            generator: Generator::Uuid,
            created_at: String::new(),
        };
        world.store.transact(|transaction| namespace::put(transaction, namespace)).unwrap();
    }
}

fn insert_into_unnamed_graph(world: &World, subject: &str, property: &str, value: &str) {
    let node = NamedNode::new_unchecked;
    let quad =
        Quad::new(node(subject), node(property), Literal::from(value), GraphName::DefaultGraph);
    world.store.transact(|transaction| transaction.insert(quad.as_ref())).unwrap();
}

#[test]
fn a_new_uri_does_not_lie_in_another_namespace() {
    let world = World::new(machine());
    define_others(&world);
    let boiler = r#""uri": "http://x/Boiler/7", "name": "claimed""#;
    for (mode, data, pointer) in [
        (Mode::Add, format!("{{{boiler}}}"), "/data/0"),
        (Mode::Validate, format!("{{{boiler}}}"), "/data/0"),
        (Mode::Replace, format!("{{{boiler}}}"), "/data/0"),
        (Mode::Update, format!("{{{boiler}}}"), "/data/0"),
        (Mode::Add, format!(r#"{{"name": "m", "motor": {{{boiler}}}}}"#), "/data/0/motor"),
        (Mode::Add, format!(r#"{{"name": "m", "parts": [{{{boiler}}}]}}"#), "/data/0/parts/0"),
        (Mode::Add, r#"{"uri": "http://x/Boiler/", "name": "x"}"#.to_owned(), "/data/0"),
        (Mode::Add, r#"{"uri": "http://x/Valve/1", "name": "x"}"#.to_owned(), "/data/0"),
        (Mode::Add, r#"{"uri": "http://x", "name": "x"}"#.to_owned(), "/data/0"),
    ] {
        let fault = send(&world, true, mode, &data).unwrap_err();
        assert_eq!((fault.kind, pointers(&fault)), (Kind::Invalid, vec![pointer.to_owned()]));
        assert_eq!(world.quads(), Vec::<String>::new(), "{fault}");
    }
    let fault = send(&world, true, Mode::Add, &format!("{{{boiler}}}")).unwrap_err();
    assert!(fault.detail.contains(r#"lies in the namespace "Boiler""#), "{fault}");

    // An object that is only referred to is not claimed, and neither is it through its reference.
    send(
        &world,
        true,
        Mode::Add,
        r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "http://x/Boiler/7"}}"#,
    )
    .unwrap();
    let fault =
        send(&world, true, Mode::Update, r#"{"uri": "urn:m", "motor": {"power": 1}}"#).unwrap_err();
    assert_eq!(pointers(&fault), ["/data/0/motor"]);

    for uri in ["http://x/Machine/abc", "urn:uuid:7", "http://company/x/Boiler/7", "http://xy/1"] {
        send(&world, true, Mode::Add, &format!(r#"{{"uri": "{uri}", "name": "x"}}"#)).unwrap();
    }
    send(&world, false, Mode::Add, &format!("{{{boiler}}}")).unwrap();
}

#[test]
fn an_object_with_data_in_another_namespace_is_foreign_even_to_those_who_have_data_about_it() {
    let world = World::new(machine());
    define_others(&world);
    let whole = r#"{"uri": "urn:b", "name": "b", "motor": {"uri": "urn:e", "name": "e"}}"#;
    send(&world, true, Mode::Add, whole).unwrap();
    world.insert("urn:b", "http://p/pressure", Literal::from(3), "http://x/Boiler/");
    world.insert("urn:e", "http://p/pressure", Literal::from(3), "http://x/Boiler/");
    let before = world.quads();
    for (mode, data) in [
        (Mode::Add, r#"{"uri": "urn:b", "weight": 1}"#),
        (Mode::Validate, r#"{"uri": "urn:b", "weight": 1}"#),
        (Mode::Update, r#"{"uri": "urn:b", "name": "x"}"#),
        (Mode::Replace, r#"{"uri": "urn:b", "name": "x"}"#),
        (Mode::Delete, r#"{"uri": "urn:b"}"#),
    ] {
        let fault = send(&world, true, mode, data).unwrap_err();
        assert_eq!((fault.kind, pointers(&fault)), (Kind::Invalid, vec!["/data/0".to_owned()]));
        assert_eq!(world.quads(), before, "{mode}");
    }
    // Nor is it removed when nothing refers to it any more.
    let other = r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:e"}}"#;
    send(&world, true, Mode::Add, other).unwrap();
    send(&world, false, Mode::Delete, r#"{"uri": "urn:b"}"#).unwrap();
    send(&world, true, Mode::Delete, r#"{"uri": "urn:m"}"#).unwrap();
    assert_eq!(
        world.quads(),
        [
            "<urn:e> <http://p/name> \"e\" <http://x/Motor/>",
            "<urn:e> <http://p/pressure> \"3\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://x/Boiler/>",
        ]
    );
}

#[test]
fn quads_of_the_unnamed_graph_and_of_graphs_of_no_namespace_stay() {
    let whole =
        r#"{"uri": "urn:m", "name": "m", "tags": ["a"], "motor": {"uri": "urn:e", "name": "e"}}"#;
    let unnamed = ["<urn:e> <http://p/name> \"engine\"", "<urn:m> <http://p/name> \"machine\""];
    let with_unnamed = || {
        let world = World::new(machine());
        define_others(&world);
        send(&world, true, Mode::Add, whole).unwrap();
        insert_into_unnamed_graph(&world, "urn:m", "http://p/name", "machine");
        insert_into_unnamed_graph(&world, "urn:e", "http://p/name", "engine");
        world
    };
    for (mode, data, left, pointers) in [
        (
            Mode::Update,
            r#"{"uri": "urn:m", "name": "n"}"#,
            "<urn:m> <http://p/name> \"n\" <http://x/Machine/>",
            vec!["/data/0/name"],
        ),
        (
            Mode::Replace,
            r#"{"uri": "urn:m", "tags": ["b"]}"#,
            "<urn:m> <http://p/tags> \"b\" <http://x/Machine/>",
            vec!["/data/0/name"],
        ),
        (Mode::Delete, r#"{"uri": "urn:m"}"#, "", vec!["/data/0"]),
    ] {
        let world = with_unnamed();
        let answer = send(&world, true, mode, data).unwrap();
        let warned: Vec<&str> = answer.warnings.iter().map(|w| w.pointer.as_str()).collect();
        assert_eq!(warned, pointers, "{:?}", answer.warnings);
        let quads = world.quads();
        for quad in unnamed.iter().chain([&left]).filter(|quad| !quad.is_empty()) {
            assert!(quads.iter().any(|stored| stored == quad), "{mode}: {quad} in {quads:?}");
        }
        assert!(!quads.contains(&"<urn:m> <http://p/name> \"m\" <http://x/Machine/>".to_owned()));

        let world = with_unnamed();
        let answer = send(&world, false, mode, data).unwrap();
        assert_eq!(answer.warnings, []);
        assert!(!world.quads().contains(&unnamed[1].to_owned()), "{mode}");
    }

    let world = with_unnamed();
    insert_into_unnamed_graph(&world, "urn:u", "http://p/name", "u");
    insert_into_unnamed_graph(&world, "http://x/Boiler/7", "http://p/name", "boiler");
    let answer = send(&world, true, Mode::Delete, r#"{"uri": "urn:u"}"#).unwrap();
    assert_eq!((answer.objects[0].status, answer.deleted), (Status::Unchanged, 0));
    for mode in [Mode::Add, Mode::Delete] {
        let name = if mode == Mode::Add { r#", "weight": 1"# } else { "" };
        let data = format!(r#"{{"uri": "http://x/Boiler/7"{name}}}"#);
        assert_eq!(pointers(&send(&world, true, mode, &data).unwrap_err()), ["/data/0"]);
    }
    send(&world, true, Mode::Add, r#"{"uri": "urn:u", "weight": 1}"#).unwrap();
    send(&world, true, Mode::Delete, r#"{"uri": "urn:u"}"#).unwrap();
    assert!(world.quads().contains(&"<urn:u> <http://p/name> \"u\"".to_owned()));
}
