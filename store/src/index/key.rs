//! The keys of the index, the shape of the blocks of each tree, and the error about a damaged entry. FORMAT.md lists the
//! trees.
use crate::Error;
use crate::varint::{self, Input};

/// The properties that all blocks of a tree share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether entries have values.
    pub(crate) has_values: bool,
    /// The size of the entries, in bytes, above which a block is split.
    pub(crate) max_bytes: usize,
}

impl Shape {
    /// Returns the shape of a tree's blocks. Trees that grow mostly at the end have large blocks, which fill
    /// up. Trees with insertions anywhere have small ones, because each change rewrites a whole block.
    pub(crate) fn of_tree(tree: u8) -> Self {
        let max_bytes = match tree {
            tree::ID_NAME | tree::LONG_PART => 2_048,
            tree::SPOG => 1_536,
            tree::DOCUMENT | tree::GS => 1_024,
            _ => 384,
        };
        Self { has_values: !matches!(tree, tree::SPOG | tree::POSG | tree::OP), max_bytes }
    }
}

/// The trees of the index. The constants are the first byte of their keys.
pub(crate) mod tree {
    /// The note about the whole index; it is not in blocks.
    pub(crate) const NOTE: u8 = 0;
    /// Kind and name of an IRI or blank node: its id. In runs.
    pub(crate) const NAME_ID: u8 = 1;
    /// Id: kind and name.
    pub(crate) const ID_NAME: u8 = 2;
    /// Subject, predicate, object, graph: every quad.
    pub(crate) const SPOG: u8 = 3;
    /// Predicate, object, subject, graph for named objects; predicate, mark, subject for literals.
    pub(crate) const POSG: u8 = 4;
    /// Named object, predicate: the lists of `POSG` that contain the object.
    pub(crate) const OP: u8 = 5;
    /// Graph, subject: the number of quads.
    pub(crate) const GS: u8 = 6;
    /// Hash, length, id of a long literal: the number of quads.
    pub(crate) const LONG: u8 = 7;
    /// Id of a long literal, part: bytes.
    pub(crate) const LONG_PART: u8 = 8;
    /// Collection, key, part: bytes.
    pub(crate) const DOCUMENT: u8 = 9;
    /// Graph, IRI of a subject: its id. In runs.
    pub(crate) const GRAPH_IRI: u8 = 10;
    /// Predicate, class and bounded value of a literal, subject. In runs of their own.
    pub(crate) const VALUE: u8 = 11;

    /// The number of trees.
    pub(crate) const COUNT: usize = 12;

    /// Returns whether a key in the runs is looked up individually. Other keys are only listed.
    pub(crate) fn is_looked_up(key: &[u8]) -> bool {
        key.first() == Some(&NAME_ID)
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
    /// The hash, length and id of a long literal follow.
    pub(crate) const LONG: u8 = 4;
    /// In [`super::tree::POSG`], the placeholder for all literals of a predicate and subject.
    pub(crate) const ANY_LITERAL: u8 = 1;
}

/// The length of the hash of a long literal.
pub(super) const LONG_HASH_BYTES: usize = 8;

/// The id of the default graph.
pub(crate) const DEFAULT_GRAPH: u64 = 0;

/// A term as encoded in keys: the code of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Code(pub(crate) Vec<u8>);

impl Code {
    pub(crate) fn from_id(id: u64) -> Self {
        Self(varint::encode_number(id, |id| [&[object::NAMED], id].concat()))
    }

    pub(crate) fn is_named(&self) -> bool {
        self.0.first() == Some(&object::NAMED)
    }

    /// Returns the id of a named term; `None` for a literal.
    pub(crate) fn to_number(&self) -> Option<u64> {
        Input::new(self.id()).read_number()
    }

