use super::*;
use crate::{Options, SnapshotLimits, Store};
use oxrdf::{GraphName, Literal, Term};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Opens a store whose snapshots keep little in memory.
fn open() -> (TempDir, Store) {
    let limits = SnapshotLimits { memory_bytes: 96 << 10, reserve_bytes: 0, ..Default::default() };
    open_with(limits)
}

fn open_with(snapshots: SnapshotLimits) -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { snapshots, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    (dir, store)
}

fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("https://example.org/{name}"))
}

/// A quad of one of many subjects, which are scattered over the blocks. Some objects are long.
fn quad(subject: u16, value: u8) -> Quad {
    let object: Term = match value % 3 {
        0 => iri(&format!("o{value}")).into(),
        1 => Literal::from(format!("{value} ").repeat(1 + usize::from(value) % 7)).into(),
        _ => Literal::from(format!("long {value} ").repeat(60)).into(),
    };
    let graph = if value.is_multiple_of(2) { iri("g").into() } else { GraphName::DefaultGraph };
    let subject = iri(&format!("{:04x}", subject.wrapping_mul(0x9e37)));
    Quad::new(subject, iri(&format!("p{}", value % 5)), object, graph)
}

#[derive(Debug, Clone)]
enum Step {
    /// Adds and removes quads of this many subjects from a first one, with this value.
    Change {
        first: u16,
        count: u16,
        value: u8,
        is_added: bool,
    },
    PutDocument(u8, usize),
    DeleteDocument(u8),
    Checkpoint,
    Compact,
    Open,
    /// Drops an older snapshot.
    Drop,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..400_u16, 1..60_u16, 0..12_u8, prop::bool::weighted(0.65)).prop_map(
            |(first, count, value, is_added)| Step::Change { first, count, value, is_added }
        ),
        3 => (any::<u8>(), 0..3000_usize).prop_map(|(key, size)| Step::PutDocument(key, size)),
        1 => any::<u8>().prop_map(Step::DeleteDocument),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        5 => Just(Step::Open),
        2 => Just(Step::Drop),
    ]
}

/// What a store has.
#[derive(Debug, Clone, Default, PartialEq)]
struct Content {
    quads: BTreeSet<String>,
    documents: BTreeMap<Vec<u8>, Vec<u8>>,
}

fn read_all(snapshot: &Snapshot) -> Content {
    let mut content = Content::default();
    let visit = &mut |quad: Quad| {
        assert!(content.quads.insert(quad.to_string()), "twice: {quad}");
        ControlFlow::Continue(())
    };
    snapshot.for_each(&Pattern::default(), visit).unwrap();
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    content.documents = snapshot.read_documents("c", range).unwrap().into_iter().collect();
    content
}

/// Reads by every other way, and compares with the content.
fn check_reads(snapshot: &Snapshot, content: &Content) {
    let parts = |pattern: &Pattern| {
        let mut found = BTreeSet::new();
        let visit = &mut |quad: Quad| {
            found.insert(quad.to_string());
            ControlFlow::Continue(())
        };
        snapshot.for_each(pattern, visit).unwrap();
        found
    };
    let with = |text: &str| -> BTreeSet<String> {
        content.quads.iter().filter(|quad| quad.contains(text)).cloned().collect()
    };
    let graph = Pattern { graph: Some(iri("g").into()), ..Pattern::default() };
    assert_eq!(parts(&graph), with("<https://example.org/g>"));
    let object = Pattern { object: Some(iri("o6").into()), ..Pattern::default() };
    assert_eq!(parts(&object), with("<https://example.org/o6>"));
    let predicate = Pattern { predicate: Some(iri("p2")), ..Pattern::default() };
    assert_eq!(parts(&predicate), with("<https://example.org/p2>"));
    check_coded_reads(snapshot, content);
    check_values(snapshot, content);
    let subject_of = |quad: &String| quad.split('>').next().unwrap()[1..].to_owned();
    for graph in [None, Some(iri("g").into())] {
        let subjects: BTreeSet<String> = match &graph {
            None => content.quads.iter().map(subject_of).collect(),
            Some(_) => with("<https://example.org/g>").iter().map(subject_of).collect(),
        };
        let filter = SubjectFilter { graph, having: Vec::new(), ..SubjectFilter::default() };
        let (mut listed, mut after) = (BTreeSet::new(), None::<String>);
        loop {
            let page = snapshot.list_with_ids(&filter, after.as_deref(), 30).unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last.iri.as_str().to_owned());
            listed.extend(page.into_iter().map(|listed| listed.iri.into_string()));
        }
        assert_eq!(listed, subjects);
    }
    let keys = content.documents.keys().next_back();
    let range = DocumentRange { limit: 1, reverse: true, ..DocumentRange::default() };
    let last = snapshot.read_documents("c", range).unwrap();
    assert_eq!(last.first().map(|(key, _)| key), keys);
}

