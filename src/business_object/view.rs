//! The view: stored objects rendered in the configured structure.
use super::mapping::Shape;
use crate::fault::{Fault, Finding};
use oxrdf::NamedNode;
use penstock_store::Read;

/// Appends one object as JSON (no white space), `uri` first unless the mapping places it, fields in
/// the mapping's order. Findings (several values under a field that is no array, a value that the field
/// cannot show) go to `warnings`, at most a bounded number.
pub fn render(
    read: &impl Read,
    shape: &Shape,
    uri: &NamedNode,
    out: &mut Vec<u8>,
    warnings: &mut Vec<Finding>,
) -> Result<(), Fault> {
    let _ = (read, shape, uri, out, warnings);
    todo!()
}