    /// Returns the id of a named term as encoded in keys; empty for a literal.
    pub(crate) fn id(&self) -> &[u8] {
        self.0.strip_prefix(&[object::NAMED]).unwrap_or_default()
    }
}

/// The longest key of a quad: the tree, three ids, and the code of an inline literal with its three lengths or ids.
const MAX_QUAD_KEY_BYTES: usize = 256;

/// A key of a tree of quads, without an allocation.
#[derive(Debug, Clone)]
pub(crate) struct KeyBuffer {
    bytes: [u8; MAX_QUAD_KEY_BYTES],
    length: usize,
}

impl KeyBuffer {
    /// Creates a key that only names its tree.
    pub(crate) fn new(tree: u8) -> Self {
        let mut key = Self { bytes: [0; MAX_QUAD_KEY_BYTES], length: 1 };
        key.bytes[0] = tree;
        key
    }

    /// Returns the key from which the literals of a subject and predicate follow, and the length of its part that they all
    /// begin with.
    pub(crate) fn first_literal(subject: &[u8], predicate: &[u8]) -> (Self, usize) {
        let mut key = Self::new(tree::SPOG);
        let _ = key.extend(subject) && key.extend(predicate);
        let prefix_bytes = key.len();
        key.extend(&[object::NAMED + 1]);
        (key, prefix_bytes)
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Appends bytes. Returns `false` if the key would become too long.
    pub(crate) fn extend(&mut self, more: &[u8]) -> bool {
        let end = self.length + more.len();
        let Some(space) = self.bytes.get_mut(self.length..end) else { return false };
        space.copy_from_slice(more);
        self.length = end;
        true
    }

    pub(crate) fn extend_number(&mut self, number: u64) -> bool {
        varint::encode_number(number, |bytes| self.extend(bytes))
    }
}

impl std::ops::Deref for KeyBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Returns the error that something in the index is missing or damaged. `bytes` are its key or code, if it has one.
pub(super) fn damaged_entry(what: &str, bytes: &[u8]) -> Error {
    Error::Index(format!("{what} {bytes:02x?} is missing or damaged"))
}

/// Builds a key of concatenated parts.
pub(crate) fn build_key(tree: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(tree);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// Builds a key of numbers.
pub(crate) fn build_numbered_key(tree: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = vec![tree];
    for number in numbers {
        varint::write_number(&mut key, *number);
    }
    key
}

/// A quad as codes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) subject: &'a [u8],
    pub(crate) predicate: &'a [u8],
    /// Includes the kind byte.
    pub(crate) object: &'a [u8],
    pub(crate) graph: &'a [u8],
}

impl Row<'_> {
    /// Returns the quad's key in the tree of all quads.
    pub(crate) fn spog_key(&self) -> Vec<u8> {
        build_key(tree::SPOG, &[self.subject, self.predicate, self.object, self.graph])
    }

    pub(crate) fn posg_key(&self) -> Vec<u8> {
        build_key(tree::POSG, &[self.predicate, self.object, self.subject, self.graph])
    }

    pub(crate) fn op_key(&self) -> Vec<u8> {
        build_key(tree::OP, &[self.object.get(1..).unwrap_or_default(), self.predicate])
    }

    pub(crate) fn literal_mark_key(&self) -> Vec<u8> {
        build_key(tree::POSG, &[self.predicate, &[object::ANY_LITERAL], self.subject])
    }

    pub(crate) fn is_named(&self) -> bool {
        self.object.first() == Some(&object::NAMED)
    }
}

/// Reads a number and returns its bytes.
pub(crate) fn read_number_bytes<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let whole = input.rest();
    input.read_number()?;
    whole.get(..whole.len() - input.len())
}

/// Reads an object's code and returns its bytes.
pub(crate) fn read_code_bytes<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let whole = input.rest();
    match input.read_byte()? {
        object::NAMED => {
            input.read_number()?;
        }
        object::STRING => {
            input.read_bytes()?;
        }
        object::LANGUAGE => {
            input.read_bytes()?;
            input.read_bytes()?;
        }
        object::TYPED => {
            input.read_number()?;
            input.read_bytes()?;
        }
        object::LONG => {
            input.take(LONG_HASH_BYTES)?;
            input.read_number()?;
            input.read_number()?;
        }
        _ => return None,
    }
    whole.get(..whole.len() - input.len())
}
