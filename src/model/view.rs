//! The view: stored objects rendered in the configured structure.
//!
//! Values of a field are ordered: numbers by number, IRIs and everything else by code point. So times are
//! ordered by their text, not across time zones. A field that is not an array shows the first value.
//! A value that the field cannot show is left out or shown as a string, always with a warning.

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

/// The maximum number of warnings in one list. One more then says that there were more.
const WARNINGS: usize = 1000;

/// Appends one object to `out` as JSON without white space. `uri` comes first unless the mapping places it;
/// fields are in the mapping's order.
///
/// A limited number of findings goes to `warnings`, such as several values in a field that is not an array, or a
/// value that the field cannot show. Their place is a JSON Pointer into the object.
///
/// # Errors
/// `Kind::TooLarge` if the object and the objects nested in it exceed the limit; the store's errors.
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

/// As [`render`], for an object whose stored quads are already in `about`.
///
/// # Errors
/// As [`render`].
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
