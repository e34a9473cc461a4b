//! Documents in memory, and reports as RDF.
use super::{PREFIXES, limits, parse, read};
use crate::paths::{format_path, parse_path};
use crate::*;
use oxrdf::{Term, Triple};
use penstock_rdf::Format;
use proptest::prelude::*;
use rudof_iri::IriS;
use rudof_rdf::rdf_core::SHACLPath;
use std::ops::ControlFlow;

/// Returns the triples of a document that match.
fn find(document: &Document, pattern: TriplePattern<'_>) -> Vec<Triple> {
    let mut found = Vec::new();
    let read = document.for_each(pattern, &mut |triple| {
        found.push(triple);
        ControlFlow::Continue(())
    });
    read.unwrap();
    found
}

fn report(shapes: &str, data: &str) -> String {
    let document = parse(data);
    let subjects = document.list_subjects();
    let data = Data::new(Box::new(document), limits());
    let found = read(shapes).unwrap().validate_nodes(&data, &subjects).unwrap();
    let mut report = ReportWriter::new(Vec::new(), Format::Turtle).unwrap();
    for violation in &found {
        report.write(violation).unwrap();
    }
    String::from_utf8(report.finish().unwrap()).unwrap()
}

#[test]
fn a_document_finds_its_triples_by_each_pattern() {
    let document = parse("ex:a ex:p ex:b, 1, 1 ; ex:q ex:b . ex:b ex:p ex:a . _:x ex:p \"1\" .");
    assert_eq!(document.len(), 5);
    let all = find(&document, TriplePattern::default());
    assert_eq!(all.len(), 5);
    let one = &all[0];
    for pattern in 0..8 {
        let subject = (pattern & 1 > 0).then_some(&one.subject);
        let predicate = (pattern & 2 > 0).then_some(&one.predicate);
        let object = (pattern & 4 > 0).then_some(&one.object);
        let sought = TriplePattern { subject, predicate, object };
        let found = find(&document, sought);
        let expected: Vec<_> =
            all.iter().filter(|triple| sought.matches(triple)).cloned().collect();
        assert_eq!(found.len(), expected.len(), "pattern {pattern}");
        assert!(expected.iter().all(|triple| found.contains(triple)), "pattern {pattern}");
    }
    let subjects: Vec<String> = document.list_subjects().iter().map(Term::to_string).collect();
    assert_eq!(subjects, ["<http://example.com/a>", "<http://example.com/b>", "_:x"]);
}

#[test]
fn a_report_has_every_part_of_a_result() {
    let shapes = "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path [ sh:inversePath ex:p ] ; \
        sh:maxCount 0 ; sh:severity sh:Warning ; sh:message \"zu viele\"@de, \"too many\"@en ] ; \
        sh:property [ sh:path ex:n ; sh:datatype xsd:integer ] .";
    let text =
        report(shapes, "ex:a a ex:P ; ex:n 01.50 . ex:b ex:p ex:a . _:x a ex:P ; ex:n 2.5 .");
    let graph = parse(text.split_once(PREFIXES).map_or(text.as_str(), |(_, rest)| rest));
    let count = |predicate: &str, object: Option<&str>| {
        let predicate =
            oxrdf::NamedNode::new_unchecked(format!("http://www.w3.org/ns/shacl#{predicate}"));
        let of_property = TriplePattern { predicate: Some(&predicate), ..TriplePattern::default() };
        let found = find(&graph, of_property).into_iter();
        found.filter(|one| object.is_none_or(|sought| one.object.to_string() == sought)).count()
    };
    assert_eq!(count("result", None), 3, "{text}");
    let warning = "<http://www.w3.org/ns/shacl#Warning>";
    assert_eq!(count("resultSeverity", Some(warning)), 1, "{text}");
    assert_eq!(count("focusNode", Some("_:data-x")), 1, "{text}");
    assert_eq!(count("inversePath", Some("<http://example.com/p>")), 1, "{text}");
    assert_eq!(count("resultPath", Some("<http://example.com/n>")), 2, "{text}");
    assert_eq!(count("resultMessage", Some("\"zu viele\"@de")), 1, "{text}");
    let decimal = "\"01.50\"^^<http://www.w3.org/2001/XMLSchema#decimal>";
    assert_eq!(count("value", Some(decimal)), 1, "{text}");
    let is_false = "\"false\"^^<http://www.w3.org/2001/XMLSchema#boolean>";
    assert_eq!(count("conforms", Some(is_false)), 1, "{text}");
    let conforming = report(shapes, "ex:a a ex:P .");
    assert!(
        conforming.contains("conforms true") || conforming.contains("\"true\""),
        "{conforming}"
    );
    assert!(!conforming.contains("sh:result "), "{conforming}");
}

fn any_path() -> impl Strategy<Value = SHACLPath> {
    let iri =
        |name: &str| SHACLPath::iri(IriS::new_unchecked(&format!("http://example.com/{name}")));
    let leaf = prop_oneof!["[a-z]{1,3}".prop_map(move |name| iri(&name))];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|path| SHACLPath::Inverse { path: Box::new(path) }),
            inner.clone().prop_map(|path| SHACLPath::ZeroOrMore { path: Box::new(path) }),
            inner.clone().prop_map(|path| SHACLPath::OneOrMore { path: Box::new(path) }),
            inner.clone().prop_map(|path| SHACLPath::ZeroOrOne { path: Box::new(path) }),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|paths| SHACLPath::Sequence { paths }),
            prop::collection::vec(inner, 2..4).prop_map(|paths| SHACLPath::Alternative { paths }),
        ]
    })
}

proptest! {
    #[test]
    fn a_path_is_read_as_it_was_written(path in any_path()) {
        let text = format_path(&path);
        prop_assert_eq!(parse_path(&text), Some(path), "{}", text);
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "[<>()^*+?/|a-zäß ]{0,40}") {
        let _ = parse_path(&text);
    }
}

#[test]
fn terms_of_data_and_shapes_are_kept_apart() {
    let text =
        report("_:x a sh:NodeShape ; sh:targetClass ex:P ; sh:nodeKind sh:IRI .", "_:x a ex:P .");
    assert!(text.contains("_:data-x") && text.contains("_:shape-"), "{text}");
    let focus = Term::from(oxrdf::BlankNode::new_unchecked("data-x")).to_string();
    assert!(text.contains(&focus), "{text}");
}
