//! The uncommitted changes of a transaction, with the transaction's own term numbers.
use crate::frame::{Change, QuadNumbers};
use crate::index::{Code, DEFAULT_GRAPH, Index};
use crate::term::{self, LiteralParts, kind, split_literal};
use crate::varint::Input;
use crate::{Error, FastMap, ValueKey, ValueRange};
use oxrdf::{GraphName, Quad, QuadRef, TermRef};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

/// The number of the default graph.
pub(crate) const DEFAULT_GRAPH_NUMBER: u32 = 0;

/// Changed documents by collection and key: the new value, or `None` if it is deleted.
pub(crate) type ChangedDocuments = BTreeMap<(String, Vec<u8>), Option<Vec<u8>>>;

/// Terms by number, each stored once. The number 0 is the default graph.
#[derive(Debug)]
pub(crate) struct Terms {
    numbers: FastMap<Arc<[u8]>, u32>,
    stored: Vec<StoredTerm>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct StoredTerm {
    bytes: Arc<[u8]>,
    /// The number of a typed literal's datatype; otherwise 0.
    datatype: u32,
    /// Its code in the index, once it was looked up; `None` if the index does not know the term. The transaction holds the
    /// lock on the index, so that does not change.
    code: OnceLock<Option<Code>>,
}

/// Memory for an encoded term that is only looked up. Most are shorter.
const LOOKUP_BYTES: usize = 128;

impl Terms {
    pub(crate) fn new() -> Self {
        let code = OnceLock::from(Some(Code::from_id(DEFAULT_GRAPH)));
        let default = StoredTerm { bytes: Arc::default(), datatype: 0, code };
        Self { numbers: FastMap::default(), stored: vec![default], scratch: Vec::new() }
    }

    /// Returns the number of a term, if it has one. No term has a name that is too long.
    pub(crate) fn find_number(&self, term: TermRef<'_>) -> Result<Option<u32>, Error> {
        let mut bytes = Vec::with_capacity(LOOKUP_BYTES);
        match term::encode(&mut bytes, term) {
            Err(Error::TooLarge { .. }) => Ok(None),
            encoded => encoded.map(|()| self.numbers.get(bytes.as_slice()).copied()),
        }
    }

    fn add_term(&mut self, term: TermRef<'_>) -> Result<u32, Error> {
        self.scratch.clear();
        term::encode(&mut self.scratch, term)?;
        if let Some(number) = self.numbers.get(self.scratch.as_slice()) {
            return Ok(*number);
        }
        let bytes: Arc<[u8]> = self.scratch.as_slice().into();
        let datatype = match term {
            TermRef::Literal(literal) => match split_literal(literal) {
                LiteralParts::Typed(iri, _) => self.add_term(iri.into())?,
                _ => 0,
            },
            _ => 0,
        };
        let number = u32::try_from(self.stored.len())
            .map_err(|_| Error::TooLarge { bytes: u64::MAX, limit: u64::from(u32::MAX) })?;
        self.numbers.insert(bytes.clone(), number);
        self.stored.push(StoredTerm { bytes, datatype, code: OnceLock::new() });
        Ok(number)
    }

    pub(crate) fn add_quad_terms(&mut self, quad: QuadRef<'_>) -> Result<QuadNumbers, Error> {
        let graph = match term::graph_to_term(quad.graph_name) {
            Some(graph) => self.add_term(graph)?,
            None => DEFAULT_GRAPH_NUMBER,
        };
        Ok([
            self.add_term(quad.subject.into())?,
            self.add_term(quad.predicate.into())?,
            self.add_term(quad.object)?,
            graph,
        ])
    }

    /// Returns the code of a term in the index, if it has one.
    pub(crate) fn find_code(&self, number: u32, index: &Index) -> Result<Option<&Code>, Error> {
        let Some(stored) = self.stored.get(number as usize) else { return Ok(None) };
        if let Some(code) = stored.code.get() {
            return Ok(code.as_ref());
        }
        let code = match term::decode(&stored.bytes) {
            Some(term) => index.view().find_code(term)?,
            None => None,
        };
        Ok(stored.code.get_or_init(|| code).as_ref())
    }

