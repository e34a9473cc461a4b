//! The catalogue: every Business Object and every shapes graph, stored as a document and compiled in memory.
//!
//! Invariant: the entries in memory equal those in the store. A change locks `writer`, commits, and replaces the entry
//! in memory before it unlocks `writer`. So changes run one after the other and see each other's results completely.
//!
//! A stored definition that this version cannot compile (an older one could) does not prevent the start. An ERROR line
//! names it, and it stays stored under its name and id. It is served again after it is replaced, or when a version runs
//! that can compile it.
//!
//! A mapping may be replaced while there is data. The data stays as it is in the graph. Values that the new mapping
//! does not name are no longer visible through this Business Object, and are neither changed nor removed.

mod batch;
mod defined_graph;
mod deletion;
pub(crate) mod entry;
mod loss;
mod namespaces;
mod open;
mod protections;
mod rebase;
mod requester;
mod save;
mod shapes_graphs;
mod warnings;

pub use batch::{Batch, SavedDefinition};
pub use defined_graph::DefinedGraph;
pub use entry::is_current;
pub(super) use entry::{BUSINESS_OBJECTS, list_stored};
pub(super) use rebase::{RebasePreview, preview_rebase, rewrite_definition};
pub use requester::{Action, Change, CommitHook, Requester};
pub use save::PreparedDefinition;
pub use shapes_graphs::ShapesHook;

use super::change_feed::{self, Watch};
use super::namespace::{self, KnownNamespaces, Namespace};
use super::resource::{Compiled, CompiledDefinition};
use defined_graph::DefinedGraphs;
use entry::{Entries, Entry};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use penstock_base::commit::commit;
use penstock_base::definition::{self, missing_error};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::managed::check_editable;
use penstock_base::shared::Shared;
use penstock_base::{Preconditions, Put, free_name};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Error, Store, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

/// The settings of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueSettings {
    /// The setting `service.base-url`, without a slash at its end.
    pub base_url: Option<String>,
    /// The setting `service.gateway-id`.
    pub gateway_id: String,
    /// The setting `service.namespace.auto-create`.
    pub auto_create_namespaces: bool,
    /// The sources that ingest into each Business Object, by its name or id.
    pub sources: BTreeMap<String, BTreeSet<String>>,
}

impl CatalogueSettings {
    /// Returns the first source that ingests into a Business Object.
    pub fn find_source(&self, id: &str, name: &str) -> Option<&str> {
        [name, id].iter().find_map(|key| self.sources.get(*key)?.first().map(String::as_str))
    }
}

/// All Business Objects of the gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalogue {
    store: Store,
    settings: Arc<CatalogueSettings>,
    entries: Shared<RwLock<Entries>>,
    shapes: Shared<RwLock<DefinedGraphs>>,
    writer: Arc<Mutex<()>>,
    watch: Watch,
    /// Wakes the task that deletes objects.
    deletion_begun: Arc<Notify>,
}

impl Catalogue {
    /// Returns the record of what is watched for changes.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Returns the Business Object with this id or name.
    pub fn get(&self, id_or_name: &str) -> Option<Arc<Compiled>> {
        self.read_entries().find_entry(id_or_name).and_then(|entry| entry.compiled.clone())
    }

    /// Checks that there is a Business Object with this id or name, even if it does not compile.
    ///
    /// # Errors
    /// `ErrorClass::NotFound`.
    pub fn check_exists(&self, id_or_name: &str) -> Result<(), GatewayError> {
        self.find_entry(id_or_name).map(drop)
    }

    /// Checks whether the Business Object with this name may be put. A commit checks it again.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed`.
    pub fn check_conditions(
        &self,
        name: &str,
        conditions: Preconditions,
    ) -> Result<(), GatewayError> {
        check_conditions(conditions, name, self.read_entries().find_by_name(name))
    }

    /// Returns all Business Objects, ordered by name.
    pub fn list(&self) -> Vec<Arc<Compiled>> {
        self.read_entries().iter_by_name().filter_map(|entry| entry.compiled.clone()).collect()
    }

    /// Returns at most `limit` Business Objects after the name `after`, ordered by name.
    pub fn list_page(&self, after: Option<&str>, limit: usize) -> Vec<Arc<Compiled>> {
        let entries = self.read_entries();
        let served = entries.iter_after(after).filter_map(|entry| entry.compiled.clone());
        served.take(limit).collect()
    }

