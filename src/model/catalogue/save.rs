//! Saves a definition: what comes before its commit, what is in it, and what memory shows after it.
use super::entry::{BUSINESS_OBJECTS, Entry, store_definition};
use super::namespaces::list_created;
use super::protections::check_omitted_protections;
use super::{Action, Catalogue, Change, Requester};
use crate::change_feed;
use crate::members::Loss;
use crate::natural_key::{self, KeyBuilds};
use crate::resource::{BusinessObject, Compiled, CompiledDefinition};
use crate::shapes_graphs::check_exist;
use parking_lot::MutexGuard;
use penstock_base::commit::commit;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::managed::check_editable;
use penstock_base::next_version_named;
use penstock_config::{BACKUP_FOLDER, HEARTBEAT_FOLDER};
use penstock_resources::business_object::Review;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::DefinedNamespace;
use penstock_store::Transaction;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A definition whose guards have passed.
#[derive(Debug)]
pub struct PreparedDefinition {
    pub(super) before: Option<Entry>,
    pub(super) new: CompiledDefinition,
    loss: Option<Loss>,
}

/// The folders beside the exports of Business Objects, and what targets have in them.
const RESERVED_NAMES: [(&str, &str); 2] =
    [(HEARTBEAT_FOLDER, "heartbeats"), (BACKUP_FOLDER, "backups")];

/// Checks that a definition does not begin to use the name of such a folder. One that has it from an earlier version
/// keeps it.
fn check_not_reserved(before: Option<&Entry>, name: &str) -> Result<(), GatewayError> {
    let Some((_, content)) = RESERVED_NAMES.iter().find(|(reserved, _)| *reserved == name) else {
        return Ok(());
    };
    if before.is_some_and(|before| before.name == name) {
        return Ok(());
    }
    let message = format!("targets have {content} under this name; choose another one");
    Err(GatewayError::with_findings(
        ErrorClass::Invalid,
        format!("{name:?} cannot be the name of a Business Object"),
        vec![Finding::at_pointer("/name", message)],
    ))
}

impl Catalogue {
    /// Stores a definition, replacing `before`. The guard proves that no other change of the catalogue runs.
    pub(super) fn save_definition(
        &self,
        _writer: &MutexGuard<'_, ()>,
        by: Requester<'_>,
        before: Option<Entry>,
        mut new: CompiledDefinition,
    ) -> Result<Arc<Compiled>, GatewayError> {
        self.check_guards(by, before.as_ref(), &mut new)?;
        if let Some(there) = before.as_ref().and_then(|before| before.compiled.as_ref())
            && self.is_unchanged(there, &new)?
        {
            return Ok(there.clone());
        }
        let prepared = self.prepare_definition(by, before, new, &[])?;
        // Until the commit is done, each commit keeps the index of the new keys up to date.
        let key_builds = self.build_key_index(by, &prepared)?;
        let (compiled, _) = commit::<_, GatewayError>(&self.store, by.check, |transaction| {
            if let Some(before) = &prepared.before {
                check_editable(transaction, DefinitionKind::BusinessObject, &before.name)?;
            }
            self.write_definition(transaction, by, &prepared, Some(&key_builds))
        })?;
        let published = self.publish_definition(by, compiled);
        drop(key_builds);
        Ok(published)
    }

    /// Checks that the definition may replace this one, and brings it into its stored form.
    pub(super) fn check_guards(
        &self,
        by: Requester<'_>,
        before: Option<&Entry>,
        new: &mut CompiledDefinition,
    ) -> Result<(), GatewayError> {
        if let Some(compiled) = before.and_then(|before| before.compiled.as_ref()) {
            compiled.object.check_not_deleting()?;
        }
        if !by.force {
            self.check_protections(before, new)?;
        }
        check_not_reserved(before, &new.definition.name)?;
        self.check_no_source(before, new)?;
        new.definition.remove_empty_validation();
        new.definition.remove_empty_review();
        Ok(())
    }

    /// Returns whether a definition equals the stored one, and so do its namespaces.
    pub(super) fn is_unchanged(
        &self,
        there: &Compiled,
        new: &CompiledDefinition,
    ) -> Result<bool, GatewayError> {
        Ok(there.object.definition == new.definition
            && there.conditions == new.conditions
            && self.has_namespaces(&new.definition.namespaces)?)
    }

    /// Counts what a definition would remove. Ingestion continues meanwhile. The commit defines `namespaces` before.
    pub(super) fn prepare_definition(
        &self,
        by: Requester<'_>,
        before: Option<Entry>,
        new: CompiledDefinition,
        namespaces: &[DefinedNamespace],
    ) -> Result<PreparedDefinition, GatewayError> {
        let loss = match before.as_ref().and_then(|before| before.compiled.as_ref()) {
            Some(there) => self.check_loss(there, &new, namespaces, by.force)?,
            None => None,
        };
        Ok(PreparedDefinition { before, new, loss })
    }

