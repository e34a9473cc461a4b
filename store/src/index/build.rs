//! Builds an empty index from a base in sorted order.
//!
//! Replaying the parts of a base changes blocks everywhere, so each checkpoint writes most of the index again. Here each
//! block is written once: names, quads, values and documents are sorted in files, and the trees are filled from the first
//! key to the last. Names get their ids in the order of the names, so the trees of names and of ids are sorted alike.
//!
//! 1. The terms of all parts are sorted. Each name and each long literal gets its id, and each term of each part its code.
//! 2. The parts are read again with these codes. Their quads and documents are sorted; the last change of each counts. With
//!    a quad goes the key of its value.
//! 3. The quads, in the order of subjects, give the entries of the other trees, and the keys of values, which are sorted
//!    too.
//!
//! While it runs, the mark of a checkpoint is empty, so that an open after a crash discards the index.
use super::block::{Block, Name};
use super::checkpoint::{self, open_index};
use super::dictionary::{VALUE_PART_BYTES, inline_code, is_long, literal_fingerprint};
use super::documents::{document_key, part_key};
use super::engine::{Engine, Writes, entry_checksum};
use super::key::{
    self, Code, Row, Shape, build_key, build_numbered_key, damaged_entry, object, tree,
};
use super::note::Note;
use super::packing::Packer;
use super::quads::term_of;
use super::run::{NewRun, RunKind, RunNote};
use super::run_files::RUNS_PER_MERGE;
use super::runs::{self, NAMES};
use super::sorter::{Merge, SortedRecords, Sorter};
use super::{Index, values};
use crate::frame::Change;
use crate::journal::Base;
use crate::steps::WriterSteps;
use crate::term::{self, LiteralParts, kind, split_literal};
use crate::varint::{self, Input};
use crate::{Error, files};
use oxrdf::TermRef;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the files that are sorted.
const SCRATCH_FOLDER: &str = "index.new";
/// The minimum number of parts. Replaying fewer takes seconds.
const MIN_PARTS: u64 = 64;
/// The free disk space that the files need, as a multiple of the base.
const SPACE_FACTOR: u64 = 16;
/// A run of so many entries for each run of a checkpoint is of the level above.
const ENTRIES_OF_LEVEL: u64 = 100_000;
/// Says whether a change puts or removes.
const PUT: u8 = 1;

/// Returns whether an index should be built from this base in sorted order: it is empty, and the base is large.
pub(crate) fn is_worthwhile(dir: &Path, index: &Index, base: &Base) -> bool {
    let is_empty = index.checkpointed_sequence() == 0 && index.sequence() == 0;
    let has_space = || files::free_bytes(dir).is_ok_and(|free| free / SPACE_FACTOR > base.bytes);
    is_empty && base.end.parts >= MIN_PARTS && has_space()
}

/// Builds the index in place of an empty one. `progress` gets the number of parts that were read, each of them twice.
pub(crate) fn build_index(
    dir: &Path,
    empty: Index,
    base: &Base,
    steps: &WriterSteps,
    progress: &mut dyn FnMut(u64),
) -> Result<Index, Error> {
    let (id, has_values) = (empty.store_id(), empty.has_values());
    drop(empty);
    checkpoint::discard_index(dir)?;
    checkpoint::set_mark(dir)?;
    let scratch = Scratch::create(dir)?;
    let folder = checkpoint::index_folder(dir);
    let (mut engine, ()) = Engine::open(&folder, |_, _| Ok(()))?;
    let builder = Builder {
        writes: engine.begin_writes(),
        packer: Packer::new(),
        scratch: &scratch.0,
        folder: &folder,
        steps,
        note: Note { sequence: base.end.from, ..Note::new(id, has_values) },
    };
    let built = builder.build(base, progress);
    engine.close();
    built?;
    drop(scratch);
    checkpoint::remove_mark(dir)?;
    open_index(dir, id, has_values)
}

/// The folder of the sorted files, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn create(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(SCRATCH_FOLDER);
        remove_scratch(dir)?;
        files::create_folder(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next build or open removes what remains.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the files of a build that was interrupted.
pub(crate) fn remove_scratch(dir: &Path) -> Result<(), Error> {
    let path = dir.join(SCRATCH_FOLDER);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(files::io_error("removing", &path))?;
    }
    Ok(())
}

struct Builder<'a> {
    writes: Writes<'a>,
    packer: Packer,
    scratch: &'a Path,
    /// The folder of the index.
    folder: &'a Path,
    steps: &'a WriterSteps,
    note: Note,
}

/// A tree that is filled in order.
struct TreeBuilder {
    name: Name,
    block: Block,
}

