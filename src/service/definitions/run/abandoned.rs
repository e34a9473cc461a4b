//! What becomes of definitions that no file has any more.
use super::{Result, Run};
use crate::definitions::StoredKind as _;
use penstock_base::error::ErrorClass;
use penstock_base::managed::{ManagedDefinition, forget_managed};
use penstock_resources::definitions::{AppliedDefinition, ApplyAction, DefinitionId};
use penstock_store::Transaction;
use std::collections::BTreeSet;

impl Run<'_> {
    /// Returns whether a record is one of this folder whose definition is in no file.
    pub(super) fn is_abandoned(
        &self,
        record: &ManagedDefinition,
        named: &BTreeSet<&DefinitionId>,
    ) -> bool {
        let id = DefinitionId { kind: record.kind, name: record.name.clone() };
        let is_own = if self.options.is_service_folder {
            record.is_read_only
        } else {
            record.folder == self.options.folder && self.may_change(record)
        };
        is_own && !named.contains(&id)
    }

    /// Deletes a definition that no file has any more, or records that.
    pub(super) fn handle_abandoned(
        &mut self,
        transaction: &mut Transaction<'_>,
        mut record: ManagedDefinition,
    ) -> Result<()> {
        let id = DefinitionId { kind: record.kind, name: record.name.clone() };
        let found =
            of_kind!(id.kind, K => K::find_fingerprint(self.gateway, transaction, &id.name))?;
        // One that was deleted and created again is not from a file.
        if found.is_none_or(|found| !record.is_record_of(&found)) {
            self.has_changes = true;
            return Ok(forget_managed(transaction, id.kind, &id.name)?);
        }
        let mut change = AppliedDefinition {
            action: ApplyAction::Unmanaged,
            id,
            file: record.file.clone(),
            difference: Vec::new(),
            reason: None,
        };
        // A new definition of another kind with this name may be this one with a wrong kind.
        let is_redefined = self.new_names.contains(&record.name);
        let is_prunable = record.is_created && !record.is_read_only && !is_redefined;
        if is_prunable && self.options.prune.contains(&change.id) {
            match of_kind!(record.kind, K => K::erase(self, transaction, &record.name)) {
                Ok(()) => {
                    change.action = ApplyAction::Deleted;
                    self.report.changes.push(change);
                    self.has_changes = true;
                    return Ok(forget_managed(transaction, record.kind, &record.name)?);
                }
                Err(error) if error.class == ErrorClass::Conflict => {
                    change.action = ApplyAction::Kept;
                    change.reason = Some(error.detail);
                }
                Err(error) => return Err(error),
            }
        }
        if is_prunable {
            self.report.prunable.push(change.id.clone());
        }
        let is_new = !record.is_unmanaged;
        if is_new {
            record.is_unmanaged = true;
            record.is_read_only = false;
            self.has_changes |= record.store(transaction)?;
            let mut warning = format!(
                "{}: no file defines it any more; it stays, and can be changed and deleted as any other",
                change.id
            );
            if is_redefined {
                warning.push_str(
                    ". The files define something new with this name, so that only a later run prunes it",
                );
            }
            self.report.warnings.push(warning);
        }
        if is_new || change.action == ApplyAction::Kept {
            self.report.changes.push(change);
        }
        Ok(())
    }
}
