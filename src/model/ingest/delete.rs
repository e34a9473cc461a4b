//! DELETE: removes whole objects and the nested ones that nothing refers to any more.
use super::answer::Warnings;
use super::orphans::Orphans;
use crate::list::remove_quads;
use crate::mapping::Shape;
use crate::write_scope::WriteScope;
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_resources::ingestion::{IngestedObject, IngestedStatus};
use penstock_store::{Read, Transaction};

/// Deletes objects.
#[derive(Debug)]
pub(super) struct Deletion<'d, 's, 'm, 'r> {
    pub(super) transaction: &'d mut Transaction<'s>,
    pub(super) orphans: &'d mut Orphans<'m>,
    pub(super) scope: &'d WriteScope<'r>,
    pub(super) warnings: &'d mut Warnings,
}

impl<'m> Deletion<'_, '_, 'm, '_> {
    /// Removes every quad of the write scope about one object, and records its nested objects as possible orphans. The
    /// inner error is the reason why the object may not be removed.
    pub(super) fn delete(
        &mut self,
        shape: &'m Shape,
        index: usize,
        uri: NamedNode,
    ) -> Result<Result<IngestedObject, String>, GatewayError> {
        let quads = self.transaction.quads_about(&uri.clone().into())?;
        if let Some(why) = self.scope.refusal_reason(self.transaction, &uri, &quads)? {
            return Ok(Err(why));
        }
        let (removed, kept): (Vec<_>, Vec<_>) =
            quads.into_iter().partition(|quad| self.scope.contains(quad));
        self.orphans.suspect_all(&*self.transaction, shape, &removed)?;
        remove_quads(self.transaction, &removed)?;
        if !kept.is_empty() {
            let message = format!(
                "{} values of {} stay, because this API key cannot change data outside the graphs of its namespaces",
                kept.len(),
                uri.as_str()
            );
            self.warnings.push(&format!("/data/{index}"), message);
        }
        let status = match (removed.is_empty(), kept.is_empty()) {
            (false, _) => IngestedStatus::Deleted,
            (true, true) => IngestedStatus::Absent,
            (true, false) => IngestedStatus::Unchanged,
        };
        Ok(Ok(IngestedObject { index, uri: uri.into_string(), status, nested: Vec::new() }))
    }
}
