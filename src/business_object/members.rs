//! Which stored objects belong to a Business Object.
use super::resource::Compiled;
use crate::fault::Fault;
use oxrdf::NamedNode;
use penstock_store::Read;

/// The URIs of the objects that belong, in code point order, those after `after`, at most `limit`.
pub fn page(
    read: &impl Read,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<NamedNode>, Fault> {
    let _ = (read, business_object, after, limit);
    todo!()
}

/// Whether this object belongs.
pub fn contains(
    read: &impl Read,
    business_object: &Compiled,
    uri: &NamedNode,
) -> Result<bool, Fault> {
    let _ = (read, business_object, uri);
    todo!()
}
