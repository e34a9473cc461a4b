//! Compares the store with a model of sets and maps after arbitrary commits, some of which fail. In between
//! come reopening, checkpoints, compactions, and lost or unfinished indexes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod model;

use model::{Model, blank, iri, matching, text};
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, Literal, NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, Term, TermRef};
use penstock_store::{
    DocumentRange, Error, ListedSubject, Options, Pattern, Read, Store, SubjectFilter,
    SubjectQuads, ValueClass, ValueKey, ValueRange,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const COLLECTIONS: [&str; 3] = ["", "a", "ab"];

#[derive(Debug, Clone)]
enum Change {
    Insert(Quad),
    Remove(Quad),
    Put(usize, Vec<u8>, usize),
    Delete(usize, Vec<u8>),
}

#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<Change>),
    Fail(Vec<Change>),
    Checkpoint,
    Compact,
    Pack,
    Reopen,
    LoseIndex,
    MarkIndex,
    /// Switches the index of values on or off.
    SwitchValues,
}

fn subject(n: u8) -> NamedOrBlankNode {
    if n.is_multiple_of(5) {
        blank(&format!("b{n}")).into()
    } else {
        iri(&"x".repeat(usize::from(n) * 7)).into()
    }
}

fn predicate(n: u8) -> NamedNode {
    iri(&format!("p{n}"))
}

/// The number of objects of [`object`].
const OBJECTS: u8 = 80;

/// A literal of a kind that the index of values tells apart, or of which it does not see all.
fn value(n: u8) -> Literal {
    let typed = |text: &str, datatype: NamedNodeRef<'_>| Literal::new_typed_literal(text, datatype);
    let long = "an equal beginning of 24 ";
    match n {
        0 => typed("1", xsd::INTEGER),
        1 => typed("01", xsd::INTEGER),
        2 => typed("1.0", xsd::DECIMAL),
        3 => typed("1.0E0", xsd::DOUBLE),
        4 => typed("1", xsd::FLOAT),
        5 => typed("0.1", xsd::FLOAT),
        6 => typed("0.1", xsd::DECIMAL),
        7 => typed("NaN", xsd::DOUBLE),
        8 => typed("-INF", xsd::DOUBLE),
        9 => typed("9007199254740993", xsd::INTEGER),
        10 => typed("9007199254740992", xsd::LONG),
        11 => typed("-0.0", xsd::DOUBLE),
        12 => typed("300", xsd::BYTE),
        13 => typed("no number", xsd::INTEGER),
        14 => typed("2024-01-01T00:00:00Z", xsd::DATE_TIME),
        15 => typed("2024-01-01T00:00:00", xsd::DATE_TIME),
        16 => typed("2024-01-01T01:00:00+01:00", xsd::DATE_TIME_STAMP),
        17 => typed("2024-01-01", xsd::DATE),
        18 => typed("2024-01-01+14:00", xsd::DATE),
        19 => typed("1969-12-31T23:59:59.9999999Z", xsd::DATE_TIME),
        20 => typed("2024-13-01", xsd::DATE),
        21 => typed("true", xsd::BOOLEAN),
        22 => typed("1", xsd::BOOLEAN),
        23 => typed("false", xsd::BOOLEAN),
        24 => typed("PT1H", xsd::DURATION),
        25 => text(""),
        26 => text("\0"),
        27 => text("\0\0"),
        28 => text("a"),
        29 => text("a\0"),
        30 => text("a\u{1}"),
        31 => text(&format!("{long}a")),
        32 => text(&format!("{long}b")),
        33 => text(&long[..24]),
        34 => text(&long[..23]),
        // A character that the end of the key divides.
        35 => text(&format!("{}é", &long[..23])),
        36 => text(&format!("{}e", &long[..23])),
        37 => text(&long.repeat(20)),
        38 => text(&format!("{}, and another", long.repeat(20))),
        39 => Literal::new_language_tagged_literal_unchecked("a", "en"),
        40 => Literal::new_language_tagged_literal_unchecked(long.repeat(10), "de"),
        n => typed(&format!("{}", i32::from(n) - 45), xsd::INT),
    }
}

