//! The uncommitted changes of a transaction, with the transaction's own term numbers.
use crate::Error;
use crate::frame::{Change, Numbers};
use crate::index::{Code, DEFAULT_GRAPH, Index};
use crate::term::{self, Parts, kind, parts};
use oxrdf::{GraphName, NamedNodeRef, Quad, QuadRef, TermRef};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The number of the default graph.
pub(crate) const DEFAULT: u32 = 0;

/// Changed documents by collection and key: the new value, or `None` if it is deleted.
pub(crate) type Documents = BTreeMap<(String, Vec<u8>), Option<Vec<u8>>>;

/// Terms by number, each stored once. The number 0 is the default graph.
#[derive(Debug)]
pub(crate) struct Terms {
    numbers: HashMap<Arc<[u8]>, u32>,
    held: Vec<Held>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Held {
    bytes: Arc<[u8]>,
    /// The number of a typed literal's datatype; otherwise 0.
    datatype: u32,
    code: Known,
}

/// A cached lookup of a term's code in the index.
#[derive(Debug)]
enum Known {
    NotAsked,
    Absent,
    Code(Code),
}

impl Terms {
    pub(crate) fn new() -> Self {
        let code = Known::Code(Code::named(DEFAULT_GRAPH));
        let default = Held { bytes: Arc::default(), datatype: 0, code };
        Self { numbers: HashMap::new(), held: vec![default], scratch: Vec::new() }
    }

    /// Returns the number of a term, if it has one.
    pub(crate) fn number_of(&self, term: TermRef<'_>) -> Result<Option<u32>, Error> {
        let mut bytes = Vec::new();
        term::encode(&mut bytes, term)?;
        Ok(self.numbers.get(bytes.as_slice()).copied())
    }

    fn hold(&mut self, term: TermRef<'_>) -> Result<u32, Error> {
        self.scratch.clear();
        term::encode(&mut self.scratch, term)?;
        if let Some(number) = self.numbers.get(self.scratch.as_slice()) {
            return Ok(*number);
        }
        let bytes: Arc<[u8]> = self.scratch.as_slice().into();
        let datatype = match term {
            TermRef::Literal(literal) => match parts(literal) {
                Parts::Typed(iri, _) => self.hold(iri.into())?,
                _ => 0,
            },
            _ => 0,
        };
        let number = u32::try_from(self.held.len())
            .map_err(|_| Error::TooLarge { bytes: u64::MAX, limit: u64::from(u32::MAX) })?;
        self.numbers.insert(bytes.clone(), number);
        self.held.push(Held { bytes, datatype, code: Known::NotAsked });
        Ok(number)
    }

    pub(crate) fn hold_quad(&mut self, quad: QuadRef<'_>) -> Result<Numbers, Error> {
        let graph = match term::of_graph(quad.graph_name) {
            Some(graph) => self.hold(graph)?,
            None => DEFAULT,
        };
        Ok([
            self.hold(quad.subject.into())?,
            self.hold(quad.predicate.into())?,
            self.hold(quad.object)?,
            graph,
        ])
    }

    /// Returns the code of a term in the index, if it has one.
    pub(crate) fn code(&mut self, number: u32, index: &Index) -> Result<Option<&Code>, Error> {
        let Some(held) = self.held.get_mut(number as usize) else { return Ok(None) };
        if matches!(held.code, Known::NotAsked) {
            let code = match term::decode(&held.bytes) {
                Some(term) => index.code(term)?,
                None => None,
            };
            held.code = code.map_or(Known::Absent, Known::Code);
        }
        Ok(if let Known::Code(code) = &held.code { Some(code) } else { None })
    }

    /// Returns the term of a number; `None` for the default graph.
    pub(crate) fn term(&self, number: u32) -> Option<TermRef<'_>> {
        term::decode(&self.held.get(number as usize)?.bytes)
    }

    pub(crate) fn is_literal(&self, number: u32) -> bool {
        let kind = self.held.get(number as usize).and_then(|held| held.bytes.first());
        kind.is_some_and(|kind| *kind >= kind::STRING)
    }

