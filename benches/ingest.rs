//! Ingesting and rendering nested objects, in objects and in bytes of JSON per second.
#![expect(clippy::unwrap_used, reason = "a bench panics on an error")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use oxrdf::NamedNode;
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_model::catalogue::{Catalogue, CatalogueSettings, IfMatch, Requester};
use penstock_model::change_feed::Watch;
use penstock_model::ingest::{Body, Limits, Mode, Request, ingest};
use penstock_model::mapping::{self, Mapping};
use penstock_model::namespace::{self, Generator, Namespace};
use penstock_model::resource::{BusinessObject, Compiled, Definition};
use penstock_model::{members, view};
use penstock_store::{Options, Store};
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

struct Gateway {
    store: Store,
    business_object: Compiled,
    watch: Watch,
    _dir: tempfile::TempDir,
}

impl Gateway {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let mapping: Mapping = mapping::compile(CONFIG).unwrap();
        store
            .transact(|transaction| -> Result<(), GatewayError> {
                for name in mapping.namespaces() {
                    let namespace = Namespace {
                        name: name.to_owned(),
                        uri_base: format!("http://example.com/id/{name}/"),
                        generator: Generator::Uuid,
                        created_at: String::new(),
                    };
                    namespace::put(transaction, namespace)?;
                }
                Ok(())
            })
            .unwrap();
        let object = BusinessObject {
            id: "bench".to_owned(),
            definition: Definition { enabled: true, ..Definition::default() },
            version: 1,
            created_at: String::new(),
            updated_at: String::new(),
            updated_by: None,
            created_namespaces: Vec::new(),
        };
        let business_object = Compiled { object, mapping, conditions: Vec::new() };
        Self { store, business_object, watch: Watch::default(), _dir: dir }
    }

    fn ingest_body(&self, body: &str) {
        let limits = Limits {
            nesting: 128,
            objects: 10_000,
            values: 150_000,
            idempotency_keys: 1000,
            idempotency_bytes: 16 << 20,
            history: 1000,
        };
        let request = Request {
            business_object: &self.business_object,
            mode: Mode::Add,
            check: &NoClient,
            caller: "local",
            api_key: None,
            traceparent: None,
            idempotency_key: None,
            lists_objects: true,
            watch: &self.watch,
            events: None,
            body: Body::Json(body.as_bytes()),
        };
        ingest(&self.store.clone().into(), &limits, &request).unwrap();
    }

    fn list_members(&self) -> Vec<NamedNode> {
        members::list_members(&self.store.read(), &self.business_object, None, usize::MAX).unwrap()
    }

    /// Renders these objects, and returns the bytes of JSON.
    fn render_objects(&self, uris: &[NamedNode], out: &mut Vec<u8>) -> u64 {
        let mut bytes = 0;
        for uri in uris {
            out.clear();
            let root = &self.business_object.mapping.root;
            view::render_object(&self.store.read(), root, uri, out, &mut Vec::new()).unwrap();
            bytes += black_box(&*out).len() as u64;
        }
        bytes
    }
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
    let gateway = Gateway::new();
    let body = build_body(0, 100);
    for (unit, throughput) in
        [("objects", Throughput::Elements(100)), ("bytes", Throughput::Bytes(body.len() as u64))]
    {
        let mut group = criterion.benchmark_group(format!("ingest, {unit}"));
        group.throughput(throughput);
        group.bench_function("100 nested", |bencher| bencher.iter(|| gateway.ingest_body(&body)));
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
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let defaults = CatalogueSettings {
            base_url: Some("http://example.com".to_owned()),
            gateway_id: "bench".to_owned(),
            auto_create_namespaces: true,
        };
        let catalogue = Catalogue::open(store.clone(), defaults).unwrap();
        let definition = serde_json::json!({
            "name": "Machine",
            "config": CONFIG,
            "pushTargets": [{ "bucketName": "machines" }],
            "exportOnChange": on_change,
            "retention": retention,
        });
        let definition = definition.to_string();
        let put = catalogue.put(
            Requester::new(&NoClient, "bench"),
            definition.as_bytes(),
            IfMatch::Any,
            &|_| Ok(()),
        );
        let business_object = (*put.unwrap().0).clone();
        let watch = catalogue.watch().clone();
        let gateway = Gateway { store, business_object, watch, _dir: dir };
        group.bench_function(name, |bencher| bencher.iter(|| gateway.ingest_body(&body)));
    }
    group.finish();
}

fn bench_render(criterion: &mut Criterion) {
    let gateway = Gateway::new();
    for from in (0..10_000).step_by(1000) {
        gateway.ingest_body(&build_body(from, 1000));
    }
    let uris = gateway.list_members();
    let mut out = Vec::new();
    for count in [1, 10_000] {
        let uris = uris.get(..count).unwrap();
        let bytes = gateway.render_objects(uris, &mut out);
        for (unit, throughput) in
            [("objects", Throughput::Elements(count as u64)), ("bytes", Throughput::Bytes(bytes))]
        {
            let mut group = criterion.benchmark_group(format!("render, {unit}"));
            group.sample_size(10).throughput(throughput);
            group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
                bencher.iter(|| gateway.render_objects(uris, &mut out));
            });
            group.finish();
        }
    }
}

criterion_group!(benches, bench_ingest, bench_watched, bench_render);
criterion_main!(benches);
