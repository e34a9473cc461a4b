//! DELETE: whole objects removed, with the nested ones that nothing refers to any more.
use super::answer::{Outcome, Status};
use super::orphans::Orphans;
use super::own::Own;
use crate::business_object::mapping::Shape;
use crate::fault::Fault;
use oxrdf::NamedNode;
use penstock_store::{Read, Transaction};

/// Removes every quad about one object; its nested objects are suspected of being orphans. The error is why
/// it may not be removed.
pub(super) fn delete<'m>(
    transaction: &mut Transaction<'_>,
    orphans: &mut Orphans<'m>,
    own: Own<'_>,
    shape: &'m Shape,
    index: usize,
    uri: NamedNode,
) -> Result<Result<Outcome, String>, Fault> {
    let quads = transaction.quads_about(&uri.clone().into())?;
    if let Some(why) = own.forbids(transaction, &uri, &quads)? {
        return Ok(Err(why));
    }
    for quad in &quads {
        transaction.remove(quad.as_ref())?;
    }
    let status = if quads.is_empty() { Status::Absent } else { Status::Deleted };
    orphans.suspect_all(shape, &quads);
    Ok(Ok(Outcome { index, uri: uri.into_string(), status, nested: Vec::new() }))
}
