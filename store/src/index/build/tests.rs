use super::*;
use crate::digest::digest_index;
use crate::index::block_source::ReadEntries as _;
use crate::{DocumentRange, Options, Pattern, Read as _, Store, ValueClass, ValueKey, ValueRange};
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, Quad};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("https://example.org/{name}"))
}

/// A literal with the value of the name of `quads(n)`.
fn same_value(n: u32) -> Quad {
    let decimal = Literal::new_typed_literal(format!("{n}.0"), xsd::DECIMAL);
    Quad::new(iri(&format!("s{:04}", n * 7 % 900)), iri("name"), decimal, iri("g1"))
}

fn quads(n: u32) -> Vec<Quad> {
    let subject = iri(&format!("s{:04}", n * 7 % 900));
    let graph: GraphName = match n % 3 {
        0 => GraphName::DefaultGraph,
        1 => iri("g1").into(),
        _ => iri("g2").into(),
    };
    // Some have their own, and are removed later.
    let text = if (120..130).contains(&n) { n } else { n % 4 };
    let long = Literal::new_simple_literal(format!("{text} ").repeat(400));
    let blank = BlankNode::new_unchecked(format!("b{n}"));
    let label = Literal::new_simple_literal(format!("they all begin with this, {n}"));
    vec![
        Quad::new(subject.clone(), iri("name"), Literal::from(n), graph.clone()),
        Quad::new(subject.clone(), iri("name"), Literal::from(n), iri("g3")),
        same_value(n),
        Quad::new(subject.clone(), iri("label"), label, graph.clone()),
        Quad::new(subject.clone(), iri("text"), long, graph.clone()),
        Quad::new(subject.clone(), iri("next"), iri(&format!("s{:04}", n % 50)), graph.clone()),
        Quad::new(blank, iri("of"), subject, graph),
    ]
}

/// A store with a base, which has removals, and without an index.
fn store_with_base(dir: &Path) {
    let source = dir.join("source");
    let store = Store::open(&source, Options::default(), &mut |_| {}).unwrap();
    let add = |range: std::ops::Range<u32>| {
        store
            .transact::<_, Error>(|change| {
                for n in range {
                    for quad in quads(n) {
                        change.insert(quad.as_ref())?;
                    }
                    change.put_document("d", &n.to_be_bytes(), &vec![7; n as usize * 3])?;
                }
                Ok(())
            })
            .unwrap();
    };
    add(0..800);
    let mut backup = Vec::new();
    store.write_backup(&mut backup).unwrap();
    add(800..900);
    store
        .transact::<_, Error>(|change| {
            for n in 100..150 {
                for quad in quads(n) {
                    change.remove(quad.as_ref())?;
                }
                change.delete_document("d", &n.to_be_bytes())?;
            }
            for n in 200..220 {
                change.remove(same_value(n).as_ref())?;
            }
            change.put_document("d", b"last", b"")
        })
        .unwrap();
    // The frames are parts of the base too, as after a restore.
    let plan = crate::NewStorePlan { format: store.format(), sequence: 3, jump: 0 };
    let mut new = crate::NewStore::begin(&dir.join("store"), plan, &[]).unwrap();
    new.add_base(&mut backup.as_slice(), Path::new("base")).unwrap();
    store
        .read_frames(1, 3, &mut |sequence, frame| new.add_frame(sequence, frame, Path::new("x")))
        .unwrap();
    new.finish().unwrap().publish().unwrap();
}

/// The values of a store. Ids differ between indexes, so subjects with the same value are in no order.
#[derive(Debug, PartialEq)]
struct Values {
    /// In both directions for each property.
    keys: Vec<Vec<ValueKey>>,
    subjects: BTreeSet<(ValueKey, String)>,
    /// Of some values.
    estimates: Vec<u64>,
}

fn values(store: &Store) -> Values {
    let (mut keys, mut subjects) = (Vec::new(), BTreeSet::new());
    for (property, class) in
        [("name", ValueClass::Number), ("label", ValueClass::Text), ("text", ValueClass::Text)]
    {
        for reverse in [false, true] {
            let (property, range) = (iri(property), ValueRange::of_class(class));
            let mut found = Vec::new();
            let mut visit = |key: &ValueKey, subject: oxrdf::NamedOrBlankNode| {
                found.push(*key);
                subjects.insert((*key, subject.to_string()));
                ControlFlow::Continue(())
            };
            let is_there =
                store.read().visit_values(property.as_ref(), &range, reverse, &mut visit);
            assert!(is_there.unwrap());
            keys.push(found);
        }
    }
    let estimate = |n: u32| {
        let range = ValueRange::equal_to(Literal::from(n).as_ref());
        store.read().estimate_values(iri("name").as_ref(), &range).unwrap().unwrap()
    };
    Values { keys, subjects, estimates: [7, 120, 210, 899, 900].map(estimate).to_vec() }
}

