//! The quads and documents of all parts, and what follows from the quads.
use super::terms::{KeysById, read_codes};
use super::trees::{Builder, TreeBuilder};
use crate::Error;
use crate::frame::Change;
use crate::index::documents::document_key;
use crate::index::key::{self, Row, build_key, damaged_entry, object, tree};
use crate::index::quads::term_of;
use crate::index::sorter::{SortedRecords, Sorter};
use crate::index::values;
use crate::journal::Base;
use crate::term::kind;
use crate::varint::{self, Input};
use oxrdf::TermRef;
use std::collections::BTreeMap;

/// The flag before what a change puts.
const PUT: u8 = 1;
/// The flag of a change that removes.
const REMOVED: u8 = 0;

impl Builder<'_> {
    /// Sorts the changes of quads and documents of all parts. A quad that is put has the key of its value, if it has one.
    pub(super) fn sort_changes(
        &self,
        base: &Base,
        codes: &SortedRecords,
        advance: &mut dyn FnMut(),
    ) -> Result<(SortedRecords, SortedRecords), Error> {
        let mut quads = Sorter::new(self.scratch, "quads");
        let mut documents = Sorter::new(self.scratch, "documents");
        let mut codes = codes.read()?;
        base.replay_parts(&mut |part, payload| {
            let change = match Change::decode(payload) {
                Ok(change) => change,
                Err(what) => return Ok(Err(what)),
            };
            let codes = read_codes(&mut codes, part, &change.terms)?;
            for (changed, put) in [(&change.added, PUT), (&change.removed, REMOVED)] {
                for quad in changed {
                    self.steps.count_step();
                    let [subject, predicate, object, graph] =
                        quad.map(|number| codes.get(number as usize));
                    let (Some(subject), Some(predicate), Some(object), Some(graph)) =
                        (subject, predicate, object, graph)
                    else {
                        return Ok(Err("a quad has a term that does not exist"));
                    };
                    let row = Row {
                        subject: subject.id(),
                        predicate: predicate.id(),
                        object: &object.0,
                        graph: graph.id(),
                    };
                    let mut stored = vec![put];
                    let [_, _, number, _] = *quad;
                    if put == PUT
                        && self.note.values.is_some()
                        && let Some(TermRef::Literal(literal)) = term_of(&change.terms, number)
                    {
                        stored.extend(values::value_key(row.predicate, literal, row.subject));
                    }
                    quads.push(&row.spog_key(), &stored)?;
                }
            }
            for (collection, key, value) in &change.documents {
                let mut stored = vec![u8::from(value.is_some())];
                stored.extend_from_slice(value.unwrap_or_default());
                documents.push(&document_key(collection, key), &stored)?;
            }
            advance();
            Ok(Ok(()))
        })?;
        Ok((quads.finish()?, documents.finish()?))
    }

    /// Writes the tree of all quads. Returns the entries of the other trees of quads with the names of the subjects of each
    /// graph, and the keys of values.
    pub(super) fn write_quads(
        &mut self,
        quads: &SortedRecords,
        names: &SortedRecords,
    ) -> Result<(SortedRecords, SortedRecords), Error> {
        let mut spog = TreeBuilder::new(tree::SPOG);
        let mut entries = Sorter::new(self.scratch, "entries");
        let mut values = Sorter::new(self.scratch, "values");
        let mut subjects = KeysById::new(names)?;
        let mut current = SubjectCounts::default();
        let (mut merge, mut key, mut change) = (quads.read()?, Vec::new(), Vec::new());
        while merge.next_key(&mut key, &mut |found| {
            change.clear();
            change.extend_from_slice(found);
            Ok(())
        })? {
            self.steps.count_step();
            let Some(value_key) = read_put("a quad", &key, &change)? else { continue };
            self.note.quads += 1;
            let row = parse_row(&key).ok_or_else(|| damaged_entry("a quad", &key))?;
            if current.subject != row.subject {
                current.write(&mut entries, &mut subjects)?;
                current =
                    SubjectCounts { subject: row.subject.to_vec(), ..SubjectCounts::default() };
            }
            *current.graphs.entry(row.graph.to_vec()).or_default() += 1;
            if row.is_named() {
                entries.push(&row.posg_key(), &[])?;
                entries.push(&row.op_key(), &[])?;
            } else {
                let mark = row.literal_mark_key();
                if current.last_mark != mark {
                    entries.push(&mark, &[])?;
                    current.last_mark = mark;
                }
                if !value_key.is_empty() {
                    values.push(value_key, &[])?;
                }
                if let Some(rest) = row.object.strip_prefix(&[object::LONG]) {
                    entries.push(&build_key(tree::LONG, &[rest]), &[])?;
                }
            }
            self.push(&mut spog, &key, &[])?;
        }
        current.write(&mut entries, &mut subjects)?;
        self.end_tree(&spog)?;
        Ok((entries.finish()?, values.finish()?))
    }
}

/// The quads of one subject, by graph.
#[derive(Default)]
struct SubjectCounts {
    subject: Vec<u8>,
    graphs: BTreeMap<Vec<u8>, u64>,
    last_mark: Vec<u8>,
}

impl SubjectCounts {
    fn write(&self, entries: &mut Sorter, subjects: &mut KeysById) -> Result<(), Error> {
        if self.graphs.is_empty() {
            return Ok(());
        }
        let id = Input::new(&self.subject).read_number();
        let id = id.ok_or_else(|| damaged_entry("an id", &self.subject))?;
        let name = subjects.read_key(id)?;
        let iri = name.strip_prefix(&[kind::IRI]);
        for (graph, count) in &self.graphs {
            let mut value = Vec::new();
            varint::write_number(&mut value, *count);
            entries.push(&build_key(tree::GS, &[graph, &self.subject]), &value)?;
            if let Some(iri) = iri {
                value.clear();
                varint::write_number(&mut value, id);
                entries.push(&build_key(tree::GRAPH_IRI, &[graph, iri]), &value)?;
            }
        }
        Ok(())
    }
}

/// Returns what the last change of a key put; `None` if it removed it.
pub(super) fn read_put<'c>(
    what: &str,
    key: &[u8],
    change: &'c [u8],
) -> Result<Option<&'c [u8]>, Error> {
    match change.split_first() {
        Some((&PUT, put)) => Ok(Some(put)),
        Some((&REMOVED, [])) => Ok(None),
        _ => Err(damaged_entry(what, key)),
    }
}

/// Splits a key of the tree of all quads.
fn parse_row(key: &[u8]) -> Option<Row<'_>> {
    let mut input = Input::new(key);
    input.read_byte()?;
    Some(Row {
        subject: key::read_number_bytes(&mut input)?,
        predicate: key::read_number_bytes(&mut input)?,
        object: key::read_code_bytes(&mut input)?,
        graph: key::read_number_bytes(&mut input)?,
    })
}
