//! What shapes graphs may have, and what they find.
mod report;
mod shex;

use crate::*;
use oxrdf::{NamedNode, Term, Triple};
use oxrdfio::{RdfFormat, RdfParser};
use penstock_base::error::GatewayError;
use penstock_rdf::Format;
use proptest::prelude::*;
use std::fmt::Write;
use std::time::{Duration, Instant};

const PREFIXES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://example.com/> . \
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . \
    @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n";

/// Reads a document in Turtle after these prefixes.
fn parse_with(prefixes: &str, turtle: &str) -> Document {
    let text = format!("{prefixes}{turtle}");
    let quads = RdfParser::from_format(RdfFormat::Turtle).for_slice(&text);
    quads.map(|quad| Triple::from(quad.unwrap())).collect()
}

fn parse(turtle: &str) -> Document {
    parse_with(PREFIXES, turtle)
}

fn limits() -> Limits {
    Limits {
        time: Duration::from_mins(1),
        deadline: None,
        memory: 64 << 20,
        violations: 1000,
        cancellation: Cancellation::default(),
    }
}

fn read(turtle: &str) -> Result<ShapesGraph, GatewayError> {
    let text = format!("{PREFIXES}{turtle}");
    ShapesGraph::read(&text, ShapesFormat::Rdf(Format::Turtle))
}

/// Validates all subjects of a document.
fn validate(shapes: &str, document: &str) -> Result<Vec<Violation>, GatewayError> {
    let document = parse(document);
    let mut scope = Scope::default();
    scope.members.extend(document.list_subjects().into_iter().filter_map(
        |subject| match subject {
            Term::NamedNode(node) => Some(node),
            _ => None,
        },
    ));
    read(shapes)?.validate(&Data::new(Box::new(document), limits()), &scope)
}

/// Returns the focus nodes, paths and constraints of the violations.
fn find(shapes: &str, document: &str) -> Vec<String> {
    let short = |text: String| text.replace("http://example.com/", "").replace(['<', '>'], "");
    validate(shapes, document)
        .unwrap()
        .iter()
        .map(|found| {
            let constraint = found.constraint.as_str().rsplit('#').next().unwrap();
            format!(
                "{} {} {}",
                short(found.focus_node.to_string()),
                short(found.path.clone().unwrap_or_default()),
                constraint.trim_end_matches("ConstraintComponent")
            )
        })
        .collect()
}

#[test]
fn a_violation_names_its_object_place_and_cause() {
    let shapes = "ex:Pump a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:power ; sh:datatype xsd:decimal ; \
        sh:minInclusive 1.5 ; sh:severity sh:Warning ; sh:message \"zu schwach\"@de, \"too weak\"@en ] ; \
        sh:property [ sh:path ex:name ; sh:minCount 1 ] .";
    let found = validate(shapes, "ex:a a ex:P ; ex:power 01.20 .").unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    let name = &found[0];
    assert_eq!(name.focus_node.to_string(), "<http://example.com/a>");
    assert_eq!(name.path.as_deref(), Some("http://example.com/name"));
    assert_eq!(name.shape, "http://example.com/Pump");
    assert_eq!((name.message(&[]), name.severity), ("must have a value", Severity::Violation));
    let power = &found[1];
    assert_eq!(
        power.value.as_ref().unwrap().to_string(),
        "\"01.20\"^^<http://www.w3.org/2001/XMLSchema#decimal>"
    );
    assert_eq!(
        power.constraint.as_str(),
        "http://www.w3.org/ns/shacl#MinInclusiveConstraintComponent"
    );
    assert_eq!(power.severity, Severity::Warning);
    assert_eq!(power.message(&["fr".into(), "de-CH".into(), "de".into()]), "zu schwach");
    assert_eq!(power.message(&[]), "too weak");
}

/// Language tags are equal whatever their case (RDF 1.1 Concepts, 3.3).
#[test]
fn values_with_a_language_are_found_whatever_the_case_of_the_tag() {
    let shape = |constraint: &str| {
        format!(
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:x ; {constraint} ] ."
        )
    };
    let data = "ex:a a ex:P ; ex:x \"a\"@en-GB . ex:b a ex:P ; ex:x \"a\"@en-gb . ex:c a ex:P ; ex:x \"a\"@en . ex:d a ex:P .";
    for tag in ["en-GB", "EN-gb", "en-gb"] {
        assert_eq!(
            find(&shape(&format!("sh:hasValue \"a\"@{tag}")), data),
            ["c x HasValue", "d x HasValue"]
        );
        assert_eq!(find(&shape(&format!("sh:in (\"b\" \"a\"@{tag})")), data), ["c x In"]);
    }
}