fn object(n: u8) -> Term {
    if n >= 30 {
        return value(n - 30).into();
    }
    let repeated = format!("{n}").repeat(usize::from(n) * 20);
    match n % 6 {
        0 => text(&repeated).into(),
        1 => Literal::new_language_tagged_literal_unchecked(repeated, format!("en-{n}")).into(),
        2 => Literal::new_typed_literal(repeated, xsd::DECIMAL).into(),
        3 => Literal::new_typed_literal(repeated, iri(&format!("type{n}"))).into(),
        _ => subject(n).into(),
    }
}

fn graph(n: u8) -> GraphName {
    match n {
        0 => GraphName::DefaultGraph,
        1 => blank("g").into(),
        n => iri(&format!("g{n}")).into(),
    }
}

fn quads() -> impl Strategy<Value = Quad> {
    (0_u8..12, 0_u8..4, 0_u8..OBJECTS, 0_u8..3)
        .prop_map(|(s, p, o, g)| Quad::new(subject(s), predicate(p), object(o), graph(g)))
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 97, 254, 255]), 0..4)
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        6 => quads().prop_map(Change::Insert),
        3 => quads().prop_map(Change::Remove),
        2 => (0..3_usize, keys(), prop::sample::select(vec![0, 1, 399, 400, 401, 1_700]))
            .prop_map(|(c, k, n)| Change::Put(c, k, n)),
        1 => (0..3_usize, keys()).prop_map(|(c, k)| Change::Delete(c, k)),
    ];
    prop::collection::vec(change, 0..50)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => changes().prop_map(Step::Commit),
        2 => changes().prop_map(Step::Fail),
        1 => Just(Step::Checkpoint),
        2 => Just(Step::Compact),
        2 => Just(Step::Pack),
        1 => Just(Step::Reopen),
        1 => Just(Step::LoseIndex),
        1 => Just(Step::MarkIndex),
        1 => Just(Step::SwitchValues),
    ];
    prop::collection::vec(step, 1..14)
}

/// Checks that the quads read for a subject are those of the model.
fn check_quads(
    about: &SubjectQuads,
    subject: &NamedOrBlankNode,
    model: &Model,
) -> Result<(), TestCaseError> {
    let quads = model.matching(&Pattern { subject: Some(subject.clone()), ..Pattern::default() });
    let shown = |(predicate, object): (NamedNodeRef<'_>, TermRef<'_>)| {
        (predicate.to_string(), object.to_string())
    };
    let mut found: Vec<_> = about.iter().map(shown).collect();
    let mut predicates: Vec<_> = found.iter().map(|(predicate, _)| predicate.clone()).collect();
    predicates.dedup();
    let together: BTreeSet<_> = predicates.iter().cloned().collect();
    prop_assert_eq!(predicates.len(), together.len());
    let mut expected: Vec<_> =
        quads.iter().map(|quad| shown((quad.predicate.as_ref(), quad.object.as_ref()))).collect();
    found.sort();
    expected.sort();
    prop_assert_eq!(found, expected);
    for n in 0..3 {
        let is_in = quads.iter().any(|quad| quad.graph_name == graph(n));
        prop_assert_eq!(about.is_in_graph(graph(n).as_ref()), is_in);
    }
    for quad in &quads {
        prop_assert!(about.has_value(quad.predicate.as_ref(), quad.object.as_ref()));
        prop_assert!(!about.has_value(quad.predicate.as_ref(), text("none").as_ref().into()));
    }
    Ok(())
}

