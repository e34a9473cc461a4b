//! Compiling mappings, in bytes of YAML per second. One has more than 20 fields at three levels.
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use penstock_model::mapping::compile;
use std::fmt::Write as _;
use std::hint::black_box;

/// A site with its production lines and their machines.
const SITE: &str = "\
prefixes:
  ex: https://example.com/plant#
  rdfs: http://www.w3.org/2000/01/rdf-schema#
type: object
path: Site:.
fields:
  uri: {type: id}
  kind:
    type: resource
    path: <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>
  label: {type: string, path: rdfs:label, language: en, required: true}
  bezeichnung: {type: string, path: rdfs:label, language: de}
  code: {type: string, path: ex:code, datatype: ex:SiteCode}
  opened: {type: date, path: ex:opened}
  area: {type: number, path: ex:area}
  staff: {type: integer, path: ex:staff}
  active: {type: boolean, path: ex:active}
  tags: {type: array, path: ex:tag}
  partners:
    type: array
    path: ex:partner
    elements: {type: resource}
  address:
    type: object
    path: ex:address/Address:.
    fields:
      street: {type: string, path: ex:street}
      city: {type: string, path: ex:city, required: true}
      country: {type: string, path: ex:country}
      latitude: {type: number, path: ex:latitude}
      longitude: {type: number, path: ex:longitude}
  lines:
    type: array
    path: ex:line
    elements:
      type: object
      path: Line:.
      fields:
        uri: {type: id}
        name: {type: string, path: ex:name, required: true}
        product: {type: resource, path: ex:product}
        speeds: {type: array, path: ex:speed, elements: {type: number}}
        machines:
          type: array
          elements:
            type: object
            path: ex:machine/Machine:.
            fields:
              uri: {type: id}
              serial: {type: string, path: ex:serial, required: true}
              maker: {type: string, path: ex:maker}
              built: {type: date, path: ex:built}
              serviced: {type: dateTime, path: ex:serviced}
              hours: {type: integer, path: ex:hours}
";

/// Builds a mapping of one object with many fields.
fn build_wide_mapping(fields: usize) -> String {
    let mut config = "type: object\npath: Row:.\nfields:\n".to_owned();
    for i in 0..fields {
        writeln!(config, "  f{i}: {{type: string, path: <https://example.com/f{i}>}}")
            .expect("writing into a string cannot fail");
    }
    config
}

fn bench_mapping(c: &mut Criterion) {
    let mut group = c.benchmark_group("compile");
    for (name, config) in [
        ("site", SITE.to_owned()),
        ("100 fields", build_wide_mapping(100)),
        ("10000 fields", build_wide_mapping(10_000)),
    ] {
        group.throughput(Throughput::Bytes(config.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &config, |b, config| {
            b.iter(|| compile(black_box(config)).expect("the mapping is valid"));
        });
    }
    group.finish();
}

criterion_group!(benches, bench_mapping);
criterion_main!(benches);
