//! A transaction that rolls back to savepoints, or discards its changes, is one that never made these changes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use penstock_store::{
    Document, DocumentRange, Error, Format, Options, Pattern, Read, Store, Transaction,
};
use proptest::prelude::*;
use std::ops::ControlFlow;

#[derive(Debug, Clone)]
enum Change {
    Insert(u8),
    Remove(u8),
    Put(u8, u8),
    Delete(u8),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..8_u8).prop_map(Change::Insert),
        (0..8_u8).prop_map(Change::Remove),
        (0..4_u8, 0..3_u8).prop_map(|(key, value)| Change::Put(key, value)),
        (0..4_u8).prop_map(Change::Delete),
    ]
}

fn quad(number: u8) -> Quad {
    let node = |text: String| NamedNode::new_unchecked(text);
    let subject = node(format!("urn:s{}", number % 3));
    Quad::new(subject, node("urn:p".to_owned()), object(number), GraphName::DefaultGraph)
}

/// Returns an object of each kind: an IRI, and literals with and without a datatype or language.
fn object(number: u8) -> Term {
    let text = (number / 4).to_string();
    match number % 4 {
        0 => NamedNode::new_unchecked(format!("urn:o{text}")).into(),
        1 => Literal::new_simple_literal(text).into(),
        2 => {
            let integer = "http://www.w3.org/2001/XMLSchema#integer";
            Literal::new_typed_literal(text, NamedNode::new_unchecked(integer)).into()
        }
        _ => Literal::new_language_tagged_literal_unchecked(text, "en").into(),
    }
}

fn apply(transaction: &mut Transaction<'_>, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Insert(number) => drop(transaction.insert(quad(*number).as_ref()).unwrap()),
            Change::Remove(number) => drop(transaction.remove(quad(*number).as_ref()).unwrap()),
            Change::Put(key, value) => transaction.put_document("c", &[*key], &[*value]).unwrap(),
            Change::Delete(key) => transaction.delete_document("c", &[*key]).unwrap(),
        }
    }
}

/// The quads for each pattern, and the documents.
type Content = (Vec<Vec<String>>, Vec<Document>);

/// Returns the quads for each pattern: all, by subject, by object, and by both. Also returns the documents.
fn content(read: &impl Read) -> Content {
    let mut patterns = vec![Pattern::default()];
    for number in 0..8 {
        let quad = quad(number);
        for (has_subject, has_object) in [(true, false), (false, true), (true, true)] {
            patterns.push(Pattern {
                subject: has_subject.then(|| quad.subject.clone()),
                object: has_object.then(|| quad.object.clone()),
                ..Pattern::default()
            });
        }
    }
    let find = |pattern: &Pattern| {
        let mut quads = Vec::new();
        let mut visit = |quad: Quad| {
            quads.push(quad.to_string());
            ControlFlow::Continue(())
        };
        read.for_each(pattern, &mut visit).unwrap();
        quads.sort();
        quads
    };
    let all = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    (patterns.iter().map(find).collect(), read.read_documents("c", all).unwrap())
}

/// What happens after the changes since a savepoint.
#[derive(Debug, Clone)]
enum End {
    Release,
    RollBack,
    /// A second savepoint replaces the first. These further changes are rolled back.
    Replace(Vec<Change>),
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Release),
        Just(End::RollBack),
        prop::collection::vec(any_change(), 0..6).prop_map(End::Replace),
    ]
}

/// Returns what a transaction has and what it changes.
fn state(transaction: &mut Transaction<'_>) -> (Content, Vec<(NamedNode, bool)>, u64) {
    let mut changed = transaction.changed_subjects().unwrap();
    changed.sort();
    (content(transaction), changed, transaction.removed_quads())
}

fn open(before: &[Change]) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
    store
        .transact::<_, Error>(|transaction| {
            apply(transaction, before);
            Ok(())
        })
        .unwrap();
    (dir, store)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_rolled_back_never_happened(
        before in prop::collection::vec(any_change(), 0..8),
        discarded in prop::collection::vec(any_change(), 0..8),
        steps in prop::collection::vec((prop::collection::vec(any_change(), 0..6), any_end()), 0..6),
    ) {
        let ((one_dir, one), (_other_dir, other)) = (open(&before), open(&before));
        let ((), commit) = one
            .transact::<_, Error>(|transaction| {
                transaction.set_savepoint();
                apply(transaction, &discarded);
                transaction.discard_changes();
                assert_eq!(content(transaction), content(&transaction.prior_state()));
                for (changes, end) in &steps {
                    transaction.set_savepoint();
                    let mut start = state(transaction);
                    apply(transaction, changes);
                    match end {
                        End::Release => {
                            transaction.release_savepoint();
                            start = state(transaction);
                        }
                        End::RollBack => {}
                        End::Replace(further) => {
                            transaction.set_savepoint();
                            start = state(transaction);
                            apply(transaction, further);
                        }
                    }
                    transaction.roll_back_to_savepoint()?;
                    assert_eq!(state(transaction), start);
                }
                Ok(())
            })
            .unwrap();
        let ((), expected) = other
            .transact::<_, Error>(|transaction| {
                for (changes, end) in &steps {
                    if !matches!(end, End::RollBack) {
                        apply(transaction, changes);
                    }
                }
                Ok(())
            })
            .unwrap();
        prop_assert_eq!(content(&one.read()), content(&other.read()));
        prop_assert_eq!((commit.added, commit.removed), (expected.added, expected.removed));
        drop(one);
        let reopened = Store::open(one_dir.path(), Options::default(), &mut |_| {}).unwrap();
        prop_assert_eq!(content(&reopened.read()), content(&other.read()));
    }
}

#[test]
fn a_format_that_only_undone_changes_require_is_not_raised() {
    let (_dir, store) = open(&[]);
    let commit = |change: fn(&mut Transaction<'_>) -> Result<(), Error>| {
        store.transact::<_, Error>(|transaction| {
            change(transaction)?;
            transaction.put_document("c", b"n", &transaction.sequence().to_be_bytes())
        })
    };
    commit(|transaction| {
        transaction.require_format(Format::V3);
        apply(transaction, &[Change::Put(2, 2)]);
        transaction.discard_changes();
        Ok(())
    })
    .unwrap();
    assert_eq!(store.format(), Format::V2);
    commit(|transaction| {
        transaction.set_savepoint();
        transaction.require_format(Format::V3);
        apply(transaction, &[Change::Put(2, 2)]);
        transaction.roll_back_to_savepoint()
    })
    .unwrap();
    assert_eq!(store.format(), Format::V2);
    commit(|transaction| {
        transaction.require_format(Format::V3);
        transaction.set_savepoint();
        transaction.require_format(Format::V3);
        transaction.roll_back_to_savepoint()
    })
    .unwrap();
    assert_eq!(store.format(), Format::V3);
}