/// A long prefix makes a short text long.
#[test]
fn a_graph_with_too_many_bytes_of_terms_is_refused() {
    let prefix = format!("@prefix p: <urn:{}> . ", "x".repeat(60_000));
    let error = read(&format!("{prefix}{}", "p:a p:b p:c . ".repeat(200))).unwrap_err();
    assert!(error.to_string().contains("its terms have more than 16777216 bytes"), "{error}");
}

fn join(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(" ")
}

/// rudof copies a list and a path for each shape that refers to it.
#[test]
fn a_list_or_a_path_that_many_shapes_share_counts_for_each() {
    let list = join(10, |n| format!("\"{n}{}\"", "x".repeat(10_000)));
    let path = join(2, |n| format!("ex:{n}{}", "x".repeat(50_000)));
    let graph = |shared: &str, constraint: &str, shapes: usize| {
        let shapes = join(shapes, |n| {
            format!("ex:S{n} a sh:NodeShape ; sh:targetClass ex:P ; {constraint} .")
        });
        read(&format!("{shared} . {shapes}"))
    };
    for (shared, constraint) in [
        (format!("ex:x ex:list _:l . _:l rdf:first \"a\" ; rdf:rest ( {list} )"), "sh:in _:l"),
        (
            format!("_:p sh:alternativePath ( {path} )"),
            "sh:property [ sh:path _:p ; sh:minCount 1 ]",
        ),
    ] {
        graph(&shared, constraint, 3).unwrap();
        let error = graph(&shared, constraint, 400).unwrap_err();
        assert!(error.to_string().contains("have more than 33554432 bytes"), "{error}");
    }
    let alternatives = |levels: usize| {
        let (begin, end) = ("[ sh:alternativePath ( ".repeat(levels), " ex:q ) ]".repeat(levels));
        let constraint = format!("sh:property [ sh:path {begin} ex:p {end} ; sh:minCount 1 ]");
        graph("ex:x ex:y ex:z", &constraint, 1)
    };
    alternatives(30).unwrap();
    assert!(alternatives(60).unwrap_err().to_string().contains("levels"));
    let deep = format!("{}ex:p ex:q{}", "( ".repeat(60), " )".repeat(60));
    let deep = graph("ex:x ex:y ex:z", &format!("sh:property [ sh:path {deep} ]"), 1);
    assert!(deep.unwrap_err().to_string().contains("levels"));
}

#[test]
fn years_and_days_have_an_order() {
    let shape = |path: &str, bound: &str| {
        format!(
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:{path} ; sh:minInclusive {bound} ] ."
        )
    };
    let data = "ex:a a ex:P ; ex:y \"1999\"^^xsd:gYear ; ex:m \"1999-05\"^^xsd:gYearMonth . \
        ex:b a ex:P ; ex:y \"2001\"^^xsd:gYear ; ex:m \"1999-04\"^^xsd:gYearMonth . ex:c a ex:P ; ex:y \"x\"^^xsd:gYear .";
    let found = find(&shape("y", "\"2000\"^^xsd:gYear"), data);
    assert_eq!(found, ["a y MinInclusive", "c y MinInclusive"]);
    assert_eq!(find(&shape("m", "\"1999-05\"^^xsd:gYearMonth"), data), ["b m MinInclusive"]);
}

#[test]
fn targets_choose_what_is_validated() {
    let shape = |target: &str| {
        format!("ex:S a sh:NodeShape ; {target} ; sh:property [ sh:path ex:x ; sh:minCount 1 ] .")
    };
    let data = "ex:a a ex:P ; ex:link ex:b . ex:b a ex:Q . ex:Q rdfs:subClassOf ex:R . ex:R rdfs:subClassOf ex:T .";
    assert_eq!(find(&shape("sh:targetClass ex:P"), data), ["a x MinCount"]);
    assert_eq!(find(&shape("sh:targetClass ex:T"), data), ["b x MinCount"]);
    assert_eq!(find(&shape("sh:targetNode ex:b"), data), ["b x MinCount"]);
    assert_eq!(find(&shape("sh:targetSubjectsOf ex:link"), data), ["a x MinCount"]);
    assert_eq!(find(&shape("sh:targetObjectsOf ex:link"), data), ["b x MinCount"]);
    assert_eq!(find(&shape("a rdfs:Class").replace("ex:S", "ex:T"), data), ["b x MinCount"]);
    assert_eq!(find(&shape("sh:targetClass ex:None"), data), [""; 0]);
}

