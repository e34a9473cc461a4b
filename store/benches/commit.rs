//! Benchmarks of commits of 100 objects of 10 quads, and of reading objects, in quads per second.
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad};
use penstock_store::{Error, Options, Read as _, Store};
use std::hint::black_box;

const OBJECTS: u64 = 100;

fn subject_iri(n: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("https://example.org/object/{n:08}"))
}

fn object_quads(n: u64) -> impl Iterator<Item = Quad> {
    (0..10).map(move |field| {
        let predicate = NamedNode::new_unchecked(format!("https://example.org/vocabulary#{field}"));
        let graph = GraphName::from(NamedNode::new_unchecked("https://example.org/"));
        if field < 5 {
            let shared = n.wrapping_mul(31 + field) % 1_000;
            let shared = NamedNode::new_unchecked(format!("https://example.org/shared/{shared}"));
            Quad::new(subject_iri(n), predicate, shared, graph)
        } else {
            let value = Literal::new_simple_literal(format!("{field:012} {n:025}"));
            Quad::new(subject_iri(n), predicate, value, graph)
        }
    })
}

fn commit_objects(store: &Store, first: u64) {
    store
        .transact::<_, Error>(|change| {
            for quad in (first..first + OBJECTS).flat_map(object_quads) {
                change.insert(quad.as_ref())?;
            }
            Ok(())
        })
        .expect("a commit");
}

fn benches(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a folder");
    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).expect("a store");
    let mut next = 0;
    let mut group = criterion.benchmark_group("store");
    group.throughput(Throughput::Elements(OBJECTS * 10));
    group.bench_function("commit 100 objects of 10 quads", |bencher| {
        bencher.iter(|| {
            commit_objects(&store, next);
            next += OBJECTS;
        });
    });
    let mut n = 0;
    group.throughput(Throughput::Elements(10));
    group.bench_function("read an object of 10 quads", |bencher| {
        bencher.iter(|| {
            n = (n + 7_919) % next.max(1);
            let subject = NamedOrBlankNode::from(subject_iri(n));
            black_box(store.read().quads_about(&subject).expect("a read"))
        });
    });
    group.finish();
}

criterion_group!(commits, benches);
criterion_main!(commits);
