//! An uncommitted change of the store.
mod values;

use crate::frame::QuadNumbers;
use crate::index::{Code, Row, View};
use crate::index_lock::IndexReadGuard;
use crate::overlay::{self, ChangedDocuments, ChangedQuads, DEFAULT_GRAPH_NUMBER, Terms};
use crate::read::{Document, DocumentRange, Pattern, Read, SubjectFilter, VisitValue};
use crate::steps::WriterSteps;
use crate::{Error, FastSet, Format, ValueRange, term};
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, QuadRef, TermRef};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// An uncommitted change. Its reads see the store with the change applied.
#[derive(Debug)]
pub struct Transaction<'a> {
    index: IndexReadGuard<'a>,
    terms: Terms,
    quads: ChangedQuads,
    /// The index keys of the removed quads, all of which are in the index.
    removed_keys: FastSet<Vec<u8>>,
    documents: ChangedDocuments,
    added: u64,
    removed: u64,
    format: Format,
    /// The undo steps of the changes since the savepoint, in the order of the changes; `None` without a savepoint.
    undo_log: Option<Vec<Undo>>,
    /// See [`crate::ReadStore::step_count`].
    steps: &'a WriterSteps,
}

/// Undoes one change.
#[derive(Debug)]
enum Undo {
    /// Inserts a quad that was removed.
    Insert(QuadNumbers),
    /// Removes a quad that was inserted.
    Remove(QuadNumbers),
    /// Restores the earlier change of a document.
    RestoreDocument((String, Vec<u8>), Option<Vec<u8>>),
    /// Removes the only change of a document.
    RemoveDocument((String, Vec<u8>)),
    /// Restores the required format.
    RestoreFormat(Format),
}

