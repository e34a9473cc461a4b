//! What `ShEx` schemas may have, and what they find.
use super::{limits, parse_with};
use crate::*;
use oxrdf::NamedNode;
use penstock_base::error::{GatewayError, Place};
use std::fmt::Write as _;
use std::time::Duration;

const PREFIXES: &str =
    "PREFIX ex: <http://example.com/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n";

fn read(schema: &str) -> Result<ShapesGraph, GatewayError> {
    ShapesGraph::read(&format!("{PREFIXES}{schema}"), ShapesFormat::ShexC)
}

fn parse(turtle: &str) -> Document {
    parse_with(PREFIXES, turtle)
}

fn validate_within(
    schema: &str,
    turtle: &str,
    members: &[&str],
    limits: Limits,
) -> Result<Vec<Violation>, GatewayError> {
    let mut scope = Scope::default();
    for member in members {
        scope.members.insert(NamedNode::new_unchecked(format!("http://example.com/{member}")));
    }
    read(schema)?.validate(&Data::new(Box::new(parse(turtle)), limits), &scope)
}

/// Returns "focus node, path, value, constraint" of the violations.
fn find(schema: &str, turtle: &str, members: &[&str]) -> Vec<String> {
    let found = validate_within(schema, turtle, members, limits()).unwrap();
    let short = |text: String| text.replace("http://example.com/", "").replace(['<', '>'], "");
    let describe = |found: &Violation| {
        let constraint = found.constraint.as_str().rsplit('#').next().unwrap();
        let value = found.value.as_ref().map(ToString::to_string).unwrap_or_default();
        let path = found.path.clone().unwrap_or_default();
        short(format!("{} {path} {value} {constraint}", found.focus_node))
    };
    found.iter().map(describe).collect()
}

/// Checks which literals of this type conform as values of `ex:p`.
fn check_values(schema: &str, datatype: &str, conforming: &[&str], others: &[&str]) {
    for (texts, expected) in [(conforming, 0), (others, 1)] {
        for text in texts {
            let found = find(schema, &format!("ex:a ex:p \"{text}\"{datatype} ."), &["a"]);
            assert_eq!(found.len(), expected, "{schema} {text}: {found:?}");
        }
    }
}

#[test]
fn start_applies_to_each_member() {
    let schema = "start = @ex:Pump\nex:Pump { ex:name xsd:string ; ex:power xsd:decimal ? ; ex:in @ex:Plant * }\n\
        ex:Plant { ex:site [ 'a' 'b' ] }";
    let data = "ex:ok ex:name 'x' ; ex:power 1.50 ; ex:in ex:plant ; ex:other 1 . ex:plant ex:site 'a' .\n\
        ex:none ex:power 1.5 . ex:kind ex:name 'x' ; ex:power 'much' . ex:two ex:name 'x', 'y' .\n\
        ex:far ex:name 'x' ; ex:in ex:ok .";
    assert_eq!(find(schema, data, &["ok"]), [""; 0]);
    assert_eq!(find(schema, data, &["none"]), ["none name  TripleConstraint"]);
    assert_eq!(find(schema, data, &["kind"]), ["kind power \"much\" NodeConstraint"]);
    assert_eq!(find(schema, data, &["two"]), ["two name  TripleConstraint"]);
    assert_eq!(find(schema, data, &["far"]), ["far in ok Shape"]);
    assert_eq!(find(schema, data, &["ok", "none", "kind"]).len(), 2);
    let found = validate_within(schema, data, &["none"], limits()).unwrap();
    assert_eq!(found[0].shape, "http://example.com/Pump");
    assert_eq!(found[0].message(&[]), "must have exactly 1 value, and has 0");
    let properties = read(schema).unwrap().properties().clone();
    assert_eq!(properties.forward.len(), 4);
    assert!(properties.inverse.is_empty());
}

