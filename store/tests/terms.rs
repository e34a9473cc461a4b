//! Every term is read as it was written, and is found by a search for it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{blank, iri, matching, open};
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_store::{Error, Pattern, Read as _};
use proptest::prelude::*;

fn names() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z/#:]{0,40}", "(http://example.org/){10,40}[a-z]{0,3}"]
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just(String::new()),
        (any::<char>(), 195_usize..210).prop_map(|(c, n)| c.to_string().repeat(n)),
        (any::<char>(), 395_usize..405).prop_map(|(c, n)| c.to_string().repeat(n)),
        (any::<char>(), 4_000_usize..9_000).prop_map(|(c, n)| c.to_string().repeat(n)),
        "[0-9+-]{1,5}[.]?[0-9eE]{0,4}",
    ]
}

fn nodes() -> impl Strategy<Value = NamedOrBlankNode> {
    prop_oneof![
        names().prop_map(|name| NamedNode::new_unchecked(name).into()),
        names().prop_map(|name| blank(&name).into()),
    ]
}

fn terms() -> impl Strategy<Value = Term> {
    prop_oneof![
        nodes().prop_map(Term::from),
        values().prop_map(|value| Literal::new_simple_literal(value).into()),
        (values(), "[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8}){0,3}").prop_map(|(value, language)| {
            Literal::new_language_tagged_literal_unchecked(value, language).into()
        }),
        (values(), names()).prop_map(|(value, datatype)| {
            Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype)).into()
        }),
    ]
}

fn graphs() -> impl Strategy<Value = GraphName> {
    prop_oneof![Just(GraphName::DefaultGraph), nodes().prop_map(GraphName::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn any_term_round_trips(
        quads in prop::collection::hash_set(
            (nodes(), names(), terms(), graphs()).prop_map(|(s, p, o, g)| {
                Quad::new(s, NamedNode::new_unchecked(p), o, g)
            }),
            1..12,
        )
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path());
        model::add(&store, &quads.iter().cloned().collect::<Vec<_>>());
        for _ in 0..2 {
            prop_assert_eq!(&matching(&store.read(), &Pattern::default()), &quads);
            for quad in &quads {
                let pattern = Pattern {
                    subject: Some(quad.subject.clone()),
                    predicate: Some(quad.predicate.clone()),
                    object: Some(quad.object.clone()),
                    graph: Some(quad.graph_name.clone()),
                };
                prop_assert!(store.read().any(&pattern).unwrap());
                let pattern = Pattern { object: Some(quad.object.clone()), ..Pattern::default() };
                prop_assert!(matching(&store.read(), &pattern).contains(quad));
            }
            drop(store);
            store = open(dir.path());
        }
    }
}

#[test]
fn a_long_literal_round_trips_and_is_deleted_with_its_last_quad() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let value: String = (0..250_000).map(|n| char::from_u32(n % 0xd000 + 32).unwrap()).collect();
    let long = Literal::new_language_tagged_literal_unchecked(value, "en");
    let quads = ["a", "b"].map(|name| model::quad(name, "p", long.clone()));
    model::add(&store, &quads[..1]);
    let full = store.stats().write_back_bytes;
    model::add(&store, &quads[1..]);
    let more = store.stats().write_back_bytes - full;
    assert!(more < 10_000, "{more} bytes more: it is stored twice");
    let remove = |quad: &Quad| {
        store.transact::<_, Error>(|change| change.remove(quad.as_ref())).unwrap();
    };
    remove(&quads[0]);
    let about = store.read().quads_about(&quads[1].subject).unwrap();
    assert_eq!(about, [quads[1].clone()]);
    remove(&quads[1]);
    assert!(store.stats().write_back_bytes < full / 10);
}

#[test]
fn a_name_too_long_for_an_entry_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let name = |length: usize| format!("https://example.org/{}", "x".repeat(length - 20));
    let quad = |length| {
        Quad::new(
            NamedNode::new_unchecked(name(length)),
            iri("p"),
            iri("o"),
            GraphName::DefaultGraph,
        )
    };
    model::add(&store, &[quad(65_536)]);
    let error =
        store.transact::<_, Error>(|change| change.insert(quad(65_537).as_ref())).unwrap_err();
    assert!(matches!(error, Error::TooLarge { bytes: 65_537, limit: 65_536 }), "{error}");
    // A search for it finds nothing, within a change as outside of one.
    let subject = quad(65_537).subject;
    assert!(store.read().quads_about(&subject).unwrap().is_empty());
    let (found, _) = store.transact::<_, Error>(|change| change.quads_about(&subject)).unwrap();
    assert!(found.is_empty());
    for literal in [
        Literal::new_typed_literal("value ".repeat(40), NamedNode::new_unchecked(name(65_537))),
        Literal::new_language_tagged_literal_unchecked("value", "x".repeat(65_537)),
    ] {
        let pattern = Pattern { object: Some(literal.into()), ..Pattern::default() };
        assert!(!store.read().any(&pattern).unwrap());
    }
    drop(store);
    assert_eq!(open(dir.path()).read().quads_about(&quad(65_536).subject).unwrap(), [quad(65_536)]);
}
