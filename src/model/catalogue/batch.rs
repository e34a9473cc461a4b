//! Several changes of the catalogue in one commit, which definitions in files need.
//!
//! A batch holds the lock of the catalogue's changes. The caller makes one transaction with all changes and then calls
//! [`Batch::publish`]. Without that, for example after an error or in a dry run, memory stays as the store is.
use super::save::PreparedDefinition;
use super::shapes_graphs::{erase_graph, has_graph};
use super::{Catalogue, DefinedGraph, Entry, Requester, ShapesHook, delete_entry};
use crate::change_feed::WatchedDefinitions;
use crate::namespace::Namespace;
use crate::natural_key::{self, KeyBuilds, NaturalKey, OtherKeys};
use crate::resource::{Compiled, CompiledDefinition, Definition};
use crate::shapes_graphs::NewGraph;
use parking_lot::MutexGuard;
use penstock_base::error::GatewayError;
use penstock_resources::namespace::{DefinedNamespace, Generator};
use penstock_store::Transaction;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Several changes of the catalogue in one commit.
#[derive(Debug)]
pub struct Batch<'c> {
    catalogue: &'c Catalogue,
    _writer: MutexGuard<'c, ()>,
    changes: Vec<MemoryChange>,
    /// The index of the new keys. Until the batch ends, each commit keeps it up to date. `None` in a dry run.
    key_builds: Option<KeyBuilds<'c>>,
    /// The definitions before the first change, whose keys have an index.
    known: Option<Arc<WatchedDefinitions>>,
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
        Batch {
            catalogue: self,
            _writer: self.lock_writer(),
            changes: Vec::new(),
            key_builds: None,
            known: None,
        }
    }

    /// Returns the keys of each definition with the namespaces that its commit defines, in a transaction that is discarded.
    pub(super) fn collect_new_keys(
        &self,
        prepared: &[&PreparedDefinition],
        namespaces: &[DefinedNamespace],
    ) -> Result<Vec<Vec<NaturalKey>>, GatewayError> {
        if !prepared.iter().any(|prepared| prepared.new.mapping.has_key()) {
            // The dry run would wait for other writers.
            return Ok(vec![Vec::new(); prepared.len()]);
        }
        self.store.dry_run(|transaction| {
            // The commit reports the error of a definition.
            for definition in namespaces {
                let base = self.default_base(&definition.name);
                let new =
                    Namespace::from_definition(definition.clone(), base, Generator::default());
                let _ = self.put_namespace(transaction, new);
            }
            let mut keys = Vec::with_capacity(prepared.len());
            for PreparedDefinition { before, new, .. } in prepared {
                let id = before.as_ref().map(|before| before.id.as_str());
                let CompiledDefinition { definition, mapping, .. } = new;
                let _ = self.define_namespaces(transaction, id, &definition.namespaces, mapping);
                keys.push(natural_key::collect_keys(transaction, mapping)?);
            }
            Ok(keys)
        })
    }
}

