//! The view: stored objects rendered in the configured structure.
//!
//! Values of a field are ordered: numbers by number, IRIs and everything else by code point. So times are ordered
//! by their text, even if their time zones differ. A field that is not an array shows the first value.
//! A value that the field cannot show is left out or shown as a string, always with a warning.

mod belonging;
mod budget;
mod codes;
mod label;
mod lists;
mod map;
mod object;
mod shown;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use belonging::find_owning_field;
pub use codes::ShownCode;
pub use label::{find_label, find_nested_label};
pub use map::{NamedMember, find_member_name, order_members, read_members, shows_member};
pub(crate) use map::{shows_last_member, shows_value};
pub use object::{NestingPath, ReportShown, ShownFact};
pub(crate) use shown::ShownLiteral;
pub(crate) use values::is_stored_absent;
pub use values::{FieldValues, ShownValues};

pub use super::mapping::Shape;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oxrdf::NamedNode;
use penstock_base::error::{Finding, GatewayError};
use penstock_store::{Read, SubjectQuads};
use sha2::{Digest, Sha256};

/// Appends one object to `out` as JSON without white space. `uri` comes first unless the mapping places it;
/// fields are in the mapping's order.
///
/// A limited number of findings goes to `warnings`, such as several values in a field that is not an array, or a
/// value that the field cannot show. Their place is a JSON Pointer into the object.
///
/// # Errors
/// `ErrorClass::TooLarge` if the object and the objects nested in it exceed the limit; the store's errors.
pub fn render_object(
    read: &dyn Read,
    shape: &Shape,
    uri: &NamedNode,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Finding>,
) -> Result<(), GatewayError> {
    let mut about = SubjectQuads::default();
    read.read_subject(uri.as_ref().into(), &mut about)?;
    render_subject(read, shape, uri, &about, ViewOutput::new(out, warnings))
}

/// Returns the entity tag of an object's view (RFC 9110, 8.8.3), with its quotes. It is a digest of the JSON.
pub fn compute_etag(json: &[u8]) -> String {
    let digest = Sha256::digest(json);
    let digest = digest.first_chunk::<16>().copied().unwrap_or_default();
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest))
}

/// Where an object is rendered to.
pub struct ViewOutput<'w> {
    /// Receives the JSON.
    pub json: &'w mut Vec<u8>,
    /// Receives the warnings.
    pub warnings: &'w mut Vec<Finding>,
    /// Receives what the JSON shows as RDF. An object that the JSON shows several times at the same place in the mapping is
    /// reported once.
    pub report: Option<ReportShown<'w>>,
}

impl<'w> ViewOutput<'w> {
    /// Creates an output that reports no RDF.
    pub fn new(json: &'w mut Vec<u8>, warnings: &'w mut Vec<Finding>) -> Self {
        Self { json, warnings, report: None }
    }
}

/// As [`render_object`], for an object whose stored quads are already in `about`.
///
/// # Errors
/// As [`render_object`], and the errors of [`ViewOutput::report`].
pub fn render_subject<'w>(
    read: &'w dyn Read,
    shape: &'w Shape,
    uri: &NamedNode,
    about: &SubjectQuads,
    ViewOutput { json, warnings, report }: ViewOutput<'w>,
) -> Result<(), GatewayError> {
    let budget = budget::ViewBudget::new(json.len());
    let shown = report.map(object::ShownReporter::new);
    object::ObjectWriter { read, out: json, warnings, pointer: Vec::new(), budget, shown }
        .write_object(shape, &NestingPath { uri, above: None }, about)
}