#[test]
fn closed_shapes_alternatives_and_negation_are_explained() {
    let closed = "start = CLOSED { ex:p . }";
    assert_eq!(find(closed, "ex:a ex:p 1 ; ex:q 2 .", &["a"]), ["a q  closed"]);
    let or = "start = { ex:p [ 1 ] } OR { ex:q [ 2 ] }";
    assert_eq!(find(or, "ex:a ex:p 2 .", &["a"]), ["a   ShapeOr"]);
    let not = "start = NOT { ex:p . }";
    assert_eq!(find(not, "ex:a ex:p 2 .", &["a"]), ["a   ShapeNot"]);
    assert_eq!(find(not, "ex:a ex:q 2 .", &["a"]), [""; 0]);
    let inverse = "start = { ^ex:part . }";
    assert_eq!(find(inverse, "ex:a ex:q 2 .", &["a"]), ["a   Shape"]);
    assert_eq!(find(inverse, "ex:b ex:part ex:a .", &["a"]), [""; 0]);
    assert_eq!(read(inverse).unwrap().properties().inverse.len(), 1);
}

#[test]
fn what_is_not_supported_is_refused_with_the_reason() {
    for (schema, expected) in [
        ("IMPORT <http://example.com/other>\nstart = { ex:p . }", "nothing is ever fetched"),
        ("start = @ex:S\nex:S EXTERNAL", "EXTERNAL"),
        ("ex:S { ex:p . }", "no start"),
        ("start = { ex:p . %ex:act{ code %} }", "semantic actions"),
        ("start = { ex:p /(/ }", "the pattern /(/ has the bracket `(` at character 1"),
        ("start = @ex:None", "None"),
        ("start = @ex:S\nex:S { $ex:e ex:p . ; &ex:e }", "inclusion"),
        ("start = @ex:S\nex:S EXTENDS @ex:T { ex:p . }\nex:T { ex:q . }", "EXTENDS"),
        ("start = @ex:S\nex:S NOT @ex:S", ""),
    ] {
        let error = read(schema).err().unwrap_or_else(|| panic!("accepted: {schema}"));
        assert_eq!(error.class, penstock_base::error::ErrorClass::Invalid, "{schema}: {error}");
        assert!(error.to_string().contains(expected), "{schema}: {error}");
    }
    let error = read("start = { ex:p . }\nex:S { ex:p }}").unwrap_err();
    assert!(matches!(error.findings[0].place, Place::Line { line: 4, .. }), "{error}");
}

#[test]
fn a_name_that_nothing_defines_is_shown_with_its_place() {
    let prefix = "PREFIX v: <http://example.com/>\n";
    for (schema, expected) in [
        (
            "# w:tag\nstart = { v:tag . }".to_owned(),
            "line 2, column 11: the prefix `v:` is not declared; add `PREFIX v: <IRI>`",
        ),
        (
            format!("{prefix}start = {{ v:tag @_:a ;\n w:tag [ 'x:y' ] }}"),
            "line 3, column 2: the prefix `w:` is not declared",
        ),
        (
            format!("{prefix}start = {{ v:tag\n @<urn:T> }}"),
            "line 3, column 2: there is no shape <urn:T> in the schema; define it",
        ),
    ] {
        let error = ShapesGraph::read(&schema, ShapesFormat::ShexC).unwrap_err();
        assert!(error.to_string().contains(expected), "{schema}: {error}");
    }
}

#[test]
fn brackets_in_texts_do_not_count() {
    let open = "(".repeat(40);
    let schema = format!(
        "# {open}\n/* {open} */\nstart = {{ ex:p [ '{open}' \"{open}\" '''{open}'''] ; <http://x/{open}> . ; ex:q /\\({{0,40}}\\/{}/ }}",
        "\\(".repeat(40)
    );
    let error = read(&schema).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(!error.contains("levels of brackets"), "{error}");
    let deep = format!("start = {}{{ ex:p . }}{}", "(".repeat(40), ")".repeat(40));
    let error = read(&deep).unwrap_err();
    assert!(error.to_string().contains("levels of brackets"), "{error}");
    assert!(matches!(error.findings[0].place, Place::Line { line: 3, column: 41 }), "{error}");
}

#[test]
fn the_deepest_brackets_are_read() {
    let schema = format!("start = {}{{ ex:p . }}{}", "(".repeat(31), ")".repeat(31));
    assert_eq!(find(&schema, "ex:a ex:p 1 .", &["a"]), [""; 0]);
    let mut nested = "[1]".to_owned();
    for _ in 0..4 {
        nested = format!("{{ ex:p {nested} }}");
    }
    assert_eq!(find(&format!("start = {nested}"), "ex:a ex:p 2 .", &["a"]).len(), 1);
}

