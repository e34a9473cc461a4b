//! What becomes of definitions that no file has any more.
use super::super::content::Content;
use super::super::resources::Resource;
use super::Run;
use crate::definitions::kind::{Result, StoredKind as _};
use penstock_base::error::ErrorClass;
use penstock_base::managed::{ManagedDefinition, forget_managed, list_managed};
use penstock_model::namespace::{self, Namespace};
use penstock_resources::definitions::{
    AppliedDefinition, ApplyAction, DefinitionId, DefinitionKind,
};
use penstock_resources::namespace::{DefinedNamespace, Generator};
use penstock_store::{Read, Transaction};
use std::collections::BTreeSet;

impl Run<'_> {
    /// Returns whether a record is one of this folder whose definition is in no file.
    pub(super) fn is_abandoned(
        &self,
        record: &ManagedDefinition,
        named: &BTreeSet<&DefinitionId>,
    ) -> bool {
        let is_own = if self.options.is_service_folder {
            record.is_read_only
        } else {
            record.folder == self.options.folder && self.may_change(record)
        };
        is_own && !named.contains(&id_of(record))
    }

    /// Returns whether a run may delete the definition of an abandoned record. A new definition of another kind with this
    /// name may be the same one, with a wrong kind.
    fn is_prunable(&self, record: &ManagedDefinition) -> bool {
        record.is_created && !record.is_read_only && !self.new_names.contains(&record.name)
    }

    fn is_pruned(&self, record: &ManagedDefinition) -> bool {
        let is_asked = self.options.prunes_all || self.options.prune.contains(&id_of(record));
        is_asked && self.is_prunable(record)
    }

    /// Returns whether the definition of a record is stored. One that was deleted and created again is not from a file.
    fn is_stored(&self, read: &dyn Read, record: &ManagedDefinition) -> Result<bool> {
        let gateway = self.batch.gateway;
        let found = of_kind!(record.kind, K => K::find_fingerprint(gateway, read, &record.name))?;
        Ok(found.is_some_and(|found| record.is_record_of(&found)))
    }

    /// Deletes, before anything is written, what could be in the way of it: Business Objects, on which no other definition
    /// depends, and namespaces whose base now belongs to another one. Returns what was deleted.
    pub(super) fn prune_obstacles(
        &mut self,
        transaction: &mut Transaction<'_>,
        resources: &[Resource<'_>],
        named: &BTreeSet<&DefinitionId>,
    ) -> Result<Vec<AppliedDefinition>> {
        let mut records = list_managed(transaction)?;
        records.retain(|record| self.is_abandoned(record, named) && self.is_pruned(record));
        let mut deleted = Vec::new();
        // What depends on others first.
        for record in records.into_iter().rev() {
            let is_obstacle = match record.kind {
                DefinitionKind::BusinessObject => true,
                DefinitionKind::Namespace => self.has_lost_base(transaction, &record, resources)?,
                DefinitionKind::Shapes | DefinitionKind::Group => false,
            };
            if !is_obstacle || !self.is_stored(transaction, &record)? {
                continue;
            }
            match self.prune(transaction, &record) {
                Ok(change) => deleted.push(change),
                // The end of the run tries it again, and reports why it stays.
                Err(error) if error.class == ErrorClass::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    /// Returns whether the files give the base of a namespace to another one, and no mapping in them names it.
    fn has_lost_base(
        &self,
        read: &dyn Read,
        record: &ManagedDefinition,
        resources: &[Resource<'_>],
    ) -> Result<bool> {
        let Some(there) = namespace::get(read, &record.name)? else { return Ok(false) };
        let prefix = there.identifier_prefix();
        let takes_base = |new: &DefinedNamespace| {
            let base = self.batch.gateway.catalogue.default_base(&new.name);
            let new = Namespace::from_definition(new.clone(), base, Generator::default());
            new.name != there.name && new.identifier_prefix() == prefix
        };
        let mut is_taken = false;
        for resource in resources {
            match &resource.content {
                Content::Namespace(new) => is_taken |= takes_base(new),
                Content::BusinessObject(new) => {
                    if new.mapping.namespaces().contains(&there.name.as_str()) {
                        return Ok(false);
                    }
                    is_taken |= new.definition.namespaces.iter().any(&takes_base);
                }
                Content::Shapes(_) | Content::Group(_) => {}
            }
        }
        Ok(is_taken)
    }

    /// Deletes the definition of a record, and the record.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` if the definition is used.
    fn prune(
        &mut self,
        transaction: &mut Transaction<'_>,
        record: &ManagedDefinition,
    ) -> Result<AppliedDefinition> {
        of_kind!(record.kind, K => K::erase(&mut self.batch, transaction, &record.name))?;
        forget_managed(transaction, record.kind, &record.name)?;
        self.has_changes = true;
        if self.options.prunes_all {
            self.report.prunable.push(id_of(record));
        }
        Ok(AppliedDefinition { action: ApplyAction::Deleted, ..unmanaged_change(record) })
    }

    /// Deletes a definition that no file has any more, or records that.
    pub(super) fn handle_abandoned(
        &mut self,
        transaction: &mut Transaction<'_>,
        mut record: ManagedDefinition,
    ) -> Result<()> {
        if !self.is_stored(transaction, &record)? {
            self.has_changes = true;
            return Ok(forget_managed(transaction, record.kind, &record.name)?);
        }
        let mut change = unmanaged_change(&record);
        if self.is_pruned(&record) {
            match self.prune(transaction, &record) {
                Ok(deleted) => {
                    self.report.changes.push(deleted);
                    return Ok(());
                }
                Err(error) if error.class == ErrorClass::Conflict => {
                    change.action = ApplyAction::Kept;
                    change.reason = Some(error.detail);
                }
                Err(error) => return Err(error),
            }
        }
        if self.is_prunable(&record) {
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
            if self.new_names.contains(&record.name) {
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

fn id_of(record: &ManagedDefinition) -> DefinitionId {
    DefinitionId { kind: record.kind, name: record.name.clone() }
}

fn unmanaged_change(record: &ManagedDefinition) -> AppliedDefinition {
    AppliedDefinition {
        action: ApplyAction::Unmanaged,
        id: id_of(record),
        file: record.file.clone(),
        difference: Vec::new(),
        reason: None,
    }
}
