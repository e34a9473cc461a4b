//! Ingesting objects whose fields have one kind of value, in quads per second, to compare a quad of each kind with one of
//! a `string` field.
#![expect(clippy::unwrap_used, reason = "a bench panics on an error")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use penstock_model::ingest::{Body, BodyForm, Mode, Request};
use penstock_model::mapping;
use penstock_model::testing::Fixture;
use penstock_resources::namespace::Generator;

/// The objects of a request.
const OBJECTS: usize = 1_000;

/// A kind: its name, the fields of a mapping, and an object of it; `#` is replaced by the number of the object.
type KindOfField = (&'static str, &'static str, &'static str);

/// Objects of four values, or two objects nested in each.
const KINDS: &[KindOfField] = &[
    (
        "string",
        "a: {type: string, path: v:a}\n  b: {type: string, path: v:b}\n  c: {type: string, path: v:c}\n  \
         d: {type: string, path: v:d}",
        r#"{"a": "P-#", "b": "Q-#", "c": "R-#", "d": "S-#"}"#,
    ),
    (
        "number as text",
        "a: {type: number, accept: text, path: v:a}\n  b: {type: number, accept: text, path: v:b}\n  \
         c: {type: number, accept: text, path: v:c}\n  d: {type: number, accept: text, path: v:d}",
        r##"{"a": "#.5", "b": "#.25", "c": "1#", "d": "2#"}"##,
    ),
    (
        "decimal comma",
        "a: {type: number, accept: {decimal: ','}, path: v:a}\n  b: {type: number, accept: {decimal: ','}, path: v:b}\n  \
         c: {type: number, accept: {decimal: ','}, path: v:c}\n  d: {type: number, accept: {decimal: ','}, path: v:d}",
        r##"{"a": "#,5", "b": "#,25", "c": "1#", "d": "2#"}"##,
    ),
    (
        "dateTime",
        "a: {type: dateTime, path: v:a}\n  b: {type: dateTime, path: v:b}\n  c: {type: dateTime, path: v:c}\n  \
         d: {type: dateTime, path: v:d}",
        r#"{"a": "2024-11-27T09:33:20.#Z", "b": "2024-11-28T09:33:20.#Z", "c": "2024-11-29T09:33:20.#Z", "d": "2024-11-30T09:33:20.#Z"}"#,
    ),
    (
        "unix-ms",
        "a: {type: dateTime, accept: unix-ms, path: v:a}\n  b: {type: dateTime, accept: unix-ms, path: v:b}\n  \
         c: {type: dateTime, accept: unix-ms, path: v:c}\n  d: {type: dateTime, accept: unix-ms, path: v:d}",
        r#"{"a": 17327#0, "b": 17328#0, "c": 17329#0, "d": 17330#0}"#,
    ),
    (
        "pattern in a time zone",
        "a: {type: dateTime, accept: '%d.%m.%Y %H:%M:%S', timeZone: Europe/Berlin, path: v:a}\n  \
         b: {type: dateTime, accept: '%d.%m.%Y %H:%M:%S', timeZone: Europe/Berlin, path: v:b}\n  \
         c: {type: dateTime, accept: '%d.%m.%Y %H:%M:%S', timeZone: Europe/Berlin, path: v:c}\n  \
         d: {type: dateTime, accept: '%d.%m.%Y %H:%M:%S', timeZone: Europe/Berlin, path: v:d}",
        r#"{"a": "27.11.2024 09:33:20", "b": "28.11.2024 09:33:20", "c": "29.11.2024 09:33:20", "d": "30.11.2024 09:33:20"}"#,
    ),
    (
        "base",
        "a: {type: resource, base: 'http://m.example/', path: v:a}\n  b: {type: resource, base: 'http://m.example/', path: v:b}\n  \
         c: {type: resource, base: 'http://m.example/', path: v:c}\n  d: {type: resource, base: 'http://m.example/', path: v:d}",
        r#"{"a": "KSB", "b": "ABB", "c": "Sulzer", "d": "Flowserve"}"#,
    ),
    (
        "values",
        "a: {type: string, values: {0: 'off', 1: 'on'}, path: v:a}\n  b: {type: string, values: {0: 'off', 1: 'on'}, path: v:b}\n  \
         c: {type: string, values: {0: 'off', 1: 'on'}, path: v:c}\n  d: {type: string, values: {0: 'off', 1: 'on'}, path: v:d}",
        r#"{"a": 0, "b": 1, "c": 0, "d": 1}"#,
    ),
    (
        "scalar",
        "a: {type: scalar, path: v:a}\n  b: {type: scalar, path: v:b}\n  c: {type: scalar, path: v:c}\n  \
         d: {type: scalar, path: v:d}",
        r#"{"a": "P-#", "b": 1#, "c": true, "d": 1#.5}"#,
    ),
    (
        "json",
        "a: {type: json, path: v:a}\n  b: {type: json, path: v:b}\n  c: {type: json, path: v:c}\n  d: {type: json, path: v:d}",
        r#"{"a": [1, [2]], "b": {"x": #}, "c": "R-#", "d": [[#]]}"#,
    ),
    (
        "languageMap",
        "a: {type: languageMap, path: v:a}",
        r#"{"a": {"en": "Pump #", "de": "Pumpe #", "fr": "Pompe #", "nl": "Pomp #"}}"#,
    ),
    (
        "group",
        "a: {type: group, fields: {a: {type: string, path: v:a}, b: {type: string, path: v:b}}}\n  \
         c: {type: group, fields: {c: {type: string, path: v:c}, d: {type: string, path: v:d}}}",
        r#"{"a": {"a": "P-#", "b": "Q-#"}, "c": {"c": "R-#", "d": "S-#"}}"#,
    ),
    (
        "objects with a key, to compare with map",
        "a: {type: array, path: 'v:a/Members:.', elements: {type: object, keyScope: parent, key: [k], \
         fields: {k: {type: string, required: true, path: v:k}, v: {type: number, path: v:v}}}}",
        r#"{"a": [{"k": "T1", "v": 1#}, {"k": "T2", "v": 2#}]}"#,
    ),
    (
        "map",
        "a: {type: map, path: 'v:a/Members:.', key: {path: v:k}, elements: {type: number, path: v:v}}",
        r#"{"a": {"T1": 1#, "T2": 2#}}"#,
    ),
    (
        "ordered",
        "a: {type: array, ordered: true, path: v:a, elements: string}",
        r#"{"a": ["P-#", "Q-#", "R-#", "S-#"]}"#,
    ),
];

/// Returns a fixture of this mapping, which has a namespace for its objects.
fn fixture_of(fields: &str, root_keys: &str) -> Fixture {
    let config = format!(
        "type: object\npath: Machines:.\nprefixes: {{v: http://v.example/}}\n{root_keys}fields:\n  {fields}\n"
    );
    let mapping = mapping::compile(&config).unwrap();
    let document = mapping.document;
    let mut fixture = Fixture::with_generator(mapping.root, Generator::Uuid);
    fixture.business_object.mapping.document = document;
    fixture
}

/// Measures the ingestion of a body, whose quads are counted once.
fn bench_body(
    criterion: &mut Criterion,
    name: &str,
    fixture: &Fixture,
    body: &str,
    form: BodyForm,
) {
    let run = || {
        let request = fixture.request(Mode::Add, Body::Json(body.as_bytes()));
        fixture.run(&Request { form, ..request }).unwrap()
    };
    run();
    let quads = fixture.store.stats().quads;
    let mut group = criterion.benchmark_group("kinds, quads");
    group.sample_size(20).throughput(Throughput::Elements(quads));
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| bencher.iter(run));
    group.finish();
}

