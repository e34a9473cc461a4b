//! The keys of the index. FORMAT.md lists the trees.
use super::block::Shape;
use crate::varint::{self, Input};

/// The trees of the index, by the byte that their keys begin with.
pub(crate) mod tree {
    use super::Shape;

    /// What the index as a whole notes; no blocks.
    pub(crate) const NOTE: u8 = 0;
    /// Kind and name of an IRI or blank node: its id. In runs.
    pub(crate) const NAME_ID: u8 = 1;
    /// Id: kind and name.
    pub(crate) const ID_NAME: u8 = 2;
    /// Subject, predicate, object, graph: every quad.
    pub(crate) const SPOG: u8 = 3;
    /// Predicate, object, subject, graph for named objects; predicate, mark, subject for literals.
    pub(crate) const POSG: u8 = 4;
    /// Named object, predicate: in which lists of `POSG` an object is.
    pub(crate) const OP: u8 = 5;
    /// Graph, subject: how many quads.
    pub(crate) const GS: u8 = 6;
    /// Checksum, length, id of a long literal: how many quads.
    pub(crate) const LONG: u8 = 7;
    /// Id of a long literal, part: bytes.
    pub(crate) const LONG_PART: u8 = 8;
    /// Collection, key, part: bytes.
    pub(crate) const DOCUMENT: u8 = 9;
    /// Graph, IRI of a subject: its id. In runs.
    pub(crate) const GRAPH_IRI: u8 = 10;

    /// Whether keys of runs are sought one by one.
    pub(crate) fn is_sought(key: &[u8]) -> bool {
        key.first() == Some(&NAME_ID)
    }

    /// What the blocks of a tree are like. Where most entries come at the end, blocks are long and
    /// fill up; where they come anywhere, blocks are short, since each one is written again whole.
    pub(crate) fn shape(tree: u8) -> Shape {
        let full = match tree {
            ID_NAME | LONG_PART => 2_048,
            SPOG => 1_536,
            DOCUMENT | GS => 1_024,
            _ => 384,
        };
        Shape { valued: !matches!(tree, SPOG | POSG | OP), full }
    }
}

/// The kinds of objects in a key. An object's code is self-delimiting.
pub(crate) mod object {
    /// An id follows.
    pub(crate) const NAMED: u8 = 0;
    /// A string follows.
    pub(crate) const STRING: u8 = 1;
    /// A language tag and a string follow.
    pub(crate) const LANGUAGE: u8 = 2;
    /// The id of a datatype and a string follow.
    pub(crate) const TYPED: u8 = 3;
    /// The checksum, length and id of a long literal follow.
    pub(crate) const LONG: u8 = 4;
    /// In [`super::tree::POSG`], what stands for all literals of a predicate and subject.
    pub(crate) const ANY_LITERAL: u8 = 1;
}

/// The id of the default graph.
pub(crate) const DEFAULT_GRAPH: u64 = 0;

/// A term as it stands in keys: the code of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Code(pub(crate) Vec<u8>);

impl Code {
    pub(crate) fn named(id: u64) -> Self {
        let mut bytes = vec![object::NAMED];
        varint::put(&mut bytes, id);
        Self(bytes)
    }

    pub(crate) fn is_named(&self) -> bool {
        self.0.first() == Some(&object::NAMED)
    }

    /// The id of a named term as it stands in keys; nothing for a literal.
    pub(crate) fn id(&self) -> &[u8] {
        self.0.strip_prefix(&[object::NAMED]).unwrap_or_default()
    }
}

/// A key of parts one after the other.
pub(crate) fn key(tree: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(tree);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// A key of a number, and perhaps a second one.
pub(crate) fn numbered(tree: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = vec![tree];
    for number in numbers {
        varint::put(&mut key, *number);
    }
    key
}

/// A quad in codes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) subject: &'a [u8],
    pub(crate) predicate: &'a [u8],
    /// With its kind.
    pub(crate) object: &'a [u8],
    pub(crate) graph: &'a [u8],
}

impl<'a> Row<'a> {
    /// The key of the quad in the tree of all quads.
    pub(crate) fn spog(&self) -> Vec<u8> {
        key(tree::SPOG, &[self.subject, self.predicate, self.object, self.graph])
    }

    pub(crate) fn posg(&self) -> Vec<u8> {
        key(tree::POSG, &[self.predicate, self.object, self.subject, self.graph])
    }

    pub(crate) fn op(&self) -> Vec<u8> {
        key(tree::OP, &[self.object.get(1..).unwrap_or_default(), self.predicate])
    }

    pub(crate) fn literal_mark(&self) -> Vec<u8> {
        key(tree::POSG, &[self.predicate, &[object::ANY_LITERAL], self.subject])
    }

    pub(crate) fn is_named(&self) -> bool {
        self.object.first() == Some(&object::NAMED)
    }

    /// Reads a key of the tree of all quads.
    pub(crate) fn from_spog(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(bytes.get(1..)?);
        let subject = number(&mut input)?;
        let predicate = number(&mut input)?;
        let object = code(&mut input)?;
        let graph = number(&mut input)?;
        input.is_empty().then_some(Self { subject, predicate, object, graph })
    }
}

/// The bytes of a number.
pub(crate) fn number<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let whole = input.rest();
    input.number()?;
    whole.get(..whole.len() - input.len())
}

/// The bytes of an object.
pub(crate) fn code<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let whole = input.rest();
    match input.byte()? {
        object::NAMED => {
            input.number()?;
        }
        object::STRING => {
            input.bytes()?;
        }
        object::LANGUAGE => {
            input.bytes()?;
            input.bytes()?;
        }
        object::TYPED => {
            input.number()?;
            input.bytes()?;
        }
        object::LONG => {
            input.take(4)?;
            input.number()?;
            input.number()?;
        }
        _ => return None,
    }
    whole.get(..whole.len() - input.len())
}
