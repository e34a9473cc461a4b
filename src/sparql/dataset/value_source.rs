//! What the index of values reads of a property, and in which order it has it.
use penstock_store::{ValueClass, ValueRange};

/// What is read of a property, one segment after the other. Each class of literals has at most one segment.
pub(crate) struct ValueSource {
    pub(super) segments: Vec<Segment>,
    /// The number of entries after which the rest is read without the index of values.
    pub(super) max_entries: usize,
}

/// A part of the objects of a property.
pub(super) enum Segment {
    /// IRIs and blank nodes.
    Names,
    /// Literals.
    Values(ValueRange),
}

impl Segment {
    pub(super) fn has(&self, class: Option<ValueClass>) -> bool {
        match self {
            Self::Names => class.is_none(),
            Self::Values(range) => class == Some(range.class()),
        }
    }
}

/// Returns whether the index has the values of a class in the order of SPARQL. There, texts are in the order of their
/// languages first, and other literals in that of their datatypes.
pub(super) fn is_in_order(class: ValueClass) -> bool {
    !matches!(class, ValueClass::LanguageText | ValueClass::Other)
}
