use super::change::MAX_NAMESPACES;
use super::*;
use crate::testing::{insert_quad, open_store};
use oxrdf::{Literal, Quad};
use penstock_base::error::Place;
use penstock_store::{Store, Transaction};
use std::collections::HashSet;

fn namespace(name: &str, base: &str, generator: Generator) -> Namespace {
    Namespace {
        name: name.to_owned(),
        uri_base: base.to_owned(),
        generator,
        created_at: String::new(),
    }
}

fn store_namespace(
    store: &Store,
    namespace: &Namespace,
) -> Result<(Namespace, bool), GatewayError> {
    let (put, _) = store.transact(|t| put(t, namespace.clone()))?;
    let is_created = put.is_created();
    Ok((put.into_value(), is_created))
}

fn mint_in(store: &Store, namespace: &Namespace) -> String {
    store.transact(|t| mint_identifier(t, namespace)).unwrap().0.into_string()
}

fn insert_subject(store: &Store, subject: &str, graph: &str) {
    insert_quad(store, subject, "http://e/p", Literal::from("x"), graph);
}

#[test]
fn a_namespace_is_created_once_and_changed_while_unused() {
    let (_dir, store) = open_store();
    let first = namespace("Plant", "http://e/id/", Generator::Uuid);
    let (created, new) = store_namespace(&store, &first).unwrap();
    assert!(new && !created.created_at.is_empty());
    assert_eq!(store_namespace(&store, &first).unwrap(), (created.clone(), false));

    let changed = namespace("Plant", "http://e/plant#", Generator::Counter);
    let (answer, new) = store_namespace(&store, &changed).unwrap();
    assert!(!new);
    assert_eq!(answer, Namespace { created_at: created.created_at, ..changed });
    assert_eq!(get(&store.read(), "Plant").unwrap(), Some(answer));
    assert_eq!(get(&store.read(), "plant").unwrap(), None);
}

#[test]
fn the_number_of_namespaces_is_limited() {
    let (_dir, store) = open_store();
    let put = |transaction: &mut Transaction<'_>, number: usize| {
        let base = format!("http://e/{number}/");
        put(transaction, namespace(&format!("N{number}"), &base, Generator::Uuid))
    };
    store
        .transact(|t| (0..MAX_NAMESPACES).try_for_each(|number| put(t, number).map(drop)))
        .unwrap();
    let error = store.transact(|t| put(t, MAX_NAMESPACES)).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
    // Those that exist can be changed, and another one has its place.
    store.transact(|t| delete(t, "N7").and_then(|()| put(t, MAX_NAMESPACES))).unwrap();
    store_namespace(&store, &namespace("N8", "urn:n8:", Generator::Manual)).unwrap();
}

#[test]
fn a_base_belongs_to_one_namespace() {
    let (_dir, store) = open_store();
    store_namespace(&store, &namespace("A", "http://e/", Generator::Uuid)).unwrap();
    let error = store_namespace(&store, &namespace("B", "http://e/", Generator::Uuid)).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("\"A\" has the base"), "{error}");
}

#[test]
fn two_bases_that_give_the_same_identifiers_conflict() {
    for (first, second) in [("http://e/a", "http://e/a/"), ("http://e/a/", "http://e/a")] {
        let (_dir, store) = open_store();
        store_namespace(&store, &namespace("A", first, Generator::Counter)).unwrap();
        let error =
            store_namespace(&store, &namespace("B", second, Generator::Counter)).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        assert!(error.detail.contains(first) && error.detail.contains(second), "{error}");
        // The namespace itself may take the other base, because it is not used.
        store_namespace(&store, &namespace("A", second, Generator::Counter)).unwrap();
        for (name, other) in [("C", "http://e/a#"), ("D", "http://e/a:"), ("E", "http://e/a/b")] {
            store_namespace(&store, &namespace(name, other, Generator::Counter)).unwrap();
        }
    }
}