#[test]
fn hostile_schemas_end_at_a_limit() {
    // 2^40 combinations of 40 values with two places.
    let mut data = String::new();
    for number in 0..40 {
        write!(data, "ex:a ex:p ex:b{number} . ").unwrap();
    }
    let schema = "start = { ex:p @ex:T {20} ; ex:p @ex:U {20} }\nex:T { ex:q . }\nex:U { ex:r . }";
    let error = validate_within(schema, &data, &["a"], limits()).unwrap_err();
    assert!(error.to_string().contains("combinations"), "{error}");
    let few = "ex:a ex:p ex:b, ex:c . ex:b ex:q 1 . ex:c ex:r 1 .";
    let both = "start = { ex:p @ex:T ; ex:p @ex:U }\nex:T { ex:q . }\nex:U { ex:r . }";
    assert_eq!(find(both, few, &["a"]), [""; 0]);
    // Each shape refers to the next one twice: 2^60 ways.
    let mut wide = "start = @ex:S0\n".to_owned();
    for number in 0..60 {
        writeln!(wide, "ex:S{number} @ex:S{0} AND @ex:S{0}", number + 1).unwrap();
    }
    wide += "ex:S60 { ex:p . }";
    assert_eq!(find(&wide, "ex:a ex:q 1 .", &["a"]).len(), 1);
    // The parser tries each group several times.
    let error =
        read(&format!("start = {{ {} ex:p . {} }}", "( ".repeat(20), ") ".repeat(20))).unwrap_err();
    assert!(error.to_string().contains("levels of brackets"), "{error}");
    // Groups that repeat in groups.
    let mut groups = "ex:p [1] {1,9}".to_owned();
    for _ in 0..4 {
        groups = format!("( {groups} | ex:q . {{2,7}} ; ex:r . ? ) {{1,9}}");
    }
    let short = Limits { time: Duration::from_secs(5), ..limits() };
    let _ = validate_within(
        &format!("start = {{ {groups} }}"),
        "ex:a ex:q 1, 2, 3 ; ex:r 1 .",
        &["a"],
        short,
    );
}

#[test]
fn a_schema_with_large_patterns_is_only_for_short_values() {
    let schema = |pattern: &str| format!("start = {{ ex:p LITERAL /{pattern}/ * }}");
    let long = format!("ex:a ex:p \"{}\" .", "ab".repeat(50_000));
    let large = "(a|b)*a(a|b){1500}c";
    let error = validate_within(&schema(large), &long, &["a"], limits()).unwrap_err();
    assert!(error.to_string().contains("regular expressions of the schema"), "{error}");
    assert_eq!(find(&schema("^(a|b)*$"), &long, &["a"]), [""; 0]);
    assert_eq!(find(&schema(large), "ex:a ex:p \"ab\" .", &["a"]).len(), 1);
    // rudof takes a value for one that does not match if it does not know a flag.
    assert!(read("start = { ex:p /a/smix }").is_ok());
    let too_large = "start = { ex:p LITERAL /[a-kß]{1000}/i }";
    assert!(read(too_large).unwrap_err().to_string().contains("too large"));
}

#[test]
fn a_long_chain_ends_without_overflowing_the_stack() {
    let mut data = String::new();
    for number in 0..100_000 {
        writeln!(data, "ex:n{number} ex:next ex:n{} .", number + 1).unwrap();
    }
    let schema = "start = @ex:N\nex:N { ex:next @ex:N ? }";
    let short = Limits { time: Duration::from_secs(10), memory: 32 << 20, ..limits() };
    let error = validate_within(schema, &data, &["n0"], short).unwrap_err();
    assert!(error.to_string().contains("service.limits.shapes"), "{error}");
}

