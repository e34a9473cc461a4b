//! Documents: byte values by collection and key, stored in parts so that no entry is large.
use super::block_source::ReadEntries as _;
use super::dictionary::VALUE_PART_BYTES;
use super::key::{build_key, damaged_entry, tree};
use super::{Index, View};
use crate::read::Document;
use crate::varint::{self, Input};
use crate::{DocumentRange, Error};
use std::ops::ControlFlow;

/// The escape of a zero byte within a document's key. The pair sorts before every other byte and after the
/// pair that ends the key.
const ESCAPED_ZERO: [u8; 2] = [0, 0xff];
/// Ends a document's key.
const KEY_END: [u8; 2] = [0, 1];
/// Sorts after all parts of the document with a key, and before all longer keys.
pub(super) const PAST_KEY_END: [u8; 2] = [0, 2];

pub(super) fn collection_key(collection: &str) -> Vec<u8> {
    let mut out = vec![tree::DOCUMENT];
    varint::write_bytes(&mut out, collection.as_bytes());
    out
}

pub(super) fn write_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            0 => out.extend_from_slice(&ESCAPED_ZERO),
            byte => out.push(*byte),
        }
    }
}

/// Returns the key prefix of all parts of a document.
pub(super) fn document_key(collection: &str, name: &[u8]) -> Vec<u8> {
    let mut out = collection_key(collection);
    write_escaped(&mut out, name);
    out.extend_from_slice(&KEY_END);
    out
}

/// Splits a key without its collection into the document's key and the part number.
pub(super) fn split_document_key(rest: &[u8]) -> Option<(Vec<u8>, u64)> {
    let mut name = Vec::new();
    let mut input = Input::new(rest);
    loop {
        match input.read_byte()? {
            0 => match input.read_byte()? {
                0xff => name.push(0),
                1 => break,
                _ => return None,
            },
            byte => name.push(byte),
        }
    }
    Some((name, input.read_number()?))
}

impl Index {
    pub(super) fn put_document(
        &mut self,
        collection: &str,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        let prefix = document_key(collection, name);
        let (first, others) = value.split_at(value.len().min(VALUE_PART_BYTES));
        if self.blocks.insert(&part_key(&prefix, 0), first)? {
            self.note.documents += 1;
        }
        let mut parts = 1;
        for bytes in others.chunks(VALUE_PART_BYTES) {
            self.blocks.insert(&part_key(&prefix, parts), bytes)?;
            parts += 1;
        }
        self.delete_parts(&prefix, parts)?;
        Ok(())
    }

    pub(super) fn delete_document(&mut self, collection: &str, name: &[u8]) -> Result<(), Error> {
        if self.delete_parts(&document_key(collection, name), 0)? {
            self.note.documents = self.note.documents.saturating_sub(1);
        }
        Ok(())
    }

