//! Changes with an API key that is limited to certain Business Objects.
use super::*;
use crate::catalogue::Requester;
use crate::ingest::{ObjectCondition, ingest};
use crate::resource::Compiled;
use crate::testing::{LIMITS, local_request, open_store, put_definition, put_namespace};
use crate::view::compute_etag;
use oxrdf::Literal;
use penstock_base::Preconditions;
use penstock_base::commit::NoClient;
use penstock_store::{Error, Transaction};

const BOILER: [&str; 3] = [
    "<urn:boiler> <http://p/name> \"secret\" <http://x/Boiler/>",
    "<urn:boiler> <http://p/parts> <urn:part> <http://x/Boiler/>",
    "<urn:part> <http://p/name> \"secret\" <http://x/Boiler/>",
];

/// Creates a fixture with a boiler of another Business Object, whose part is foreign too.
fn fixture() -> Fixture {
    let fixture = Fixture::new(machine());
    fixture.insert("urn:boiler", "http://p/name", Literal::from("secret"), "http://x/Boiler/");
    let part = NamedNode::new_unchecked("urn:part");
    fixture.insert("urn:boiler", "http://p/parts", part, "http://x/Boiler/");
    fixture.insert("urn:part", "http://p/name", Literal::from("secret"), "http://x/Boiler/");
    assert_eq!(fixture.quads(), BOILER);
    fixture
}

fn send(fixture: &Fixture, is_bound: bool, mode: Mode, data: &str) -> Result<Answer, GatewayError> {
    let body = format!("{{\"data\": [{data}]}}");
    let mut request = fixture.request(mode, Body::Json(body.as_bytes()));
    request.api_key = Some("key");
    let own = [&fixture.business_object];
    request.write_scope = is_bound.then_some(&own);
    fixture.run(&request)
}