    /// Returns all namespaces. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn known_namespaces(&self) -> Result<Arc<KnownNamespaces>, Error> {
        self.watch.namespaces().current(&self.store.read())
    }

    /// Creates or changes a namespace as [`namespace::put`] does, without reading all others.
    ///
    /// # Errors
    /// As [`namespace::put`].
    pub fn put_namespace(
        &self,
        transaction: &mut Transaction<'_>,
        namespace: Namespace,
    ) -> Result<Put<Namespace>, GatewayError> {
        namespace::put_with_cache(transaction, self.watch.namespaces(), namespace)
    }

    /// Returns a number that grows with each change. Anything derived from all Business Objects is rebuilt
    /// when this number has changed.
    pub fn version(&self) -> u64 {
        self.read_entries().version
    }

    /// Creates the Business Object or replaces the one of the same name, and creates missing namespaces. A definition that
    /// equals the stored one changes nothing: version and `updatedAt` stay.
    ///
    /// # Errors
    /// - `ErrorClass::PreconditionFailed`
    /// - `ErrorClass::Invalid` for an unknown namespace or shapes graph
    /// - `ErrorClass::Conflict` for another base of a namespace that is in use, and while the Business Object is being
    ///   deleted with its objects
    /// - `ErrorClass::Unconfirmed` if the definition would remove many objects from the Business Object, or leaves out a
    ///   protection that the stored one has
    pub fn put(
        &self,
        by: Requester<'_>,
        new: CompiledDefinition,
        conditions: Preconditions,
    ) -> Result<Put<Arc<Compiled>>, GatewayError> {
        let writer = self.lock_writer();
        let name = &new.definition.name;
        let before = self.read_entries().find_by_name(name).cloned();
        check_conditions(conditions, name, before.as_ref())?;
        let was_there = before.is_some();
        Ok(Put::new(self.save_definition(&writer, by, before, new)?, was_there))
    }

    /// Replaces the Business Object with this id or name. A new name must not belong to another one (409).
    ///
    /// # Errors
    /// Returns the errors of [`Self::put`], and `ErrorClass::NotFound`.
    pub fn replace(
        &self,
        by: Requester<'_>,
        id_or_name: &str,
        new: CompiledDefinition,
        conditions: Preconditions,
    ) -> Result<Arc<Compiled>, GatewayError> {
        let writer = self.lock_writer();
        let before = self.find_entry(id_or_name)?;
        check_conditions(conditions, &before.name, Some(&before))?;
        if let Some(other) = self.read_entries().find_by_name(&new.definition.name)
            && other.id != before.id
        {
            return Err(GatewayError::with_findings(
                ErrorClass::Conflict,
                format!("another Business Object already has the name {:?}", other.name),
                vec![Finding::at_pointer("/name", "this name is taken; choose another one")],
            ));
        }
        self.save_definition(&writer, by, Some(before), new)
    }

    /// Deletes the definition. The objects stay in the graph.
    ///
    /// # Errors
    /// - `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`
    /// - `ErrorClass::Conflict` while the Business Object is being deleted with its objects
    pub fn delete(
        &self,
        by: Requester<'_>,
        id_or_name: &str,
        conditions: Preconditions,
    ) -> Result<(), GatewayError> {
        let _writer = self.lock_writer();
        let entry = self.find_entry(id_or_name)?;
        if let Some(compiled) = &entry.compiled {
            compiled.object.check_not_deleting()?;
        }
        check_conditions(conditions, &entry.name, Some(&entry))?;
        commit::<_, GatewayError>(&self.store, by.check, |transaction| {
            check_editable(transaction, DefinitionKind::BusinessObject, &entry.name)?;
            delete_entry(transaction, by, &entry)
        })?;
        self.publish_deletion(by, &entry);
        Ok(())
    }

    /// Shows a deletion that is committed.
    fn publish_deletion(&self, by: Requester<'_>, entry: &Entry) {
        self.write_entries().remove(&entry.id);
        tracing::info!(
            business_object = entry.name,
            id = entry.id,
            by = by.id,
            "A Business Object was deleted."
        );
        self.watch.wake();
    }

    /// Returns the base of a namespace of this name that is created without a definition.
    pub fn default_base(&self, name: &str) -> String {
        let CatalogueSettings { base_url, gateway_id, .. } = &*self.settings;
        namespace::default_base(base_url.as_deref(), gateway_id, name)
    }

    fn find_entry(&self, id_or_name: &str) -> Result<Entry, GatewayError> {
        let found = self.read_entries().find_entry(id_or_name).cloned();
        found.ok_or_else(|| missing_error(DefinitionKind::BusinessObject, id_or_name))
    }

    fn lock_writer(&self) -> MutexGuard<'_, ()> {
        self.writer.lock()
    }

    fn read_entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read()
    }

    fn write_entries(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write()
    }
}

/// Deletes a definition in its commit.
fn delete_entry(
    transaction: &mut Transaction<'_>,
    by: Requester<'_>,
    entry: &Entry,
) -> Result<(), GatewayError> {
    change_feed::stop_watching(transaction, &entry.id)?;
    BUSINESS_OBJECTS.delete(transaction, &entry.id)?;
    free_name(transaction, entry.version)?;
    by.add_to_commit(transaction, &Change::of_entry(Action::Deleted, entry))
}

/// Checks the conditions on an entry. For `If-None-Match`, one that does not compile does not count: clients cannot see it,
/// and creating it again replaces it.
fn check_conditions(
    conditions: Preconditions,
    name: &str,
    entry: Option<&Entry>,
) -> Result<(), GatewayError> {
    let is_hidden = entry.is_some_and(|entry| entry.compiled.is_none());
    let only_if_new = conditions.only_if_new && !is_hidden;
    let conditions = Preconditions { only_if_new, ..conditions };
    let version = entry.map(|entry| entry.version);
    definition::check_conditions(DefinitionKind::BusinessObject, name, version, conditions)
}

#[cfg(test)]
mod tests;
