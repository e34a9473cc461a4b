//! The shapes graphs of the catalogue: stored as documents. What validates has them compiled in memory
//! ([`CompiledGraphs`](crate::shapes_graphs::CompiledGraphs)).
//!
//! Invariant: as for Business Objects, a change locks `writer`, commits, and replaces the graph in memory before it
//! unlocks `writer`. So a definition never names a graph that is deleted meanwhile.
//!
//! A stored graph that this version cannot compile does not prevent the start. An ERROR line names it, and it stays
//! stored. What it protects must not become unprotected: all changes of its objects are refused.
use super::defined_graph::{DefinedGraph, DefinedGraphs};
use super::entry::{BUSINESS_OBJECTS, StoredDefinition, list_shapes_users};
use super::{Action, Catalogue, Requester};
use crate::resource::Definition;
use crate::shapes_graphs::{
    self, GraphMetadata, MAX_GRAPHS, MAX_TOTAL_BYTES, NewGraph, StoredGraph,
};
use penstock_base::commit::commit;
use penstock_base::definition::{check_conditions, missing_error};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::managed::check_editable;
use penstock_base::{Preconditions, Put, free_name, next_version};
use penstock_resources::business_object::{Validation, ValidationMode};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Error, Read, Transaction};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The maximum number of Business Objects that an error names.
const MAX_NAMED: usize = 20;

/// A function that runs in the commit of a change of a shapes graph. Its failure undoes the change.
pub type ShapesHook<'a> =
    &'a (dyn Fn(&mut Transaction<'_>, Action, &GraphMetadata) -> Result<(), GatewayError> + 'a);

/// Reads all stored shapes graphs, and checks whether they compile.
pub(super) fn read_all(read: &dyn Read) -> Result<DefinedGraphs, Error> {
    let mut all = DefinedGraphs::new();
    for row in shapes_graphs::iter_rows(read) {
        let row = row?;
        let name = row.key()?;
        match row.value() {
            Ok(StoredGraph { metadata, text }) => {
                let fault = shapes_graphs::compile_text(&text, metadata.format).err();
                if let Some(error) = &fault {
                    tracing::error!(
                        name, why = %describe_cause(error),
                        "A stored shapes graph did not compile; Business Objects that reject violations of it refuse all \
                         changes. Replace it."
                    );
                }
                let defined = DefinedGraph { metadata, bytes: text.len(), fault };
                all.insert(name, Arc::new(defined));
            }
            Err(why) => {
                tracing::error!(
                    name, %why,
                    "A stored shapes graph was not readable; Business Objects that reject violations of it refuse all \
                     changes. Replace it."
                );
            }
        }
    }
    Ok(all)
}

/// Returns the first finding of an error, or its text.
fn describe_cause(error: &GatewayError) -> String {
    error.findings.first().map_or_else(|| error.detail.clone(), ToString::to_string)
}

impl Catalogue {
    /// Returns all shapes graphs, ordered by name.
    pub fn list_shapes_graphs(&self) -> Vec<Arc<DefinedGraph>> {
        self.shapes.read().values().cloned().collect()
    }