/// Reads all values, as terms and as codes, and compares them with the quads.
fn check_values(snapshot: &Snapshot, content: &Content) {
    let mut expected = BTreeSet::new();
    let visit = &mut |quad: Quad| {
        if let Term::Literal(literal) = &quad.object {
            let (_, key) = crate::ValueKey::of(literal.as_ref());
            expected.insert((quad.predicate.to_string(), key, quad.subject.to_string()));
        }
        ControlFlow::Continue(())
    };
    snapshot.for_each(&Pattern::default(), visit).unwrap();
    let range = ValueRange::of_class(crate::ValueClass::Text);
    let mut found = BTreeSet::new();
    for predicate in (0..5).map(|n| iri(&format!("p{n}"))) {
        let mut keys = Vec::new();
        let visit = &mut |key: &crate::ValueKey, subject: NamedOrBlankNode| {
            keys.push(*key);
            assert!(found.insert((predicate.to_string(), *key, subject.to_string())));
            ControlFlow::Continue(())
        };
        assert!(snapshot.visit_values(predicate.as_ref(), &range, false, visit).unwrap());
        assert!(keys.is_sorted());
        if let Some(code) = snapshot.codes().find_code(predicate.as_ref().into()).unwrap() {
            let coded = snapshot.codes().scan_values(&code, &range, true).unwrap().unwrap();
            let coded: Vec<_> = coded.map(|entry| entry.unwrap().0).collect();
            assert!(coded.iter().rev().eq(&keys));
        }
    }
    assert_eq!(found, expected);
    assert!(content.quads.len() >= expected.len());
}