#[test]
fn a_graph_that_is_not_supported_is_refused_with_the_reason() {
    let body = "sh:targetClass ex:P ; ";
    for (turtle, expected) in [
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:sparql [ sh:select \"SELECT $this {}\" ] .",
            "sh:sparql in <http://example.com/S> is not supported",
        ),
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:p ; sh:pattern \"(\" ] .",
            "sh:pattern in a part of <http://example.com/S> has the bracket `(` at character 1",
        ),
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:p ; sh:pattern \"(a{500}){500}\" ] .",
            "too large when it is compiled",
        ),
        ("<http://x/> owl:imports <http://y/> .", "nothing is ever fetched"),
        (
            "ex:S a sh:NodeShape ; sh:property [ sh:path ex:p ; sh:minCount 1 ] .",
            "no shape has a target",
        ),
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:p ; sh:node ex:S ] .",
            "<http://example.com/S> contains itself",
        ),
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:p ; sh:minCount -1 ] .",
            "sh:minCount in a part of <http://example.com/S> is",
        ),
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:deactivated ex:x .",
            "must be true or false",
        ),
        ("ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:minCount 1 ] .", "path"),
        (
            "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:or ( [ sh:nodeKind ex:no ] ) .",
            "nodeKind",
        ),
    ] {
        let error = read(turtle).err().unwrap_or_else(|| panic!("accepted: {turtle}"));
        assert_eq!(error.class, penstock_base::error::ErrorClass::Invalid);
        assert!(error.to_string().contains(expected), "{turtle}: {error} {body}");
    }
    let error = read("ex:S a sh:NodeShape ;\n sh:targetClass ex:P ;; sh:x ( .").unwrap_err();
    assert!(
        matches!(error.findings[0].place, penstock_base::error::Place::Line { line: 3, .. }),
        "{error}"
    );
}

/// A property of a shape, with constraints that have a quick check and others.
fn arbitrary_property() -> impl Strategy<Value = String> {
    let constraint = prop::sample::select(vec![
        "sh:minCount 1",
        "sh:minCount 2",
        "sh:maxCount 1",
        "sh:maxCount 0",
        "sh:datatype xsd:integer",
        "sh:datatype xsd:decimal",
        "sh:datatype xsd:string",
        "sh:datatype xsd:date",
        "sh:datatype xsd:boolean",
        "sh:datatype rdf:langString",
        "sh:nodeKind sh:IRI",
        "sh:nodeKind sh:Literal",
        "sh:nodeKind sh:IRIOrLiteral",
        "sh:minInclusive 5",
        "sh:minExclusive 1.5",
        "sh:maxInclusive 7",
        "sh:maxExclusive 7.0",
        "sh:minLength 2",
        "sh:maxLength 3",
        "sh:pattern \"^[a-c5]\"",
        "sh:pattern \"B\" ; sh:flags \"i\"",
        "sh:class ex:P",
        "sh:class ex:R",
        "sh:hasValue 5",
        "sh:hasValue ex:b",
        "sh:in ( 5 ex:b \"abc\" )",
        "sh:node ex:Named",
        "sh:or ( [ sh:datatype xsd:integer ] [ sh:class ex:P ] )",
        "sh:and ( ex:Named [ sh:nodeKind sh:IRI ] )",
        "sh:not [ sh:minLength 3 ]",
        "sh:property [ sh:path ex:q ; sh:minCount 1 ]",
        "sh:languageIn ( \"en\" )",
        "sh:uniqueLang true",
    ]);
    let path =
        prop::sample::select(vec!["ex:p", "ex:q", "[ sh:inversePath ex:p ]", "( ex:p ex:q )"]);
    (path, prop::collection::btree_set(constraint, 1..3)).prop_filter_map(
        "one of each",
        |(path, constraints)| {
            let mut names: Vec<_> = constraints.iter().map(|text| text.split(' ').next()).collect();
            names.dedup();
            let unique = names.len() == constraints.len();
            let text = constraints.into_iter().collect::<Vec<_>>().join(" ; ");
            unique.then(|| format!("sh:property [ sh:path {path} ; {text} ]"))
        },
    )
}