    /// Returns at most `limit` shapes graphs after the name `after`, ordered by name.
    pub fn list_shapes_page(&self, after: Option<&str>, limit: usize) -> Vec<Arc<DefinedGraph>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let shapes = self.shapes.read();
        let after = shapes.range::<str, _>((from, Bound::Unbounded)).map(|(_, graph)| graph);
        after.take(limit).cloned().collect()
    }

    /// Returns the shapes graph of this name.
    pub fn get_shapes_graph(&self, name: &str) -> Option<Arc<DefinedGraph>> {
        self.shapes.read().get(name).cloned()
    }

    /// Returns the names of the Business Objects that name a shapes graph, by its name. Blocking.
    pub fn list_shapes_users(&self) -> Result<BTreeMap<String, Vec<String>>, GatewayError> {
        let mut users = BTreeMap::<String, Vec<String>>::new();
        let mut not_compiled = Vec::new();
        let mut add = |name: &str, validation: Option<&Validation>| {
            for graph in validation.into_iter().flat_map(|validation| &validation.shapes) {
                users.entry(graph.clone()).or_default().push(name.to_owned());
            }
        };
        for entry in self.read_entries().iter_by_name() {
            match &entry.compiled {
                Some(compiled) => {
                    add(&entry.name, compiled.object.definition.validation.as_ref());
                }
                None => not_compiled.push(entry.id.clone()),
            }
        }
        for id in not_compiled {
            if let Some(StoredDefinition { object, .. }) =
                BUSINESS_OBJECTS.get_readable(&self.store.read(), &id)?
            {
                add(&object.definition.name, object.definition.validation.as_ref());
            }
        }
        for names in users.values_mut() {
            names.sort_unstable();
        }
        Ok(users)
    }

    /// Creates the shapes graph or replaces the one of the same name. The same text in the same format changes nothing:
    /// version and `updatedAt` stay.
    ///
    /// # Errors
    /// - `ErrorClass::PreconditionFailed`
    /// - `ErrorClass::Conflict` if there are [`MAX_GRAPHS`] others, or all together would be larger than
    ///   [`MAX_TOTAL_BYTES`]
    pub fn put_shapes_graph(
        &self,
        by: Requester<'_>,
        new: &NewGraph,
        conditions: Preconditions,
        on_commit: ShapesHook<'_>,
    ) -> Result<Put<Arc<DefinedGraph>>, GatewayError> {
        let _writer = self.lock_writer();
        let there = self.get_shapes_graph(&new.name);
        let version = there.as_ref().map(|there| there.metadata.version);
        check_conditions(DefinitionKind::Shapes, &new.name, version, conditions)?;
        if let Some(there) = &there
            && has_graph(&self.store.read(), there, new)?
        {
            return Ok(Put::Replaced(there.clone()));
        }
        let (written, _) = commit::<_, GatewayError>(&self.store, by.check, |transaction| {
            check_editable(transaction, DefinitionKind::Shapes, &new.name)?;
            self.write_graph(transaction, by, new, on_commit)
        })?;
        let defined = Arc::new(DefinedGraph::from_stored(written));
        self.publish_graph(by, defined.clone());
        Ok(Put::new(defined, there.is_some()))
    }

    /// Writes a shapes graph in its commit.
    pub(super) fn write_graph(
        &self,
        transaction: &mut Transaction<'_>,
        by: Requester<'_>,
        new: &NewGraph,
        on_commit: ShapesHook<'_>,
    ) -> Result<StoredGraph, GatewayError> {
        check_room(transaction, new)?;
        let there = self.get_shapes_graph(&new.name);
        let before = there.as_ref().map(|there| &there.metadata);
        let now = penstock_base::time::now_rfc3339();
        let metadata = GraphMetadata {
            name: new.name.clone(),
            format: new.format,
            version: next_version(transaction, before.map(|before| before.version))?,
            created_at: before.map_or_else(|| now.clone(), |before| before.created_at.clone()),
            updated_at: now,
            updated_by: by.id.to_owned(),
        };
        let stored = StoredGraph { metadata, text: new.text.clone() };
        let action = if before.is_some() { Action::Replaced } else { Action::Created };
        shapes_graphs::store_graph(transaction, &stored)?;
        on_commit(transaction, action, &stored.metadata)?;
        Ok(stored)
    }

    /// Shows a shapes graph that is committed.
    pub(super) fn publish_graph(&self, by: Requester<'_>, defined: Arc<DefinedGraph>) {
        let GraphMetadata { name, version, .. } = &defined.metadata;
        tracing::info!(shapes_graph = name, version, by = by.id, "A shapes graph was defined.");
        let name = name.clone();
        self.shapes.write().insert(name, defined);
    }

    /// Deletes a shapes graph that no Business Object names.
    ///
    /// # Errors
    /// - `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`
    /// - `ErrorClass::Conflict`, which names the Business Objects that name it
    pub fn delete_shapes_graph(
        &self,
        by: Requester<'_>,
        name: &str,
        conditions: Preconditions,
        on_commit: ShapesHook<'_>,
    ) -> Result<(), GatewayError> {
        let _writer = self.lock_writer();
        let there = self.require_graph(name)?;
        let version = Some(there.metadata.version);
        check_conditions(DefinitionKind::Shapes, name, version, conditions)?;
        commit::<_, GatewayError>(&self.store, by.check, |transaction| {
            check_editable(transaction, DefinitionKind::Shapes, name)?;
            erase_graph(transaction, &there, on_commit)
        })?;
        self.publish_graph_deletion(by, name);
        Ok(())
    }

    pub(super) fn require_graph(&self, name: &str) -> Result<Arc<DefinedGraph>, GatewayError> {
        self.get_shapes_graph(name).ok_or_else(|| missing_error(DefinitionKind::Shapes, name))
    }

    /// Shows a deletion that is committed.
    pub(super) fn publish_graph_deletion(&self, by: Requester<'_>, name: &str) {
        self.shapes.write().remove(name);
        tracing::info!(shapes_graph = name, by = by.id, "A shapes graph was deleted.");
    }

    /// Returns the warnings about the `validation` of a definition.
    pub(super) fn check_validation(&self, definition: &Definition) -> Vec<Finding> {
        let Some(Validation { shapes, mode }) = &definition.validation else { return Vec::new() };
        if *mode == ValidationMode::Off {
            return Vec::new();
        }
        if shapes.is_empty() {
            let message = format!(
                "the mode is {}, but no shapes graph is named, so nothing is validated",
                mode.name()
            );
            return vec![Finding::at_pointer("/validation/shapes", message)];
        }
        let warn = |(index, name): (usize, &String)| {
            let defined = self.get_shapes_graph(name);
            let why = match defined.as_ref().map(|defined| &defined.fault) {
                Some(None) => return None,
                Some(Some(error)) => describe_cause(error),
                None => "it cannot be read".to_owned(),
            };
            let effect = match mode {
                ValidationMode::Reject => "all changes of the objects are refused",
                _ => "nothing is validated with it",
            };
            let message = format!(
                "the shapes graph {name:?} does not compile in this version, so {effect}; replace it: {why}"
            );
            Some(Finding::at_pointer(format!("/validation/shapes/{index}"), message))
        };
        shapes.iter().enumerate().filter_map(warn).collect()
    }
}

