//! Documents from other sources: errors, blank nodes, sizes and commits.
use crate::{Fixture, options};
use oxrdf::{GraphName, NamedNode};
use penstock_base::error::{ErrorClass, GatewayError, Place};
use penstock_model::rdf::{DumpOptions, Format, LoadOptions, write_dump};
use penstock_test_support::TextExt as _;
use std::fmt::Write as _;

fn place(error: &GatewayError) -> Option<(u64, u64)> {
    match error.findings.first()?.place {
        Place::Line { line, column } => Some((line, column)),
        _ => None,
    }
}

#[test]
fn errors_have_line_and_column_in_every_format() {
    let documents = [
        (Format::NTriples, "<http://a/s> <http://a/p> \"1\" .\n<http://a/s> x \"1\" .\n", (2, 14)),
        (Format::NQuads, "<http://a/s> <http://a/p> <b> .\n", (1, 27)),
        (Format::Turtle, "@prefix a: <http://a/> .\na:s a:p b:o .\n", (2, 9)),
        (Format::TriG, "<http://a/g> {\n<http://a/s> <http://a/p> 1,, 2 }\n", (2, 29)),
        (
            Format::RdfXml,
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n<rdf:Description>\n</rdf:RDF>\n",
            (3, 10),
        ),
        (Format::JsonLd, "[{\n \"@id\": \"http://a/s\",\n \"http://a/p\": tru }]", (3, 16)),
    ];
    for (format, text, expected) in documents {
        let failed = Fixture::new().load(&options(format), text.as_bytes()).unwrap_err();
        assert_eq!(failed.error.class, ErrorClass::Malformed, "{format:?}");
        assert_eq!(place(&failed.error), Some(expected), "{format:?}: {}", failed.error);
        assert!(!failed.error.to_string().contains("Parser error"), "{}", failed.error);
    }
}

#[test]
fn commits_before_an_error_are_reported_and_kept() {
    let mut text = String::new();
    for number in 0..25_000 {
        let _ = writeln!(text, "<http://a/{number}> <http://a/p> \"{number}\" .");
    }
    let whole = text.clone();
    text.push_str("nonsense\n");
    let fixture = Fixture::new();
    let failed = fixture.load(&options(Format::NTriples), text.as_bytes()).unwrap_err();
    assert_eq!(place(&failed.error).unwrap().0, 25_001);
    assert_eq!(
        (failed.loaded.commits, failed.loaded.quads, failed.loaded.added),
        (2, 20_000, 20_000)
    );
    assert_eq!(fixture.quads().len(), 20_000);
    // Load the corrected document from the beginning.
    let loaded = fixture.load(&options(Format::NTriples), whole.as_bytes()).unwrap();
    assert_eq!((loaded.quads, loaded.added, loaded.commits), (25_000, 5_000, 3));
}

#[test]
fn the_given_graph_applies_only_to_quads_without_one() {
    let graph = GraphName::from(NamedNode::new("http://a/g").unwrap());
    let fixture = Fixture::new();
    let into = LoadOptions { graph, ..options(Format::TriG) };
    let text = "<http://a/s> <http://a/p> 1 . <http://a/h> { <http://a/s> <http://a/p> 2 }";
    fixture.load(&into, text.as_bytes()).unwrap();
    let nquads = String::from_utf8(fixture.dump(Format::NQuads, None)).unwrap();
    assert!(nquads.contains("\"1\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://a/g> ."));
    assert!(nquads.contains("\"2\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://a/h> ."));
    let refused = DumpOptions { format: Format::Turtle, graph: None };
    let error = write_dump(&fixture.store, &refused, Vec::new(), &mut |_| {}).unwrap_err();
    assert!(error.detail.contains("holds one graph"), "{error}");
}

#[test]
fn relative_iris_need_a_base() {
    let text = b"<s> <p> <o> .";
    assert!(Fixture::new().load(&options(Format::Turtle), text).is_err());
    let base = Some(NamedNode::new("https://plant.example/a/").unwrap());
    let fixture = Fixture::new();
    fixture.load(&LoadOptions { base, ..options(Format::Turtle) }, text).unwrap();
    assert!(fixture.quads().iter().next().unwrap().contains("<https://plant.example/a/s>"));
}

#[test]
fn blank_nodes_are_refused_or_become_the_same_iris_each_time() {
    let text = b"_:x <http://a/p> [ <http://a/q> _:x , ( 1 ) ] .";
    let failed = Fixture::new().load(&options(Format::Turtle), text).unwrap_err();
    assert!(failed.error.to_string().contains("--skolemize"), "{}", failed.error);
    let base = "https://plant.example/.well-known/genid/old-";
    let skolemize = Some(NamedNode::new(base).unwrap());
    let into = LoadOptions { skolemize, ..options(Format::Turtle) };
    let fixture = Fixture::new();
    let first = fixture.load(&into, text).unwrap();
    let again = fixture.load(&into, text).unwrap();
    assert_eq!((first.added, again.added), (first.quads, 0));
    let quads = fixture.quads().into_iter().collect::<Vec<_>>().join("\n");
    assert!(!quads.contains("_:"), "{quads}");
    quads.has_all(&[&format!("<{base}x>"), &format!("<{base}.1>")]);
}