/// A triple between few subjects, with values at the limits of the constraints.
fn arbitrary_triple() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "5",
        "05",
        "7",
        "7.0",
        "07.00",
        "1.5",
        "1.50",
        "\"abc\"",
        "\"a\"",
        "\"b\"@en",
        "\"b\"@EN",
        "\"\"",
        "true",
        "\"x\"^^xsd:integer",
        "\"2020-01-01\"^^xsd:date",
        "\"2020-13-01\"^^xsd:date",
        "1e0",
        "99999999999999999999",
        "ex:a",
        "ex:b",
        "ex:c",
        "\"5\"^^xsd:int",
        "\"+5\"^^xsd:integer",
        "\" 5\"^^xsd:integer",
    ]);
    let subject = prop::sample::select(vec!["ex:a", "ex:b", "ex:c"]);
    let class = prop::sample::select(vec!["ex:P", "ex:Q", "ex:R"]);
    prop_oneof![
        4 => (subject.clone(), prop::sample::select(vec!["ex:p", "ex:q"]), value).prop_map(|(s, p, o)| format!("{s} {p} {o} .")),
        2 => (subject, class).prop_map(|(s, c)| format!("{s} a {c} .")),
        1 => Just("ex:Q rdfs:subClassOf ex:R .".to_owned()),
    ]
}

proptest! {
    /// What is certain to conform has no violation.
    #[test]
    fn the_quick_check_passes_no_violation(
        properties in prop::collection::vec(arbitrary_property(), 1..4),
        triples in prop::collection::vec(arbitrary_triple(), 1..25),
        target in prop::sample::select(vec!["sh:targetClass ex:P", "sh:targetClass ex:R", "sh:targetSubjectsOf ex:p", "sh:targetObjectsOf ex:q", "sh:targetNode ex:a"]),
    ) {
        let shapes = format!(
            "ex:S a sh:NodeShape ; {target} ; {} . ex:Named a sh:NodeShape ; sh:property [ sh:path ex:q ; sh:maxCount 1 ] .",
            properties.join(" ; ")
        );
        let shapes = read(&shapes).unwrap();
        let triples = triples.join("\n");
        let data = || Data::new(Box::new(parse(&triples)), limits());
        for name in ["a", "b", "c"] {
            let mut scope = Scope::default();
            scope.members.insert(NamedNode::new_unchecked(format!("http://example.com/{name}")));
            if shapes.find_doubtful(&data(), &scope).unwrap().members.is_empty() {
                let found = shapes.validate(&data(), &scope).unwrap();
                prop_assert!(found.is_empty(), "{:?}", found);
            }
        }
    }
}

#[test]
fn what_conforms_is_found_quickly() {
    let shapes = read("ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:p ; sh:datatype xsd:integer ; \
        sh:minCount 1 ; sh:maxCount 1 ; sh:minInclusive 0 ; sh:class ex:P ] .").unwrap();
    let data = parse("ex:a a ex:P ; ex:p 5 . ex:b a ex:Q ; ex:p \"x\" . ex:c a ex:P ; ex:p -1 .");
    let mut scope = Scope::default();
    scope.members.extend(
        ["a", "b", "c"].map(|name| NamedNode::new_unchecked(format!("http://example.com/{name}"))),
    );
    let class_of_number =
        shapes.find_doubtful(&Data::new(Box::new(data), limits()), &scope).unwrap();
    assert_eq!(class_of_number.members.len(), 2);
}

