//! The recipes of docs/recipes.md: each payload through `derive` and back, and with the mapping of the page to the quads of
//! the page. `UPDATE=1` writes the quads.
use crate::values::{find_difference, find_items};
use oxrdf::Quad;
use oxrdfio::{RdfFormat, RdfParser, RdfSerializer};
use penstock_base::json;
use penstock_model::derive::{MappingNames, SampleBody, derive_mapping, read_samples};
use penstock_model::ingest::{Answer, Mode, Request};
use penstock_model::mapping;
use penstock_model::rdf::{DumpOptions, Format, write_dump};
use penstock_model::testing::Fixture;
use serde_json::json;
use std::collections::HashSet;

const NESTING: usize = 128;
const VOCABULARY: &str = "https://plant.example/v/";
/// The maximum number of lines of a mapping.
const MAX_LINES: usize = 30;

/// A recipe of the page. The texts are those of its code blocks.
struct Recipe<'p> {
    name: &'p str,
    payload: &'p str,
    mapping: &'p str,
    quads: &'p str,
}

fn path() -> String {
    format!("{}/docs/recipes.md", env!("CARGO_MANIFEST_DIR"))
}

fn read_page() -> String {
    std::fs::read_to_string(path()).unwrap()
}

/// Returns the recipes: each has a heading and three blocks.
fn read_recipes(page: &str) -> Vec<Recipe<'_>> {
    let sections = page.split("\n## ").skip(1);
    sections.map(|section| parse_recipe(section).unwrap_or_else(|| panic!("{section}"))).collect()
}

fn parse_recipe(section: &str) -> Option<Recipe<'_>> {
    let name = section.lines().next()?;
    let block = |info: &str| {
        let (_, rest) = section.split_once(&format!("\n```{info}\n"))?;
        Some(rest.split_once("```\n")?.0)
    };
    Some(Recipe { name, payload: block("json")?, mapping: block("yaml")?, quads: block("trig")? })
}

/// Ingests a payload as the sample of a page is sent, into the Business Object `Sample` with this mapping.
fn ingest(config: &str, payload: &str) -> (Fixture, Answer) {
    let fixture = Fixture::with_definition(&json!({"name": "Sample", "config": config}));
    let body = SampleBody::read(payload, &fixture.business_object.mapping, NESTING).unwrap();
    let request = fixture.request(Mode::Add, body.to_body());
    let answer = fixture.run(&Request { form: body.form, ..request }).unwrap();
    (fixture, answer)
}

#[test]
fn each_payload_comes_back_value_for_value_through_derive() {
    let page = read_page();
    let recipes = read_recipes(&page);
    assert_eq!(recipes.len(), 36);
    let mut failures = Vec::new();
    for Recipe { name, payload, .. } in recipes {
        let samples = read_samples(payload, NESTING).unwrap().objects;
        let names = MappingNames { business_object: "Sample", vocabulary: VOCABULARY };
        let derived = derive_mapping(names, &samples).unwrap();
        let misfits: Vec<_> = derived.notes.iter().filter(|note| note.misfit).collect();
        assert!(misfits.is_empty(), "{name}: {misfits:?}");
        let (fixture, answer) = ingest(&derived.config, payload);
        let mapping = mapping::compile(&derived.config).unwrap();
        let items = find_items(&mapping, &samples);
        assert_eq!(items.len(), answer.objects.len(), "{name}: {}", derived.config);
        for (item, outcome) in items.into_iter().zip(&answer.objects) {
            let shown = json::parse(fixture.view(&outcome.uri).as_bytes(), NESTING).unwrap();
            if let Some(difference) = find_difference(&mapping.root, item, &shown) {
                failures.push(format!("{name}: {difference}\n{}", derived.config));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn each_mapping_gives_the_quads_of_the_page() {
    let page = read_page();
    let mut updated = page.clone();
    let is_updating = std::env::var_os("UPDATE").is_some();
    for Recipe { name, payload, mapping, quads } in read_recipes(&page) {
        assert!(mapping.lines().count() <= MAX_LINES, "{name}");
        let (fixture, answer) = ingest(mapping, payload);
        assert!(answer.warnings.is_empty(), "{name}: {:?}", answer.warnings);
        let stored = list_quads(&fixture);
        if is_updating {
            let place = updated.find(&format!("\n## {name}\n")).unwrap();
            let (_, section) = updated.split_at(place);
            let start = place + section.find("\n```trig\n").unwrap() + "\n```trig\n".len();
            updated.replace_range(start..start + quads.len(), &write_trig(&stored));
            continue;
        }
        let expected = parse(RdfFormat::TriG, quads.as_bytes());
        assert_eq!(stored, expected, "{name}");
        for outcome in &answer.objects {
            let shown = fixture.view(&outcome.uri);
            // What the view shows is the same object again.
            fixture.send(Mode::Update, &shown).unwrap();
            assert_eq!(list_quads(&fixture), expected, "{name}");
        }
    }
    if is_updating {
        std::fs::write(path(), updated).unwrap();
    }
}

fn list_quads(fixture: &Fixture) -> HashSet<Quad> {
    let mut text = Vec::new();
    let all = DumpOptions { format: Format::NQuads, graph: None };
    write_dump(&fixture.store, &all, &mut text, &mut |_| {}).unwrap();
    parse(RdfFormat::NQuads, &text)
}

fn parse(format: RdfFormat, text: &[u8]) -> HashSet<Quad> {
    RdfParser::from_format(format).for_slice(text).map(Result::unwrap).collect()
}

/// Writes quads as the page shows them.
fn write_trig(quads: &HashSet<Quad>) -> String {
    let prefixes = [
        ("v", VOCABULARY),
        ("xsd", "http://www.w3.org/2001/XMLSchema#"),
        ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
        ("id", "https://plant.example/id/"),
    ];
    let mut quads: Vec<&Quad> = quads.iter().collect();
    quads.sort_by_key(|quad| (quad.graph_name.to_string(), quad.to_string()));
    let mut serializer = RdfSerializer::from_format(RdfFormat::TriG);
    for (name, iri) in prefixes {
        serializer = serializer.with_prefix(name, iri).unwrap();
    }
    let mut writer = serializer.for_writer(Vec::new());
    for quad in quads {
        writer.serialize_quad(quad).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}