    /// Returns the term of a number; `None` for the default graph.
    pub(crate) fn term_for(&self, number: u32) -> Option<TermRef<'_>> {
        term::decode(&self.stored.get(number as usize)?.bytes)
    }

    pub(crate) fn is_literal(&self, number: u32) -> bool {
        let kind = self.stored.get(number as usize).and_then(|stored| stored.bytes.first());
        kind.is_some_and(|kind| *kind >= kind::STRING)
    }

    pub(crate) fn to_quad(&self, [subject, predicate, object, graph]: QuadNumbers) -> Option<Quad> {
        let graph_name = match self.term_for(graph) {
            None => GraphName::DefaultGraph,
            Some(term) => term::to_graph(term.into_owned())?,
        };
        Some(Quad {
            subject: term::to_subject(self.term_for(subject)?.into_owned())?,
            predicate: term::to_predicate(self.term_for(predicate)?.into_owned())?,
            object: self.term_for(object)?.into_owned(),
            graph_name,
        })
    }
}

/// Changed quads: `true` if added, `false` if removed. A quad is only here if it differs from the index.
#[derive(Debug, Default)]
pub(crate) struct ChangedQuads {
    pub(crate) changes: BTreeMap<QuadNumbers, bool>,
    /// Added quads whose object is not a literal, with the object first.
    by_object: BTreeSet<QuadNumbers>,
    /// The values of changed quads, once somebody asked for some.
    values: Mutex<Option<BTreeSet<ChangedValue>>>,
}

/// A literal of a changed quad: the number of the property, class and key of the value as in the index, and the number of
/// the subject.
type ChangedValue = (u32, Vec<u8>, u32);

fn to_changed_value(
    [subject, property, object, _]: QuadNumbers,
    terms: &Terms,
) -> Option<ChangedValue> {
    let Some(TermRef::Literal(literal)) = terms.term_for(object) else { return None };
    let (class, key) = ValueKey::of(literal);
    let mut value = vec![class.code()];
    key.encode(class, &mut value);
    Some((property, value, subject))
}

impl ChangedQuads {
    pub(crate) fn add(&mut self, quad: QuadNumbers, terms: &Terms) {
        let [subject, predicate, object, graph] = quad;
        self.changes.insert(quad, true);
        if !terms.is_literal(object) {
            self.by_object.insert([object, subject, predicate, graph]);
        }
        self.add_value(quad, terms);
    }

    pub(crate) fn remove(&mut self, quad: QuadNumbers, terms: &Terms) {
        self.changes.insert(quad, false);
        self.add_value(quad, terms);
    }

    fn add_value(&mut self, quad: QuadNumbers, terms: &Terms) {
        if let Some(values) = self.values.get_mut() {
            values.extend(to_changed_value(quad, terms));
        }
    }

    /// Returns the subjects of changed quads of a property with a value in the range, with the key of the value. A change
    /// that was reverted may still be among them.
    pub(crate) fn find_values(
        &self,
        property: u32,
        range: &ValueRange,
        terms: &Terms,
    ) -> Vec<(ValueKey, u32)> {
        let mut values = self.values.lock();
        let values = values.get_or_insert_with(|| {
            self.changes.keys().filter_map(|quad| to_changed_value(*quad, terms)).collect()
        });
        let class = range.class();
        let mut found = Vec::new();
        for interval in range.intervals() {
            let from = [&[class.code()], interval.from.as_slice()].concat();
            let to = match &interval.to {
                Some(to) => [&[class.code()], to.as_slice()].concat(),
                None => vec![class.code() + 1],
            };
            for (_, value, subject) in values.range((property, from, 0)..(property, to, 0)) {
                let value = value.get(1..).unwrap_or_default();
                let key = ValueKey::decode(class, &mut Input::new(value));
                found.extend(key.map(|key| (key, *subject)));
            }
        }
        found
    }

    pub(crate) fn revert_change(&mut self, quad: QuadNumbers) {
        let [subject, predicate, object, graph] = quad;
        self.changes.remove(&quad);
        self.by_object.remove(&[object, subject, predicate, graph]);
    }