/// Checks that every subject that was ever listed is still readable with its current quads.
fn check_listed(
    store: &Store,
    model: &Model,
    about: &mut SubjectQuads,
    listed: &mut Vec<ListedSubject>,
) -> Result<(), TestCaseError> {
    let filter =
        SubjectFilter { graph: Some(graph(2)), having: Vec::new(), ..SubjectFilter::default() };
    let read = store.snapshot().unwrap();
    prop_assert_eq!(read.sequence(), store.stats().sequence);
    let now = read.list_with_ids(&filter, None, usize::MAX).unwrap();
    let iris: Vec<_> = now.iter().map(|listed| listed.iri.clone()).collect();
    prop_assert_eq!(&iris, &model.subjects(&filter, None, usize::MAX));
    prop_assert_eq!(store.list_subjects(&filter, None, usize::MAX).unwrap(), iris);
    listed.extend(now);
    for one in listed {
        read.read_listed(one, about).unwrap();
        check_quads(about, &one.iri.clone().into(), model)?;
    }
    Ok(())
}

fn check(read: &impl Read, model: &Model, buffer: &mut SubjectQuads) -> Result<(), TestCaseError> {
    prop_assert_eq!(&Model::of(read, &COLLECTIONS), model);
    for n in (0..12).chain((0..12).rev()) {
        read.read_subject(subject(n).as_ref(), buffer).unwrap();
        check_quads(buffer, &subject(n), model)?;
    }
    for n in 0..12 {
        let about = read.quads_about(&subject(n)).unwrap();
        let expected = model.matching(&Pattern { subject: Some(subject(n)), ..Pattern::default() });
        prop_assert_eq!(about.len(), expected.len());
        prop_assert!(about.iter().all(|quad| expected.contains(quad)));
        prop_assert!(about.is_sorted_by_key(|quad| quad.predicate.as_str().to_owned()));
    }
    for bits in 0_u8..16 {
        for n in 0_u8..4 {
            let on = |bit: u8| bits & (1 << bit) != 0;
            for o in [n, n + 6, n + 22, n + 30, n + 34, n + 55, n + 67] {
                let pattern = Pattern {
                    subject: on(0).then(|| subject(n * 3)),
                    predicate: on(1).then(|| predicate(n)),
                    object: on(2).then(|| object(o)),
                    graph: on(3).then(|| graph(n)),
                };
                prop_assert_eq!(matching(read, &pattern), model.matching(&pattern));
            }
        }
    }
    for n in 0_u8..12 {
        let filter = SubjectFilter {
            graph: (n % 2 == 0).then(|| graph(n / 4)),
            having: (0..n % 3).map(|more| (predicate(more), object(n * 6 + more))).collect(),
            ..SubjectFilter::default()
        };
        let mut after: Option<String> = None;
        loop {
            let page = read.list_subjects(&filter, after.as_deref(), 2).unwrap();
            prop_assert_eq!(&page, &model.subjects(&filter, after.as_deref(), 2));
            match page.last() {
                Some(last) => after = Some(last.as_str().to_owned()),
                None => break,
            }
        }
        prop_assert!(read.list_subjects(&filter, None, 0).unwrap().is_empty());
    }
    check_values(read, model)?;
    let keys: [&[u8]; 5] = [&[], &[0], &[97], &[255], &[1, 0]];
    for collection in COLLECTIONS {
        for prefix in keys {
            for after in [None, Some(keys[1]), Some(keys[2]), Some(keys[4])] {
                for (reverse, limit) in [(false, 2), (true, 2), (true, 9), (false, 0)] {
                    let range = DocumentRange { prefix, after, reverse, limit };
                    prop_assert_eq!(
                        read.read_documents(collection, range).unwrap(),
                        model.documents(collection, range)
                    );
                }
            }
            prop_assert_eq!(
                read.read_document(collection, prefix).unwrap(),
                model.documents.get(&(collection.to_owned(), prefix.to_vec())).cloned()
            );
        }
    }
    Ok(())
}