#[test]
fn large_json_ld_is_read_in_its_streaming_form() {
    let fixture = Fixture::new();
    let mut text = String::new();
    for number in 0..40_000 {
        let _ = writeln!(text, "<http://a/{number}> <http://a/p> \"{number:0100}\" <http://a/g> .");
    }
    fixture.load(&options(Format::NQuads), text.as_bytes()).unwrap();
    let json = fixture.dump(Format::JsonLd, None);
    assert!(json.len() > 5 << 20);
    let again = Fixture::new();
    again.load(&options(Format::JsonLd), &json).unwrap();
    assert_eq!(again.quads(), fixture.quads());

    // Another order would require the whole document in memory, so it is refused.
    let other = format!("{{\"@graph\":{},\"@context\":{{}}}}", String::from_utf8(json).unwrap());
    let failed = Fixture::new().load(&options(Format::JsonLd), other.as_bytes()).unwrap_err();
    assert!(failed.error.to_string().contains("@context"), "{}", failed.error);
}

#[test]
fn a_literal_that_needs_too_much_memory_is_refused() {
    let long = "x".repeat(20 << 20);
    let xml = format!(
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description rdf:about=\"http://a/s\"><p xmlns=\"http://a/\">{long}</p></rdf:Description></rdf:RDF>"
    );
    let failed = Fixture::new().load(&options(Format::RdfXml), xml.as_bytes()).unwrap_err();
    assert!(failed.error.to_string().contains("16 MiB"), "{}", failed.error);
    let line = format!("<http://a/s> <http://a/p> \"{long}\" .");
    assert!(Fixture::new().load(&options(Format::NTriples), line.as_bytes()).is_err());
}

#[test]
fn nothing_is_loaded_when_only_the_disk_reserve_is_free() {
    let fixture = Fixture::new();
    let text = b"<http://a/s> <http://a/p> <http://a/o> .";
    let failed = fixture.load_with(u64::MAX, &options(Format::NTriples), text);
    assert_eq!(failed.unwrap_err().error.class, ErrorClass::InsufficientStorage);
    assert!(fixture.quads().is_empty());
}

#[test]
fn terms_of_rdf_1_2_are_refused_in_every_format() {
    let line = |object: &str| format!("<http://a/s> <http://a/p> {object} .\n");
    let triple = line("<<( <http://a/s> <http://a/p> \"x\" )>>");
    let direction = line("\"x\"@en--ltr");
    let mut documents = Vec::new();
    for format in [Format::NTriples, Format::NQuads, Format::Turtle, Format::TriG] {
        documents.extend([(format, triple.clone()), (format, direction.clone())]);
    }
    for format in [Format::Turtle, Format::TriG] {
        for text in [
            "<< <http://a/s> <http://a/p> \"x\" >> <http://a/q> \"y\" .",
            "<< <http://a/s> <http://a/p> \"x\" ~ <http://a/r> >> <http://a/q> \"y\" .",
            "<http://a/s> <http://a/p> \"x\" {| <http://a/q> \"y\" |} .",
            "<http://a/s> <http://a/p> \"x\" ~ <http://a/r> .",
        ] {
            documents.push((format, text.to_owned()));
        }
    }
    let xml = |property: &str| {
        format!(
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:a=\"http://a/\" \
             xmlns:its=\"http://www.w3.org/2005/11/its\" rdf:version=\"1.2\" its:version=\"2.0\">\
             <rdf:Description rdf:about=\"http://a/s\">{property}</rdf:Description></rdf:RDF>"
        )
    };
    documents.push((
        Format::RdfXml,
        xml("<a:p rdf:parseType=\"Triple\"><rdf:Description rdf:about=\"http://a/t\"><a:q>x</a:q></rdf:Description></a:p>"),
    ));
    documents.push((Format::RdfXml, xml("<a:p xml:lang=\"en\" its:dir=\"ltr\">x</a:p>")));
    let json = r#"{"@id": "http://a/s", "http://a/p": {"@value": "x", "@language": "en", "@direction": "ltr"}}"#;
    documents.push((Format::JsonLd, json.to_owned()));
    for (format, text) in documents {
        let fixture = Fixture::new();
        let failed = fixture.load(&options(format), text.as_bytes()).unwrap_err();
        assert_eq!(failed.error.class, ErrorClass::Malformed, "{format:?} {text}");
        let message = failed.error.to_string();
        assert!(
            message.contains("of RDF 1.2, and the store keeps"),
            "{format:?} {text}: {message}"
        );
        assert!(message.contains("in quad "), "{format:?} {text}: {message}");
        assert_eq!(fixture.quads().len(), 0, "{format:?} {text}");
    }
}
