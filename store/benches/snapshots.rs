//! The latency of commits in milliseconds, first without a reader and then while a snapshot is scanned, and the scanned
//! quads per second.
//!
//! `cargo bench -p penstock-store --bench snapshots` loads 1,000,000 quads; as a test it loads 10,000.
//! `PENSTOCK_SNAPSHOT_QUADS` sets another number.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use penstock_store::{Error, Options, Pattern, Read as _, ReadStore, Store};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const QUADS_PER_OBJECT: u64 = 10;
const OBJECTS_PER_COMMIT: u64 = 10;

fn object_quads(n: u64) -> impl Iterator<Item = Quad> {
    let iri = |text: String| NamedNode::new_unchecked(format!("https://example.org/{text}"));
    // Neighbours in time are not neighbours in the index.
    let subject = iri(format!("object/{:08x}", n.wrapping_mul(0x9e37_79b9) & 0xffff_ffff));
    (0..QUADS_PER_OBJECT).map(move |field| {
        let graph = GraphName::from(iri(String::new()));
        let predicate = iri(format!("vocabulary#{field}"));
        if field < QUADS_PER_OBJECT / 2 {
            let shared = iri(format!("shared/{}", n.wrapping_mul(31 + field) % 1_000));
            Quad::new(subject.clone(), predicate, shared, graph)
        } else {
            let value = Literal::new_simple_literal(format!("{field:012} {n:025}"));
            Quad::new(subject.clone(), predicate, value, graph)
        }
    })
}

fn commit_objects(store: &Store, objects: Range<u64>) -> Duration {
    let started = Instant::now();
    store
        .transact::<_, Error>(|change| {
            for quad in objects.flat_map(object_quads) {
                change.insert(quad.as_ref())?;
            }
            Ok(())
        })
        .expect("a commit");
    started.elapsed()
}

/// Scans snapshots, one after the other, until the flag is set.
fn scan_snapshots(store: &ReadStore, is_over: &AtomicBool, scanned: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        let snapshot = store.snapshot().expect("a snapshot");
        let visit = &mut |_| {
            scanned.fetch_add(1, Ordering::Relaxed);
            if is_over.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        snapshot.for_each(&Pattern::default(), visit).expect("a scan");
    }
}

fn print_latencies(what: &str, mut latencies: Vec<Duration>) {
    latencies.sort_unstable();
    let at = |per_mille: usize| {
        let place = (latencies.len() * per_mille / 1_000).min(latencies.len().saturating_sub(1));
        latencies.get(place).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    };
    println!("{what}: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms", at(500), at(990), at(1_000));
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let given = std::env::var("PENSTOCK_SNAPSHOT_QUADS").ok().and_then(|text| text.parse().ok());
    let quads: u64 = given.unwrap_or(if is_bench { 1_000_000 } else { 10_000 });
    let (rounds, commits) = if is_bench { (5, 200) } else { (1, 20) };
    let dir = tempfile::tempdir().expect("a folder");
    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).expect("a store");
    let mut next = 0;
    while next * QUADS_PER_OBJECT < quads {
        commit_objects(&store, next..next + 1_000);
        next += 1_000;
    }
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let (mut scanned, mut elapsed) = (0, Duration::ZERO);
    let mut measure = |latencies: &mut Vec<Duration>| {
        for _ in 0..commits {
            latencies.push(commit_objects(&store, next..next + OBJECTS_PER_COMMIT));
            next += OBJECTS_PER_COMMIT;
        }
    };
    for _ in 0..rounds {
        measure(&mut alone);
        let (is_over, count) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| scan_snapshots(&store, &is_over, &count));
            let started = Instant::now();
            measure(&mut beside);
            elapsed += started.elapsed();
            is_over.store(true, Ordering::Relaxed);
        });
        scanned += count.into_inner();
    }
    println!("{quads} quads; commits of {} quads", OBJECTS_PER_COMMIT * QUADS_PER_OBJECT);
    print_latencies("alone", alone);
    print_latencies("beside a scan", beside);
    let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = scanned as f64 / seconds;
    println!("scanned beside commits: {rate:.0} quads/s");
}
