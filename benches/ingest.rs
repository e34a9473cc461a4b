//! Ingesting and rendering nested objects, in objects and in bytes of JSON per second.
#![expect(clippy::unwrap_used, reason = "a bench panics on an error")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use oxrdf::NamedNode;
use penstock_model::ingest::{Body, Mode};
use penstock_model::testing::Fixture;
use penstock_model::{mapping, members, view};
use penstock_resources::namespace::Generator;
use std::fmt::Write;
use std::hint::black_box;

const CONFIG: &str = "
type: object
path: Machine:.
fields:
  name: {type: string, path: <http://example.com/name>}
  weight: {type: number, path: <http://example.com/weight>}
  commissioned: {type: date, path: <http://example.com/commissioned>}
  site: {type: resource, path: <http://example.com/site>}
  tags: {type: array, path: <http://example.com/tag>}
  parts:
    type: array
    path: <http://example.com/part>
    elements:
      type: object
      path: Part:.
      fields:
        name: {type: string, path: <http://example.com/name>}
        maker:
          type: object
          path: <http://example.com/maker>/Maker:.
          fields:
            name: {type: string, path: <http://example.com/name>}
";

/// Returns a fixture that ingests without a watch.
fn unwatched_fixture() -> Fixture {
    Fixture::with_generator(mapping::compile(CONFIG).unwrap().root, Generator::Uuid)
}

fn ingest(fixture: &Fixture, body: &str) {
    fixture.run(&fixture.request(Mode::Add, Body::Json(body.as_bytes()))).unwrap();
}

/// Renders these objects, and returns the bytes of JSON.
fn render_objects(fixture: &Fixture, uris: &[NamedNode], out: &mut Vec<u8>) -> u64 {
    let mut bytes = 0;
    for uri in uris {
        out.clear();
        let root = &fixture.business_object.mapping.root;
        view::render_object(&fixture.store.read(), root, uri, out, &mut Vec::new()).unwrap();
        bytes += black_box(&*out).len() as u64;
    }
    bytes
}

/// Builds a body of objects with two nested objects, each of which has one nested object.
fn build_body(from: usize, count: usize) -> String {
    let mut data = String::new();
    for i in from..from + count {
        let comma = if data.is_empty() { "" } else { "," };
        write!(
            data,
            r#"{comma}{{"name":"Machine {i}","weight":{i}.50,"commissioned":"2026-03-01","site":"http://example.com/site/{}","tags":["press","line {}"],"parts":[{{"name":"Spindle {i}","maker":{{"name":"Maker {}"}}}},{{"name":"Table {i}","maker":{{"name":"Maker {}"}}}}]}}"#,
            i % 7,
            i % 50,
            i % 11,
            i % 13,
        )
        .unwrap();
    }
    format!("{{\"data\":[{data}]}}")
}

fn bench_ingest(criterion: &mut Criterion) {
    let fixture = unwatched_fixture();
    let body = build_body(0, 100);
    for (unit, throughput) in
        [("objects", Throughput::Elements(100)), ("bytes", Throughput::Bytes(body.len() as u64))]
    {
        let mut group = criterion.benchmark_group(format!("ingest, {unit}"));
        group.throughput(throughput);
        group.bench_function("100 nested", |bencher| bencher.iter(|| ingest(&fixture, &body)));
        group.finish();
    }
}

/// Measures the same ingestion through three Business Objects: one without a watch, one that exports on change, and one
/// that also keeps ages for a retention. Changes accumulate, because no exporter runs.
fn bench_watched(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ingest, watched");
    group.throughput(Throughput::Elements(100));
    let body = build_body(0, 100);
    for (name, on_change, retention) in [
        ("not", false, None),
        ("on change", true, None),
        ("on change and retention", true, Some("P30D")),
    ] {
        let definition = serde_json::json!({
            "name": "Machine",
            "config": CONFIG,
            "pushTargets": [{ "bucketName": "machines" }],
            "exportOnChange": on_change,
            "retention": retention,
        });
        let fixture = Fixture::with_definition(&definition);
        group.bench_function(name, |bencher| bencher.iter(|| ingest(&fixture, &body)));
    }
    group.finish();
}

fn bench_render(criterion: &mut Criterion) {
    let fixture = unwatched_fixture();
    for from in (0..10_000).step_by(1000) {
        ingest(&fixture, &build_body(from, 1000));
    }
    let uris =
        members::list_members(&fixture.store.read(), &fixture.business_object, None, usize::MAX);
    let uris = uris.unwrap();
    let mut out = Vec::new();
    for count in [1, 10_000] {
        let uris = uris.get(..count).unwrap();
        let bytes = render_objects(&fixture, uris, &mut out);
        for (unit, throughput) in
            [("objects", Throughput::Elements(count as u64)), ("bytes", Throughput::Bytes(bytes))]
        {
            let mut group = criterion.benchmark_group(format!("render, {unit}"));
            group.sample_size(10).throughput(throughput);
            group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
                bencher.iter(|| render_objects(&fixture, uris, &mut out));
            });
            group.finish();
        }
    }
}

criterion_group!(benches, bench_ingest, bench_watched, bench_render);
criterion_main!(benches);
