//! The size limit of one rendered object, including all objects nested in it.
//!
//! An object that many others hold would be written once for each path to it. Three levels of 270 objects, each
//! holding all of the next level, are 20 million objects. So once an object is large, each further nested object is
//! written whole only once, and then only as its URI. No value is lost, and the size depends on what is stored
//! and not on the number of paths.
use crate::mapping::Shape;
use oxrdf::NamedNode;
use std::collections::HashSet;

/// The size from which each nested object is written whole only once.
const WHOLE: Size = Size { bytes: 4 << 20, nested: 25_000 };

/// The maximum size; a larger object is not written.
pub(super) const MOST: Size = Size { bytes: 32 << 20, nested: 200_000 };

/// The size of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: usize,
    /// The number of nested objects that were written whole, counting repetitions.
    pub(super) nested: usize,
}

/// How a nested object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Uri {
        /// Whether it is the first object that is not repeated whole.
        first: bool,
    },
    /// Not at all: the maximum size is reached.
    None,
}

/// The size written so far.
#[derive(Debug)]
pub(super) struct Budget {
    /// The length of the buffer in bytes before the object.
    start: usize,
    nested: usize,
    /// The nested objects written whole since the object became large, by URI and place in the mapping.
    written: HashSet<(NamedNode, usize)>,
    is_repeating: bool,
}

impl Budget {
    pub(super) fn new(start: usize) -> Self {
        Self { start, nested: 0, written: HashSet::new(), is_repeating: false }
    }

    /// Decides how to write the nested object `uri` of this shape, when the buffer holds `length` bytes.
    pub(super) fn form(&mut self, shape: &Shape, uri: &NamedNode, length: usize) -> Form {
        let bytes = length - self.start;
        if bytes > MOST.bytes || self.nested >= MOST.nested {
            return Form::None;
        }
        if bytes > WHOLE.bytes || self.nested >= WHOLE.nested {
            let place = std::ptr::from_ref(shape).addr();
            if !self.written.insert((uri.clone(), place)) {
                let first = !std::mem::replace(&mut self.is_repeating, true);
                return Form::Uri { first };
            }
        }
        self.nested += 1;
        Form::Whole
    }
}
