//! The size limit of one rendered object, including all objects nested in it.
//!
//! An object that many others hold would be written once for each path to it. Three levels of 270 objects, each holding
//! all of the next level, are 20 million objects. So once the rendered object is large, each further nested object is
//! written whole only once, and after that only as its URI. No value is lost, an import gives the same graph, and the
//! size depends on what is stored and not on the number of paths. An object that is still too large is an error,
//! because an incomplete export would be mistaken for a complete one.
use crate::mapping::Shape;
use oxrdf::NamedNode;
use std::collections::HashSet;

/// The size from which each nested object is written whole only once.
const WHOLE_ONCE_THRESHOLD: ObjectSize = ObjectSize { bytes: 4 << 20, nested: 25_000 };

/// The maximum size; a larger object is not written.
pub(super) const MAX_OBJECT_SIZE: ObjectSize = ObjectSize { bytes: 32 << 20, nested: 200_000 };

/// The size of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectSize {
    pub(super) bytes: usize,
    /// The number of nested objects that were written whole, counting repetitions.
    pub(super) nested: usize,
}

/// How a nested object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NestedForm {
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
pub(super) struct ViewBudget {
    /// The length of the buffer in bytes before the object.
    start: usize,
    nested: usize,
    /// The nested objects written whole since the object became large, by URI and place in the mapping.
    written: HashSet<(NamedNode, usize)>,
    is_repeating: bool,
}

impl ViewBudget {
    pub(super) fn new(start: usize) -> Self {
        Self { start, nested: 0, written: HashSet::new(), is_repeating: false }
    }

    /// Decides how to write the nested object `uri` of this shape, when the buffer holds `length` bytes.
    pub(super) fn choose_form(
        &mut self,
        shape: &Shape,
        uri: &NamedNode,
        length: usize,
    ) -> NestedForm {
        let bytes = length - self.start;
        if bytes > MAX_OBJECT_SIZE.bytes || self.nested >= MAX_OBJECT_SIZE.nested {
            return NestedForm::None;
        }
        if bytes > WHOLE_ONCE_THRESHOLD.bytes || self.nested >= WHOLE_ONCE_THRESHOLD.nested {
            let place = std::ptr::from_ref(shape).addr();
            if !self.written.insert((uri.clone(), place)) {
                let first = !std::mem::replace(&mut self.is_repeating, true);
                return NestedForm::Uri { first };
            }
        }
        self.nested += 1;
        NestedForm::Whole
    }
}
