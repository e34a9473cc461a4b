//! Ingesting requests of 100 objects by their natural keys and by their given URIs: new objects and existing ones, in an
//! empty store and in one of a million quads.
//!
//! `cargo bench --bench keys` loads 1,000,000 quads; as a test it loads 10,000. `PENSTOCK_KEYS_QUADS` sets another
//! number.
#![expect(clippy::unwrap_used, reason = "a bench panics on an error")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
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

/// A mapping whose objects have their natural key in `tag`, in two values.
const KEYED: &str = "
type: object
path: Machine:.
key: [site, tag]
fields:
  uri: {type: id}
  site: {type: string, path: <http://example.com/site>, required: true}
  tag: {type: string, path: <http://example.com/tag>, required: true}
  name: {type: string, path: <http://example.com/name>}
  maker: {type: resource, path: <http://example.com/maker>}
  weight: {type: number, path: <http://example.com/weight>}
  commissioned: {type: date, path: <http://example.com/commissioned>}
  active: {type: boolean, path: <http://example.com/active>}
  labels: {type: array, path: <http://example.com/label>}
";

/// How the objects of a request are identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    /// By a URI in the request. The mapping has no key.
    Uri,
    /// By the key, from which the URI is derived.
    Key,
    /// By the key. The objects were created with URIs that are not those of their keys, so that the index of keys finds
    /// them.
    KeyOfOtherUri,
}

impl Identity {
    const ALL: [(&'static str, Self); 3] =
        [("given URI", Self::Uri), ("key", Self::Key), ("key, other URI", Self::KeyOfOtherUri)];

    /// Creates a fixture with a number of objects.
    fn create_fixture(self, objects: usize) -> Fixture {
        let config = if self == Self::Uri {
            KEYED.replace("key: [site, tag]\n", "")
        } else {
            KEYED.to_owned()
        };
        let fixture = Fixture::with_definition(&json!({
            "name": "Machine",
            "config": config,
            "namespaces": [
                {"name": "Machine", "uriBase": "https://plant.example/machines/", "generator": "uuid"},
            ],
        }));
        for from in (0..objects).step_by(LOADED_OBJECTS) {
            let count = LOADED_OBJECTS.min(objects - from);
            self.ingest(&fixture, Mode::Add, from, count, 0);
        }
        fixture
    }

    /// Ingests objects with consecutive numbers. `weight` is in each of them.
    fn ingest(self, fixture: &Fixture, mode: Mode, from: usize, count: usize, weight: usize) {
        let body = self.build_body(mode, from, count, weight);
        fixture.run(&fixture.request(mode, Body::Json(body.as_bytes()))).unwrap();
    }

    fn build_body(self, mode: Mode, from: usize, count: usize, weight: usize) -> String {
        let mut data = String::new();
        for i in from..from + count {
            let comma = if data.is_empty() { "" } else { "," };
            let uri = match self {
                Self::Uri => format!(r#""uri":"https://plant.example/machines/{i}","#),
                Self::KeyOfOtherUri if mode == Mode::Add => {
                    format!(r#""uri":"https://plant.example/machines/other-{i}","#)
                }
                Self::Key | Self::KeyOfOtherUri => String::new(),
            };
            write!(
                data,
                r#"{comma}{{{uri}"site":"Plant {}","tag":"P-{i}","name":"Machine {i}","maker":"http://example.com/makers/{}","weight":{weight}.5,"commissioned":"2026-03-01","active":true,"labels":["press","line {}"]}}"#,
                i % 5,
                i % 50,
                i % 11,
            )
            .unwrap();
        }
        format!("{{\"data\":[{data}]}}")
    }
}

fn bench_keys(criterion: &mut Criterion) {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let quads = std::env::var("PENSTOCK_KEYS_QUADS").ok();
    let quads = quads.map_or(if measured { 1_000_000 } else { 10_000 }, |q| q.parse().unwrap());
    for (size, loaded) in [("empty", 0), ("filled", (quads / QUADS_PER_OBJECT).max(OBJECTS))] {
        let mut group = criterion.benchmark_group(format!("keys, {size} store"));
        group.sample_size(10).throughput(Throughput::Elements(OBJECTS as u64));
        for (name, identity) in Identity::ALL {
            bench_new(&mut group, name, identity, loaded);
            bench_existing(&mut group, name, identity, loaded.max(OBJECTS));
        }
        group.finish();
    }
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

/// Measures requests that create objects. An empty store is created for each request; a filled one grows.
fn bench_new(group: &mut Group<'_>, name: &str, identity: Identity, loaded: usize) {
    group.bench_function(format!("new, {name}"), |bencher| {
        if loaded == 0 {
            let create = || identity.create_fixture(0);
            let ingest = |fixture: &mut Fixture| identity.ingest(fixture, Mode::Add, 0, OBJECTS, 0);
            bencher.iter_batched_ref(create, ingest, BatchSize::PerIteration);
            return;
        }
        let (fixture, next) = (identity.create_fixture(loaded), Cell::new(loaded));
        bencher.iter(|| {
            let from = next.replace(next.get() + OBJECTS);
            identity.ingest(&fixture, Mode::Add, from, OBJECTS, 0);
        });
    });
}

/// Measures requests that change one value of existing objects, spread over the store.
fn bench_existing(group: &mut Group<'_>, name: &str, identity: Identity, loaded: usize) {
    group.bench_function(format!("existing, {name}"), |bencher| {
        let (fixture, round) = (identity.create_fixture(loaded), Cell::new(0));
        let requests = loaded / OBJECTS;
        bencher.iter(|| {
            round.set(round.get() + 1);
            // A step without a common divisor reaches every request of a round number.
            let from = round.get() * 7_919 % requests * OBJECTS;
            identity.ingest(&fixture, Mode::Update, from, OBJECTS, round.get());
        });
    });
}

criterion_group!(benches, bench_keys);
criterion_main!(benches);
