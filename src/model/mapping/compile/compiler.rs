//! What is known while a mapping is compiled, and the limits of mappings and of what is reported about them.
use super::position::Position;
use crate::mapping::yaml::Location;
use crate::mapping::{Outer, Prefixes, Reading, Step};
use penstock_base::error::Finding;
use penstock_store::Format;

/// The maximum number of listed findings.
pub(super) const MAX_FINDINGS: usize = 1000;

/// The maximum number of levels of nested objects, including the root. The stack of a thread limits it.
pub(super) const MAX_LEVELS: usize = 256;

/// The maximum length of a field's name, in characters.
pub(super) const MAX_NAME_CHARS: usize = 256;

/// The maximum number of warnings about one mapping.
pub(super) const MAX_WARNINGS: usize = 20;

/// Marks a value whose error has been reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct ErrorReported;

pub(super) type Checked<T> = Result<T, ErrorReported>;

/// What is known while a mapping is compiled.
pub(super) struct Compiler {
    pub(super) prefixes: Prefixes,
    pub(super) findings: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
    /// The field that the root's `label` names.
    pub(super) label: Option<String>,
    /// The namespace of the root, after its path has been read.
    pub(super) root_namespace: Option<String>,
    /// The root's `timeZone` and `absent`, which all fields inherit.
    pub(super) inherited: Reading,
    /// The format that a store needs for the keys and types of the mapping.
    pub(super) store_format: Format,
    /// Where the objects are in documents.
    pub(super) document: DocumentKeys,
    /// The number of nested objects and groups that are being read.
    pub(super) level: usize,
    /// The number of these that are objects.
    pub(super) object_levels: usize,
}

/// What `items` and `outer` say.
pub(super) struct DocumentKeys {
    /// `items`, if the root has it without an error.
    pub(super) items: Checked<Option<Vec<Step>>>,
    /// The names of the fields with `outer`, and what they take.
    pub(super) outer: Vec<(String, Outer)>,
}

impl Default for DocumentKeys {
    fn default() -> Self {
        Self { items: Ok(None), outer: Vec::new() }
    }
}

impl Compiler {
    pub(super) fn report_error(
        &mut self,
        at: Location,
        place: &Position<'_>,
        message: impl std::fmt::Display,
    ) -> ErrorReported {
        // One more than the limit is kept, so that `compile` knows that there are more.
        if self.findings.len() <= MAX_FINDINGS {
            self.findings.push(at.to_finding(format!("{place}: {message}")));
        }
        ErrorReported
    }
}
