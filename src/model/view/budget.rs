//! What one object may take with all that is nested in it.
//!
//! Objects that many others hold would be written once for each way that leads to them: three levels of 270
//! objects, each holding all of the next, are 20 million. So an object that has become large has each
//! further one nested in it whole once, and then by its URI alone: nothing that it shows is lost, and
//! what it takes follows what is stored.
use crate::mapping::Shape;
use oxrdf::NamedNode;
use std::collections::HashSet;

/// From so many bytes or nested objects on, what is nested is written whole once.
const WHOLE: Size = Size { bytes: 4 << 20, nested: 25_000 };

/// Past so many bytes or nested objects it is not written.
pub(super) const MOST: Size = Size { bytes: 32 << 20, nested: 200_000 };

/// How large an object is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) bytes: usize,
    /// Objects nested in it that were written whole, each as often as it was.
    pub(super) nested: usize,
}

/// How one nested object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Uri {
        /// It is the first that could have been written whole again.
        first: bool,
    },
    /// Not at all: there is no room for it.
    None,
}

/// What was taken so far.
#[derive(Debug)]
pub(super) struct Budget {
    /// Bytes that stood in the buffer before the object.
    start: usize,
    nested: usize,
    /// What was written since the object is large, by URI and place in the mapping.
    written: HashSet<(NamedNode, usize)>,
    is_repeating: bool,
}

impl Budget {
    pub(super) fn new(start: usize) -> Self {
        Self { start, nested: 0, written: HashSet::new(), is_repeating: false }
    }

    /// How an object is to be written that is nested under this shape, when the buffer holds so many bytes.
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
