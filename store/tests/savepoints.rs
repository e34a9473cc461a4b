//! A transaction that rolls back to savepoints, or discards its changes, is one that never made these changes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use oxrdf::{GraphName, NamedNode, Quad};
use penstock_store::{Document, DocumentRange, Error, Options, Pattern, Read, Store, Transaction};
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
    let (subject, object) = (node(format!("urn:s{}", number % 3)), node(format!("urn:o{number}")));
    Quad::new(subject, node("urn:p".to_owned()), object, GraphName::DefaultGraph)
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

fn content(read: &impl Read) -> (Vec<String>, Vec<Document>) {
    let mut quads = Vec::new();
    let mut visit = |quad: Quad| {
        quads.push(quad.to_string());
        ControlFlow::Continue(())
    };
    read.for_each(&Pattern::default(), &mut visit).unwrap();
    quads.sort();
    let all = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    (quads, read.read_documents("c", all).unwrap())
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
        steps in prop::collection::vec((prop::collection::vec(any_change(), 0..6), any::<bool>()), 0..6),
    ) {
        let ((one_dir, one), (_other_dir, other)) = (open(&before), open(&before));
        let ((), commit) = one
            .transact::<_, Error>(|transaction| {
                transaction.set_savepoint();
                apply(transaction, &discarded);
                transaction.discard_changes();
                assert_eq!(content(transaction), content(transaction.prior_state()));
                for (changes, is_kept) in &steps {
                    transaction.set_savepoint();
                    let start = content(transaction);
                    apply(transaction, changes);
                    if *is_kept {
                        transaction.release_savepoint();
                        transaction.roll_back_to_savepoint()?;
                    } else {
                        transaction.roll_back_to_savepoint()?;
                        assert_eq!(content(transaction), start);
                    }
                }
                Ok(())
            })
            .unwrap();
        let ((), expected) = other
            .transact::<_, Error>(|transaction| {
                steps.iter().filter(|(_, is_kept)| *is_kept).for_each(|(changes, _)| {
                    apply(transaction, changes);
                });
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