#[test]
fn a_sorted_index_answers_as_a_replayed_one() {
    let dir = tempfile::tempdir().unwrap();
    store_with_base(dir.path());
    let path = dir.path().join("store");
    // Replayed, because the base is small.
    let replayed = Store::open(&path, Options::default(), &mut |_| {}).unwrap();
    let all = |store: &Store| {
        let mut found = BTreeSet::new();
        let mut visit = |quad: Quad| {
            found.insert(quad.to_string());
            ControlFlow::Continue(())
        };
        store.read().for_each(&Pattern::default(), &mut visit).unwrap();
        found
    };
    let documents = |store: &Store| {
        let range = DocumentRange { prefix: b"", after: None, reverse: false, limit: usize::MAX };
        store.read().read_documents("d", range).unwrap()
    };
    let answers = |store: &Store| (all(store), documents(store), values(store));
    let (expected, quad_count) = (answers(&replayed), replayed.stats().quads);
    let digests = digest_index(&replayed.inner().lock_index(), &mut |_| Ok(())).unwrap();
    let value_counts = |index: &Index| {
        let digests = index.view().digest_values().unwrap()?;
        assert_eq!(digests.found, digests.expected);
        Some(digests.found.count)
    };
    let value_count = value_counts(&replayed.inner().lock_index());
    let long_parts = |index: &Index| {
        let mut count = 0;
        let visit = &mut |_: &[u8], _: &[u8]| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        };
        index.view().blocks.scan_prefix(&[tree::LONG_PART], visit).unwrap();
        count
    };
    let long_part_count = long_parts(&replayed.inner().lock_index());
    let id = replayed.inner().lock_index().store_id();
    drop(replayed);
    let base = fs::read_dir(path.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let base = base.filter(|path| path.extension().is_some_and(|end| end == "base"));
    let base = Base::open(&base.last().unwrap()).unwrap();
    for has_values in [false, true] {
        checkpoint::discard_index(&path).unwrap();
        let empty = open_index(&path, id, has_values).unwrap();
        let (mut parts, steps) = (0, WriterSteps::default());
        let built = build_index(&path, empty, &base, &steps, &mut |done| parts = done).unwrap();
        assert_eq!(parts, 2 * base.end.parts);
        assert_eq!(digest_index(&built, &mut |_| Ok(())).unwrap(), digests);
        assert_eq!((built.quad_count(), built.document_count()), (quad_count, digests.1.count));
        assert_eq!(value_counts(&built), value_count.filter(|_| has_values));
        assert_eq!(long_parts(&built), long_part_count);
        assert!(!path.join(SCRATCH_FOLDER).exists());
    }
    let mut replays = 0;
    let store = Store::open(&path, Options::default(), &mut |_| replays += 1).unwrap();
    assert_eq!(replays, 0, "the built index is as new as the base");
    assert_eq!(answers(&store), expected);
    for pattern in [
        Pattern { predicate: Some(iri("next")), ..Pattern::default() },
        Pattern { graph: Some(iri("g1").into()), ..Pattern::default() },
        Pattern { object: Some(iri("s0007").into()), ..Pattern::default() },
    ] {
        assert!(store.read().any(&pattern).unwrap(), "{pattern:?}");
    }
    // It changes as any other one does: the quads of a range are removed, and others added.
    store
        .transact::<_, Error>(|change| {
            for n in 0..300 {
                for quad in quads(n) {
                    change.remove(quad.as_ref())?;
                }
            }
            change.insert(Quad::new(iri("new"), iri("p"), iri("s0007"), iri("g9")).as_ref())
        })
        .unwrap();
    store.checkpoint().unwrap();
    drop(store);
    assert_eq!(crate::verify_store(&path, &mut |_| {}).unwrap().damage, [""; 0]);
}

#[test]
fn an_interrupted_build_is_discarded() {
    let dir = tempfile::tempdir().unwrap();
    store_with_base(dir.path());
    let path = dir.path().join("store");
    let expected = Store::open(&path, Options::default(), &mut |_| {}).unwrap().stats().quads;
    checkpoint::set_mark(&path).unwrap();
    fs::create_dir(path.join(SCRATCH_FOLDER)).unwrap();
    let store = Store::open(&path, Options::default(), &mut |_| {}).unwrap();
    assert_eq!(store.stats().quads, expected);
    assert!(!path.join(SCRATCH_FOLDER).exists());
}