#[test]
fn hostile_graphs_end_with_an_error_and_soon() {
    let deep: String = (0..3000).map(|_| "sh:not [ ").collect();
    let end: String = (0..3000).map(|_| "] ").collect();
    let error = read(&format!(
        "ex:S a sh:NodeShape ; sh:targetClass ex:P ; {deep} sh:nodeKind sh:IRI {end} ."
    ))
    .unwrap_err();
    assert!(error.to_string().contains("levels"), "{error}");
    let deep: String = (0..3000).map(|_| "[ sh:inversePath ").collect();
    let error = read(&format!(
        "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path {deep} ex:p {end} ] ."
    ))
    .unwrap_err();
    assert!(error.to_string().contains("levels"), "{error}");
    // A graph of shapes in which each refers to the next one twice: 2^45 ways.
    let mut wide = "ex:S0 a sh:NodeShape ; sh:targetClass ex:P .".to_owned();
    for n in 0..45 {
        write!(wide, "ex:S{n} sh:and ( ex:S{} ex:S{0} ) . ex:S{0} a sh:NodeShape .", n + 1)
            .unwrap();
    }
    wide += "ex:S45 sh:property [ sh:path ex:p ; sh:minCount 1 ] .";
    assert_eq!(find(&wide, "ex:a a ex:P ."), ["a  And"]);
    let cycle = "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:and _:l . _:l rdf:first ex:T ; rdf:rest _:l .";
    assert!(read(cycle).unwrap_err().to_string().contains("no end"));
}

#[test]
fn a_validation_ends_at_its_limits() {
    let shapes = "ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ( [ sh:zeroOrMorePath ex:n ] \
        [ sh:zeroOrMorePath ex:n ] [ sh:zeroOrMorePath ex:n ] ) ; sh:maxCount 1 ] .";
    let mut data = "ex:a0 a ex:P . ".to_owned();
    for n in 0..400 {
        write!(data, "ex:a{n} ex:n ex:a{} . ", (n + 1) % 400).unwrap();
    }
    let shapes = read(shapes).unwrap();
    let mut scope = Scope::default();
    scope.members.insert(NamedNode::new_unchecked("http://example.com/a0"));
    let short = Limits { time: Duration::from_millis(50), ..limits() };
    let error = shapes.validate(&Data::new(Box::new(parse(&data)), short), &scope).unwrap_err();
    assert!(error.detail.contains("service.limits.shapes.time"), "{error}");
    let cancelled = limits();
    cancelled.cancellation.cancel();
    let error = shapes.validate(&Data::new(Box::new(parse(&data)), cancelled), &scope).unwrap_err();
    assert!(error.detail.contains("cancelled"), "{error}");
    let many = read("ex:S a sh:NodeShape ; sh:targetClass ex:P ; sh:property [ sh:path ex:n ; sh:nodeKind sh:Literal ] .").unwrap();
    let values: Vec<_> = (0..2000).map(|n| format!("ex:a{n}")).collect();
    let data = parse(&format!("ex:a0 a ex:P ; ex:n {} .", values.join(", ")));
    let error = many.validate(&Data::new(Box::new(data), limits()), &scope).unwrap_err();
    assert!(error.to_string().contains("1000"), "{error}");
}