/// Checks that the index of values, if there is one, has the values of all quads in order.
fn check_values(read: &impl Read, model: &Model) -> Result<(), TestCaseError> {
    for property in (0..5).map(predicate) {
        for class in ValueClass::ALL {
            let all = ValueRange::of_class(class);
            let expected = model.values(&property, class);
            let estimate = read.estimate_values(property.as_ref(), &all).unwrap();
            let Some(found) = model::read_values(read, &property, &all) else {
                prop_assert_eq!(estimate, None);
                return Ok(());
            };
            let count = found.iter().map(|(_, subjects)| subjects.len()).sum::<usize>() as u64;
            prop_assert!(estimate.unwrap() >= count);
            let as_sets: Vec<_> =
                found.iter().map(|(key, all)| (*key, all.iter().cloned().collect())).collect();
            prop_assert_eq!(count, expected.values().map(|all| all.len() as u64).sum::<u64>());
            prop_assert_eq!(as_sets, expected.into_iter().collect::<Vec<_>>());
            for n in (0..OBJECTS - 30).step_by(3) {
                let literal = value(n);
                let (of, key) = ValueKey::of(literal.as_ref());
                if of != class {
                    continue;
                }
                let (least, most) =
                    (ValueRange::at_least(literal.as_ref()), ValueRange::at_most(literal.as_ref()));
                check_part(read, &property, (&found, &least), |found| found >= key)?;
                check_part(read, &property, (&found, &most), |found| found <= key)?;
                let both = least.intersect(&most).unwrap();
                check_part(read, &property, (&found, &both), |found| found == key)?;
                let equal = ValueRange::equal_to(literal.as_ref());
                let equal = model::read_values(read, &property, &equal).unwrap();
                let have = model.quads.iter().filter(|quad| {
                    quad.predicate == property && quad.object == Term::from(literal.clone())
                });
                for quad in have {
                    let subjects = equal.iter().find(|(found, _)| *found == key);
                    prop_assert!(subjects.unwrap().1.contains(&quad.subject));
                }
                let is_part = |(key, subjects): &(ValueKey, Vec<_>)| {
                    let all = found.iter().find(|(found, _)| found == key);
                    all.is_some_and(|(_, all)| subjects.iter().all(|one| all.contains(one)))
                };
                prop_assert!(equal.iter().all(is_part));
            }
        }
    }
    Ok(())
}

/// Checks that a range selects the keys that it must, and few others.
fn check_part(
    read: &impl Read,
    property: &NamedNode,
    (all, range): (&model::Values, &ValueRange),
    is_within: impl Fn(ValueKey) -> bool,
) -> Result<(), TestCaseError> {
    let part = model::read_values(read, property, range).unwrap();
    prop_assert!(part.iter().all(|found| all.contains(found)));
    for (key, subjects) in all {
        let found = part.iter().find(|(found, _)| found == key).map(|(_, found)| found);
        if is_within(*key) {
            prop_assert_eq!(found, Some(subjects));
        } else if range.class() != ValueClass::Number {
            prop_assert_eq!(found, None);
        }
    }
    Ok(())
}

struct Failed;

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        panic!("{error}");
    }
}