impl Batch<'_> {
    /// Checks that a definition may be saved, before the transaction. Returns `None` if it equals the stored one.
    /// The transaction defines `namespaces` before.
    ///
    /// # Errors
    /// As [`Catalogue::put`].
    pub fn prepare(
        &self,
        by: Requester<'_>,
        mut new: CompiledDefinition,
        namespaces: &[DefinedNamespace],
    ) -> Result<Option<PreparedDefinition>, GatewayError> {
        let before = self.catalogue.read_entries().find_by_name(&new.definition.name).cloned();
        self.catalogue.check_guards(by, before.as_ref(), &mut new)?;
        if let Some(there) = before.as_ref().and_then(|before| before.compiled.as_ref())
            && self.catalogue.is_unchanged(there, &new)?
        {
            return Ok(None);
        }
        self.catalogue.prepare_definition(by, before, new, namespaces).map(Some)
    }

    /// Creates the index of the new keys of all these definitions, each key once, before the transaction. A dry run leaves
    /// it out. Returns for each definition whether stored objects have its keys; definitions with the same key have one
    /// error.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn prepare_keys(
        &mut self,
        by: Requester<'_>,
        prepared: &[&PreparedDefinition],
        namespaces: &[DefinedNamespace],
    ) -> Result<Vec<Result<(), GatewayError>>, GatewayError> {
        let keys = self.catalogue.collect_new_keys(prepared, namespaces)?;
        let mut distinct = Vec::new();
        for key in keys.iter().flatten() {
            // The transaction refuses two keys of one namespace.
            let _ = natural_key::merge_key(&mut distinct, key.clone());
        }
        let Catalogue { store, watch, .. } = self.catalogue;
        let builds = natural_key::build_index(store, by.check, watch, distinct)?;
        let (read, mut checked) = (store.read(), BTreeSet::new());
        let verify = |keys: &Vec<NaturalKey>| builds.verify_keys(&read, keys, &mut checked);
        let verified = keys.iter().map(verify).collect();
        drop(read);
        self.key_builds = Some(builds);
        Ok(verified)
    }

    /// Saves a prepared definition in the transaction. [`Self::check_keys`] follows the last one.
    ///
    /// # Errors
    /// As [`Catalogue::put`].
    pub fn put(
        &mut self,
        transaction: &mut Transaction<'_>,
        by: Requester<'_>,
        prepared: &PreparedDefinition,
    ) -> Result<SavedDefinition, GatewayError> {
        self.remember_definitions(transaction)?;
        let compiled = self.catalogue.write_definition(transaction, by, prepared, None)?;
        let (id, version) = (compiled.object.id.clone(), compiled.object.version);
        self.changes.push(MemoryChange::Definition(Box::new(compiled)));
        Ok(SavedDefinition { id, version })
    }

    /// Returns the definition of a Business Object as this batch leaves it; `None` if there is none, or it does not compile.
    pub fn find_definition(&self, name: &str) -> Option<Definition> {
        for change in self.changes.iter().rev() {
            match change {
                MemoryChange::Definition(compiled) if compiled.object.definition.name == name => {
                    return Some(compiled.object.definition.clone());
                }
                MemoryChange::DeletedDefinition(entry) if entry.name == name => return None,
                _ => {}
            }
        }
        let entries = self.catalogue.read_entries();
        let compiled = entries.find_by_name(name)?.compiled.as_ref()?;
        Some(compiled.object.definition.clone())
    }

    /// Checks the keys of all saved definitions, against each other, against the definitions that stay, and against the
    /// stored objects. Returns the error of each definition that has one, by its name.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn check_keys(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<HashMap<String, GatewayError>, GatewayError> {
        let saved = || {
            self.changes.iter().filter_map(|change| match change {
                MemoryChange::Definition(compiled) => Some(compiled),
                _ => None,
            })
        };
        let mut errors = HashMap::new();
        if !saved().any(|compiled| compiled.mapping.has_key()) {
            return Ok(errors);
        }
        let ids: BTreeSet<&str> = saved().map(|compiled| compiled.object.id.as_str()).collect();
        let mut others = OtherKeys::read(transaction, |id| !ids.contains(id))?;
        let mut checked = BTreeSet::new();
        for compiled in saved() {
            let name = &compiled.object.definition.name;
            let found = others.check(transaction, name, &compiled.mapping).and_then(|keys| {
                let Some((builds, known)) = self.key_builds.as_ref().zip(self.known.as_deref())
                else {
                    return Ok(());
                };
                builds.check_indexed(transaction, &known.keys, &keys)?;
                builds.verify_keys(transaction, &keys, &mut checked)
            });
            if let Err(error) = found {
                errors.insert(name.clone(), error);
            }
        }
        Ok(errors)
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
            compiled.object.check_not_deleting()?;
        }
        self.remember_definitions(transaction)?;
        delete_entry(transaction, by, &entry)?;
        self.changes.push(MemoryChange::DeletedDefinition(entry));
        Ok(())
    }

    /// Remembers the definitions before the first change.
    fn remember_definitions(&mut self, transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        if self.known.is_none() {
            self.known = Some(self.catalogue.watch.current_definitions(transaction)?);
        }
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
            && has_graph(transaction, &there, new)?
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
