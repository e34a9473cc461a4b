//! Several changes of the catalogue in one commit, which definitions in files need.
//!
//! A batch holds the lock of the catalogue's changes. The caller makes one transaction with all changes and then calls
//! [`Batch::publish`]. Without that, for example after an error or in a dry run, memory stays as the store is.
use super::save::{Preparation, PreparedDefinition};
use super::shapes_graphs::erase_graph;
use super::{Catalogue, DefinedGraph, Entry, Requester, ShapesHook, delete_entry, deletion};
use crate::namespace::NamespaceDefinition;
use crate::resource::{Compiled, CompiledDefinition};
use crate::shapes_graphs::NewGraph;
use penstock_base::error::GatewayError;
use penstock_store::Transaction;
use std::sync::{Arc, MutexGuard};

/// Several changes of the catalogue in one commit.
#[derive(Debug)]
pub struct Batch<'c> {
    catalogue: &'c Catalogue,
    _writer: MutexGuard<'c, ()>,
    changes: Vec<MemoryChange>,
}

/// A change of memory that follows the commit.
#[derive(Debug)]
enum MemoryChange {
    Definition(Box<Compiled>),
    DeletedDefinition(Entry),
    Graph(Arc<DefinedGraph>),
    DeletedGraph(String),
}

/// A definition that a batch has saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedDefinition {
    /// The id of the Business Object.
    pub id: String,
    /// Its version now.
    pub version: u64,
}

impl SavedDefinition {
    /// Returns a text that every change of the Business Object changes.
    pub fn fingerprint(&self) -> String {
        format!("{} {}", self.id, self.version)
    }
}

impl Catalogue {
    /// Returns the id and version of a Business Object, even if it does not compile.
    pub fn find_saved(&self, name: &str) -> Option<SavedDefinition> {
        let entry = self.read_entries().find_by_name(name).cloned()?;
        Some(SavedDefinition { id: entry.id, version: entry.version })
    }

    /// Begins several changes in one commit. Other changes of the catalogue wait for its end.
    pub fn begin_batch(&self) -> Batch<'_> {
        Batch { catalogue: self, _writer: self.lock_writer(), changes: Vec::new() }
    }
}

impl<'c> Batch<'c> {
    /// Checks that a definition may be saved, before the transaction. Returns `None` if it equals the stored one.
    /// The transaction defines `namespaces` before. A dry run creates no index for new keys, and does not
    /// check whether stored objects share one.
    ///
    /// # Errors
    /// As [`Catalogue::put`].
    pub fn prepare(
        &self,
        by: Requester<'_>,
        mut new: CompiledDefinition,
        namespaces: &[NamespaceDefinition],
        is_dry_run: bool,
    ) -> Result<Option<PreparedDefinition<'c>>, GatewayError> {
        let before = self.catalogue.read_entries().find_by_name(&new.definition.name).cloned();
        self.catalogue.check_guards(by, before.as_ref(), &mut new)?;
        if let Some(there) = before.as_ref().and_then(|before| before.compiled.as_ref())
            && self.catalogue.is_unchanged(there, &new)?
        {
            return Ok(None);
        }
        let preparation = Preparation { namespaces, is_dry_run };
        self.catalogue.prepare_definition(by, before, new, preparation).map(Some)
    }

    /// Saves a prepared definition in the transaction.
    ///
    /// # Errors
    /// As [`Catalogue::put`].
    pub fn put(
        &mut self,
        transaction: &mut Transaction<'_>,
        by: Requester<'_>,
        prepared: &PreparedDefinition<'_>,
    ) -> Result<SavedDefinition, GatewayError> {
        let compiled = self.catalogue.write_definition(transaction, by, prepared)?;
        let (id, version) = (compiled.object.id.clone(), compiled.object.version);
        self.changes.push(MemoryChange::Definition(Box::new(compiled)));
        Ok(SavedDefinition { id, version })
    }

    /// Deletes a definition in the transaction. Its objects stay.
    ///
    /// # Errors
    /// `ErrorClass::NotFound`; `ErrorClass::Conflict` while the Business Object is being deleted with its objects.
    pub fn delete(
        &mut self,
        transaction: &mut Transaction<'_>,
        by: Requester<'_>,
        name: &str,
    ) -> Result<(), GatewayError> {
        let entry = self.catalogue.find_entry(name)?;
        if let Some(compiled) = &entry.compiled {
            deletion::check_not_deleting(&compiled.object)?;
        }
        delete_entry(transaction, by, &entry)?;
        self.changes.push(MemoryChange::DeletedDefinition(entry));
        Ok(())
    }

    /// Saves a shapes graph in the transaction. Returns it, or `None` if it equals the stored one.
    ///
    /// # Errors
    /// As [`Catalogue::put_shapes_graph`].
    pub fn put_graph(
        &mut self,
        transaction: &mut Transaction<'_>,
        by: Requester<'_>,
        new: &NewGraph,
        on_commit: ShapesHook<'_>,
    ) -> Result<Option<Arc<DefinedGraph>>, GatewayError> {
        if let Some(there) = self.catalogue.get_shapes_graph(new.name())
            && self.catalogue.has_graph(&there, new)?
        {
            return Ok(None);
        }
        let stored = self.catalogue.write_graph(transaction, by, new, on_commit)?;
        let defined = Arc::new(DefinedGraph::from_stored(stored));
        self.changes.push(MemoryChange::Graph(defined.clone()));
        Ok(Some(defined))
    }

    /// Deletes a shapes graph in the transaction.
    ///
    /// # Errors
    /// As [`Catalogue::delete_shapes_graph`].
    pub fn delete_graph(
        &mut self,
        transaction: &mut Transaction<'_>,
        name: &str,
        on_commit: ShapesHook<'_>,
    ) -> Result<(), GatewayError> {
        let there = self.catalogue.require_graph(name)?;
        erase_graph(transaction, &there, on_commit)?;
        self.changes.push(MemoryChange::DeletedGraph(name.to_owned()));
        Ok(())
    }

    /// Shows all changes, which are committed.
    pub fn publish(self, by: Requester<'_>) {
        for change in self.changes {
            match change {
                MemoryChange::Definition(compiled) => {
                    self.catalogue.publish_definition(by, *compiled);
                }
                MemoryChange::DeletedDefinition(entry) => {
                    self.catalogue.publish_deletion(by, &entry);
                }
                MemoryChange::Graph(defined) => self.catalogue.publish_graph(by, defined),
                MemoryChange::DeletedGraph(name) => {
                    self.catalogue.publish_graph_deletion(by, &name);
                }
            }
        }
    }
}
