//! Terms and their codes. IRIs and blank nodes have ids, in the order in which they first appear. Short
//! literals are stored inline. Long literals are stored in parts, with a reference count.
use super::key::{Code, key, numbered, object, tree};
use super::{Index, damaged};
use crate::Error;
use crate::term::{self, Parts, kind, parts};
use crate::varint::{self, Input};
use oxrdf::{LiteralRef, Term, TermRef};
use std::ops::ControlFlow;

/// The longest inline literal: bytes of value and language tag.
const LONGEST_INLINE: usize = 200;
/// Bytes of a long literal or document in one entry.
pub(crate) const PART_BYTES: usize = 400;

impl Index {
    /// Returns the code of a term; `None` if the index does not know it, so that no quad has it.
    pub(crate) fn code(&self, term: TermRef<'_>) -> Result<Option<Code>, Error> {
        self.reading(|| match term {
            TermRef::NamedNode(iri) => self.named(kind::IRI, iri.as_str()),
            TermRef::BlankNode(node) => self.named(kind::BLANK, node.as_str()),
            TermRef::Literal(literal) => {
                if is_long(literal) {
                    return Ok(self.long(literal)?.1);
                }
                let datatype = match parts(literal) {
                    Parts::Typed(iri, _) => match self.code(iri.into())? {
                        None => return Ok(None),
                        datatype => datatype,
                    },
                    _ => None,
                };
                Ok(Some(inline(literal, datatype.as_ref())))
            }
        })
    }

    /// Returns the code of a term. Adds the term if the index does not know it.
    pub(super) fn enter(&mut self, term: TermRef<'_>) -> Result<Code, Error> {
        match term {
            TermRef::NamedNode(iri) => self.enter_named(kind::IRI, iri.as_str()),
            TermRef::BlankNode(node) => self.enter_named(kind::BLANK, node.as_str()),
            TermRef::Literal(literal) if is_long(literal) => {
                let (bytes, known) = self.long(literal)?;
                match known {
                    Some(code) => Ok(code),
                    None => self.enter_long(&bytes),
                }
            }
            TermRef::Literal(literal) => {
                let datatype = match parts(literal) {
                    Parts::Typed(iri, _) => Some(self.enter_named(kind::IRI, iri.as_str())?),
                    _ => None,
                };
                Ok(inline(literal, datatype.as_ref()))
            }
        }
    }

    fn named(&self, kind: u8, name: &str) -> Result<Option<Code>, Error> {
        let key = key(tree::NAME_ID, &[&[kind], name.as_bytes()]);
        if let Some(id) = self.ids.get(&key) {
            return Ok(Some(Code::named(id)));
        }
        let id = self.runs.get(&key)?;
        if let Some(id) = id {
            self.ids.put(&key, id);
        }
        Ok(id.map(Code::named))
    }

    fn enter_named(&mut self, kind: u8, name: &str) -> Result<Code, Error> {
        if let Some(code) = self.named(kind, name)? {
            return Ok(code);
        }
        let id = self.note.next_id;
        self.note.next_id += 1;
        let code = Code::named(id);
        let name = key(tree::NAME_ID, &[&[kind], name.as_bytes()]);
        self.blocks.insert(&numbered(tree::ID_NAME, &[id]), name.get(1..).unwrap_or_default())?;
        self.runs.insert(&name, id);
        Ok(code)
    }

    /// Returns the bytes of a long literal, and its code if the index has it.
    fn long(&self, literal: LiteralRef<'_>) -> Result<(Vec<u8>, Option<Code>), Error> {
        let mut bytes = Vec::new();
        term::encode(&mut bytes, literal.into())?;
        let prefix = key(tree::LONG, &[&fingerprint(&bytes)]);
        let mut found = None;
        self.blocks.scan_prefix(&prefix, &mut |key, _| {
            let id = key.get(prefix.len()..).and_then(|rest| Input::new(rest).number());
            let id = id.ok_or_else(|| damaged("a long literal", key))?;
            if self.long_bytes(id)? != bytes {
                return Ok(ControlFlow::Continue(()));
            }
            found = Some(long_code(key));
            Ok(ControlFlow::Break(()))
        })?;
        Ok((bytes, found))
    }

    fn enter_long(&mut self, bytes: &[u8]) -> Result<Code, Error> {
        let id = self.note.next_long;
        self.note.next_long += 1;
        let mut key = key(tree::LONG, &[&fingerprint(bytes)]);
        varint::put(&mut key, id);
        self.blocks.insert(&key, &[0])?;
        for (part, bytes) in (0..).zip(bytes.chunks(PART_BYTES)) {
            self.blocks.insert(&numbered(tree::LONG_PART, &[id, part]), bytes)?;
        }
        Ok(long_code(&key))
    }