/// The changes of a transaction, without the lock on the store.
pub(crate) struct Changes {
    terms: Terms,
    quads: ChangedQuads,
    documents: ChangedDocuments,
    pub(crate) added: u64,
    pub(crate) removed: u64,
    /// The oldest format that has such records.
    pub(crate) format: Format,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.quads.changes.is_empty() && self.documents.is_empty()
    }

    /// Returns the number of documents put and deleted.
    pub(crate) fn document_count(&self) -> u64 {
        self.documents.len() as u64
    }

    pub(crate) fn encode_payload(&self, unsynced: u64) -> Vec<u8> {
        overlay::encode_payload(unsynced, &self.terms, &self.quads, &self.documents)
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(index: IndexReadGuard<'a>, steps: &'a WriterSteps) -> Self {
        Self {
            index,
            terms: Terms::new(),
            quads: ChangedQuads::default(),
            removed_keys: FastSet::default(),
            documents: ChangedDocuments::new(),
            added: 0,
            removed: 0,
            format: Format::default(),
            undo_log: None,
            steps,
        }
    }

    /// Sets a savepoint, to which [`Self::roll_back_to_savepoint`] returns. It replaces an earlier one.
    pub fn set_savepoint(&mut self) {
        self.undo_log.get_or_insert_default().clear();
    }

    /// Removes the savepoint and keeps the changes.
    pub fn release_savepoint(&mut self) {
        self.undo_log = None;
    }

    /// Undoes all changes since the savepoint, and removes it. Without a savepoint it does nothing.
    pub fn roll_back_to_savepoint(&mut self) -> Result<(), Error> {
        for undo in self.undo_log.take().into_iter().flatten().rev() {
            self.steps.count_step();
            match undo {
                Undo::Insert(quad) => drop(self.insert_numbered(quad)?),
                Undo::Remove(quad) => drop(self.remove_numbered(quad)?),
                Undo::RestoreDocument(place, value) => drop(self.documents.insert(place, value)),
                Undo::RemoveDocument(place) => drop(self.documents.remove(&place)),
                Undo::RestoreFormat(format) => self.format = format,
            }
        }
        Ok(())
    }

    /// Discards all changes, as if the transaction had just begun. The savepoint is removed.
    pub fn discard_changes(&mut self) {
        self.terms = Terms::new();
        self.quads = ChangedQuads::default();
        self.removed_keys.clear();
        self.documents.clear();
        (self.added, self.removed) = (0, 0);
        self.format = Format::default();
        self.undo_log = None;
    }

    fn log_undo(&mut self, undo: Undo) {
        if let Some(log) = &mut self.undo_log {
            log.push(undo);
        }
    }

    /// Returns the changes. Documents whose value did not change are left out.
    pub(crate) fn into_changes(self) -> Result<Changes, Error> {
        let mut documents = self.documents;
        let mut same = Vec::new();
        for ((collection, key), value) in &documents {
            self.steps.count_step();
            if self.index.view().read_document(collection, key)? == *value {
                same.push((collection.clone(), key.clone()));
            }
        }
        for key in same {
            documents.remove(&key);
        }
        Ok(Changes {
            terms: self.terms,
            quads: self.quads,
            documents,
            added: self.added,
            removed: self.removed,
            format: self.format,
        })
    }

    /// Returns the key of a quad in the index; `None` if the index cannot have it.
    fn index_key(&self, quad: QuadNumbers) -> Result<Option<Vec<u8>>, Error> {
        let mut codes = [None; 4];
        for (code, number) in codes.iter_mut().zip(quad) {
            *code = self.terms.find_code(number, &self.index)?;
            if code.is_none() {
                return Ok(None);
            }
        }
        let [Some(subject), Some(predicate), Some(Code(object)), Some(graph)] = codes else {
            return Ok(None);
        };
        let (subject, predicate, graph) = (subject.id(), predicate.id(), graph.id());
        Ok(Some(Row { subject, predicate, object, graph }.spog_key()))
    }

    /// Returns the key of a quad if the index has it.
    fn find_stored_key(&self, quad: QuadNumbers) -> Result<Option<Vec<u8>>, Error> {
        match self.index_key(quad)? {
            Some(key) if self.index.view().has_quad(&key)? => Ok(Some(key)),
            _ => Ok(None),
        }
    }

    /// Adds a quad. Returns `false` if it exists.
    pub fn insert(&mut self, quad: QuadRef<'_>) -> Result<bool, Error> {
        self.steps.count_step();
        let quad = self.terms.add_quad_terms(quad)?;
        let is_changed = self.insert_numbered(quad)?;
        if is_changed {
            self.log_undo(Undo::Remove(quad));
        }
        Ok(is_changed)
    }

    fn insert_numbered(&mut self, quad: QuadNumbers) -> Result<bool, Error> {
        match self.quads.changes.get(&quad) {
            Some(true) => return Ok(false),
            Some(false) => {
                if let Some(key) = self.index_key(quad)? {
                    self.removed_keys.remove(&key);
                }
                self.quads.revert_change(quad);
                self.removed -= 1;
            }
            None => {
                if self.find_stored_key(quad)?.is_some() {
                    return Ok(false);
                }
                self.quads.add(quad, &self.terms);
                self.added += 1;
            }
        }
        Ok(true)
    }

    /// Removes a quad. Returns `false` if it does not exist.
    pub fn remove(&mut self, quad: QuadRef<'_>) -> Result<bool, Error> {
        self.steps.count_step();
        let quad = self.terms.add_quad_terms(quad)?;
        let is_changed = self.remove_numbered(quad)?;
        if is_changed {
            self.log_undo(Undo::Insert(quad));
        }
        Ok(is_changed)
    }

    fn remove_numbered(&mut self, quad: QuadNumbers) -> Result<bool, Error> {
        match self.quads.changes.get(&quad) {
            Some(false) => return Ok(false),
            Some(true) => {
                self.quads.revert_change(quad);
                self.added -= 1;
            }
            None => {
                let Some(key) = self.find_stored_key(quad)? else { return Ok(false) };
                self.removed_keys.insert(key);
                self.quads.remove(quad, &self.terms);
                self.removed += 1;
            }
        }
        Ok(true)
    }

    /// Puts a document, replacing one with the same key.
    pub fn put_document(
        &mut self,
        collection: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        self.steps.count_step();
        term::check_length(collection.as_bytes())?;
        term::check_length(key)?;
        self.change_document((collection.to_owned(), key.to_vec()), Some(value.to_vec()));
        Ok(())
    }

    /// Deletes a document if it exists.
    pub fn delete_document(&mut self, collection: &str, key: &[u8]) -> Result<(), Error> {
        self.steps.count_step();
        self.change_document((collection.to_owned(), key.to_vec()), None);
        Ok(())
    }

    /// Requires that the store has at least this format, because the change has records that a program for an
    /// older format would misread. Call it for each such change: it costs nothing once the store has the format.
    ///
    /// The commit raises the format durably before it writes anything else. A change that fails, or changes
    /// nothing, raises nothing. Nor does a change that is rolled back or discarded. A commit that fails may leave the
    /// format raised.
    pub fn require_format(&mut self, format: Format) {
        if format > self.format {
            let before = std::mem::replace(&mut self.format, format);
            self.log_undo(Undo::RestoreFormat(before));
        }
    }

    /// Returns the number of quads that this change removes.
    pub fn removed_quads(&self) -> u64 {
        self.removed
    }

    fn change_document(&mut self, place: (String, Vec<u8>), value: Option<Vec<u8>>) {
        if self.undo_log.is_none() {
            self.documents.insert(place, value);
            return;
        }
        let undo = match self.documents.insert(place.clone(), value) {
            Some(before) => Undo::RestoreDocument(place, before),
            None => Undo::RemoveDocument(place),
        };
        self.log_undo(undo);
    }

    /// Returns the sequence of the frame that this change will become.
    pub fn sequence(&self) -> u64 {
        self.index.sequence() + 1
    }

    /// Identifies the index, as [`crate::Reader::instance`] does.
    pub fn instance(&self) -> u64 {
        self.index.instance()
    }

    /// Returns the IRIs of the subjects with added or removed quads, each once. The flag says whether
    /// the index knew the IRI before, in any position of a quad.
    pub fn changed_subjects(&mut self) -> Result<Vec<(NamedNode, bool)>, Error> {
        self.find_changed_iris(&Pattern::default(), |[subject, ..]| subject)
    }

    /// As [`Self::changed_subjects`], for the quads that match a pattern.
    pub fn find_changed_subjects(
        &mut self,
        pattern: &Pattern,
    ) -> Result<Vec<(NamedNode, bool)>, Error> {
        self.find_changed_iris(pattern, |[subject, ..]| subject)
    }

    /// As [`Self::find_changed_subjects`], but returns the IRIs of the objects.
    pub fn find_changed_objects(
        &mut self,
        pattern: &Pattern,
    ) -> Result<Vec<(NamedNode, bool)>, Error> {
        self.find_changed_iris(pattern, |[_, _, object, _]| object)
    }

    /// Returns the IRIs that begin with a prefix, each once, among the objects of the removed quads.
    pub fn find_removed_objects(&self, prefix: &str) -> Vec<NamedNode> {
        let removed = self.quads.find_changed([None; 4]).filter(|(_, is_added)| !is_added);
        let mut numbers: Vec<u32> = removed.map(|([_, _, object, _], _)| object).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let iris = numbers.into_iter().filter_map(|number| match self.terms.term_for(number)? {
            TermRef::NamedNode(iri) if iri.as_str().starts_with(prefix) => Some(iri),
            _ => None,
        });
        iris.map(NamedNodeRef::into_owned).collect()
    }

    /// Returns the IRIs in one position of the added and removed quads that match a pattern, each once.
    fn find_changed_iris(
        &mut self,
        pattern: &Pattern,
        position: impl Fn(QuadNumbers) -> u32,
    ) -> Result<Vec<(NamedNode, bool)>, Error> {
        let Some(sought) = self.to_numbers(pattern)? else { return Ok(Vec::new()) };
        let mut numbers: Vec<u32> =
            self.quads.find_changed(sought).map(|(quad, _)| position(quad)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut changed = Vec::with_capacity(numbers.len());
        for number in numbers {
            self.steps.count_step();
            let known = self.terms.find_code(number, &self.index)?.is_some();
            if let Some(TermRef::NamedNode(iri)) = self.terms.term_for(number) {
                changed.push((iri.into_owned(), known));
            }
        }
        Ok(changed)
    }

    /// Returns the store as it was when this change began.
    pub fn prior_state(&self) -> impl Read {
        self.steps.count_step();
        self.index.view()
    }

    pub(crate) fn index_view(&self) -> View<'_> {
        self.index.view()
    }

    /// Converts a pattern into term numbers. Returns `None` if no changed quad can match it.
    fn to_numbers(&self, pattern: &Pattern) -> Result<Option<[Option<u32>; 4]>, Error> {
        let terms = [
            pattern.subject.as_ref().map(|term| term.as_ref().into()),
            pattern.predicate.as_ref().map(|term| term.as_ref().into()),
            pattern.object.as_ref().map(|term| term.as_ref()),
            pattern.graph.as_ref().and_then(|graph| term::graph_to_term(graph.as_ref())),
        ];
        let mut numbers = [None; 4];
        for (number, term) in numbers.iter_mut().zip(terms) {
            if let Some(term) = term {
                *number = match self.terms.find_number(term)? {
                    None => return Ok(None),
                    found => found,
                };
            }
        }
        if pattern.graph.as_ref().is_some_and(oxrdf::GraphName::is_default_graph) {
            numbers[3] = Some(DEFAULT_GRAPH_NUMBER);
        }
        Ok(Some(numbers))
    }

    fn satisfies_filter(&self, subject: &NamedNode, filter: &SubjectFilter) -> Result<bool, Error> {
        let subject = Some(NamedOrBlankNode::from(subject.clone()));
        let graph = filter.graph.clone();
        if !self.any(&Pattern { subject: subject.clone(), graph, ..Pattern::default() })? {
            return Ok(false);
        }
        for (predicate, object) in &filter.having {
            if !self.any(&Pattern {
                subject: subject.clone(),
                predicate: Some(predicate.clone()),
                object: Some(object.clone()),
                graph: None,
            })? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the subjects after `after` with added or removed quads.
    fn changed_subjects_after(&self, after: Option<&str>) -> BTreeSet<String> {
        let mut subjects = BTreeSet::new();
        let mut last = DEFAULT_GRAPH_NUMBER;
        for [subject, ..] in self.quads.changes.keys() {
            if *subject != last
                && let Some(TermRef::NamedNode(iri)) = self.terms.term_for(*subject)
                && after.is_none_or(|after| iri.as_str() > after)
            {
                subjects.insert(iri.as_str().to_owned());
            }
            last = *subject;
        }
        subjects
    }
}

impl Read for Transaction<'_> {
    fn visit_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
        reverse: bool,
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error> {
        self.visit_merged_values(property, (range, reverse), visit)
    }

    fn estimate_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        self.estimate_merged_values(property, range)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.steps.count_step();
        if let Some(numbers) = self.to_numbers(pattern)? {
            for quad in self.quads.find_added(numbers, &self.terms) {
                if let Some(quad) = self.terms.to_quad(quad)
                    && visit(quad).is_break()
                {
                    return Ok(());
                }
            }
            // No stored quad has a term that the index does not know.
            for number in numbers.into_iter().flatten() {
                if self.terms.find_code(number, &self.index)?.is_none() {
                    return Ok(());
                }
            }
        }
        self.index.view().for_each(pattern, &self.removed_keys, &mut |quad| {
            self.steps.count_step();
            visit(quad)
        })
    }

    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        self.steps.count_step();
        let changed = self.changed_subjects_after(after);
        let mut found = BTreeSet::new();
        let mut visit = |iri: &str, _| {
            if !changed.contains(iri) {
                found.insert(iri.to_owned());
            }
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        if limit > 0
            && let Some(mut listing) = self.index.view().begin_listing(filter, after)?
        {
            while self.index.view().continue_listing(&mut listing, &mut visit)?.is_continue() {
                self.steps.count_step();
            }
        }
        let mut page = 0;
        for iri in changed {
            if page == limit {
                break;
            }
            if self.satisfies_filter(&NamedNode::new_unchecked(iri.as_str()), filter)? {
                found.insert(iri);
                page += 1;
            }
        }
        Ok(found.into_iter().take(limit).map(NamedNode::new_unchecked).collect())
    }

    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.steps.count_step();
        match self.documents.get(&(collection.to_owned(), key.to_vec())) {
            Some(changed) => Ok(changed.clone()),
            None => self.index.view().read_document(collection, key),
        }
    }

    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        self.steps.count_step();
        let within = |key: &[u8]| {
            key.starts_with(range.prefix)
                && range
                    .after
                    .is_none_or(|after| if range.reverse { key < after } else { key > after })
        };
        let start = (collection.to_owned(), range.prefix.to_vec());
        let changed: BTreeMap<&[u8], Option<&[u8]>> = self
            .documents
            .range(start..)
            .take_while(|((c, key), _)| c == collection && key.starts_with(range.prefix))
            .filter(|((_, key), _)| within(key))
            .map(|((_, key), value)| (key.as_slice(), value.as_deref()))
            .collect();
        let mut found: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        if range.limit > 0 {
            self.index.view().visit_documents(collection, range, &mut |(key, value)| {
                self.steps.count_step();
                if !changed.contains_key(key.as_slice()) {
                    found.insert(key, value);
                }
                if found.len() < range.limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        }
        for (key, value) in changed {
            if let Some(value) = value {
                found.insert(key.to_vec(), value.to_vec());
            }
        }
        if range.reverse {
            Ok(found.into_iter().rev().take(range.limit).collect())
        } else {
            Ok(found.into_iter().take(range.limit).collect())
        }
    }
}
