//! Any graph survives a dump and a load unchanged.
use crate::{Fixture, options};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_model::rdf::{DumpOptions, Format, LoadOptions, write_dump};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn iri() -> impl Strategy<Value = NamedNode> {
    prop_oneof![
        4 => "[a-c]{1,2}".prop_map(|name| format!("https://plant.example/{name}")),
        1 => "[a-z]{1,3}".prop_map(|name| format!("urn:x:{name}")),
        1 => "[a-z0-9%._~-]{0,3}".prop_map(|name| format!("https://plant.example/a?q={}#", name.replace('%', "%20"))),
        1 => Just("https://plant.example/Ünï/日本/𝒳".to_owned()),
        1 => Just("https://plant.example/a'b(c)*!$&,;=".to_owned()),
        1 => Just(rdf::TYPE.as_str().to_owned()),
        1 => Just("tag:x,2026:1".to_owned()),
    ]
    .prop_map(|text| NamedNode::new(text).unwrap())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[ -~]{0,12}",
        8 => proptest::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
        4 => proptest::sample::select(vec![
            "", " ", "\n", "\r", "\r\n", "\t", "\\", "\"", "'''", "\"\"\"", "a\\u0041", "&amp;<b>]]>", "\u{7f}\u{85}\u{2028}",
            "\u{feff}", "\u{0}", "\u{b}\u{c}\u{8}", "\u{fffe}\u{ffff}", "  a  ", "\n\ta\n", "\u{10ffff}",
        ]).prop_map(str::to_owned),
        1 => Just("long ".repeat(60_000)),
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    let numbers = proptest::sample::select(vec![
        "1", "01", "+1", "-0", "1.0", "1.", ".5", "1e0", "1.50E+07", "NaN", "INF", "true", "1 ",
        " 1", "x", "",
    ]);
    let types = proptest::sample::select(vec![
        xsd::INTEGER.into_owned(),
        xsd::DECIMAL.into_owned(),
        xsd::DOUBLE.into_owned(),
        xsd::BOOLEAN.into_owned(),
        xsd::DATE_TIME.into_owned(),
    ]);
    prop_oneof![
        3 => text().prop_map(Literal::from),
        2 => (text(), proptest::sample::select(vec!["en", "de-at", "zh-hant-tw", "x-private"]))
            .prop_map(|(text, tag)| Literal::new_language_tagged_literal(text, tag).unwrap()),
        2 => (numbers, types).prop_map(|(text, datatype)| Literal::new_typed_literal(text, datatype)),
        1 => (text(), iri()).prop_map(|(text, datatype)| Literal::new_typed_literal(text, datatype)),
        1 => text().prop_map(|text| Literal::new_typed_literal(text, NamedNode::new("http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON").unwrap())),
        1 => text().prop_map(|text| Literal::new_typed_literal(text, rdf::XML_LITERAL)),
    ]
}

fn quads() -> impl Strategy<Value = Vec<Quad>> {
    let object = prop_oneof![1 => iri().prop_map(Term::from), 2 => literal().prop_map(Term::from)];
    let graph = prop_oneof![Just(GraphName::DefaultGraph), iri().prop_map(GraphName::from)];
    let quad = (iri(), iri(), object, graph)
        .prop_map(|(s, p, o, g)| Quad::new(NamedOrBlankNode::from(s), p, o, g));
    proptest::collection::vec(quad, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_term_comes_back_in_formats_with_graphs(quads in quads()) {
        let fixture = Fixture::of(&quads);
        for format in [Format::NQuads, Format::TriG, Format::JsonLd] {
            let again = Fixture::new();
            let loaded = again.load(&options(format), &fixture.dump(format, None)).unwrap();
            prop_assert_eq!(again.quads(), fixture.quads(), "{:?}", format);
            prop_assert_eq!(loaded.added, fixture.quads().len() as u64);
        }
    }

    #[test]
    fn every_term_comes_back_graph_by_graph(quads in quads()) {
        // Each quad gets a graph of its own, so that only quads that XML cannot represent are refused.
        let separate = quads.iter().enumerate().map(|(number, quad)| {
            let graph = NamedNode::new(format!("https://plant.example/g/{number}")).unwrap();
            Quad { graph_name: graph.into(), ..quad.clone() }
        });
        let separate: Vec<Quad> = separate.collect();
        let fixture = Fixture::of(&separate);
        for format in [Format::NTriples, Format::Turtle, Format::RdfXml] {
            let again = Fixture::new();
            let mut representable = BTreeSet::new();
            for quad in &separate {
                let graph = quad.graph_name.clone();
                let only = DumpOptions { format, graph: Some(graph.clone()) };
                let mut out = Vec::new();
                match write_dump(&fixture.store, &only, &mut out, &mut |_| {}) {
                    Ok(written) => {
                        prop_assert_eq!(written.quads, 1);
                        again.load(&LoadOptions { graph, ..options(format) }, &out).unwrap();
                        representable.insert(quad.to_string());
                    }
                    Err(error) => prop_assert!(
                        format == Format::RdfXml && error.detail.starts_with("RDF/XML cannot"), "{}", error
                    ),
                }
            }
            prop_assert_eq!(again.quads(), representable, "{:?}", format);
        }
    }

    #[test]
    fn many_subjects_of_one_graph_come_back(quads in quads()) {
        let graph = |quad: Quad| Quad { graph_name: GraphName::DefaultGraph, ..quad };
        let fixture = Fixture::of(&quads.into_iter().map(graph).collect::<Vec<_>>());
        for format in [Format::Turtle, Format::RdfXml] {
            let only = DumpOptions { format, graph: Some(GraphName::DefaultGraph) };
            let mut out = Vec::new();
            if write_dump(&fixture.store, &only, &mut out, &mut |_| {}).is_ok() {
                let again = Fixture::new();
                again.load(&options(format), &out).unwrap();
                prop_assert_eq!(again.quads(), fixture.quads(), "{:?}", format);
            }
        }
    }
}
