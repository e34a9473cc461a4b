//! The terms of all parts: their ids and codes.
use super::trees::{Builder, TreeBuilder};
use crate::Error;
use crate::frame::Change;
use crate::index::dictionary::{inline_code, is_long, literal_fingerprint};
use crate::index::key::{
    self, Code, LONG_HASH_BYTES, build_key, build_numbered_key, damaged_entry, object, tree,
};
use crate::index::run::NewRun;
use crate::index::sorter::{Merge, SortedRecords, Sorter};
use crate::journal::Base;
use crate::term::{self, LiteralParts, kind, split_literal};
use crate::varint::{self, Input};
use oxrdf::TermRef;
use std::collections::HashMap;

/// The length of the place of a term: its part, and its number there.
const PLACE_BYTES: usize = 16;

impl Builder<'_> {
    /// Sorts the names and the long literals of all parts, each with the numbers of its part and of the term in it.
    pub(super) fn sort_terms(
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
    pub(super) fn write_names(
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

    /// Gives each long literal its id. [`Self::write_entries`] writes those that a quad has.
    pub(super) fn assign_long_ids(
        &mut self,
        long: &SortedRecords,
        codes: &mut Sorter,
    ) -> Result<(), Error> {
        let (mut merge, mut key, mut places) = (long.read()?, Vec::new(), Vec::new());
        while merge.next_key(&mut key, &mut |place| {
            places.extend_from_slice(place);
            Ok(())
        })? {
            let (fingerprint, _) = split_long_key(&key)?;
            let mut code = vec![object::LONG];
            code.extend_from_slice(fingerprint);
            varint::write_number(&mut code, self.note.next_long);
            self.note.next_long += 1;
            for place in places.chunks(PLACE_BYTES) {
                codes.push(place, &code)?;
            }
            places.clear();
        }
        Ok(())
    }
}

/// Splits the key of a long literal that is sorted into its fingerprint and its bytes.
pub(super) fn split_long_key(key: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let mut input = Input::new(key);
    let is_whole = input.take(LONG_HASH_BYTES).is_some() && input.read_number().is_some();
    // The key may have megabytes.
    let fingerprint_bytes = is_whole.then(|| key.len() - input.len());
    fingerprint_bytes
        .and_then(|bytes| key.split_at_checked(bytes))
        .ok_or_else(|| damaged_entry("the key of a long literal", &[]))
}

/// Reads sorted names or long literals by ascending ids, which count them from 1.
pub(super) struct KeysById {
    merge: Merge,
    key: Vec<u8>,
    id: u64,
}

impl KeysById {
    pub(super) fn new(sorted: &SortedRecords) -> Result<Self, Error> {
        Ok(Self { merge: sorted.read()?, key: Vec::new(), id: 0 })
    }

    pub(super) fn read_key(&mut self, id: u64) -> Result<&[u8], Error> {
        while self.id < id {
            if !self.merge.next_key(&mut self.key, &mut |_| Ok(()))? {
                return Err(damaged_entry("the term of an id", &id.to_be_bytes()));
            }
            self.id += 1;
        }
        Ok(&self.key)
    }
}

/// Returns the key of a term by its part and its number there, from 1.
fn term_place(part: u64, number: usize) -> [u8; PLACE_BYTES] {
    let mut place = [0; PLACE_BYTES];
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
pub(super) fn read_codes(
    sorted: &mut Merge,
    part: u64,
    terms: &[TermRef<'_>],
) -> Result<Vec<Code>, Error> {
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