    /// Returns the added quads that match a pattern, where `None` matches everything.
    pub(crate) fn find_added(
        &self,
        pattern: [Option<u32>; 4],
        terms: &Terms,
    ) -> Box<dyn Iterator<Item = QuadNumbers> + '_> {
        match pattern {
            [None, _, Some(object), _] if !terms.is_literal(object) => Box::new(
                self.by_object
                    .range(all_beginning_with(object))
                    .map(|[object, subject, predicate, graph]| {
                        [*subject, *predicate, *object, *graph]
                    })
                    .filter(move |quad| is_match(quad, pattern)),
            ),
            [None, Some(predicate), Some(object), _]
                if let Some(TermRef::Literal(literal)) = terms.term_for(object) =>
            {
                let range = ValueRange::with_key_of(literal);
                let subjects = self.find_values(predicate, &range, terms).into_iter();
                let quads = subjects.flat_map(move |(_, subject)| {
                    let first = [subject, predicate, object, 0];
                    self.changes.range(first..=[subject, predicate, object, u32::MAX])
                });
                Box::new(
                    quads
                        .filter(move |(quad, is_added)| **is_added && is_match(quad, pattern))
                        .map(|(quad, _)| *quad),
                )
            }
            _ => Box::new(
                self.find_changed(pattern).filter(|(_, is_added)| *is_added).map(|(quad, _)| quad),
            ),
        }
    }

    /// Returns the added and removed quads that match a pattern. The flag says whether the quad is added.
    pub(crate) fn find_changed(
        &self,
        pattern: [Option<u32>; 4],
    ) -> impl Iterator<Item = (QuadNumbers, bool)> + '_ {
        // Up to its first gap, the pattern says where the quads are.
        let (mut from, mut to) = ([0; 4], [u32::MAX; 4]);
        let known = pattern.into_iter().map_while(|number| number);
        for ((from, to), number) in from.iter_mut().zip(&mut to).zip(known) {
            (*from, *to) = (number, number);
        }
        let changes = self.changes.range(from..=to);
        changes
            .filter(move |(quad, _)| is_match(quad, pattern))
            .map(|(quad, is_added)| (*quad, *is_added))
    }
}

fn all_beginning_with(number: u32) -> RangeInclusive<QuadNumbers> {
    [number, 0, 0, 0]..=[number, u32::MAX, u32::MAX, u32::MAX]
}

fn is_match(quad: &QuadNumbers, pattern: [Option<u32>; 4]) -> bool {
    quad.iter().zip(pattern).all(|(number, sought)| sought.is_none_or(|sought| sought == *number))
}

/// Encodes the changes as the payload of a frame.
pub(crate) fn encode_payload(
    unsynced: u64,
    terms: &Terms,
    quads: &ChangedQuads,
    documents: &ChangedDocuments,
) -> Vec<u8> {
    let mut change = Change { unsynced_frames: unsynced, ..Change::default() };
    let mut table =
        TermTable { terms, numbers: vec![0; terms.stored.len()], datatypes: Vec::new() };
    for (quad, added) in &quads.changes {
        let quad = quad.map(|number| table.renumber_term(number, &mut change.terms));
        if *added { change.added.push(quad) } else { change.removed.push(quad) }
    }
    for ((collection, key), value) in documents {
        change.documents.push((collection, key, value.as_deref()));
    }
    change.encode(&table.datatypes)
}

/// Gives the terms of the changed quads consecutive numbers, because a transaction also numbers other terms.
struct TermTable<'a> {
    terms: &'a Terms,
    /// For each number in the transaction the one in the frame; 0 without one.
    numbers: Vec<u32>,
    /// For each term of the frame the number of its datatype there; 0 without one.
    datatypes: Vec<u32>,
}

impl<'a> TermTable<'a> {
    fn renumber_term(&mut self, old: u32, out: &mut Vec<TermRef<'a>>) -> u32 {
        let known = self.numbers.get(old as usize).copied().unwrap_or_default();
        if known > 0 || old == DEFAULT_GRAPH_NUMBER {
            return known;
        }
        let terms = self.terms;
        let (Some(stored), Some(term)) = (terms.stored.get(old as usize), terms.term_for(old))
        else {
            return 0;
        };
        let datatype = self.renumber_term(stored.datatype, out);
        out.push(term);
        self.datatypes.push(datatype);
        let number = u32::try_from(out.len()).unwrap_or(u32::MAX);
        if let Some(place) = self.numbers.get_mut(old as usize) {
            *place = number;
        }
        number
    }
}