    /// Creates the index of the new keys of a definition. Ingestion continues meanwhile.
    fn build_key_index(
        &self,
        by: Requester<'_>,
        prepared: &PreparedDefinition,
    ) -> Result<KeyBuilds<'_>, GatewayError> {
        let keys = self.collect_new_keys(&[prepared], &[])?.concat();
        let builds = natural_key::build_index(&self.store, by.check, &self.watch, keys.clone())?;
        builds.verify_keys(&self.store.read(), &keys, &mut BTreeSet::new())?;
        Ok(builds)
    }

    /// Writes a prepared definition in its commit. Without `key_builds`, the caller checks the keys.
    pub(super) fn write_definition(
        &self,
        transaction: &mut Transaction<'_>,
        by: Requester<'_>,
        prepared: &PreparedDefinition,
        key_builds: Option<&KeyBuilds<'_>>,
    ) -> Result<Compiled, GatewayError> {
        let PreparedDefinition { before, new, loss } = prepared;
        let CompiledDefinition { definition, mut mapping, conditions } = new.clone();
        let id = before.as_ref().map(|before| before.id.as_str());
        let there = before.as_ref().and_then(|before| before.compiled.as_ref());
        let named = before.as_ref().map(|before| (before.name.as_str(), before.version));
        // A stamp, so that it is not before an export of the definition that it replaces.
        let now = self.watch.stamp().to_rfc3339();
        let changed = self.define_namespaces(transaction, id, &definition.namespaces, &mapping)?;
        mapping.resolve_namespaces(transaction)?;
        check_exist(transaction, definition.validation.as_ref())?;
        if let Some(key_builds) = key_builds {
            natural_key::check_keys(transaction, id, &mapping)?;
            key_builds.verify(transaction, &mapping)?;
        }
        let version = next_version_named(transaction, named, &definition.name)?;
        let object = BusinessObject {
            id: id.map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned),
            definition,
            version,
            created_at: before
                .as_ref()
                .map_or_else(|| now.clone(), |before| before.created_at.clone()),
            updated_at: now,
            updated_by: Some(by.id.to_owned()),
            created_namespaces: list_created(&changed),
            changed_types: there
                .is_some_and(|there| there.mapping.root.has_other_types(&mapping.root)),
            deleting: None,
        };
        let there = there.map(|there| &there.object);
        change_feed::update_watching(transaction, there, &object, self.watch.elapsed())?;
        let compiled = Compiled { object, mapping, conditions };
        transaction.require_format(compiled.required_format());
        store_definition(transaction, &compiled)?;
        by.add_to_commit(
            transaction,
            &Change {
                action: if before.is_some() { Action::Replaced } else { Action::Created },
                id: &compiled.object.id,
                name: &compiled.object.definition.name,
                version: compiled.object.version,
                namespaces: &changed,
                forced: by.force.then_some(loss.unwrap_or_default()),
                bypassed: false,
            },
        )?;
        Ok(compiled)
    }

    /// Shows a definition that is committed.
    pub(super) fn publish_definition(
        &self,
        by: Requester<'_>,
        compiled: Compiled,
    ) -> Arc<Compiled> {
        if self.settings.base_url.is_none() {
            for name in &compiled.object.created_namespaces {
                let base = self.default_base(name);
                if !compiled.object.definition.has_base_for(name) {
                    tracing::warn!(
                        namespace = %name, %base,
                        "A namespace got a base that clients cannot resolve, because service.base-url is not set."
                    );
                }
            }
        }
        let compiled = Arc::new(compiled);
        self.write_entries().insert(Entry::from_compiled(compiled.clone()));
        let BusinessObject { id, version, definition, .. } = &compiled.object;
        tracing::info!(
            business_object = definition.name,
            id,
            version,
            by = by.id,
            "A Business Object was defined."
        );
        self.watch.wake();
        compiled
    }

    /// Checks that a definition does not begin to require a review while a source ingests into the Business Object. If it
    /// requires one already, the source does not connect.
    fn check_no_source(
        &self,
        before: Option<&Entry>,
        new: &CompiledDefinition,
    ) -> Result<(), GatewayError> {
        let (id, new) = (before.map_or("", |before| before.id.as_str()), &new.definition);
        if new.review() != Review::Required {
            return Ok(());
        }
        let is_same = |there: &Arc<Compiled>| {
            let there = &there.object.definition;
            there.review() == Review::Required && there.name == new.name
        };
        if before.and_then(|before| before.compiled.as_ref()).is_some_and(is_same) {
            return Ok(());
        }
        match self.settings.find_source(id, &new.name) {
            None => Ok(()),
            Some(source) => Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the source {source:?} ingests into {:?}, and no source writes to a Business Object that requires a \
                     review; set review to \"optional\", or remove the subscription from service.sources.{source} first",
                    new.name
                ),
            )),
        }
    }

    /// Checks that a new definition leaves out no protection of the one that it replaces, which need not compile.
    fn check_protections(
        &self,
        before: Option<&Entry>,
        new: &CompiledDefinition,
    ) -> Result<(), GatewayError> {
        let Some(before) = before else { return Ok(()) };
        if let Some(there) = &before.compiled {
            return check_omitted_protections(&there.object.definition, Some(&there.mapping), new);
        }
        match BUSINESS_OBJECTS.get_readable(&self.store.read(), &before.id)? {
            Some(stored) => check_omitted_protections(&stored.object.definition, None, new),
            None => Ok(()),
        }
    }
}
