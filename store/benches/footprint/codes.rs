//! The step that reads a snapshot as codes, as joins do. Each figure is measured once the store was read.
use crate::process::{self, Measurement};
use crate::work::{Order, QUADS_PER_OBJECT, Workload, shared_value};
use oxrdf::NamedNodeRef;
use penstock_store::{CodedPattern, Options, Snapshot, Store, TermCode};
use std::path::Path;

/// The number of lookups at random.
const RANDOM_LOOKUPS: u64 = 100_000;
/// The maximum number of subjects that are looked up in order, and of terms that are decoded.
const MAX_IN_ORDER: u64 = 200_000;

fn find(snapshot: &Snapshot, iri: NamedNodeRef<'_>) -> TermCode {
    snapshot.codes().find_code(iri.into()).expect("a lookup").expect("a term of the store")
}

fn count(snapshot: &Snapshot, pattern: CodedPattern<'_>) -> u64 {
    snapshot
        .codes()
        .scan_codes(pattern)
        .map(|quad| quad.expect("a quad"))
        .fold(0, |count, _| count + 1)
}

pub(crate) fn read_codes(dir: &Path, order: Order) {
    let store = Store::open(dir, Options::default(), &mut |_| {}).expect("the store opens");
    let snapshot = store.snapshot().expect("a snapshot");
    let work = Workload::new(order);
    let quads = count(&snapshot, [None; 4]);
    let stretch = Measurement::begin();
    assert_eq!(count(&snapshot, [None; 4]), quads);
    stretch.report_rate("codes scanned", quads);
    let predicates: Vec<TermCode> =
        work.predicates.iter().map(|iri| find(&snapshot, iri.as_ref())).collect();
    for (what, field) in [("a predicate with IRIs", 0), ("a predicate with literals", 9)] {
        let Some(predicate) = predicates.get(field) else { continue };
        let stretch = Measurement::begin();
        let found = count(&snapshot, [None, Some(predicate), None, None]);
        assert_eq!(found, quads / QUADS_PER_OBJECT);
        stretch.report_rate(&format!("codes scanned, {what}"), found);
    }
    look_up_subjects(&snapshot, &predicates);
    look_up_objects(&snapshot, &predicates);
    decode_terms(&snapshot, &predicates);
    process::report_memory("codes read");
}

/// Looks up values by subject and predicate: of the first subjects in order, and of any at random.
fn look_up_subjects(snapshot: &Snapshot, predicates: &[TermCode]) {
    let [first, .., last] = predicates else { return };
    let subjects: Vec<TermCode> = snapshot
        .codes()
        .scan_codes([None, Some(last), None, None])
        .map(|quad| quad.expect("a quad"))
        .map(|[subject, ..]| subject)
        .collect();
    for (what, predicate) in [("an IRI", first), ("a literal", last)] {
        let stretch = Measurement::begin();
        let sample = subjects.iter().take(usize::try_from(MAX_IN_ORDER).unwrap_or(usize::MAX));
        for subject in sample.clone() {
            assert_eq!(count(snapshot, [Some(subject), Some(predicate), None, None]), 1);
        }
        stretch.report_rate(&format!("lookups of {what} in order"), sample.len() as u64);
    }
    let stretch = Measurement::begin();
    for n in 0..RANDOM_LOOKUPS {
        // A prime step visits subjects all over the store.
        let n = usize::try_from(n.wrapping_mul(7_919_999)).unwrap_or_default();
        let Some(subject) = subjects.get(n % subjects.len().max(1)) else { return };
        assert_eq!(count(snapshot, [Some(subject), Some(first), None, None]), 1);
    }
    stretch.report_rate("lookups at random", RANDOM_LOOKUPS);
}

/// Looks up subjects by predicate and object.
fn look_up_objects(snapshot: &Snapshot, predicates: &[TermCode]) {
    let stretch = Measurement::begin();
    let mut lookups = 0;
    for n in 0..1_024 {
        let Ok(Some(object)) = snapshot.codes().find_code(shared_value(n).as_ref().into()) else {
            continue;
        };
        for predicate in predicates.iter().take(predicates.len() / 2) {
            let pattern = [None, Some(predicate), Some(&object), None];
            lookups += u64::from(snapshot.codes().scan_codes(pattern).next().is_some());
        }
    }
    stretch.report_rate("lookups by predicate and object", lookups);
}

fn decode_terms(snapshot: &Snapshot, predicates: &[TermCode]) {
    let [first, .., last] = predicates else { return };
    let decode = |what: &str, codes: Vec<TermCode>| {
        let stretch = Measurement::begin();
        for code in &codes {
            snapshot.codes().decode_code(code).expect("a term");
        }
        stretch.report_rate(&format!("{what} decoded"), codes.len() as u64);
    };
    let quads = |predicate| {
        let quads = snapshot.codes().scan_codes([None, Some(predicate), None, None]);
        quads
            .take(usize::try_from(MAX_IN_ORDER).unwrap_or(usize::MAX))
            .map(|quad| quad.expect("a quad"))
    };
    decode("literals", quads(last).map(|[_, _, object, _]| object).collect());
    decode("IRIs in order", quads(last).map(|[subject, ..]| subject).collect());
    decode("IRIs shared", quads(first).map(|[_, _, object, _]| object).collect());
    decode("IRIs at random", quads(first).map(|[subject, ..]| subject).collect());
}
