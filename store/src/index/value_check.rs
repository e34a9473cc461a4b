//! Comparing the index of values with the quads.
use super::View;
use super::key::{Code, damaged_entry, tree};
use super::key_scan::{KeyScan, build_prefix};
use super::quad_scan::CodedRow;
use super::value_cursor::{KeyRange, RangeKeys};
use super::values::value_key;
use crate::Error;
use crate::digest::Digest;
use oxrdf::Term;
use std::collections::BTreeSet;

/// The digests of the entries that an index of values has, and of those that it should have.
pub(crate) struct ValueDigests {
    pub(crate) found: Digest,
    pub(crate) expected: Digest,
}

impl View<'_> {
    /// Computes the digests of the index of values, if there is one.
    pub(crate) fn digest_values(&self) -> Result<Option<ValueDigests>, Error> {
        let Some(values) = self.values else { return Ok(None) };
        self.track_damage(|| {
            let mut found = Digest::default();
            let all = KeyRange { from: vec![tree::VALUE], to: vec![tree::VALUE + 1], hash: None };
            let mut keys = RangeKeys::open(values, all, false)?;
            while let Some(key) = keys.next_key()? {
                found.add_item(&[key]);
            }
            Ok(Some(ValueDigests { found, expected: self.digest_literals()? }))
        })
    }

    /// Computes the digest of the keys of values that the literals of all quads have.
    fn digest_literals(&self) -> Result<Digest, Error> {
        let mut digest = Digest::default();
        let mut group = ((0, 0), BTreeSet::new());
        let mut quads = KeyScan::new(self.blocks, build_prefix(tree::SPOG, &[], None));
        while quads.advance()? {
            let key = quads.key();
            let row = CodedRow::from_key(key).ok_or_else(|| damaged_entry("a quad", key))?;
            if group.0 != (row.subject, row.predicate) {
                group.1.iter().for_each(|key: &Vec<u8>| digest.add_item(&[key]));
                group = ((row.subject, row.predicate), BTreeSet::new());
            }
            if row.is_literal()
                && let Term::Literal(literal) = self.decode_term(row.object)?
            {
                let (predicate, subject) =
                    (Code::from_id(row.predicate), Code::from_id(row.subject));
                group.1.insert(value_key(predicate.id(), literal.as_ref(), subject.id()));
            }
        }
        group.1.iter().for_each(|key| digest.add_item(&[key]));
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Options, Store};
    use oxrdf::{GraphName, Literal, NamedNode, Quad};

    #[test]
    fn a_missing_and_a_superfluous_value_differ() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let iri = |name: &str| NamedNode::new_unchecked(format!("https://example.org/{name}"));
        let insert = |change: &mut crate::Transaction<'_>| -> Result<(), Error> {
            for n in 0..300_u32 {
                for graph in [GraphName::DefaultGraph, iri("g").into()] {
                    let subject = iri(&format!("s{}", n / 3));
                    let literal = Literal::new_simple_literal(format!("{:030}", n / 2));
                    change.insert(Quad::new(subject, iri("p"), literal, graph).as_ref())?;
                }
            }
            Ok(())
        };
        store.transact(insert).unwrap();
        store.checkpoint().unwrap();
        let counts = || {
            let index = store.inner().lock_index();
            let digests = index.view().digest_values().unwrap().unwrap();
            let is_equal = digests.found == digests.expected;
            (digests.found.count, digests.expected.count, is_equal)
        };
        // Of three numbers in a row, two have the same half.
        assert_eq!(counts(), (200, 200, true));
        let property = Code::from_id(2);
        let literal = Literal::new_simple_literal(format!("{:030}", 0));
        let key = value_key(property.id(), literal.as_ref(), Code::from_id(1).id());
        let change = |is_removed| {
            let mut index = store.inner().lock_index_mut();
            let values = index.values.as_mut().unwrap();
            values.change(&key, is_removed);
            values.end_frame();
        };
        change(true);
        assert_eq!(counts(), (199, 200, false));
        change(false);
        assert_eq!(counts(), (200, 200, true));
    }
}