fn bench_kinds(criterion: &mut Criterion) {
    for (name, fields, object) in KINDS {
        let objects: Vec<String> =
            (1000..1000 + OBJECTS).map(|i| object.replace('#', &i.to_string())).collect();
        let body = format!("{{\"data\":[{}]}}", objects.join(","));
        bench_body(criterion, name, &fixture_of(fields, ""), &body, BodyForm::Data);
    }
}

/// Measures objects in a document, which take one value from around them.
fn bench_documents(criterion: &mut Criterion) {
    let fields = "at: {type: string, path: v:a, outer: timestamp}\n  b: {type: string, path: v:b}\n  \
                  c: {type: string, path: v:c}\n  d: {type: string, path: v:d}";
    let objects: Vec<String> = (1000..1000 + OBJECTS)
        .map(|i| format!(r#"{{"b": "Q-{i}", "c": "R-{i}", "d": "S-{i}"}}"#))
        .collect();
    let body = format!(r#"{{"timestamp": "T-1", "metrics": [{}]}}"#, objects.join(","));
    let fixture = fixture_of(fields, "items: /metrics/*\n");
    bench_body(criterion, "items and outer", &fixture, &body, BodyForm::Document);
}

criterion_group!(benches, bench_kinds, bench_documents);
criterion_main!(benches);