#[test]
fn a_cycle_in_the_data_conforms() {
    let schema = "start = @ex:N\nex:N { ex:next @ex:N ; ex:x [1] }";
    let data = "ex:a ex:next ex:b ; ex:x 1 . ex:b ex:next ex:a ; ex:x 1 . ex:c ex:next ex:d ; ex:x 1 . ex:d ex:next ex:c ; ex:x 2 .";
    assert_eq!(find(schema, data, &["a", "b"]), [""; 0]);
    assert_eq!(find(schema, data, &["c", "d"]).len(), 2);
}

#[test]
fn nodes_of_a_document_are_validated() {
    let document = parse("ex:a ex:p 1 . ex:b ex:q 1 . _:x ex:q 1 .");
    let subjects = document.list_subjects();
    let data = Data::new(Box::new(document), limits());
    let found = read("start = { ex:p . }").unwrap().validate_nodes(&data, &subjects).unwrap();
    assert_eq!(found.len(), 1);
}

#[test]
fn lengths_count_characters_in_every_position() {
    for (schema, conforming, others) in [
        ("start = { ex:p MAXLENGTH 6 }", &["prüfen", "", "日本語日本語"][..], &["prüfend"][..]),
        ("start = { ex:p LITERAL MINLENGTH 4 }", &["üüüü"], &["üü", "日本"]),
        ("start = { ex:p xsd:string LENGTH 2 }", &["üü", "😀a"], &["ü", "abc"]),
        ("start = { ex:p NOT MAXLENGTH 2 }", &["üüü"], &["üü", "a"]),
        ("start = { ex:p (LENGTH 2 OR LENGTH 4) }", &["üü", "üüüü"], &["ü", "üüü"]),
        ("start = { ex:p (MINLENGTH 2 AND MAXLENGTH 3) }", &["üü", "üüü"], &["ü", "üüüü"]),
        ("start = @ex:S\nex:S { ex:p @ex:V }\nex:V LENGTH 2", &["üü"], &["ü", "abcd"]),
        ("start = { ex:p . ; ^ex:q { ex:q . } ? } AND { ex:p LENGTH 300 }", &[], &["ü"]),
        ("start = { (ex:p LENGTH 2 | ex:p LENGTH 4) }", &["üü", "üüüü"], &["abc"]),
    ] {
        check_values(schema, "", conforming, others);
    }
    // With EXTRA, a value that does not conform is no violation if another one does.
    let extra = "start = EXTRA ex:p { ex:p LENGTH 2 }";
    assert_eq!(find(extra, "ex:a ex:p 'üü', 'abc' .", &["a"]), [""; 0]);
    assert_eq!(find(extra, "ex:a ex:p 'abc' .", &["a"]).len(), 1);
    // The IRI of the object, and of a value.
    let iri = "http://example.com/ü".chars().count();
    assert_eq!(find(&format!("start = IRI LENGTH {iri}"), "ex:ü ex:p 1 .", &["ü"]), [""; 0]);
    let value = format!("start = {{ ex:p IRI MAXLENGTH {iri} }}");
    assert_eq!(find(&value, "ex:a ex:p ex:ü .", &["a"]), [""; 0]);
    assert_eq!(find(&value, "ex:a ex:p ex:üb .", &["a"]).len(), 1);
    // A number keeps its digits.
    assert_eq!(find("start = { ex:p LENGTH 4 }", "ex:a ex:p 1.50 .", &["a"]), [""; 0]);
    let schema = "start = { ex:p MAXLENGTH 2 }";
    let found = validate_within(schema, "ex:a ex:p 'üüü' .", &["a"], limits()).unwrap();
    let message = found[0].message(&[]);
    assert_eq!(
        message,
        "has a value that is not allowed: must have at most 2 characters, and has 3"
    );
    assert_eq!(found[0].constraint.as_str(), "http://www.w3.org/ns/shex#NodeConstraint");
}