impl TreeBuilder {
    fn new(tree: u8) -> Self {
        Self { name: [tree].into(), block: Block::new(Shape::of_tree(tree)) }
    }
}

/// A run that is filled in order.
struct RunBuilder {
    folder: PathBuf,
    run: NewRun,
    is_empty: bool,
}

impl RunBuilder {
    /// Begins the only run in a folder of the index: of so many entries, of which so many are looked up.
    fn begin(
        folder: PathBuf,
        kind: &'static RunKind,
        entries: u64,
        sought: u64,
    ) -> Result<Self, Error> {
        files::create_folder(&folder)?;
        let level = u64::from((entries / ENTRIES_OF_LEVEL).max(1).ilog2() / RUNS_PER_MERGE.ilog2());
        let run = NewRun::begin(&folder, kind, 1, level, sought)?;
        Ok(Self { folder, run, is_empty: entries == 0 })
    }

    /// Returns the runs for the note, when they are on the medium.
    fn finish(self) -> Result<Vec<RunNote>, Error> {
        let note = self.run.finish()?.note;
        files::sync_folder(&self.folder)?;
        // The open removes a run that is not in the note.
        Ok(if self.is_empty { Vec::new() } else { vec![note] })
    }
}

impl Builder<'_> {
    fn build(mut self, base: &Base, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let mut done = 0;
        let mut advance = || {
            done += 1;
            progress(done);
        };
        let (names, long) = self.sort_terms(base, &mut advance)?;
        let mut codes = Sorter::new(self.scratch, "codes");
        let count = count_keys(&names)?;
        let folder = self.folder.join(runs::FOLDER);
        let mut name_run = RunBuilder::begin(folder, &NAMES, count, count)?;
        self.write_names(&names, &mut name_run.run, &mut codes)?;
        self.write_long_literals(&long, &mut codes)?;
        drop(long);
        let (quads, documents) = self.sort_changes(base, &codes.finish()?, &mut advance)?;
        let (entries, values) = self.write_quads(&quads, &names)?;
        drop((quads, names));
        self.write_entries(&entries, &mut name_run.run)?;
        drop(entries);
        self.note.runs = name_run.finish()?;
        if self.note.values.is_some() {
            self.note.values = Some(self.write_values(&values)?);
        }
        drop(values);
        self.write_documents(&documents)?;
        let note = self.note.encode();
        self.writes.insert(&[tree::NOTE], &note)?;
        self.writes.finish()
    }

    /// Sorts the names and the long literals of all parts, each with the numbers of its part and of the term in it.
    fn sort_terms(
        &self,
        base: &Base,
        advance: &mut dyn FnMut(),
    ) -> Result<(SortedRecords, SortedRecords), Error> {
        let mut names = Sorter::new(self.scratch, "names");
        let mut long = Sorter::new(self.scratch, "long");
        base.replay_parts(&mut |part, payload| {
            let change = match Change::decode(payload) {
                Ok(change) => change,
                Err(what) => return Ok(Err(what)),
            };
            for (number, term) in change.terms.iter().enumerate() {
                self.steps.count_step();
                let place = term_place(part, number);
                match *term {
                    TermRef::Literal(literal) if is_long(literal) => {
                        let mut bytes = Vec::new();
                        term::encode(&mut bytes, *term)?;
                        let mut key = literal_fingerprint(&bytes);
                        key.extend_from_slice(&bytes);
                        long.push(&key, &place)?;
                    }
                    term => {
                        if let Some(name) = name_key(term) {
                            names.push(&name, &place)?;
                        }
                    }
                }
            }
            advance();
            Ok(Ok(()))
        })?;
        Ok((names.finish()?, long.finish()?))
    }

    /// Gives each name its id, and writes the trees of names and ids.
    fn write_names(
        &mut self,
        names: &SortedRecords,
        run: &mut NewRun,
        codes: &mut Sorter,
    ) -> Result<(), Error> {
        let mut ids = TreeBuilder::new(tree::ID_NAME);
        let (mut merge, mut name) = (names.read()?, Vec::new());
        loop {
            let id = self.note.next_id;
            let code = Code::from_id(id);
            if !merge.next_key(&mut name, &mut |place| codes.push(place, &code.0))? {
                break;
            }
            self.note.next_id += 1;
            let key = build_key(tree::NAME_ID, &[&name]);
            let mut value = Vec::new();
            varint::write_number(&mut value, id);
            run.push(&key, &value)?;
            self.push(&mut ids, &build_numbered_key(tree::ID_NAME, &[id]), &name)?;
        }
        self.end_tree(&ids)
    }

    /// Gives each long literal its id, and writes its parts. The number of its quads is not known yet.
    fn write_long_literals(
        &mut self,
        long: &SortedRecords,
        codes: &mut Sorter,
    ) -> Result<(), Error> {
        let mut parts = TreeBuilder::new(tree::LONG_PART);
        let (mut merge, mut key) = (long.read()?, Vec::new());
        let mut places = Vec::new();
        while merge.next_key(&mut key, &mut |place| {
            places.push(place.to_vec());
            Ok(())
        })? {
            let id = self.note.next_long;
            self.note.next_long += 1;
            let mut input = Input::new(&key);
            let fingerprint_bytes = input.take(4).and_then(|_| {
                input.read_number()?;
                Some(key.len() - input.len())
            });
            let (fingerprint, bytes) = key.split_at(fingerprint_bytes.unwrap_or_default());
            let mut code = vec![object::LONG];
            code.extend_from_slice(fingerprint);
            varint::write_number(&mut code, id);
            for place in places.drain(..) {
                codes.push(&place, &code)?;
            }
            for (part, bytes) in (0..).zip(bytes.chunks(VALUE_PART_BYTES)) {
                let key = build_numbered_key(tree::LONG_PART, &[id, part]);
                self.push(&mut parts, &key, bytes)?;
            }
        }
        self.end_tree(&parts)
    }

    /// Sorts the changes of quads and documents of all parts. A quad that is put has the key of its value, if it has one.
    fn sort_changes(
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
            for (changed, put) in [(&change.added, PUT), (&change.removed, 0)] {
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
    fn write_quads(
        &mut self,
        quads: &SortedRecords,
        names: &SortedRecords,
    ) -> Result<(SortedRecords, SortedRecords), Error> {
        let mut spog = TreeBuilder::new(tree::SPOG);
        let mut entries = Sorter::new(self.scratch, "entries");
        let mut values = Sorter::new(self.scratch, "values");
        let mut subjects = NameReader::new(names)?;
        let mut current = SubjectCounts::default();
        let (mut merge, mut key, mut change) = (quads.read()?, Vec::new(), Vec::new());
        while merge.next_key(&mut key, &mut |found| {
            change.clear();
            change.extend_from_slice(found);
            Ok(())
        })? {
            let Some((&PUT, value_key)) = change.split_first() else { continue };
            self.steps.count_step();
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

    /// Writes the other trees of quads, one after the other, and at last the names of the subjects of each graph.
    fn write_entries(&mut self, entries: &SortedRecords, names: &mut NewRun) -> Result<(), Error> {
        let mut current: Option<TreeBuilder> = None;
        let (mut merge, mut key) = (entries.read()?, Vec::new());
        let (mut value, mut count) = (Vec::new(), 0_u64);
        while merge.next_key(&mut key, &mut |found| {
            value = found.to_vec();
            count += 1;
            Ok(())
        })? {
            let tree = key.first().copied().unwrap_or_default();
            if current.as_ref().is_none_or(|current| current.name.first() != Some(&tree))
                && let Some(ended) = current.replace(TreeBuilder::new(tree))
            {
                self.end_tree(&ended)?;
            }
            if tree == tree::LONG {
                value.clear();
                varint::write_number(&mut value, count);
            }
            match &mut current {
                _ if tree == tree::GRAPH_IRI => names.push(&key, &value)?,
                Some(current) => self.push(current, &key, &value)?,
                None => {}
            }
            count = 0;
        }
        current.map_or(Ok(()), |ended| self.end_tree(&ended))
    }

    /// Writes the keys of values.
    fn write_values(&self, values: &SortedRecords) -> Result<Vec<RunNote>, Error> {
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

    fn write_documents(&mut self, documents: &SortedRecords) -> Result<(), Error> {
        let mut parts = TreeBuilder::new(tree::DOCUMENT);
        let (mut merge, mut prefix, mut stored) = (documents.read()?, Vec::new(), Vec::new());
        while merge.next_key(&mut prefix, &mut |found| {
            stored = found.to_vec();
            Ok(())
        })? {
            let Some((&PUT, value)) = stored.split_first() else { continue };
            self.note.documents += 1;
            let (first, others) = value.split_at(value.len().min(VALUE_PART_BYTES));
            self.push(&mut parts, &part_key(&prefix, 0), first)?;
            for (number, bytes) in (1..).zip(others.chunks(VALUE_PART_BYTES)) {
                self.push(&mut parts, &part_key(&prefix, number), bytes)?;
            }
        }
        self.end_tree(&parts)
    }

    /// Appends an entry, whose key is greater than all before it.
    fn push(&mut self, tree: &mut TreeBuilder, key: &[u8], value: &[u8]) -> Result<(), Error> {
        tree.block.insert(key, value);
        if let Some((name, right)) = tree.block.split_off_upper(true) {
            self.write_block(tree)?;
            (tree.name, tree.block) = (name, right);
        }
        Ok(())
    }

    fn end_tree(&mut self, tree: &TreeBuilder) -> Result<(), Error> {
        if tree.block.is_empty() { Ok(()) } else { self.write_block(tree) }
    }

    fn write_block(&mut self, tree: &TreeBuilder) -> Result<(), Error> {
        let (mut bytes, mut packed) = (Vec::new(), Vec::new());
        tree.block.encode(&mut bytes);
        self.packer.pack_block(&bytes, &mut packed);
        let checksum = entry_checksum(&tree.name, &packed);
        self.note.checksum_sum = self.note.checksum_sum.wrapping_add(checksum);
        self.writes.insert(&tree.name, &packed)
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
    fn write(&self, entries: &mut Sorter, subjects: &mut NameReader) -> Result<(), Error> {
        if self.graphs.is_empty() {
            return Ok(());
        }
        let id = Input::new(&self.subject).read_number();
        let id = id.ok_or_else(|| damaged_entry("an id", &self.subject))?;
        let name = subjects.read_name(id)?;
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

/// Reads names by ascending ids.
struct NameReader {
    merge: Merge,
    name: Vec<u8>,
    id: u64,
}

impl NameReader {
    fn new(names: &SortedRecords) -> Result<Self, Error> {
        Ok(Self { merge: names.read()?, name: Vec::new(), id: 0 })
    }

    fn read_name(&mut self, id: u64) -> Result<&[u8], Error> {
        while self.id < id {
            if !self.merge.next_key(&mut self.name, &mut |_| Ok(()))? {
                return Err(damaged_entry("the name of an id", &id.to_be_bytes()));
            }
            self.id += 1;
        }
        Ok(&self.name)
    }
}

/// Returns the key of a term by its part and its number there, from 1.
fn term_place(part: u64, number: usize) -> [u8; 16] {
    let mut place = [0; 16];
    let (high, low) = place.split_at_mut(8);
    high.copy_from_slice(&part.to_be_bytes());
    low.copy_from_slice(&(number as u64 + 1).to_be_bytes());
    place
}

/// Returns the kind and name of an IRI or blank node; `None` for a literal.
fn name_key(term: TermRef<'_>) -> Option<Vec<u8>> {
    let (kind, name) = match term {
        TermRef::NamedNode(iri) => (kind::IRI, iri.as_str()),
        TermRef::BlankNode(node) => (kind::BLANK, node.as_str()),
        TermRef::Literal(_) | TermRef::Triple(_) => return None,
    };
    let mut key = vec![kind];
    key.extend_from_slice(name.as_bytes());
    Some(key)
}

/// Returns the codes of the terms of a part, and before them that of the default graph. `sorted` has those of names and
/// long literals.
fn read_codes(sorted: &mut Merge, part: u64, terms: &[TermRef<'_>]) -> Result<Vec<Code>, Error> {
    let mut codes = vec![Code::from_id(key::DEFAULT_GRAPH)];
    let mut datatypes: HashMap<&str, usize> = HashMap::new();
    let mut place = Vec::new();
    for (number, term) in terms.iter().enumerate() {
        let code = match *term {
            TermRef::Literal(literal) if !is_long(literal) => {
                let datatype = match split_literal(literal) {
                    LiteralParts::Typed(iri, _) => {
                        datatypes.get(iri.as_str()).and_then(|at| codes.get(*at))
                    }
                    _ => None,
                };
                inline_code(literal, datatype)
            }
            term => {
                let mut code = Vec::new();
                let expected = term_place(part, number);
                let is_there = sorted.next_key(&mut place, &mut |found| {
                    code = found.to_vec();
                    Ok(())
                })?;
                if !is_there || place != expected {
                    return Err(damaged_entry("the code of a term", &expected));
                }
                if let TermRef::NamedNode(iri) = term {
                    datatypes.insert(iri.as_str(), codes.len());
                }
                Code(code)
            }
        };
        codes.push(code);
    }
    Ok(codes)
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

fn count_keys(records: &SortedRecords) -> Result<u64, Error> {
    let (mut merge, mut key, mut count) = (records.read()?, Vec::new(), 0);
    while merge.next_key(&mut key, &mut |_| Ok(()))? {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::digest_index;
    use crate::{
        DocumentRange, Options, Pattern, Read as _, Store, ValueClass, ValueKey, ValueRange,
    };
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
        let long = Literal::new_simple_literal(format!("{} ", n % 4).repeat(400));
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
            .read_frames(1, 3, &mut |sequence, frame| {
                new.add_frame(sequence, frame, Path::new("x"))
            })
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
            let range =
                DocumentRange { prefix: b"", after: None, reverse: false, limit: usize::MAX };
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
}
