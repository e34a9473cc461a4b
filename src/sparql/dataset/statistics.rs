//! What is known of the quads of patterns before they are read.
use crate::internal_term::InternalTerm;
use penstock_store::TermCode;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What a lookup takes that reads another block of the index, in rows.
pub(crate) const FAR_LOOKUP: f64 = 4.0;

/// What is known of the quads that match a pattern of constants.
pub(crate) struct Statistics {
    pub(crate) rows: f64,
    /// The mean number of rows of one subject.
    pub(crate) rows_per_subject: f64,
    /// The mean number of rows of one object.
    pub(crate) rows_per_object: f64,
    /// Whether one row after the other has the next subject or one near it, so that looking up all subjects reads each
    /// block of the index once.
    pub(crate) is_by_subject: bool,
}

/// What was estimated for a request. Each estimate reads many blocks, and several patterns, and the reading of a pattern after
/// its planning, need the same one.
#[derive(Default)]
pub(super) struct Estimates {
    /// By subject, predicate and object.
    pub(super) patterns: RefCell<HashMap<[Option<InternalTerm>; 3], Rc<Statistics>>>,
    /// The number of quads of a property, in one graph or in all.
    pub(super) properties: RefCell<HashMap<(TermCode, Option<TermCode>), f64>>,
}

/// Converts a count.
pub(crate) fn to_float(count: impl TryInto<u32>) -> f64 {
    f64::from(count.try_into().unwrap_or(u32::MAX))
}