/// Reads all patterns of some quads as codes.
fn check_coded_reads(snapshot: &Snapshot, content: &Content) {
    let decode = |quad: crate::CodedQuad| {
        let [subject, predicate, object, graph] = &quad;
        let subject = snapshot.codes().decode_code(subject).unwrap();
        let predicate = snapshot.codes().decode_code(predicate).unwrap();
        let graph = if *graph == crate::TermCode::DEFAULT_GRAPH {
            GraphName::DefaultGraph
        } else {
            crate::term::to_graph(snapshot.codes().decode_code(graph).unwrap()).unwrap()
        };
        let (Term::NamedNode(subject), Term::NamedNode(predicate)) = (subject, predicate) else {
            panic!("a subject or a predicate is no IRI");
        };
        Quad::new(subject, predicate, snapshot.codes().decode_code(object).unwrap(), graph)
            .to_string()
    };
    let all: Vec<_> = snapshot.codes().scan_codes([None; 4]).map(Result::unwrap).collect();
    let decoded: BTreeSet<String> = all.iter().cloned().map(decode).collect();
    assert_eq!((decoded.len(), &decoded), (all.len(), &content.quads));
    for (at, quad) in all.iter().enumerate().step_by(1 + all.len() / 5) {
        for given in 0..16 {
            let bind = |place: usize| (given >> place & 1 == 1).then_some(&quad[place]);
            let pattern = [bind(0), bind(1), bind(2), bind(3)];
            let matches = |quad: &&crate::CodedQuad| {
                quad.iter().zip(pattern).all(|(code, sought)| sought.is_none_or(|s| s == code))
            };
            let expected: std::collections::HashSet<_> = all.iter().filter(matches).collect();
            let found: Vec<_> = snapshot.codes().scan_codes(pattern).map(Result::unwrap).collect();
            assert_eq!(found.len(), expected.len(), "quad {at}, pattern {given}");
            assert!(found.iter().all(|quad| expected.contains(quad)), "pattern {given}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_snapshot_is_the_state_of_its_commit(
        steps in prop::collection::vec(any_step(), 1..80),
    ) {
        let (_dir, store) = open();
        let mut content = Content::default();
        let mut snapshots: Vec<(Snapshot, Content)> = Vec::new();
        for step in steps {
            match step {
                Step::Change { first, count, value, is_added } => {
                    let changed = |t: &mut crate::Transaction<'_>| -> Result<(), Error> {
                        for subject in first..first + count {
                            let quad = quad(subject, value);
                            if is_added {
                                t.insert(quad.as_ref())?;
                                content.quads.insert(quad.to_string());
                            } else {
                                t.remove(quad.as_ref())?;
                                content.quads.remove(&quad.to_string());
                            }
                        }
                        Ok(())
                    };
                    store.transact(changed).unwrap();
                }
                Step::PutDocument(key, size) => {
                    let value = vec![key; size];
                    store.transact(|t| t.put_document("c", &[key], &value)).unwrap();
                    content.documents.insert(vec![key], value);
                }
                Step::DeleteDocument(key) => {
                    store.transact(|t| t.delete_document("c", &[key])).unwrap();
                    content.documents.remove([key].as_slice());
                }
                Step::Checkpoint => store.checkpoint().unwrap(),
                Step::Compact => store.compact_journal().unwrap(),
                Step::Open => snapshots.push((store.snapshot().unwrap(), content.clone())),
                Step::Drop => {
                    if let Some((snapshot, content)) = snapshots.pop()
                        && snapshot.lost_cause().is_none()
                    {
                        prop_assert_eq!(read_all(&snapshot), content);
                    }
                }
            }
        }
        // If many are open, the oldest ones end.
        snapshots.retain(|(snapshot, _)| snapshot.lost_cause().is_none());
        for (snapshot, content) in &snapshots {
            prop_assert_eq!(&read_all(snapshot), content);
            check_reads(snapshot, content);
        }
    }
}

#[test]
fn two_counters_of_one_commit_are_equal_in_every_snapshot() {
    let (_dir, store) = open();
    let counter = |name: &str, value: u32| {
        Quad::new(
            iri(name),
            iri("count"),
            Literal::from(value.to_string()),
            GraphName::DefaultGraph,
        )
    };
    store
        .transact::<_, Error>(|t| {
            for subject in 0..3_000 {
                t.insert(quad(subject, 1).as_ref())?;
            }
            t.insert(counter("!first", 0).as_ref())?;
            t.insert(counter("~last", 0).as_ref())?;
            Ok(())
        })
        .unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1.. {
                store
                    .transact::<_, Error>(|t| {
                        for name in ["!first", "~last"] {
                            t.remove(counter(name, value - 1).as_ref())?;
                            t.insert(counter(name, value).as_ref())?;
                        }
                        let subject = u16::try_from(value % 3_000).unwrap();
                        t.remove(quad(subject, 1).as_ref())?;
                        t.insert(quad(subject, 2).as_ref())?;
                        Ok(())
                    })
                    .unwrap();
                if value % 200 == 0 {
                    store.checkpoint().unwrap();
                }
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let mut seen = BTreeSet::new();
        // However much faster reads are than commits, the snapshots are of many commits.
        while seen.len() <= 30 {
            let snapshot = store.snapshot().unwrap();
            let mut counts = Vec::new();
            let visit = &mut |quad: Quad| {
                if quad.predicate == iri("count") {
                    counts.push(quad.object.to_string());
                }
                ControlFlow::Continue(())
            };
            snapshot.for_each(&Pattern::default(), visit).unwrap();
            assert_eq!(counts.len(), 2);
            assert_eq!(counts[0], counts[1]);
            seen.insert(counts.swap_remove(0));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn beyond_both_limits_the_oldest_snapshot_ends() {
    let limits = SnapshotLimits { memory_bytes: 4 << 10, disk_bytes: 0, reserve_bytes: 0 };
    let (_dir, store) = open_with(limits);
    let add = |value: u8| {
        let insert = |t: &mut crate::Transaction<'_>| -> Result<(), Error> {
            (0..2_000).try_for_each(|subject| t.insert(quad(subject, value).as_ref()).map(drop))
        };
        store.transact(insert).unwrap();
    };
    add(1);
    let oldest = store.snapshot().unwrap();
    add(2);
    let newest = store.snapshot().unwrap();
    let lost = oldest.for_each(&Pattern::default(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(lost, Err(Error::SnapshotLost { .. })), "{lost:?}");
    let count = |snapshot: &Snapshot| {
        let mut count = 0;
        let visit = &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        };
        snapshot.for_each(&Pattern::default(), visit).unwrap();
        count
    };
    assert_eq!(count(&newest), 4_000);
    assert_eq!(count(&store.snapshot().unwrap()), 4_000);
}

#[test]
fn a_snapshot_ends_when_the_store_is_reopened() {
    let (_dir, store) = open();
    store.transact(|t| t.insert(quad(1, 1).as_ref())).unwrap();
    let snapshot = store.snapshot().unwrap();
    store.inner().lock_index().record_damage(&Error::Index("for this test".into()));
    store.reopen(&mut |_| {}).unwrap();
    let read = snapshot.for_each(&Pattern::default(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(read, Err(Error::Reopening)), "{read:?}");
}