#[test]
fn a_namespace_with_data_or_a_used_counter_cannot_be_changed() {
    let (_dir, store) = open_store();
    let counter = namespace("C", "http://e/c/", Generator::Counter);
    store_namespace(&store, &counter).unwrap();
    mint_in(&store, &counter);
    let data = namespace("D", "http://e/d/", Generator::Uuid);
    store_namespace(&store, &data).unwrap();
    insert_subject(&store, "http://elsewhere/1", "http://e/d/");
    for (used, why) in [(&counter, "its counter"), (&data, "its graph holds data")] {
        let other = Namespace { generator: Generator::Manual, ..used.clone() };
        let error = store_namespace(&store, &other).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        assert!(error.detail.contains(why), "{error}");
        assert!(!store_namespace(&store, used).unwrap().1);
    }
    let error = store.transact(|t| delete(t, "D")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    store.transact(|t| delete(t, "C")).unwrap();
    assert_eq!(store.transact(|t| delete(t, "C")).unwrap_err().class, ErrorClass::NotFound);
}

#[test]
fn a_counter_never_issues_a_number_twice() {
    let (_dir, store) = open_store();
    let counter = namespace("C", "urn:c:", Generator::Counter);
    store_namespace(&store, &counter).unwrap();
    insert_subject(&store, "urn:c:2", "urn:g:");
    let quad = Quad::new(
        NamedNode::new_unchecked("urn:x:1"),
        NamedNode::new_unchecked("urn:p:1"),
        NamedNode::new_unchecked("urn:c:4"),
        GraphName::DefaultGraph,
    );
    store.transact(|t| t.insert(quad.as_ref())).unwrap();
    assert_eq!(mint_in(&store, &counter), "urn:c:1");
    assert_eq!(mint_in(&store, &counter), "urn:c:3");
    let (both, _) = store
        .transact(|t| {
            Ok::<_, GatewayError>((mint_identifier(t, &counter)?, mint_identifier(t, &counter)?))
        })
        .unwrap();
    assert_eq!((both.0.as_str(), both.1.as_str()), ("urn:c:5", "urn:c:6"));

    let abandoned = store.transact(|t| {
        mint_identifier(t, &counter)?;
        Err::<(), _>(GatewayError::new(ErrorClass::Conflict, "given up"))
    });
    assert!(abandoned.is_err());
    assert_eq!(mint_in(&store, &counter), "urn:c:7");

    store.transact(|t| delete(t, "C")).unwrap();
    let again = namespace("Other", "urn:c:", Generator::Counter);
    store_namespace(&store, &again).unwrap();
    assert_eq!(mint_in(&store, &again), "urn:c:8");
}

#[test]
fn identifiers_have_the_form_of_their_generator() {
    let (_dir, store) = open_store();
    for (base, begins) in [
        ("http://e/a/", "http://e/a/"),
        ("http://e/b#", "http://e/b#"),
        ("urn:e:", "urn:e:"),
        ("http://e/c", "http://e/c/"),
    ] {
        let local = |generator| {
            let uri = mint_in(&store, &namespace("N", base, generator));
            NamedNode::new(&uri).unwrap();
            uri.strip_prefix(begins).unwrap().to_owned()
        };
        assert_eq!(uuid::Uuid::parse_str(&local(Generator::Uuid)).unwrap().get_version_num(), 7);
        assert_eq!(local(Generator::Counter), "1");
        let random = local(Generator::Alphanumeric);
        assert_eq!(random.len(), 10);
        assert!(random.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase()), "{random}");
    }
    let many: HashSet<String> = (0..500)
        .map(|_| mint_in(&store, &namespace("N", "urn:e:", Generator::Alphanumeric)))
        .collect();
    assert_eq!(many.len(), 500);
    let error = store
        .transact(|t| mint_identifier(t, &namespace("N", "urn:e:", Generator::Manual)))
        .unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
}

#[test]
fn the_default_base_comes_from_the_configuration() {
    assert_eq!(default_base(Some("https://e.org"), "g", "Plant"), "https://e.org/id/Plant/");
    assert_eq!(default_base(None, "g1", "Pump Räder"), "urn:penstock:g1:Pump%20R%C3%A4der:");
    NamedNode::new(default_base(None, "g1", "a?b#c%d")).unwrap();
}

#[test]
fn names_are_checked() {
    let longest = "ü".repeat(64);
    for good in ["Plant", "Pump Räder", "a.b", "日本", longest.as_str(), "a#b"] {
        assert_eq!(check_name(good), Ok(()), "{good}");
    }
    let longer = "ü".repeat(65);
    for bad in [
        "",
        " a",
        "a ",
        "a:b",
        "a/b",
        "<a>",
        "a\nb",
        "a\\",
        "..",
        ".",
        longer.as_str(),
        "a\u{202e}b",
    ] {
        assert!(check_name(bad).is_err(), "{bad}");
    }
}

#[test]
fn lists_by_name_in_pages() {
    let (_dir, store) = open_store();
    for name in ["C", "A", "B"] {
        store_namespace(&store, &namespace(name, &format!("urn:{name}:"), Generator::Uuid))
            .unwrap();
    }
    let names = |after, limit| -> Vec<String> {
        list(&store.read(), after, limit).unwrap().into_iter().map(|n| n.name).collect()
    };
    assert_eq!(names(None, 2), ["A", "B"]);
    assert_eq!(names(Some("B"), 2), ["C"]);
    assert_eq!(names(None, 0), Vec::<String>::new());
}

#[test]
fn reads_the_body_of_a_put() {
    let read = |body: &str| {
        let definition = parse_definition("Plant", body.as_bytes())?;
        let base = "urn:default:".to_owned();
        Ok::<_, GatewayError>(Namespace::from_definition(definition, base, Generator::default()))
    };
    let plain = namespace("Plant", "urn:default:", Generator::Uuid);
    assert_eq!(read("{}").unwrap(), plain);
    assert_eq!(
        read(
            r#"{"name": "Plant", "uriBase": "http://e/", "generator": "counter", "createdAt": "x"}"#
        )
        .unwrap(),
        namespace("Plant", "http://e/", Generator::Counter)
    );
    let pointers = |body: &str| -> Vec<String> {
        let error = read(body).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid);
        error
            .findings
            .into_iter()
            .map(|finding| match finding.place {
                Place::Pointer(pointer) => pointer,
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(
        pointers(r#"{"name": "Other", "uriBase": "no iri", "generator": "dice", "uribase": 1}"#),
        ["/name", "/uriBase", "/generator", "/uribase"]
    );
    assert_eq!(pointers(r#"{"uriBase": 5}"#), ["/uriBase"]);
    assert_eq!(pointers("[]"), [""]);
    assert_eq!(read("{").unwrap_err().class, ErrorClass::Malformed);
    assert_eq!(parse_definition("a:b", b"{}").unwrap_err().class, ErrorClass::Invalid);
}