#[test]
fn an_object_of_another_business_object_is_neither_changed_nor_revealed() {
    let fixture = fixture();
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
        let error = send(&fixture, true, mode, data).unwrap_err();
        assert_eq!(
            (error.class, pointers(&error)),
            (ErrorClass::Invalid, vec![pointer.to_owned()]),
            "{error}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(fixture.quads(), BOILER);
    }
    send(&fixture, false, Mode::Delete, r#"{"uri": "urn:boiler"}"#).unwrap();
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn a_foreign_object_stays_when_its_reference_is_removed() {
    for mode in [Mode::Replace, Mode::Delete] {
        let fixture = fixture();
        send(
            &fixture,
            true,
            Mode::Add,
            r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:boiler"}}"#,
        )
        .unwrap();
        // The linked motor is foreign to this key.
        let error =
            send(&fixture, true, Mode::Update, r#"{"uri": "urn:m", "motor": {"power": 1}}"#)
                .unwrap_err();
        assert_eq!(pointers(&error), ["/data/0/motor"]);
        let data = if mode == Mode::Delete {
            r#"{"uri": "urn:m"}"#
        } else {
            r#"{"uri": "urn:m", "name": "m"}"#
        };
        let answer = send(&fixture, true, mode, data).unwrap();
        assert_eq!(answer.deleted, u64::from(mode == Mode::Delete));
        let left: Vec<String> =
            fixture.quads().into_iter().filter(|quad| !quad.starts_with("<urn:m>")).collect();
        assert_eq!(left, BOILER);
    }
}

#[test]
fn own_objects_are_changed_as_with_any_key() {
    let fixture = fixture();
    let whole = r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:e", "name": "e"}}"#;
    send(&fixture, true, Mode::Add, whole).unwrap();
    fixture.insert("urn:m", "http://p/weight", Literal::from(7), "http://x/Elsewhere/");
    send(&fixture, true, Mode::Update, r#"{"uri": "urn:m", "weight": 8, "motor": {"power": 5}}"#)
        .unwrap();
    send(&fixture, true, Mode::Replace, whole).unwrap();
    // This object is not a member, but it is in the graph of a namespace of the mapping.
    send(&fixture, true, Mode::Add, r#"{"uri": "urn:e", "tags": ["x"]}"#).unwrap();
    send(&fixture, true, Mode::Delete, r#"{"uri": "urn:e"}, {"uri": "urn:m"}"#).unwrap();
    // The quad in a graph of no namespace of the mapping stays.
    let weight = "<urn:m> <http://p/weight> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://x/Elsewhere/>";
    let mut left = [&BOILER[..], &[weight]].concat();
    left.sort_unstable();
    assert_eq!(fixture.quads(), left);
}

#[test]
fn an_object_that_a_request_leaves_outside_the_scope_is_not_changed_again() {
    for count in [1, 200] {
        let fixture = Fixture::new(machine());
        send(&fixture, false, Mode::Add, r#"{"uri": "urn:m", "name": "m"}"#).unwrap();
        for tag in 0..count {
            let tag = Literal::from(tag.to_string());
            fixture.insert("urn:m", "http://p/tags", tag, "http://x/Elsewhere/");
        }
        let data = r#"{"uri": "urn:m", "name": null}, {"uri": "urn:m", "name": "n"}"#;
        let error = send(&fixture, true, Mode::Merge, data).unwrap_err();
        assert_eq!(pointers(&error), ["/data/1"], "{error}");
    }
}

/// Defines the boilers' namespace, which the mapping does not name, and one whose base contains all others.
fn define_others(fixture: &Fixture) {
    for (name, base) in [("Boiler", "http://x/Boiler/"), ("Everything", "http://x")] {
        put_namespace(&fixture.store, name, base, Generator::Uuid);
    }
}

fn insert_into_unnamed_graph(fixture: &Fixture, subject: &str, property: &str, value: &str) {
    let node = NamedNode::new_unchecked;
    let quad =
        Quad::new(node(subject), node(property), Literal::from(value), GraphName::DefaultGraph);
    fixture.store.transact(|transaction| transaction.insert(quad.as_ref())).unwrap();
}

#[test]
fn a_new_uri_must_not_lie_in_another_namespace() {
    let fixture = Fixture::new(machine());
    define_others(&fixture);
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
        let error = send(&fixture, true, mode, &data).unwrap_err();
        assert_eq!(
            (error.class, pointers(&error)),
            (ErrorClass::Invalid, vec![pointer.to_owned()])
        );
        assert_eq!(fixture.quads(), Vec::<String>::new(), "{error}");
    }
    let error = send(&fixture, true, Mode::Add, &format!("{{{boiler}}}")).unwrap_err();
    assert!(error.detail.contains(r#"lies in the namespace "Boiler""#), "{error}");

    // An object that is only referred to is not claimed, not even through its reference.
    send(
        &fixture,
        true,
        Mode::Add,
        r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "http://x/Boiler/7"}}"#,
    )
    .unwrap();
    let error = send(&fixture, true, Mode::Update, r#"{"uri": "urn:m", "motor": {"power": 1}}"#)
        .unwrap_err();
    assert_eq!(pointers(&error), ["/data/0/motor"]);

    for uri in ["http://x/Machine/abc", "urn:uuid:7", "http://company/x/Boiler/7", "http://xy/1"] {
        send(&fixture, true, Mode::Add, &format!(r#"{{"uri": "{uri}", "name": "x"}}"#)).unwrap();
    }
    send(&fixture, false, Mode::Add, &format!("{{{boiler}}}")).unwrap();
}

#[test]
fn an_object_with_data_in_another_namespace_is_foreign() {
    let fixture = Fixture::new(machine());
    define_others(&fixture);
    let whole = r#"{"uri": "urn:b", "name": "b", "motor": {"uri": "urn:e", "name": "e"}}"#;
    send(&fixture, true, Mode::Add, whole).unwrap();
    fixture.insert("urn:b", "http://p/pressure", Literal::from(3), "http://x/Boiler/");
    fixture.insert("urn:e", "http://p/pressure", Literal::from(3), "http://x/Boiler/");
    let before = fixture.quads();
    for (mode, data) in [
        (Mode::Add, r#"{"uri": "urn:b", "weight": 1}"#),
        (Mode::Validate, r#"{"uri": "urn:b", "weight": 1}"#),
        (Mode::Update, r#"{"uri": "urn:b", "name": "x"}"#),
        (Mode::Replace, r#"{"uri": "urn:b", "name": "x"}"#),
        (Mode::Delete, r#"{"uri": "urn:b"}"#),
    ] {
        let error = send(&fixture, true, mode, data).unwrap_err();
        assert_eq!(
            (error.class, pointers(&error)),
            (ErrorClass::Invalid, vec!["/data/0".to_owned()])
        );
        assert_eq!(fixture.quads(), before, "{mode}");
    }
    // It is not removed either when nothing refers to it any more.
    let other = r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:e"}}"#;
    send(&fixture, true, Mode::Add, other).unwrap();
    send(&fixture, false, Mode::Delete, r#"{"uri": "urn:b"}"#).unwrap();
    send(&fixture, true, Mode::Delete, r#"{"uri": "urn:m"}"#).unwrap();
    assert_eq!(
        fixture.quads(),
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
        let fixture = Fixture::new(machine());
        define_others(&fixture);
        send(&fixture, true, Mode::Add, whole).unwrap();
        insert_into_unnamed_graph(&fixture, "urn:m", "http://p/name", "machine");
        insert_into_unnamed_graph(&fixture, "urn:e", "http://p/name", "engine");
        fixture
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
        let fixture = with_unnamed();
        let answer = send(&fixture, true, mode, data).unwrap();
        let warned: Vec<&str> = answer.warnings.iter().map(|w| w.pointer.as_str()).collect();
        assert_eq!(warned, pointers, "{:?}", answer.warnings);
        let quads = fixture.quads();
        for quad in unnamed.iter().chain([&left]).filter(|quad| !quad.is_empty()) {
            assert!(quads.iter().any(|stored| stored == quad), "{mode}: {quad} in {quads:?}");
        }
        assert!(!quads.contains(&"<urn:m> <http://p/name> \"m\" <http://x/Machine/>".to_owned()));

        let fixture = with_unnamed();
        let answer = send(&fixture, false, mode, data).unwrap();
        assert_eq!(answer.warnings, []);
        assert!(!fixture.quads().contains(&unnamed[1].to_owned()), "{mode}");
    }

    let fixture = with_unnamed();
    insert_into_unnamed_graph(&fixture, "urn:u", "http://p/name", "u");
    insert_into_unnamed_graph(&fixture, "http://x/Boiler/7", "http://p/name", "boiler");
    let answer = send(&fixture, true, Mode::Delete, r#"{"uri": "urn:u"}"#).unwrap();
    assert_eq!((answer.objects[0].status, answer.deleted), (IngestedStatus::Unchanged, 0));
    for mode in [Mode::Add, Mode::Delete] {
        let name = if mode == Mode::Add { r#", "weight": 1"# } else { "" };
        let data = format!(r#"{{"uri": "http://x/Boiler/7"{name}}}"#);
        assert_eq!(pointers(&send(&fixture, true, mode, &data).unwrap_err()), ["/data/0"]);
    }
    send(&fixture, true, Mode::Add, r#"{"uri": "urn:u", "weight": 1}"#).unwrap();
    send(&fixture, true, Mode::Delete, r#"{"uri": "urn:u"}"#).unwrap();
    assert!(fixture.quads().contains(&"<urn:u> <http://p/name> \"u\"".to_owned()));
}

#[test]
fn a_scope_that_changes_before_the_commit_refuses_the_request() {
    let (_dir, store) = open_store();
    let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
    let define = |name: &str, config: &str| {
        put_definition(&catalogue, &serde_json::json!({"name": name, "config": config}))
    };
    let fields = "fields: {name: {type: string, path: <urn:name>}}";
    let pump = define("Pump", &format!("type: object\npath: Pump:.\n{fields}"));
    let boiler = define("Boiler", &format!("type: object\npath: Boiler:.\n{fields}"));
    let guarded = GuardedStore::from(store);
    let send = |other: &Compiled| {
        let scope = [&*pump, other];
        let body = Body::Json(br#"{"data": [{"name": "a"}]}"#);
        let request = local_request(catalogue.watch(), &pump, Mode::Add, body);
        let request = Request { api_key: Some("k"), write_scope: Some(&scope), ..request };
        ingest(&guarded, &LIMITS, &request).map(drop)
    };
    send(&boiler).unwrap();
    let replaced = define("Boiler", &format!("type: object\npath: Valve:.\n{fields}"));
    let error = send(&boiler).unwrap_err();
    assert!(matches!(error.class, ErrorClass::Unavailable(_)), "{error}");
    send(&replaced).unwrap();
    catalogue
        .delete(Requester::new(&NoClient, "admin-1"), "Boiler", Preconditions::default())
        .unwrap();
    let error = send(&replaced).unwrap_err();
    assert!(error.detail.contains("replaced or deleted"), "{error}");
}

/// Answers are the same for an object of another Business Object and for one that does not exist.
#[test]
fn no_answer_tells_whether_an_object_of_others_exists() {
    let fixture = Fixture::new(machine());
    define_others(&fixture);
    fixture.insert(
        "http://x/Boiler/seven",
        "http://p/name",
        Literal::from("b"),
        "http://x/Boiler/",
    );
    let tag = ObjectCondition::HasTag(vec![compute_etag(
        br#"{"uri":"http://x/Boiler/seven","name":"b"}"#,
    )]);
    for (mode, condition) in [
        (Mode::Validate, None),
        (Mode::Add, None),
        (Mode::Delete, None),
        (Mode::Update, Some(ObjectCondition::Exists)),
        (Mode::Update, Some(tag.clone())),
        (Mode::Replace, Some(ObjectCondition::Missing)),
        (Mode::Delete, Some(ObjectCondition::Exists)),
        (Mode::Delete, Some(tag)),
    ] {
        let answer = |local: &str| {
            let name = if mode == Mode::Delete { "" } else { r#", "name": "b""# };
            let body = format!(r#"{{"data": [{{"uri": "http://x/Boiler/{local}"{name}}}]}}"#);
            let own = [&fixture.business_object];
            let request = fixture.request(mode, Body::Json(body.as_bytes()));
            let condition = condition.as_ref();
            let request =
                Request { api_key: Some("key"), write_scope: Some(&own), condition, ..request };
            let error = fixture.run(&request).unwrap_err();
            (error.class, error.to_string().replace(local, "it"))
        };
        assert_eq!(answer("seven"), answer("eight"), "{mode} {condition:?}");
    }
}

/// Stores this many tags of an object in a graph of no namespace.
fn store_foreign_tags(fixture: &Fixture, uri: &str, count: usize) {
    let store = |transaction: &mut Transaction<'_>| {
        for tag in 0..count {
            let node = NamedNode::new_unchecked;
            let tag = Literal::from(tag.to_string());
            let (tags, graph) = (node("http://p/tags"), node("http://x/Elsewhere/"));
            transaction.insert(Quad::new(node(uri), tags, tag, graph).as_ref())?;
        }
        Ok::<_, Error>(())
    };
    fixture.store.transact(store).unwrap();
}

/// Sends data with a key for the Business Object, which leaves out objects with errors.
fn skip(fixture: &Fixture, mode: Mode, data: &str) -> Answer {
    let body = format!("{{\"data\": [{data}]}}");
    let own = [&fixture.business_object];
    let request = fixture.request(mode, Body::Json(body.as_bytes()));
    let (api_key, write_scope) = (Some("key"), Some(&own[..]));
    let request = Request { api_key, write_scope, on_error: OnError::Skip, ..request };
    fixture.run(&request).unwrap()
}

#[test]
fn a_large_object_of_others_is_read_once() {
    let count_steps = |count: usize| {
        let fixture = Fixture::new(machine());
        store_foreign_tags(&fixture, "urn:boiler", count);
        let before = fixture.store.step_count();
        let data = vec![r#"{"uri": "urn:boiler", "name": "x"}"#; count].join(",");
        assert_eq!(skip(&fixture, Mode::Add, &data).rejected.len(), count);
        fixture.store.step_count() - before
    };
    let (few, many) = (count_steps(200), count_steps(1_600));
    assert!(many < 20 * few, "{few}, {many}");
}

#[test]
fn what_a_rejected_object_removes_does_not_refuse_the_objects_after_it() {
    let fixture = Fixture::new(machine());
    store_foreign_tags(&fixture, "urn:o", 200);
    fixture.insert("urn:o", "http://p/name", Literal::from("o"), "http://x/Motor/");
    // It removes the only value of the key, so it may not change the object again.
    let wrong = r#"{"uri": "urn:p", "motor": {"uri": "urn:o", "name": null}, "parts": [{"uri": "urn:o", "name": "x"}]}"#;
    let valid = r#"{"uri": "urn:q", "motor": {"uri": "urn:o", "name": "y"}}"#;
    let answer = skip(&fixture, Mode::Merge, &format!("{wrong}, {valid}"));
    let rejected: Vec<usize> = answer.rejected.iter().map(|rejected| rejected.index).collect();
    assert_eq!(rejected, [0]);
    assert!(answer.rejected[0].errors[0].message.contains("urn:o has data outside"));
    assert_eq!(answer.created, 1);
}
