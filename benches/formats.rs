//! Ingesting the same flat objects as JSON, NDJSON and CSV, in objects and in bytes of the text per second.
#![expect(clippy::unwrap_used, reason = "a bench panics on an error")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use penstock_model::csv::{CsvFormat, CsvHeader};
use penstock_model::ingest::{Body, Mode};
use penstock_model::mapping;
use penstock_model::testing::Fixture;
use penstock_resources::namespace::Generator;

const CONFIG: &str = "
type: object
path: Reading:.
fields:
  tag: {type: string, path: <http://example.com/tag>}
  flow: {type: number, path: <http://example.com/flow>}
  measured: {type: dateTime, path: <http://example.com/measured>}
  valid: {type: boolean, path: <http://example.com/valid>}
";

/// The objects of a chunk of a stream.
const OBJECTS: usize = 1000;

/// Builds a text of one line for each object.
fn build_lines(line: impl Fn(usize) -> String) -> String {
    (0..OBJECTS).map(line).collect()
}

fn build_json_object(number: usize) -> String {
    format!(
        r#"{{"tag":"P-{number}","flow":{number}.50,"measured":"2026-03-01T12:00:00Z","valid":true}}"#
    )
}

fn bench_formats(criterion: &mut Criterion) {
    let objects: Vec<String> = (0..OBJECTS).map(build_json_object).collect();
    let json = format!("{{\"data\":[{}]}}", objects.join(","));
    let lines = build_lines(|number| build_json_object(number) + "\n");
    let records =
        build_lines(|number| format!("P-{number},{number}.50,2026-03-01T12:00:00Z,true\n"));
    let header = CsvHeader::read(b"tag,flow,measured,valid", CsvFormat::default(), 1).unwrap();
    let line_numbers: Vec<u64> = (2..).take(OBJECTS).collect();
    let (text, line_numbers) = (records.as_bytes(), line_numbers.as_slice());
    let bodies = [
        ("JSON", Body::Json(json.as_bytes())),
        ("NDJSON", Body::Lines { text: lines.as_bytes(), first: 0, line_numbers }),
        ("CSV", Body::Records { text, header: &header, first: 0, line_numbers }),
    ];
    for (name, body) in bodies {
        for (unit, throughput) in [
            ("objects", Throughput::Elements(OBJECTS as u64)),
            ("bytes", Throughput::Bytes(body.byte_len())),
        ] {
            let root = mapping::compile(CONFIG).unwrap().root;
            let fixture = Fixture::with_generator(root, Generator::Uuid);
            let mut group = criterion.benchmark_group(format!("formats, {unit}"));
            group.sample_size(20).throughput(throughput);
            group.bench_function(name, |bencher| {
                bencher.iter(|| fixture.run(&fixture.request(Mode::Add, body)).unwrap());
            });
            group.finish();
        }
    }
}

criterion_group!(benches, bench_formats);
criterion_main!(benches);
