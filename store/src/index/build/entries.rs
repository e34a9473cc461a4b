//! What is written from sorted entries: the other trees of quads, the keys of values, and the documents.
use super::quads::read_put;
use super::terms::{KeysById, split_long_key};
use super::trees::{Builder, RunBuilder, TreeBuilder};
use crate::index::dictionary::{VALUE_PART_BYTES, long_id};
use crate::index::documents::part_key;
use crate::index::key::{build_numbered_key, damaged_entry, tree};
use crate::index::run::{NewRun, RunNote};
use crate::index::sorter::SortedRecords;
use crate::index::values;
use crate::{Error, varint};

impl Builder<'_> {
    /// Writes the other trees of quads, one after the other, with the long literals of these quads, and at last the names of
    /// the subjects of each graph.
    pub(super) fn write_entries(
        &mut self,
        entries: &SortedRecords,
        long: &SortedRecords,
        names: &mut NewRun,
    ) -> Result<(), Error> {
        let mut current: Option<TreeBuilder> = None;
        let (mut literals, mut parts) = (KeysById::new(long)?, TreeBuilder::new(tree::LONG_PART));
        let (mut merge, mut key) = (entries.read()?, Vec::new());
        let (mut value, mut count) = (Vec::new(), 0_u64);
        while merge.next_key(&mut key, &mut |found| {
            value = found.to_vec();
            count += 1;
            Ok(())
        })? {
            let tree = *key.first().ok_or_else(|| damaged_entry("an entry", &key))?;
            if current.as_ref().is_none_or(|current| current.name.first() != Some(&tree))
                && let Some(ended) = current.replace(TreeBuilder::new(tree))
            {
                self.end_tree(&ended)?;
            }
            if tree == tree::LONG {
                value.clear();
                varint::write_number(&mut value, count);
                // Both are in the order of ids.
                let id = long_id(&key).ok_or_else(|| damaged_entry("a long literal", &key))?;
                let (_, bytes) = split_long_key(literals.read_key(id)?)?;
                for (part, bytes) in (0..).zip(bytes.chunks(VALUE_PART_BYTES)) {
                    self.push(
                        &mut parts,
                        &build_numbered_key(tree::LONG_PART, &[id, part]),
                        bytes,
                    )?;
                }
            }
            match &mut current {
                _ if tree == tree::GRAPH_IRI => names.push(&key, &value)?,
                Some(current) => self.push(current, &key, &value)?,
                None => {}
            }
            count = 0;
        }
        self.end_tree(&parts)?;
        current.map_or(Ok(()), |ended| self.end_tree(&ended))
    }

    /// Writes the keys of values.
    pub(super) fn write_values(&self, values: &SortedRecords) -> Result<Vec<RunNote>, Error> {
        let (mut merge, mut key) = (values.read()?, Vec::new());
        let (mut entries, mut sought, mut last) = (0, 0, None);
        while merge.next_key(&mut key, &mut |_| Ok(()))? {
            let hash = (values::KIND.filter_hash)(&key);
            entries += 1;
            sought += u64::from(last != hash);
            last = hash;
        }
        let folder = self.folder.join(values::FOLDER);
        let mut run = RunBuilder::begin(folder, &values::KIND, entries, sought)?;
        let mut merge = values.read()?;
        while merge.next_key(&mut key, &mut |_| Ok(()))? {
            self.steps.count_step();
            run.run.push(&key, &[])?;
        }
        run.finish()
    }

    pub(super) fn write_documents(&mut self, documents: &SortedRecords) -> Result<(), Error> {
        let mut parts = TreeBuilder::new(tree::DOCUMENT);
        let (mut merge, mut prefix, mut stored) = (documents.read()?, Vec::new(), Vec::new());
        while merge.next_key(&mut prefix, &mut |found| {
            stored = found.to_vec();
            Ok(())
        })? {
            let Some(value) = read_put("a document", &prefix, &stored)? else { continue };
            self.note.documents += 1;
            let (first, others) = value.split_at(value.len().min(VALUE_PART_BYTES));
            self.push(&mut parts, &part_key(&prefix, 0), first)?;
            for (number, bytes) in (1..).zip(others.chunks(VALUE_PART_BYTES)) {
                self.push(&mut parts, &part_key(&prefix, number), bytes)?;
            }
        }
        self.end_tree(&parts)
    }
}
