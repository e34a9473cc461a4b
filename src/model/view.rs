//! The view: stored objects rendered in the configured structure.
//!
//! Values of an array, and the one shown of several under a field that is no array, are ordered: numbers
//! by number, IRIs and all else by code point (so times by their text, not across time zones). What the
//! field cannot show is left out or shown as a string, never without a warning.

mod belonging;
mod budget;
mod number;
mod object;
mod shown;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use belonging::owner;
pub(crate) use number::Key as Number;
pub use object::Path;
pub use values::{Owned, Values};

pub use super::mapping::Shape;
use oxrdf::NamedNode;
use penstock_base::fault::{Fault, Finding};
use penstock_store::{About, Read};

/// Warnings of one list at most; one more says that there were more.
const WARNINGS: usize = 1000;

/// Appends one object as JSON (no white space), `uri` first unless the mapping places it, fields in
/// the mapping's order. Findings (several values under a field that is no array, a value that the field
/// cannot show) go to `warnings`, at most a bounded number; their place is a JSON Pointer into the object.
///
/// # Errors
/// `Kind::TooLarge` for an object that takes too much with what is nested in it; as the store's.
pub fn render(
    read: &impl Read,
    shape: &Shape,
    uri: &NamedNode,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Finding>,
) -> Result<(), Fault> {
    let mut about = About::default();
    read.about(uri.as_ref().into(), &mut about)?;
    render_about(read, shape, uri, &about, out, warnings)
}

/// As [`render`], of an object about which this is stored.
///
/// # Errors
/// The same.
pub fn render_about(
    read: &impl Read,
    shape: &Shape,
    uri: &NamedNode,
    about: &About,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Finding>,
) -> Result<(), Fault> {
    let budget = budget::Budget::new(out.len());
    object::Writer { read, out, warnings, pointer: Vec::new(), budget }.write(
        shape,
        &Path { uri, above: None },
        about,
    )
}
