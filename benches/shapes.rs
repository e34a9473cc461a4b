//! Ingesting requests of 100 objects without validation, and with a shape of 20 constraints: new objects and existing
//! ones, in an empty store and in a filled one. Also with a request in which one object violates a constraint.
//!
//! `cargo bench --bench shapes` loads 1,000,000 quads; as a test it loads 10,000. `PENSTOCK_SHAPES_QUADS` sets another
//! number.
#![expect(clippy::unwrap_used, reason = "a bench panics on an error")]

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use penstock_model::ingest::{Body, Mode};
use penstock_model::testing::Fixture;
use serde_json::json;
use std::cell::Cell;
use std::fmt::Write;

/// The number of objects in a request.
const OBJECTS: usize = 100;
const QUADS_PER_OBJECT: usize = 10;
/// The number of objects in a request that fills the store.
const LOADED_OBJECTS: usize = 1_000;

const MAPPING: &str = "
type: object
path: Machine:.
fields:
  uri: {type: id}
  site: {type: string, path: <http://example.com/site>}
  tag: {type: string, path: <http://example.com/tag>}
  name: {type: string, path: <http://example.com/name>}
  maker: {type: resource, path: <http://example.com/maker>}
  weight: {type: number, path: <http://example.com/weight>}
  commissioned: {type: date, path: <http://example.com/commissioned>}
  active: {type: boolean, path: <http://example.com/active>}
  labels: {type: array, path: <http://example.com/label>}
";

/// A shape of 20 constraints.
const SHAPES: &str = r#"
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://example.com/> .
:Machine a sh:NodeShape ; sh:targetSubjectsOf :tag ;
  sh:property [ sh:path :site ; sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:string ; sh:minLength 3 ] ;
  sh:property [ sh:path :tag ; sh:minCount 1 ; sh:maxCount 1 ; sh:pattern "^P-[0-9]+$" ] ;
  sh:property [ sh:path :name ; sh:minCount 1 ; sh:maxLength 50 ; sh:datatype xsd:string ] ;
  sh:property [ sh:path :maker ; sh:nodeKind sh:IRI ; sh:maxCount 1 ] ;
  sh:property [ sh:path :weight ; sh:datatype xsd:decimal ; sh:minInclusive 0 ; sh:maxExclusive 100000000 ] ;
  sh:property [ sh:path :commissioned ; sh:datatype xsd:date ; sh:maxCount 1 ] ;
  sh:property [ sh:path :active ; sh:datatype xsd:boolean ] ;
  sh:property [ sh:path :label ; sh:minCount 1 ; sh:nodeKind sh:Literal ] .
"#;

/// Creates a fixture with a number of objects.
fn create_fixture(mode: &str, objects: usize) -> Fixture {
    let definition = json!({
        "name": "Machine",
        "config": MAPPING,
        "namespaces": [
            {"name": "Machine", "uriBase": "https://plant.example/machines/", "generator": "uuid"},
        ],
        "validation": {"shapes": ["machines"], "mode": mode},
    });
    let fixture = Fixture::with_shapes("machines", SHAPES, &definition);
    for from in (0..objects).step_by(LOADED_OBJECTS) {
        let count = LOADED_OBJECTS.min(objects - from);
        ingest(&fixture, Mode::Add, from, count, 0);
    }
    fixture
}

/// Ingests objects with consecutive numbers. `weight` is in each of them.
fn ingest(fixture: &Fixture, mode: Mode, from: usize, count: usize, weight: i64) {
    let body = build_body(from, count, weight);
    fixture.run(&fixture.request(mode, Body::Json(body.as_bytes()))).unwrap();
}

fn build_body(from: usize, count: usize, weight: i64) -> String {
    let mut data = String::new();
    for i in from..from + count {
        let comma = if data.is_empty() { "" } else { "," };
        write!(
            data,
            r#"{comma}{{"uri":"https://plant.example/machines/{i}","site":"Plant {}","tag":"P-{i}","name":"Machine {i}","maker":"http://example.com/makers/{}","weight":{weight}.5,"commissioned":"2026-03-01","active":true,"labels":["press","line {}"]}}"#,
            i % 5,
            i % 50,
            i % 11,
        )
        .unwrap();
    }
    format!("{{\"data\":[{data}]}}")
}

fn bench_shapes(criterion: &mut Criterion) {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let quads = std::env::var("PENSTOCK_SHAPES_QUADS").ok();
    let quads = quads.map_or(if measured { 1_000_000 } else { 10_000 }, |q| q.parse().unwrap());
    for (size, loaded) in [("empty", OBJECTS), ("filled", (quads / QUADS_PER_OBJECT).max(OBJECTS))]
    {
        let mut group = criterion.benchmark_group(format!("shapes, {size} store"));
        group.sample_size(10).throughput(Throughput::Elements(OBJECTS as u64));
        for (name, mode) in [("no validation", "off"), ("20 constraints", "reject")] {
            bench_new(&mut group, name, mode, loaded);
            bench_existing(&mut group, name, mode, loaded);
        }
        bench_violation(&mut group, loaded);
        group.finish();
    }
}

type Group<'a> = BenchmarkGroup<'a, criterion::measurement::WallTime>;

/// Measures requests that create objects.
fn bench_new(group: &mut Group<'_>, name: &str, mode: &str, loaded: usize) {
    group.bench_function(format!("new, {name}"), |bencher| {
        let (fixture, next) = (create_fixture(mode, loaded), Cell::new(loaded));
        bencher.iter(|| {
            let from = next.replace(next.get() + OBJECTS);
            ingest(&fixture, Mode::Add, from, OBJECTS, 0);
        });
    });
}

/// Measures requests that change one value of existing objects, spread over the store.
fn bench_existing(group: &mut Group<'_>, name: &str, mode: &str, loaded: usize) {
    group.bench_function(format!("existing, {name}"), |bencher| {
        let (fixture, round) = (create_fixture(mode, loaded), Cell::new(0));
        let requests = loaded / OBJECTS;
        bencher.iter(|| {
            round.set(round.get() + 1);
            // A step without a common divisor reaches every request of a round number.
            let from = usize::try_from(round.get()).unwrap() * 7_919 % requests * OBJECTS;
            ingest(&fixture, Mode::Update, from, OBJECTS, round.get());
        });
    });
}

/// Measures requests that are refused, because the weights of all objects are negative.
fn bench_violation(group: &mut Group<'_>, loaded: usize) {
    group.bench_function("refused, 20 constraints", |bencher| {
        let fixture = create_fixture("reject", loaded);
        let body = build_body(loaded, OBJECTS, -1);
        bencher.iter(|| {
            let request = fixture.request(Mode::Add, Body::Json(body.as_bytes()));
            fixture.run(&request).unwrap_err()
        });
    });
}

criterion_group!(benches, bench_shapes);
criterion_main!(benches);
