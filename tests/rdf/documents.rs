//! Documents of others: faults, blank nodes, sizes, commits.
use crate::{World, what};
use oxrdf::{GraphName, NamedNode};
use penstock_base::fault::{Fault, Kind, Place};
use penstock_model::rdf::{Dump, Format, Load, dump};
use std::fmt::Write as _;

fn place(fault: &Fault) -> Option<(u64, u64)> {
    match fault.errors.first()?.place {
        Place::Line { line, column } => Some((line, column)),
        _ => None,
    }
}

#[test]
fn a_fault_has_its_line_and_column_in_every_format() {
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
        let failed = World::new().load(&what(format), text.as_bytes()).unwrap_err();
        assert_eq!(failed.fault.kind, Kind::Malformed, "{format:?}");
        assert_eq!(place(&failed.fault), Some(expected), "{format:?}: {}", failed.fault);
        assert!(!failed.fault.to_string().contains("Parser error"), "{}", failed.fault);
    }
}

#[test]
fn what_was_committed_before_a_fault_is_told_and_stays() {
    let mut text = String::new();
    for number in 0..25_000 {
        let _ = writeln!(text, "<http://a/{number}> <http://a/p> \"{number}\" .");
    }
    let whole = text.clone();
    text.push_str("nonsense\n");
    let world = World::new();
    let failed = world.load(&what(Format::NTriples), text.as_bytes()).unwrap_err();
    assert_eq!(place(&failed.fault).unwrap().0, 25_001);
    assert_eq!(
        (failed.loaded.commits, failed.loaded.quads, failed.loaded.added),
        (2, 20_000, 20_000)
    );
    assert_eq!(world.quads().len(), 20_000);
    // Mended, from the beginning.
    let loaded = world.load(&what(Format::NTriples), whole.as_bytes()).unwrap();
    assert_eq!((loaded.quads, loaded.added, loaded.commits), (25_000, 5_000, 3));
}

#[test]
fn a_graph_is_given_to_what_has_none() {
    let graph = GraphName::from(NamedNode::new("http://a/g").unwrap());
    let world = World::new();
    let into = Load { graph, ..what(Format::TriG) };
    let text = "<http://a/s> <http://a/p> 1 . <http://a/h> { <http://a/s> <http://a/p> 2 }";
    world.load(&into, text.as_bytes()).unwrap();
    let nquads = String::from_utf8(world.dump(Format::NQuads, None)).unwrap();
    assert!(nquads.contains("\"1\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://a/g> ."));
    assert!(nquads.contains("\"2\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://a/h> ."));
    let refused = Dump { format: Format::Turtle, graph: None };
    let fault = dump(&world.store, &refused, Vec::new(), &mut |_| {}).unwrap_err();
    assert!(fault.detail.contains("holds one graph"), "{fault}");
}

#[test]
fn relative_iris_need_a_base() {
    let text = b"<s> <p> <o> .";
    assert!(World::new().load(&what(Format::Turtle), text).is_err());
    let base = Some(NamedNode::new("https://plant.example/a/").unwrap());
    let world = World::new();
    world.load(&Load { base, ..what(Format::Turtle) }, text).unwrap();
    assert!(world.quads().iter().next().unwrap().contains("<https://plant.example/a/s>"));
}

#[test]
fn blank_nodes_are_refused_or_become_the_same_iris_each_time() {
    let text = b"_:x <http://a/p> [ <http://a/q> _:x , ( 1 ) ] .";
    let failed = World::new().load(&what(Format::Turtle), text).unwrap_err();
    assert!(failed.fault.to_string().contains("--skolemize"), "{}", failed.fault);
    let base = "https://plant.example/.well-known/genid/old-";
    let skolemize = Some(NamedNode::new(base).unwrap());
    let into = Load { skolemize, ..what(Format::Turtle) };
    let world = World::new();
    let first = world.load(&into, text).unwrap();
    let again = world.load(&into, text).unwrap();
    assert_eq!((first.added, again.added), (first.quads, 0));
    let quads = world.quads().into_iter().collect::<Vec<_>>().join("\n");
    assert!(!quads.contains("_:"), "{quads}");
    assert!(
        quads.contains(&format!("<{base}x>")) && quads.contains(&format!("<{base}.1>")),
        "{quads}"
    );
}

#[test]
fn json_ld_longer_than_is_held_at_once_is_read_in_its_streaming_form() {
    let world = World::new();
    let mut text = String::new();
    for number in 0..40_000 {
        let _ = writeln!(text, "<http://a/{number}> <http://a/p> \"{number:0100}\" <http://a/g> .");
    }
    world.load(&what(Format::NQuads), text.as_bytes()).unwrap();
    let json = world.dump(Format::JsonLd, None);
    assert!(json.len() > 5 << 20);
    let again = World::new();
    again.load(&what(Format::JsonLd), &json).unwrap();
    assert_eq!(again.quads(), world.quads());

    // In another order the whole of it would have to be held: that is refused.
    let other = format!("{{\"@graph\":{},\"@context\":{{}}}}", String::from_utf8(json).unwrap());
    let failed = World::new().load(&what(Format::JsonLd), other.as_bytes()).unwrap_err();
    assert!(failed.fault.to_string().contains("@context"), "{}", failed.fault);
}

#[test]
fn one_part_that_takes_too_much_memory_is_refused() {
    let long = "x".repeat(20 << 20);
    let xml = format!(
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description rdf:about=\"http://a/s\"><p xmlns=\"http://a/\">{long}</p></rdf:Description></rdf:RDF>"
    );
    let failed = World::new().load(&what(Format::RdfXml), xml.as_bytes()).unwrap_err();
    assert!(failed.fault.to_string().contains("16 MiB"), "{}", failed.fault);
    let line = format!("<http://a/s> <http://a/p> \"{long}\" .");
    assert!(World::new().load(&what(Format::NTriples), line.as_bytes()).is_err());
}

#[test]
fn a_disk_that_is_full_up_to_its_reserve_takes_nothing_in() {
    let world = World::new();
    let text = b"<http://a/s> <http://a/p> <http://a/o> .";
    let failed = world.load_with(u64::MAX, &what(Format::NTriples), text);
    assert_eq!(failed.unwrap_err().fault.kind, Kind::NoRoom);
    assert!(world.quads().is_empty());
}
