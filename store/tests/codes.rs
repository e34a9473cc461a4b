//! Reading a snapshot as codes: every pattern selects what a filter over all quads selects, while commits continue.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, vocab::xsd};
use penstock_store::{CodedQuad, Error, Options, Snapshot, Store, TermCode};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

fn iri(name: impl std::fmt::Display) -> NamedNode {
    NamedNode::new_unchecked(format!("https://example.org/{name}"))
}

fn blank(n: u8) -> BlankNode {
    BlankNode::new_unchecked(format!("b{n}"))
}

fn any_subject() -> impl Strategy<Value = NamedOrBlankNode> {
    prop_oneof![
        4 => (0..60_u8).prop_map(|n| iri(n).into()),
        1 => (0..9_u8).prop_map(|n| blank(n).into()),
    ]
}

fn any_object() -> impl Strategy<Value = Term> {
    let text = prop_oneof![
        // Around the lengths at which a code is allocated, and at which a literal is not inline.
        prop::sample::select(vec![0, 1, 18, 19, 20, 21, 22, 23, 120, 127, 128, 199, 200, 201, 900])
            .prop_map(|length| "ä".repeat(length / 2) + &"x".repeat(length % 2)),
        "[a-c]{1,3}",
        Just("quote \" and \n line".to_owned()),
    ];
    prop_oneof![
        any_subject().prop_map(Term::from),
        text.clone().prop_map(|text| Literal::new_simple_literal(text).into()),
        (text.clone(), prop::sample::select(vec!["de", "en", "en-gb"])).prop_map(
            |(text, language)| {
                Literal::new_language_tagged_literal_unchecked(text, language).into()
            }
        ),
        (text, prop::sample::select(vec![xsd::INTEGER, xsd::DECIMAL, xsd::DATE])).prop_map(
            |(text, datatype)| Literal::new_typed_literal(text, datatype.into_owned()).into()
        ),
    ]
}

fn any_quad() -> impl Strategy<Value = Quad> {
    let graph = prop_oneof![
        2 => Just(GraphName::DefaultGraph),
        2 => (0..3_u8).prop_map(|n| iri(format!("graph{n}")).into()),
        1 => (0..2_u8).prop_map(|n| blank(n).into()),
    ];
    (any_subject(), 0..5_u8, any_object(), graph)
        .prop_map(|(s, p, o, g)| Quad::new(s, iri(format!("p{p}")), o, g))
}

/// Returns the graph of a quad as a term; `None` for the default graph.
fn graph_term(quad: &Quad) -> Option<Term> {
    match quad.graph_name.clone() {
        GraphName::NamedNode(graph) => Some(graph.into()),
        GraphName::BlankNode(graph) => Some(graph.into()),
        GraphName::DefaultGraph => None,
    }
}

fn find_codes(snapshot: &Snapshot, quad: &Quad) -> CodedQuad {
    let term = |term: oxrdf::TermRef<'_>| snapshot.codes().find_code(term).unwrap().unwrap();
    [
        term(quad.subject.as_ref().into()),
        term(quad.predicate.as_ref().into()),
        term(quad.object.as_ref()),
        graph_term(quad).map_or(TermCode::DEFAULT_GRAPH, |graph| term(graph.as_ref())),
    ]
}

fn check_decoding(snapshot: &Snapshot, quad: &Quad, codes: &CodedQuad) {
    let [subject, predicate, object, graph] = codes;
    let decode = |code| snapshot.codes().decode_code(code).unwrap();
    assert_eq!(decode(subject), Term::from(quad.subject.clone()));
    assert_eq!(decode(predicate), Term::from(quad.predicate.clone()));
    assert_eq!(decode(object), quad.object);
    assert_eq!((*graph != TermCode::DEFAULT_GRAPH).then(|| decode(graph)), graph_term(quad));
}

/// Reads all 16 shapes of patterns with the terms of some quads, of one quad or of four.
fn check_patterns(snapshot: &Snapshot, all: &HashSet<CodedQuad>, sample: &[CodedQuad]) {
    for window in sample.windows(4) {
        let mixed: CodedQuad = std::array::from_fn(|place| window[place][place].clone());
        for codes in [&window[0], &mixed] {
            for given in 0..16 {
                let pattern: [Option<&TermCode>; 4] =
                    std::array::from_fn(|place| (given >> place & 1 == 1).then_some(&codes[place]));
                let matches = |quad: &&CodedQuad| {
                    quad.iter().zip(pattern).all(|(code, sought)| sought.is_none_or(|s| s == code))
                };
                let expected: HashSet<&CodedQuad> = all.iter().filter(matches).collect();
                let found: Vec<CodedQuad> =
                    snapshot.codes().scan_codes(pattern).map(Result::unwrap).collect();
                assert_eq!(found.len(), expected.len(), "pattern {given}");
                assert!(found.iter().all(|quad| expected.contains(quad)), "pattern {given}");
                if found.len() < 100 {
                    let estimate = snapshot.codes().estimate_count(pattern).unwrap();
                    assert!(estimate == found.len() as u64 || all.len() > 128, "pattern {given}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_pattern_selects_what_a_filter_over_all_quads_selects(
        quads in prop::collection::vec(any_quad(), 4..700),
        is_checkpointed: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let change = |quads: &[Quad], is_added: bool| {
            store
                .transact::<_, Error>(|t| {
                    for quad in quads {
                        if is_added { t.insert(quad.as_ref())? } else { t.remove(quad.as_ref())? };
                    }
                    Ok(())
                })
                .unwrap();
        };
        change(&quads, true);
        if is_checkpointed {
            store.checkpoint().unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let commits = scope.spawn(|| {
                for (at, part) in quads.chunks(50).cycle().enumerate().take(1_000) {
                    change(part, at / quads.len().div_ceil(50) % 2 == 1);
                    if at % 10 == 0 {
                        store.checkpoint().unwrap();
                    }
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let codes: Vec<_> = quads.iter().map(|quad| find_codes(&snapshot, quad)).collect();
            for (quad, codes) in quads.iter().zip(&codes) {
                check_decoding(&snapshot, quad, codes);
            }
            let all: HashSet<CodedQuad> = codes.iter().cloned().collect();
            let distinct: HashSet<&Quad> = quads.iter().collect();
            assert_eq!(all.len(), distinct.len());
            let step = 1 + codes.len() / 8;
            let sample: Vec<_> = codes.iter().step_by(step).cycle().take(12).cloned().collect();
            check_patterns(&snapshot, &all, &sample);
            is_over.store(true, Ordering::Relaxed);
            commits.join().unwrap();
        });
    }
}