/// Commits the changes in one transaction, and applies them to the model unless the transaction fails.
fn commit(
    store: &Store,
    model: &mut Model,
    changes: Vec<Change>,
    fail: bool,
    about: &mut SubjectQuads,
) -> Result<(), TestCaseError> {
    let mut expected = model.clone();
    let before = store.read().sequence();
    let result = store.transact::<_, Failed>(|change| {
        assert_eq!(change.sequence(), before + 1);
        let mut inner = Ok(());
        for (n, step) in changes.into_iter().enumerate() {
            let (got, wanted) = match step {
                Change::Insert(quad) => {
                    (change.insert(quad.as_ref())?, expected.quads.insert(quad))
                }
                Change::Remove(quad) => {
                    (change.remove(quad.as_ref())?, expected.quads.remove(&quad))
                }
                Change::Put(collection, key, length) => {
                    let value = vec![u8::try_from(n).unwrap(); length];
                    change.put_document(COLLECTIONS[collection], &key, &value)?;
                    expected.documents.insert((COLLECTIONS[collection].to_owned(), key), value);
                    (true, true)
                }
                Change::Delete(collection, key) => {
                    change.delete_document(COLLECTIONS[collection], &key)?;
                    expected.documents.remove(&(COLLECTIONS[collection].to_owned(), key));
                    (true, true)
                }
            };
            if got != wanted {
                inner = Err(TestCaseError::fail("insert or remove returned the wrong result"));
            }
        }
        inner = inner.and_then(|()| check(change, &expected, about));
        if fail && inner.is_ok() { Err(Failed) } else { Ok(inner) }
    });
    match result {
        Err(Failed) => prop_assert_eq!(store.read().sequence(), before),
        Ok((inner, commit)) => {
            inner?;
            let added = expected.quads.difference(&model.quads).count() as u64;
            let removed = model.quads.difference(&expected.quads).count() as u64;
            prop_assert_eq!((commit.added, commit.removed), (added, removed));
            let changed = expected != *model;
            prop_assert_eq!(commit.sequence, before + u64::from(changed));
            *model = expected;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn the_store_matches_its_model(
        steps in steps(),
        write_back_bytes in prop::sample::select(vec![1, 5_000, 1 << 20]),
        segment_bytes in prop::sample::select(vec![1_u64, 3_000, 1 << 20]),
        compact_bytes in prop::sample::select(vec![1_u64, 5_000, 1 << 20]),
        background_maintenance in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options {
            write_back_bytes,
            segment_bytes,
            compact_bytes,
            background_maintenance,
            ..Options::default()
        };
        let open =
            |options: &Options| Store::open(dir.path(), options.clone(), &mut |_| {}).unwrap();
        let mut store = open(&options);
        let mut model = Model::default();
        // Reused throughout: its cached positions must not be used after a change.
        let about = &mut SubjectQuads::default();
        let mut listed = Vec::new();
        for step in steps {
            match step {
                Step::Commit(changes) => commit(&store, &mut model, changes, false, about)?,
                Step::Fail(changes) => commit(&store, &mut model, changes, true, about)?,
                Step::Checkpoint => {
                    store.checkpoint().unwrap();
                    prop_assert_eq!(store.stats().write_back_bytes, 0);
                }
                Step::Compact => {
                    store.compact_journal().unwrap();
                    prop_assert!(store.stats().base_bytes > 0 || store.stats().sequence == 0);
                }
                Step::Pack => store.pack_segments().unwrap(),
                Step::Reopen | Step::LoseIndex | Step::MarkIndex | Step::SwitchValues => {
                    drop(store);
                    match step {
                        Step::SwitchValues => options.value_index = !options.value_index,
                        Step::LoseIndex => {
                            std::fs::remove_dir_all(dir.path().join("index")).unwrap();
                        }
                        Step::MarkIndex => {
                            std::fs::write(dir.path().join("checkpoint-open"), []).unwrap();
                        }
                        _ => {}
                    }
                    store = open(&options);
                }
            }
            let range = ValueRange::of_class(ValueClass::Text);
            let has_values = model::read_values(&store.read(), &predicate(0), &range).is_some();
            prop_assert_eq!(has_values, options.value_index);
            prop_assert_eq!(store.stats().quads, model.quads.len() as u64);
            check(&store.read(), &model, about)?;
            check_listed(&store, &model, about, &mut listed)?;
        }
        drop(store);
        check(&open(&options).read(), &model, about)?;
        let verified = penstock_store::verify_store(dir.path(), &mut |_| {}).unwrap();
        prop_assert_eq!(verified.damage, Vec::<String>::new());
    }
}