#[test]
fn a_pattern_is_an_expression_of_xpath() {
    for (facet, conforming, others) in [
        ("/^[a-c-[b]]$/", &["a", "c"][..], &["b", "-"][..]),
        ("/^[A-Z&&]+$/", &["R&D"], &["r"]),
        ("/^a\\/b$/", &["a/b"], &["ab"]),
        ("/a # b/i", &["A # B"], &["a"]),
        ("/^[A-Z-[IO]]$/i", &["a"], &["i"]),
        ("(/a/ AND /b/)", &["ab"], &["a", "b"]),
    ] {
        check_values(&format!("start = {{ ex:p {facet} }}"), "", conforming, others);
    }
    assert_eq!(find("start = /a$/", "ex:a ex:p 1 . ex:b ex:p 1 .", &["a", "b"]).len(), 1);
    let many = "ex:p /a/ ; ".repeat(65);
    let error = read(&format!("start = {{ {many} }}")).unwrap_err();
    assert!(error.to_string().contains("more than 64 regular expressions"), "{error}");
}

#[test]
fn numbers_are_read_as_in_xml_schema() {
    for (constraint, conforming, others) in [
        (
            "xsd:double",
            &["INF", "+INF", "-INF", "NaN", "1e3"][..],
            &["Infinity", "inf", "nan", ""][..],
        ),
        ("xsd:float", &["+INF", "1.5"], &["-Infinity", "Inf"]),
        ("xsd:int", &["2147483647"], &["2147483648", "x"]),
        ("xsd:decimal", &["0.1234567890123456789012345678901234567890"], &["1e0", "x"]),
        ("xsd:double MININCLUSIVE 1", &["+INF", "1", "1e0"], &["-INF", "0.5", "NaN", "Infinity"]),
        ("xsd:double MAXEXCLUSIVE 1.5e0", &["-INF", "1.4"], &["INF", "1.5"]),
        ("xsd:int MINEXCLUSIVE 3", &["4"], &["3"]),
        ("xsd:decimal MAXINCLUSIVE 3 FRACTIONDIGITS 1", &["3", "2.5"], &["3.1", "2.55"]),
    ] {
        let datatype = format!("^^{}", constraint.split(' ').next().unwrap());
        let schema = format!("start = {{ ex:p {constraint} }}");
        check_values(&schema, &datatype, conforming, others);
    }
    let wrong = find("start = { ex:p xsd:double }", "ex:a ex:p 1.5 .", &["a"]);
    assert_eq!(wrong.len(), 1, "a decimal is no double");
    let text = find("start = { ex:p MININCLUSIVE 1 }", "ex:a ex:p '5' .", &["a"]);
    assert_eq!(text.len(), 1, "a text is no number");
}

/// A long prefix makes a short text long.
#[test]
fn a_schema_with_too_many_bytes_of_iris_is_refused() {
    let schema = |declared: &str, values: usize| {
        let values = "p:a\n".repeat(values);
        read(&format!("{declared}start = {{ ex:p [ {values} ] }}"))
    };
    let long = format!("PREFIX p: <urn:{}/>\n", "x".repeat(60_000));
    schema(&long, 10).unwrap();
    let error = schema(&long, 1000).unwrap_err();
    assert!(error.to_string().contains("use shorter prefixes"), "{error}");
    // A name is not the declaration of a base.
    let many = "base:a\n".repeat(1000);
    read(&format!("PREFIX base: <http://example.org/>\nstart = {{ ex:p [ {many} ] }}")).unwrap();
    // Each base is relative to the one before.
    let bases = format!("BASE <{}/>\n", "x".repeat(1000)).repeat(100);
    let relative = format!("BASE <http://a/>\n{bases}PREFIX p: <x/>\n");
    let error = schema(&relative, 1000).unwrap_err();
    assert!(error.to_string().contains("use shorter prefixes"), "{error}");
}

#[test]
fn a_schema_is_read_in_linear_time() {
    // As one line, this takes the parser minutes.
    let parts = ["<a:p> ."; 1000].join(" ; ");
    assert!(read(&format!("start = {{ {parts} }}")).is_ok());
    let error = read(&["start = {", &"<a:p> . ; ".repeat(10_000), "}"].concat()).unwrap_err();
    assert!(error.to_string().contains("more than 30000 words, IRIs and signs"), "{error}");
    let values = format!("start = {{ <a:p> [{}] }}", "'a'".repeat(5_000));
    let error = read(&values).unwrap_err();
    assert!(error.to_string().contains("the line is too long without white space"), "{error}");
    assert!(matches!(error.findings[0].place, Place::Line { line: 3, .. }), "{error}");
}
