use super::super::values::{Values, value_key};
use super::*;
use crate::steps::WriterSteps;
use oxrdf::Literal;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

struct Healthy;

impl Health for Healthy {
    fn check_usable(&self) -> Result<(), Error> {
        Ok(())
    }

    fn record_damage(&self, _: &Error) {}
}

/// A number of a literal, and a subject.
type Entry = (u8, u64);

#[derive(Debug, Clone)]
enum Step {
    /// Adds and removes entries.
    Frame(Vec<(Entry, bool)>),
    Checkpoint,
    /// A checkpoint that fails after the runs are written.
    Fail,
    Reopen,
    Freeze,
}

fn step() -> impl Strategy<Value = Step> {
    let change = ((0_u8..40, 0_u64..12), prop::bool::weighted(0.3));
    prop_oneof![
        20 => prop::collection::vec(change, 0..20).prop_map(Step::Frame),
        8 => Just(Step::Checkpoint),
        1 => Just(Step::Fail),
        1 => Just(Step::Reopen),
        2 => Just(Step::Freeze),
    ]
}

/// Some have the same key.
fn literal(n: u8) -> Literal {
    let long = "x".repeat(24);
    match n {
        0..10 => Literal::from(i32::from(n) / 2 - 2),
        10..20 => Literal::from(format!("{long}{n}")),
        20 => Literal::from(long),
        _ => Literal::from(format!("text {n}")),
    }
}

const PROPERTY: u64 = 300;

fn key((n, subject): Entry) -> Vec<u8> {
    let number = |number| {
        let mut bytes = Vec::new();
        crate::varint::write_number(&mut bytes, number);
        bytes
    };
    value_key(&number(PROPERTY), literal(n).as_ref(), &number(subject))
}

fn read(values: &FrozenValues, range: &ValueRange, reverse: bool) -> Vec<ValueEntry> {
    let interval = IntervalScan::new(values, PROPERTY, range);
    let mut scan = ValueScan::new(&Healthy, interval, range, reverse);
    std::iter::from_fn(|| scan.next_entry().unwrap()).collect()
}

/// Returns the entries of a model: by key, or in reverse, and for each key by subject.
fn expected(model: &BTreeSet<Entry>, range: &ValueRange, reverse: bool) -> Vec<ValueEntry> {
    let mut found = BTreeMap::<_, BTreeSet<u64>>::new();
    for (n, subject) in model {
        let (class, key) = ValueKey::of(literal(*n).as_ref());
        let only = ValueRange::with_key_of(literal(*n).as_ref());
        if class == range.class() && only.intersect(range).is_some() {
            found.entry(key).or_default().insert(*subject);
        }
    }
    let entries = |(key, subjects): (ValueKey, BTreeSet<u64>)| {
        subjects.into_iter().map(move |subject| (key, subject))
    };
    if reverse {
        found.into_iter().rev().flat_map(entries).collect()
    } else {
        found.into_iter().flat_map(entries).collect()
    }
}

fn check(values: &FrozenValues, model: &BTreeSet<Entry>) -> Result<(), TestCaseError> {
    let literals = (0..40).step_by(3).map(literal);
    let mut ranges: Vec<_> = literals
        .flat_map(|at| {
            let at = at.as_ref();
            [ValueRange::equal_to(at), ValueRange::at_least(at), ValueRange::at_most(at)]
        })
        .collect();
    ranges.extend([ValueClass::Number, ValueClass::Text].map(ValueRange::of_class));
    for range in ranges {
        for reverse in [false, true] {
            let (found, expected) =
                (read(values, &range, reverse), expected(model, &range, reverse));
            prop_assert_eq!(found, expected, "{:?}, reverse: {}", range, reverse);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn scans_match_a_model(steps in prop::collection::vec(step(), 1..120)) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("values");
        let mut values = Values::open(folder.clone(), &[]).unwrap();
        let mut model = BTreeSet::new();
        let mut noted = (Vec::new(), BTreeSet::new());
        let mut snapshots = Vec::new();
        let steps_done = WriterSteps::default();
        for step in steps {
            match step {
                Step::Frame(changes) => {
                    for (entry, is_removed) in changes {
                        values.change(&key(entry), is_removed);
                        if is_removed { model.remove(&entry) } else { model.insert(entry) };
                        // Equal numbers have one key.
                        if entry.0 < 10 {
                            let other = (entry.0 ^ 1, entry.1);
                            if is_removed { model.remove(&other) } else { model.insert(other) };
                        }
                    }
                    values.end_frame();
                }
                Step::Checkpoint => {
                    let written = values.write_changes(&steps_done).unwrap();
                    noted = (written.to_notes(), model.clone());
                    values.mark_written(written);
                    prop_assert_eq!(values.changed_bytes(), 0);
                }
                Step::Fail => drop(values.write_changes(&steps_done).unwrap()),
                Step::Reopen => {
                    values = Values::open(folder.clone(), &noted.0).unwrap();
                    model = noted.1.clone();
                }
                Step::Freeze => snapshots.push((values.frozen().clone(), model.clone())),
            }
        }
        check(values.frozen(), &model)?;
        for (frozen, model) in snapshots.iter().take(4) {
            check(frozen, model)?;
        }
    }
}