    /// Deletes the parts of a document from number `from` on. Returns `false` if there are none.
    fn delete_parts(&mut self, prefix: &[u8], from: u64) -> Result<bool, Error> {
        let mut left = Vec::new();
        self.blocks.scan(&part_key(prefix, from), &mut |key, _| {
            if !key.starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            left.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        for key in &left {
            self.blocks.remove(key)?;
        }
        Ok(!left.is_empty())
    }
}

impl View<'_> {
    pub(crate) fn read_document(
        &self,
        collection: &str,
        name: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        self.track_damage(|| {
            let mut found: Option<Vec<u8>> = None;
            self.blocks.scan_prefix(&document_key(collection, name), &mut |_, part| {
                found.get_or_insert_default().extend_from_slice(part);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        })
    }

    /// Passes the documents of a range to `visit`, in the order of the range, until it breaks. The visitor
    /// enforces the limit.
    pub(crate) fn visit_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
        visit: &mut dyn FnMut(Document) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.track_damage(|| {
            let collection = collection_key(collection);
            let mut prefix = collection.clone();
            write_escaped(&mut prefix, range.prefix);
            let after = range.after.map(|after| {
                let mut bound = collection.clone();
                write_escaped(&mut bound, after);
                bound.extend_from_slice(if range.reverse { &KEY_END } else { &PAST_KEY_END });
                bound
            });
            if range.reverse {
                self.visit_documents_backward(&collection, &prefix, after, visit)
            } else {
                self.visit_documents_forward(&collection, &prefix, after, visit)
            }
        })
    }

    fn visit_documents_forward(
        &self,
        collection: &[u8],
        prefix: &[u8],
        after: Option<Vec<u8>>,
        visit: &mut dyn FnMut(Document) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let from = after.filter(|after| **after > *prefix).unwrap_or_else(|| prefix.to_vec());
        let mut current: Option<Document> = None;
        let mut broke = false;
        self.blocks.scan(&from, &mut |key, part| {
            if !key.starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            let (name, number) = parse_document_key(key, collection)?;
            match &mut current {
                Some((_, value)) if number > 0 => value.extend_from_slice(part),
                _ => {
                    if let Some(whole) = current.replace((name, part.to_vec()))
                        && visit(whole).is_break()
                    {
                        broke = true;
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(whole) = current.filter(|_| !broke) {
            let _ = visit(whole);
        }
        Ok(())
    }

    fn visit_documents_backward(
        &self,
        collection: &[u8],
        prefix: &[u8],
        before: Option<Vec<u8>>,
        visit: &mut dyn FnMut(Document) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let end = end_of_prefix(prefix);
        let from = before.filter(|before| *before < end).unwrap_or(end);
        let mut parts: Vec<Vec<u8>> = Vec::new();
        self.blocks.scan_back(&from, &mut |key, part| {
            if !key.starts_with(prefix) {
                return Ok(ControlFlow::Break(()));
            }
            let (name, number) = parse_document_key(key, collection)?;
            parts.push(part.to_vec());
            if number > 0 {
                return Ok(ControlFlow::Continue(()));
            }
            let value = parts.drain(..).rev().flatten().collect();
            Ok(visit((name, value)))
        })
    }
}

pub(super) fn part_key(prefix: &[u8], part: u64) -> Vec<u8> {
    let mut key = prefix.to_vec();
    varint::write_number(&mut key, part);
    key
}

fn parse_document_key(key: &[u8], collection: &[u8]) -> Result<(Vec<u8>, u64), Error> {
    key.strip_prefix(collection)
        .and_then(split_document_key)
        .ok_or_else(|| damaged_entry("a document", key))
}

/// Returns the smallest key that is greater than all keys beginning with `prefix`.
fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    build_key(tree::DOCUMENT + 1, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Read as _, Store};

    #[test]
    fn compaction_refuses_an_index_that_lacks_a_document() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let change = |change: &mut crate::Transaction<'_>| {
            for n in 0..10 {
                change.put_document("d", &[n], &vec![n; usize::from(n) * 100])?;
            }
            // Put again, and deleted both when it exists and when it does not.
            change.put_document("d", &[0], b"again")?;
            change.delete_document("d", &[9])?;
            change.delete_document("d", &[10])
        };
        for count in [9, 9] {
            store.transact::<_, Error>(change).unwrap();
            assert_eq!(store.inner().lock_index().document_count(), count);
        }
        store.transact::<_, Error>(|change| change.put_document("d", &[8], b"")).unwrap();
        store.transact::<_, Error>(|change| change.delete_document("d", &[9])).unwrap();
        store.transact::<_, Error>(|change| change.delete_document("d", &[7])).unwrap();
        assert_eq!(store.inner().lock_index().document_count(), 8);
        let key = part_key(&document_key("d", &[3]), 0);
        assert!(store.inner().lock_index_mut().blocks.remove(&key).unwrap());
        let refused = store.compact_journal();
        assert!(
            matches!(&refused, Err(Error::Index(cause)) if cause.contains("7 documents, but its count is 8")),
            "{refused:?}"
        );
        // The frames still exist, and the index is rebuilt from them.
        assert!(store.index_damage().is_some());
        store.reopen(&mut |_| {}).unwrap();
        assert_eq!(store.read().read_document("d", &[3]).unwrap().unwrap(), [3; 300]);
        store.compact_journal().unwrap();
    }
}