/// Returns whether a shapes graph compiles and has this text in this format.
pub(super) fn has_graph(
    read: &dyn Read,
    there: &DefinedGraph,
    new: &NewGraph,
) -> Result<bool, GatewayError> {
    Ok(there.metadata.format == new.format
        && there.fault.is_none()
        && shapes_graphs::SHAPES_GRAPHS
            .get_readable(read, &new.name)?
            .is_some_and(|old| old.text == new.text))
}

/// Deletes a shapes graph in its commit.
pub(super) fn erase_graph(
    transaction: &mut Transaction<'_>,
    there: &DefinedGraph,
    on_commit: ShapesHook<'_>,
) -> Result<(), GatewayError> {
    let name = &there.metadata.name;
    let users = list_shapes_users(transaction)?.into_possible_users(name);
    if !users.is_empty() {
        return Err(used_graph_error(name, &users));
    }
    shapes_graphs::SHAPES_GRAPHS.delete(transaction, name)?;
    free_name(transaction, there.metadata.version)?;
    on_commit(transaction, Action::Deleted, &there.metadata)
}

/// Checks that the limits of all shapes graphs together allow one more, or the new text of one.
fn check_room(read: &dyn Read, new: &NewGraph) -> Result<(), GatewayError> {
    let (mut count, mut others) = (0, 0);
    let mut is_new = true;
    for row in shapes_graphs::iter_rows(read) {
        let row = row?;
        if row.key()? == new.name {
            is_new = false;
        } else {
            count += 1;
            others += row.value().map_or(0, |stored| stored.text.len());
        }
    }
    if is_new && count >= MAX_GRAPHS {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!("the limit of {MAX_GRAPHS} shapes graphs is reached; delete some"),
        ));
    }
    if others + new.text.len() > MAX_TOTAL_BYTES {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the shapes graph has {} bytes, and the others have {others}; at most {MAX_TOTAL_BYTES} are allowed together; delete some",
                new.text.len()
            ),
        ));
    }
    Ok(())
}

fn used_graph_error(name: &str, users: &[String]) -> GatewayError {
    let named: Vec<String> = users.iter().take(MAX_NAMED).map(|user| format!("{user:?}")).collect();
    let more = if users.len() > MAX_NAMED { " and others" } else { "" };
    let message = format!(
        "the shapes graph {name:?} is used by the Business Objects {}{more}; remove it from their `validation` first",
        named.join(", ")
    );
    GatewayError::new(ErrorClass::Conflict, message)
}