#[test]
fn a_pattern_is_an_expression_of_xpath() {
    for (pattern, flags, conforming, others) in [
        ("^[a-c-[b]]$", "", &["a", "c"][..], &["b", "-", "[b]]"][..]),
        ("^[A-Z&&]+$", "", &["R&D"], &["r"]),
        (r"^\\i\\c*$", "", &["pump-1"], &["1-pump"]),
        (r"^\\p{IsGreek}+$", "", &["αβγ"], &["abc"]),
        ("a # b", "i", &["A # B"], &["a"]),
        ("a # b", "x", &["a#b"], &["a"]),
        ("(.", "q", &["((."], &["(a"]),
        ("(A", "qi", &["(a"], &["a"]),
    ] {
        let shapes = |flags: &str| {
            format!(
                "ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:pattern \"{pattern}\" {flags} ] ."
            )
        };
        let given = format!("; sh:flags \"{flags}\"");
        let shapes = if flags.is_empty() { shapes("") } else { shapes(&given) };
        for (texts, expected) in [(conforming, 0), (others, 1)] {
            for text in texts {
                let found = find(&shapes, &format!("ex:a ex:p \"{text}\" ."));
                assert_eq!(found.len(), expected, "{pattern} {flags} {text}: {found:?}");
            }
        }
    }
    let found = read(r#"ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:pattern "(a)\\1" ."#)
        .unwrap_err();
    assert!(found.to_string().contains(r"the back-reference `\1` at character 4"), "{found}");
}

#[test]
fn a_large_pattern_is_only_for_short_values() {
    let shapes = |pattern: &str| {
        format!(
            "ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:pattern \"{pattern}\" ] ."
        )
    };
    let long = "ab".repeat(3000);
    let data = format!("ex:a ex:p \"{long}\" .");
    assert_eq!(find(&shapes("(a|b)*a(a|b){50}c"), &data), ["a p Pattern"]);
    let large = shapes("(a|b)*a(a|b){1500}c");
    let error = validate(&large, &data).unwrap_err();
    assert!(error.detail.contains("too long for its sh:pattern"), "{error}");
    assert_eq!(find(&large, "ex:a ex:p \"abc\" ."), ["a p Pattern"]);
    // Many values that are short enough end at the limit for time.
    let values: Vec<_> = (0..1000).map(|n| format!("\"{}{n}\"", "ab".repeat(1900))).collect();
    let data = format!("ex:a ex:p {} .", values.join(", "));
    let short = Limits { time: Duration::from_millis(200), ..limits() };
    let mut scope = Scope::default();
    scope.members.insert(NamedNode::new_unchecked("http://example.com/a"));
    let large = read(&large).unwrap();
    let find_doubtful = || {
        let data = Data::new(Box::new(parse(&data)), limits());
        large.find_doubtful(&data, &scope).map(drop)
    };
    let validate = || {
        let data = Data::new(Box::new(parse(&data)), short.clone());
        large.validate(&data, &scope).map(drop)
    };
    // The first value that does not match ends the quick check.
    find_doubtful().unwrap();
    let started = Instant::now();
    assert!(validate().unwrap_err().detail.contains("service.limits.shapes.time"));
    assert!(started.elapsed() < Duration::from_mins(1), "{:?}", started.elapsed());

    let flags =
        "ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:pattern \"a\" ; sh:flags \"iz\" .";
    assert!(read(flags).unwrap_err().to_string().contains("flag 'z'"));
    // With the flag, the pattern is larger.
    let cases = |flags: &str| {
        format!(
            "ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:pattern \"[a-kß]{{1000}}\" {flags} ."
        )
    };
    read(&cases("")).unwrap();
    assert!(read(&cases("; sh:flags \"i\"")).unwrap_err().to_string().contains("too large"));
}

#[test]
fn a_comparison_of_many_pairs_ends_at_a_limit() {
    let values = |property: &str| {
        let values: Vec<_> = (0..5000).map(|n| format!("{n}")).collect();
        format!("ex:{property} {}", values.join(", "))
    };
    let data = format!("ex:a {} ; {} .", values("p"), values("q"));
    let shapes = "ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:property [ sh:path ex:p ; sh:lessThan ex:q ] .";
    let error = validate(shapes, &data).unwrap_err();
    assert!(error.detail.contains("service.limits.shapes.memory"), "{error}");
}

#[test]
fn what_is_no_subject_is_a_target_too() {
    let shapes = read(
        "ex:S a sh:NodeShape ; sh:targetNode ex:none, 7, ex:a ; sh:targetObjectsOf ex:q ; sh:nodeKind sh:IRI .",
    )
    .unwrap();
    let targets = shapes.targets();
    assert_eq!((targets.nodes.len(), targets.objects_of.len()), (3, 1));
    let nodes: Vec<Term> = targets.nodes.into_iter().collect();
    let data = Data::new(Box::new(parse("ex:a ex:p 1 .")), limits());
    let found = shapes.validate_nodes(&data, &nodes).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].focus_node.to_string().starts_with("\"7\""), "{found:?}");
}

#[test]
fn a_violation_has_the_value_in_its_lexical_form() {
    let shapes = "ex:S a sh:NodeShape ; sh:targetSubjectsOf ex:p ; sh:closed true ; sh:property [ sh:path ex:p ; \
        sh:nodeKind sh:IRI ] , [ sh:path [ sh:inversePath [ sh:inversePath ex:q ] ] ; sh:nodeKind sh:IRI ] . \
        ex:T a sh:NodeShape ; sh:targetObjectsOf ex:p ; sh:nodeKind sh:IRI .";
    let data = "ex:a ex:p \"1\"^^xsd:boolean , \"01.20\"^^xsd:decimal ; ex:q \"+7\"^^xsd:integer .";
    for violation in validate(shapes, data).unwrap() {
        let value = violation.value.expect("each of these has a value").to_string();
        let text = value.split("^^").next().unwrap_or_default();
        assert!(["\"1\"", "\"01.20\"", "\"+7\""].contains(&text), "{value}");
        if violation.path.is_none() {
            assert_eq!(violation.focus_node.to_string(), value);
        }
    }
    assert_eq!(validate(shapes, data).unwrap().len(), 4);
}