    fn long_bytes(&self, id: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.blocks.scan_prefix(&numbered(tree::LONG_PART, &[id]), &mut |_, part| {
            bytes.extend_from_slice(part);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(bytes)
    }

    /// Increments or decrements the reference count of a long literal. Deletes the literal when its last quad
    /// is removed.
    pub(super) fn count_long(&mut self, code: &[u8], more: bool) -> Result<(), Error> {
        let Some(rest) = code.strip_prefix(&[object::LONG]) else { return Ok(()) };
        let key = key(tree::LONG, &[rest]);
        let count = self.blocks.get(&key, |value| Input::new(value).number())?.flatten();
        let count = count.ok_or_else(|| damaged("the count of", &key))?;
        let count = if more { count + 1 } else { count.saturating_sub(1) };
        if count > 0 {
            let mut value = Vec::new();
            varint::put(&mut value, count);
            self.blocks.insert(&key, &value)?;
            return Ok(());
        }
        self.blocks.remove(&key)?;
        let id = long_id(code).ok_or_else(|| damaged("a long literal", &key))?;
        let mut parts = Vec::new();
        self.blocks.scan_prefix(&numbered(tree::LONG_PART, &[id]), &mut |key, _| {
            parts.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        for part in parts {
            self.blocks.remove(&part)?;
        }
        Ok(())
    }

    /// Returns the IRI or blank node of an id.
    pub(super) fn name(&self, id: u64) -> Result<Term, Error> {
        if let Some(name) = self.names.get(id) {
            return Ok(name);
        }
        let key = numbered(tree::ID_NAME, &[id]);
        let read = |bytes: &[u8]| term::decode(bytes).map(TermRef::into_owned);
        let name = self.blocks.get(&key, read)?.flatten();
        let name = name.ok_or_else(|| damaged("the name of", &key))?;
        self.names.put(id, &name);
        Ok(name)
    }

    /// Returns the term of a code.
    pub(super) fn term(&self, code: &[u8]) -> Result<Term, Error> {
        let fault = || damaged("the object", code);
        let mut input = Input::new(code);
        let term = match input.byte().ok_or_else(fault)? {
            object::NAMED => return self.name(input.number().ok_or_else(fault)?),
            object::STRING => {
                LiteralRef::new_simple_literal(input.text().ok_or_else(fault)?).into_owned()
            }
            object::LANGUAGE => {
                let language = input.text().ok_or_else(fault)?;
                let value = input.text().ok_or_else(fault)?;
                LiteralRef::new_language_tagged_literal_unchecked(value, language).into_owned()
            }
            object::TYPED => {
                let datatype = self.name(input.number().ok_or_else(fault)?)?;
                let datatype = term::to_predicate(datatype).ok_or_else(fault)?;
                let value = input.text().ok_or_else(fault)?;
                oxrdf::Literal::new_typed_literal(value, datatype)
            }
            _ => {
                let bytes = self.long_bytes(long_id(code).ok_or_else(fault)?)?;
                return term::decode(&bytes).map(TermRef::into_owned).ok_or_else(fault);
            }
        };
        Ok(term.into())
    }
}

fn is_long(literal: LiteralRef<'_>) -> bool {
    let length = match parts(literal) {
        Parts::String(value) | Parts::Typed(_, value) => value.len(),
        Parts::Language(language, value) => language.len() + value.len(),
    };
    length > LONGEST_INLINE
}

fn inline(literal: LiteralRef<'_>, datatype: Option<&Code>) -> Code {
    let mut bytes = Vec::new();
    let value = match parts(literal) {
        Parts::String(value) => {
            bytes.push(object::STRING);
            value
        }
        Parts::Language(language, value) => {
            bytes.push(object::LANGUAGE);
            varint::put_bytes(&mut bytes, language.as_bytes());
            value
        }
        Parts::Typed(_, value) => {
            bytes.push(object::TYPED);
            bytes.extend_from_slice(datatype.map(Code::id).unwrap_or_default());
            value
        }
    };
    varint::put_bytes(&mut bytes, value.as_bytes());
    Code(bytes)
}

/// Returns the checksum and length of a long literal. Different literals can share them.
fn fingerprint(bytes: &[u8]) -> Vec<u8> {
    let mut out = crc32c::crc32c(bytes).to_be_bytes().to_vec();
    varint::put_length(&mut out, bytes.len());
    out
}

/// Returns the code of a long literal, from its key in [`tree::LONG`].
fn long_code(key: &[u8]) -> Code {
    let mut code = vec![object::LONG];
    code.extend_from_slice(key.get(1..).unwrap_or_default());
    Code(code)
}

fn long_id(code: &[u8]) -> Option<u64> {
    let mut input = Input::new(code.get(5..)?);
    input.number()?;
    input.number()
}
