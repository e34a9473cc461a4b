//! Terms and their codes. IRIs and blank nodes have ids, in the order in which they first appear. Short
//! literals are stored inline. Long literals are stored in parts, with a reference count.
use super::block_source::ReadEntries as _;
use super::key::{
    Code, LONG_HASH_BYTES, build_key, build_numbered_key, damaged_entry, object, tree,
};
use super::{Index, TermCode, View};
use crate::term::{self, LiteralParts, kind, split_literal};
use crate::varint::{self, Input};
use crate::{Error, FastMap};
use oxrdf::{LiteralRef, NamedOrBlankNodeRef, Term, TermRef};
use sha2::{Digest as _, Sha256};
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

/// The maximum length of value and language tag of an inline literal, in bytes.
const MAX_INLINE_LITERAL_BYTES: usize = 200;
/// Bytes of a long literal or document in one entry.
pub(crate) const VALUE_PART_BYTES: usize = 400;

/// The codes of the datatypes of a frame, by IRI: its literals have few of them.
pub(super) type DatatypeCodes<'t> = FastMap<&'t str, Code>;

impl View<'_> {
    /// Returns the code of a term; `None` if the index does not know it, so that no quad has it.
    pub(crate) fn find_code(&self, term: TermRef<'_>) -> Result<Option<Code>, Error> {
        self.track_damage(|| match term {
            TermRef::NamedNode(iri) => self.find_named(kind::IRI, iri.as_str()),
            TermRef::BlankNode(node) => self.find_named(kind::BLANK, node.as_str()),
            TermRef::Literal(literal) => {
                if is_long(literal) {
                    return match LongLiteral::new(literal) {
                        // No quad has a language tag or datatype that is too long.
                        Err(Error::TooLarge { .. }) => Ok(None),
                        long => self.find_long(&long?),
                    };
                }
                let datatype = match split_literal(literal) {
                    LiteralParts::Typed(iri, _) => match self.find_code(iri.into())? {
                        None => return Ok(None),
                        datatype => datatype,
                    },
                    _ => None,
                };
                Ok(Some(inline_code(literal, datatype.as_ref())))
            }
            TermRef::Triple(_) => Ok(None),
        })
    }

    fn find_named(&self, kind: u8, name: &str) -> Result<Option<Code>, Error> {
        let key = name_key(kind, name);
        if let Some(id) = self.names.ids.get(&key) {
            return Ok(Some(Code::from_id(id)));
        }
        let id = self.runs.find_name(&key)?;
        if let Some(id) = id {
            self.names.ids.cache_id(&key, id);
        }
        Ok(id.map(Code::from_id))
    }

    /// Keeps the id of a subject for the next lookup by its name.
    pub(super) fn cache_id(&self, subject: NamedOrBlankNodeRef<'_>, id: u64) {
        let key = match subject {
            NamedOrBlankNodeRef::NamedNode(iri) => name_key(kind::IRI, iri.as_str()),
            NamedOrBlankNodeRef::BlankNode(node) => name_key(kind::BLANK, node.as_str()),
        };
        self.names.ids.cache_id(&key, id);
    }

    /// Returns the code of a long literal if the index has it.
    fn find_long(&self, literal: &LongLiteral) -> Result<Option<Code>, Error> {
        let LongLiteral { bytes, prefix } = literal;
        let mut found = None;
        self.blocks.scan_prefix(prefix, &mut |key, _| {
            let id = key.get(prefix.len()..).and_then(|rest| Input::new(rest).read_number());
            let id = id.ok_or_else(|| damaged_entry("a long literal", key))?;
            if self.read_long(id)? != *bytes {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some(long_code(key));
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn read_long(&self, id: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.blocks.scan_prefix(&build_numbered_key(tree::LONG_PART, &[id]), &mut |_, part| {
            bytes.extend_from_slice(part);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(bytes)
    }

    /// Returns the IRI or blank node of an id.
    pub(super) fn load_name(&self, id: u64) -> Result<Term, Error> {
        if let Some(name) = self.names.by_id.get(id) {
            return Ok(name);
        }
        let key = build_numbered_key(tree::ID_NAME, &[id]);
        let read = |bytes: &[u8]| term::decode(bytes).map(TermRef::into_owned);
        let name = self.blocks.get(&key, read)?.flatten();
        let name = name.ok_or_else(|| damaged_entry("the name of", &key))?;
        self.names.by_id.cache_name(id, &name);
        Ok(name)
    }

    /// Returns the term of a code, and records damage.
    pub(crate) fn decode_code(&self, code: &TermCode) -> Result<Term, Error> {
        self.track_damage(|| match code.id() {
            Some(id) => self.load_name(id),
            None => self.decode_term(code.literal().unwrap_or_default()),
        })
    }

    /// Returns the term of a code.
    pub(super) fn decode_term(&self, code: &[u8]) -> Result<Term, Error> {
        let damaged = || damaged_entry("the object", code);
        let mut input = Input::new(code);
        let term = match input.read_byte().ok_or_else(damaged)? {
            object::NAMED => return self.load_name(input.read_number().ok_or_else(damaged)?),
            object::STRING => {
                LiteralRef::new_simple_literal(input.read_text().ok_or_else(damaged)?).into_owned()
            }
            object::LANGUAGE => {
                let language = input.read_text().ok_or_else(damaged)?;
                let value = input.read_text().ok_or_else(damaged)?;
                LiteralRef::new_language_tagged_literal_unchecked(value, language).into_owned()
            }
            object::TYPED => {
                let datatype = self.load_name(input.read_number().ok_or_else(damaged)?)?;
                let datatype = term::to_predicate(datatype).ok_or_else(damaged)?;
                let value = input.read_text().ok_or_else(damaged)?;
                oxrdf::Literal::new_typed_literal(value, datatype)
            }
            _ => {
                let bytes = self.read_long(long_id(code).ok_or_else(damaged)?)?;
                return term::decode(&bytes).map(TermRef::into_owned).ok_or_else(damaged);
            }
        };
        Ok(term.into())
    }
}

/// Returns the key of the id of a name.
fn name_key(kind: u8, name: &str) -> Vec<u8> {
    build_key(tree::NAME_ID, &[&[kind], name.as_bytes()])
}

impl Index {
    /// Returns the code of a term. Adds the term if the index does not know it. `datatypes` are those of the frame so far.
    pub(super) fn find_or_add_code<'t>(
        &mut self,
        term: TermRef<'t>,
        datatypes: &mut DatatypeCodes<'t>,
    ) -> Result<Code, Error> {
        match term {
            TermRef::NamedNode(iri) => self.find_or_add_named(kind::IRI, iri.as_str()),
            TermRef::BlankNode(node) => self.find_or_add_named(kind::BLANK, node.as_str()),
            TermRef::Literal(literal) if is_long(literal) => {
                let literal = LongLiteral::new(literal)?;
                let known = self.view().find_long(&literal)?;
                match known {
                    Some(code) => Ok(code),
                    None => self.add_long(literal),
                }
            }
            TermRef::Literal(literal) => {
                let LiteralParts::Typed(iri, _) = split_literal(literal) else {
                    return Ok(inline_code(literal, None));
                };
                let datatype = match datatypes.entry(iri.as_str()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        new.insert(self.find_or_add_named(kind::IRI, iri.as_str())?)
                    }
                };
                Ok(inline_code(literal, Some(datatype)))
            }
            TermRef::Triple(_) => {
                term::encode(&mut Vec::new(), term)?;
                Err(damaged_entry("a triple term", &[]))
            }
        }
    }

    fn find_or_add_named(&mut self, kind: u8, name: &str) -> Result<Code, Error> {
        if let Some(code) = self.view().find_named(kind, name)? {
            return Ok(code);
        }
        let id = self.note.next_id;
        self.note.next_id += 1;
        let code = Code::from_id(id);
        let name = name_key(kind, name);
        self.blocks
            .insert(&build_numbered_key(tree::ID_NAME, &[id]), name.get(1..).unwrap_or_default())?;
        self.runs.insert(&name, id);
        Ok(code)
    }

    fn add_long(&mut self, literal: LongLiteral) -> Result<Code, Error> {
        let id = self.note.next_long;
        self.note.next_long += 1;
        let LongLiteral { bytes, prefix: mut key } = literal;
        varint::write_number(&mut key, id);
        self.blocks.insert(&key, &[0])?;
        for (part, bytes) in (0..).zip(bytes.chunks(VALUE_PART_BYTES)) {
            self.blocks.insert(&build_numbered_key(tree::LONG_PART, &[id, part]), bytes)?;
        }
        Ok(long_code(&key))
    }

    /// Increments or decrements the reference count of a long literal. Deletes the literal when its last quad
    /// is removed.
    pub(super) fn adjust_long_count(&mut self, code: &[u8], more: bool) -> Result<(), Error> {
        let Some(rest) = code.strip_prefix(&[object::LONG]) else { return Ok(()) };
        let key = build_key(tree::LONG, &[rest]);
        let count = self.blocks.get(&key, |value| Input::new(value).read_number())?.flatten();
        let count = count.ok_or_else(|| damaged_entry("the count of", &key))?;
        let count = if more { count + 1 } else { count.saturating_sub(1) };
        if count > 0 {
            let mut value = Vec::new();
            varint::write_number(&mut value, count);
            self.blocks.insert(&key, &value)?;
            return Ok(());
        }
        self.remove_long(&key)
    }

    /// Deletes the long literal with this code if no quad has it.
    pub(super) fn remove_unused_long(&mut self, code: &[u8]) -> Result<(), Error> {
        let Some(rest) = code.strip_prefix(&[object::LONG]) else { return Ok(()) };
        let key = build_key(tree::LONG, &[rest]);
        let count = self.blocks.get(&key, |value| Input::new(value).read_number())?.flatten();
        if count == Some(0) { self.remove_long(&key) } else { Ok(()) }
    }

    /// Deletes the long literal with this key in [`tree::LONG`].
    fn remove_long(&mut self, key: &[u8]) -> Result<(), Error> {
        self.blocks.remove(key)?;
        let id = long_id(key).ok_or_else(|| damaged_entry("a long literal", key))?;
        let mut parts = Vec::new();
        self.blocks.scan_prefix(&build_numbered_key(tree::LONG_PART, &[id]), &mut |key, _| {
            parts.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        for part in parts {
            self.blocks.remove(&part)?;
        }
        Ok(())
    }
}

pub(super) fn is_long(literal: LiteralRef<'_>) -> bool {
    let length = match split_literal(literal) {
        LiteralParts::String(value) | LiteralParts::Typed(_, value) => value.len(),
        LiteralParts::Language(language, value) => language.len() + value.len(),
    };
    length > MAX_INLINE_LITERAL_BYTES
}

pub(super) fn inline_code(literal: LiteralRef<'_>, datatype: Option<&Code>) -> Code {
    // The kind, a length, and the id of a datatype or a language tag, most of which are short.
    let mut bytes = Vec::with_capacity(literal.value().len() + 10);
    let value = match split_literal(literal) {
        LiteralParts::String(value) => {
            bytes.push(object::STRING);
            value
        }
        LiteralParts::Language(language, value) => {
            bytes.push(object::LANGUAGE);
            varint::write_bytes(&mut bytes, language.as_bytes());
            value
        }
        LiteralParts::Typed(_, value) => {
            bytes.push(object::TYPED);
            bytes.extend_from_slice(datatype.map(Code::id).unwrap_or_default());
            value
        }
    };
    varint::write_bytes(&mut bytes, value.as_bytes());
    Code(bytes)
}

/// A long literal that is looked up or added.
struct LongLiteral {
    bytes: Vec<u8>,
    /// Its key in [`tree::LONG`] up to its id.
    prefix: Vec<u8>,
}

impl LongLiteral {
    fn new(literal: LiteralRef<'_>) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        term::encode(&mut bytes, literal.into())?;
        let prefix = build_key(tree::LONG, &[&literal_fingerprint(&bytes)]);
        Ok(Self { bytes, prefix })
    }
}

/// Returns the hash and length of a long literal. Different literals can share them, but a lookup reads all that do.
/// So the hash must be one for which clients cannot find many such literals, unlike a CRC.
pub(super) fn literal_fingerprint(bytes: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Sha256::digest(bytes).iter().take(LONG_HASH_BYTES).copied().collect();
    varint::write_length(&mut out, bytes.len());
    out
}

/// Returns the code of a long literal, from its key in [`tree::LONG`].
fn long_code(key: &[u8]) -> Code {
    let mut code = vec![object::LONG];
    code.extend_from_slice(key.get(1..).unwrap_or_default());
    Code(code)
}

/// Returns the id of a long literal, from its code or its key in [`tree::LONG`].
pub(super) fn long_id(code: &[u8]) -> Option<u64> {
    let mut input = Input::new(code.get(1 + LONG_HASH_BYTES..)?);
    input.read_number()?;
    input.read_number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Change;
    use crate::index::open_index;
    use crate::steps::WriterSteps;
    use crate::{Options, Store};
    use oxrdf::{GraphName, Literal, NamedNode, NamedNodeRef, Quad};

    /// Returns texts with the same length and CRC32C. A CRC is linear, so there are sets of characters whose changes
    /// cancel each other out.
    fn colliding_texts() -> Vec<String> {
        let text = |changed: u64| -> String {
            let is_changed = |at: u32| at < u64::BITS && (changed >> at) & 1 == 1;
            (0..300).map(|at| if is_changed(at) { 'b' } else { 'a' }).collect()
        };
        let crc = |changed: u64| crc32c::crc32c(text(changed).as_bytes());
        // Sets of changes with their effects on the CRC, whose highest bits differ.
        let mut independent: Vec<(u32, u64)> = Vec::new();
        let mut texts = vec![text(0)];
        for at in 0..u64::BITS {
            let mut changed = 1_u64 << at;
            let mut effect = crc(changed) ^ crc(0);
            for (other_effect, other) in &independent {
                if (effect ^ other_effect) < effect {
                    effect ^= other_effect;
                    changed ^= other;
                }
            }
            if effect == 0 {
                texts.push(text(changed));
            } else {
                independent.push((effect, changed));
            }
        }
        texts
    }

    #[test]
    fn finding_a_long_literal_reads_no_others_with_its_length_and_crc() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let texts = colliding_texts();
        assert!(texts.len() > 30);
        let name = NamedNode::new_unchecked("https://example.org/name");
        let quad = |text: &String| {
            let literal = Literal::new_simple_literal(text);
            Quad::new(name.clone(), name.clone(), literal, GraphName::DefaultGraph)
        };
        store
            .transact::<_, Error>(|change| {
                for text in &texts {
                    assert!(change.insert(quad(text).as_ref())?);
                }
                Ok(())
            })
            .unwrap();
        let index = store.inner().lock_index();
        let view = index.view();
        let long = |text| LongLiteral::new(LiteralRef::new_simple_literal(text)).unwrap();
        let first = long(texts[0].as_str());
        for text in &texts {
            let literal = long(text.as_str());
            assert_eq!(literal.bytes.len(), first.bytes.len());
            assert_eq!(crc32c::crc32c(&literal.bytes), crc32c::crc32c(&first.bytes));
            let mut count = 0;
            let visit = &mut |_: &[u8], _: &[u8]| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            };
            view.blocks.scan_prefix(&literal.prefix, visit).unwrap();
            assert_eq!(count, 1, "the literals that a lookup reads");
            let code = view.find_long(&literal).unwrap().unwrap();
            assert_eq!(view.decode_term(&code.0).unwrap(), quad(text).object);
        }
    }

    #[test]
    fn a_frame_that_removes_a_quad_which_the_base_lacks_leaves_no_long_literal() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = open_index(dir.path(), [1; 16], false).unwrap();
        let text = "x".repeat(2 * VALUE_PART_BYTES);
        let name = NamedNodeRef::new_unchecked("https://example.org/name");
        let change = |removed, added| {
            let terms = vec![name.into(), LiteralRef::new_simple_literal(&text).into()];
            Change { terms, removed, added, ..Change::default() }
        };
        let (quad, missing) = ([1, 1, 2, 0], [1, 1, 2, 1]);
        let mut apply = |sequence, removed, added| {
            let change = change(removed, added);
            index.apply_frame(sequence, &change, &WriterSteps::default()).unwrap();
            let mut entries = 0;
            for tree in [tree::LONG, tree::LONG_PART] {
                let visit = &mut |_: &[u8], _: &[u8]| {
                    entries += 1;
                    Ok(ControlFlow::Continue(()))
                };
                index.view().blocks.scan_prefix(&[tree], visit).unwrap();
            }
            entries
        };
        assert_eq!(apply(1, vec![missing], vec![]), 0);
        assert!(apply(2, vec![missing], vec![quad]) > 1, "a quad has the literal");
        assert!(apply(3, vec![missing], vec![]) > 1);
        assert_eq!(apply(4, vec![quad], vec![]), 0);
    }
}