    pub(crate) fn quad(&self, [subject, predicate, object, graph]: Numbers) -> Option<Quad> {
        let graph_name = match self.term(graph) {
            None => GraphName::DefaultGraph,
            Some(term) => term::to_graph(term.into_owned())?,
        };
        Some(Quad {
            subject: term::to_subject(self.term(subject)?.into_owned())?,
            predicate: term::to_predicate(self.term(predicate)?.into_owned())?,
            object: self.term(object)?.into_owned(),
            graph_name,
        })
    }
}

/// Changed quads: `true` if added, `false` if removed. A quad is only here if it differs from the index.
#[derive(Debug, Default)]
pub(crate) struct Quads {
    pub(crate) changes: BTreeMap<Numbers, bool>,
    /// Added quads whose object is not a literal, with the object first.
    by_object: BTreeSet<Numbers>,
}

impl Quads {
    pub(crate) fn add(&mut self, quad: Numbers, terms: &Terms) {
        let [subject, predicate, object, graph] = quad;
        self.changes.insert(quad, true);
        if !terms.is_literal(object) {
            self.by_object.insert([object, subject, predicate, graph]);
        }
    }

    pub(crate) fn remove(&mut self, quad: Numbers) {
        self.changes.insert(quad, false);
    }

    pub(crate) fn forget(&mut self, quad: Numbers) {
        let [subject, predicate, object, graph] = quad;
        self.changes.remove(&quad);
        self.by_object.remove(&[object, subject, predicate, graph]);
    }

    /// Returns the added quads that match a pattern, where `None` matches everything.
    pub(crate) fn added(
        &self,
        pattern: [Option<u32>; 4],
        terms: &Terms,
    ) -> Box<dyn Iterator<Item = Numbers> + '_> {
        let [subject, _, object, _] = pattern;
        let matches = move |quad: &Numbers| {
            quad.iter().zip(pattern).all(|(number, sought)| sought.is_none_or(|s| s == *number))
        };
        let all = |number: u32| [number, 0, 0, 0]..=[number, u32::MAX, u32::MAX, u32::MAX];
        match (subject, object) {
            (Some(subject), _) => Box::new(
                self.changes
                    .range(all(subject))
                    .filter(|(_, added)| **added)
                    .map(|(quad, _)| *quad)
                    .filter(matches),
            ),
            (None, Some(object)) if !terms.is_literal(object) => Box::new(
                self.by_object
                    .range(all(object))
                    .map(|[object, subject, predicate, graph]| {
                        [*subject, *predicate, *object, *graph]
                    })
                    .filter(matches),
            ),
            _ => Box::new(
                self.changes
                    .iter()
                    .filter(|(_, added)| **added)
                    .map(|(quad, _)| *quad)
                    .filter(matches),
            ),
        }
    }
}

/// Encodes the changes as the payload of a frame.
pub(crate) fn payload(
    unsynced: u64,
    terms: &Terms,
    quads: &Quads,
    documents: &Documents,
) -> Vec<u8> {
    let mut change = Change { unsynced, ..Change::default() };
    let mut table = Table { terms, numbers: HashMap::new() };
    for (quad, added) in &quads.changes {
        let quad = quad.map(|number| table.number(number, &mut change.terms));
        if *added { change.added.push(quad) } else { change.removed.push(quad) }
    }
    for ((collection, key), value) in documents {
        change.documents.push((collection, key, value.as_deref()));
    }
    change.encode(|iri| table.datatype(iri))
}

/// Assigns consecutive numbers to the terms that are in use.
struct Table<'a> {
    terms: &'a Terms,
    numbers: HashMap<u32, u32>,
}

impl<'a> Table<'a> {
    fn number(&mut self, held: u32, out: &mut Vec<TermRef<'a>>) -> u32 {
        if held == DEFAULT {
            return DEFAULT;
        }
        if let Some(number) = self.numbers.get(&held) {
            return *number;
        }
        if let Some(datatype) = self.terms.held.get(held as usize).map(|held| held.datatype) {
            self.number(datatype, out);
        }
        out.extend(self.terms.term(held));
        let number = u32::try_from(out.len()).unwrap_or(u32::MAX);
        self.numbers.insert(held, number);
        number
    }

    fn datatype(&self, iri: NamedNodeRef<'_>) -> u32 {
        let held = self.terms.number_of(iri.into()).ok().flatten();
        held.and_then(|held| self.numbers.get(&held)).copied().unwrap_or_default()
    }
}
