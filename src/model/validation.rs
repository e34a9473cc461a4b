//! Validates everything that a Business Object has, in one snapshot of the store.
//!
//! Members are validated in batches, each with what is nested in it, as an ingestion does. An object that several members
//! hold nested is validated with each of them, and its violations count once.
use crate::change_feed::HolderLinks;
use crate::members::{build_member_filter, list_filtered, satisfies_filter};
use crate::protection::build_scope;
use crate::resource::Compiled;
use crate::shapes_graphs::CompiledGraphs;
use oxrdf::{NamedNode, Term};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_shapes::{Cancellation, Data, Limits, ShapesGraph, StoredTriples, Targets, Violation};
use penstock_store::{Snapshot, SubjectFilter};
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

/// The number of members that are validated together. Their violations are in memory at once.
const MEMBERS_PER_BATCH: usize = 100;
/// The number of members that are counted in one read.
const MEMBERS_PER_READ: usize = 1000;
/// The number of nested objects with violations that are remembered, 8 to 16 bytes each. A violation of a further one
/// counts once for each batch.
const MAX_REMEMBERED: usize = 500_000;

/// The validation of all members of a Business Object.
#[derive(Debug)]
pub struct StoredValidation {
    triples: Arc<StoredTriples<Box<Snapshot>>>,
    shapes: Vec<Arc<ShapesGraph>>,
    targets: Targets,
    /// The names of the shapes graphs, with their versions.
    versions: Vec<(String, u64)>,
    members: SubjectFilter,
    links: HolderLinks,
    limits: Limits,
    /// The last member that was validated.
    last: Option<NamedNode>,
    batch_size: usize,
    /// Hashes of the nested objects and values with violations.
    remembered: HashSet<u64>,
    hasher: RandomState,
}

/// What the validation of some members has found.
#[derive(Debug)]
pub struct ValidatedBatch {
    /// The number of the members.
    pub members: usize,
    /// Their violations, and those of what is nested in them.
    pub violations: Vec<Violation>,
}

impl StoredValidation {
    /// Begins to validate the members that the snapshot has, by the shapes graphs as the snapshot has them. `limits` are
    /// those of each batch.
    ///
    /// # Errors
    /// - `ErrorClass::Conflict` if the Business Object names no shapes graph, or its root namespace is not defined
    /// - `ErrorClass::Damaged` if this version cannot use a shapes graph
    pub fn new(
        snapshot: Snapshot,
        business_object: &Compiled,
        limits: Limits,
    ) -> Result<Self, GatewayError> {
        check_has_shapes(business_object)?;
        let validation = business_object.object.definition.validation.iter();
        let (mut shapes, mut versions) = (Vec::new(), Vec::new());
        let mut graphs = CompiledGraphs::default();
        for name in validation.flat_map(|validation| &validation.shapes) {
            let (version, graph) = graphs.read(&snapshot, name, &CompiledGraphs::default())?;
            shapes.push(graph);
            versions.push((name.clone(), version));
        }
        Ok(Self {
            members: build_member_filter(&snapshot, business_object)?,
            links: HolderLinks::of_mapping(&business_object.mapping.root),
            triples: Arc::new(StoredTriples(Box::new(snapshot))),
            targets: Targets::of_graphs(shapes.iter().map(Arc::as_ref)),
            shapes,
            versions,
            limits,
            last: None,
            batch_size: MEMBERS_PER_BATCH,
            remembered: HashSet::new(),
            hasher: RandomState::new(),
        })
    }

    /// Returns the names of the shapes graphs, with their versions.
    pub fn shapes(&self) -> &[(String, u64)] {
        &self.versions
    }

    /// Returns the sequence of the newest commit in the snapshot.
    pub fn commit(&self) -> u64 {
        self.triples.0.sequence()
    }

    /// Counts the members, or fewer if it is cancelled.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn count_members(&self, cancellation: &Cancellation) -> Result<u64, GatewayError> {
        let (mut count, mut last) = (0, None::<NamedNode>);
        loop {
            let after = last.as_ref().map(NamedNode::as_str);
            let page = list_filtered(&*self.triples.0, &self.members, after, MEMBERS_PER_READ)?;
            count += page.len() as u64;
            last = page.into_iter().last();
            if last.is_none() || cancellation.is_cancelled() {
                return Ok(count);
            }
        }
    }

    /// Validates the next members; `None` at the end.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` if the validation of a single member exceeds a limit
    /// - `ErrorClass::Unavailable` if it was cancelled, or the snapshot has ended
    pub fn validate_batch(&mut self) -> Result<Option<ValidatedBatch>, GatewayError> {
        loop {
            let after = self.last.as_ref().map(NamedNode::as_str);
            let page = list_filtered(&*self.triples.0, &self.members, after, self.batch_size)?;
            let Some(last) = page.last().cloned() else { return Ok(None) };
            let members = page.len();
            match self.validate_members(page) {
                Ok(violations) => {
                    self.last = Some(last);
                    return Ok(Some(ValidatedBatch { members, violations }));
                }
                // Fewer members need less time and memory.
                Err(error) if error.class == ErrorClass::Invalid && members > 1 => {
                    self.batch_size = members / 2;
                }
                Err(mut error) => {
                    if error.class == ErrorClass::Invalid {
                        error.detail = format!("{}: {}", last.as_str(), error.detail);
                    }
                    return Err(error);
                }
            }
        }
    }

    fn validate_members(&mut self, page: Vec<NamedNode>) -> Result<Vec<Violation>, GatewayError> {
        let read = &*self.triples.0;
        let members = page.into_iter().collect();
        let (scope, _) = build_scope(read, &self.links, members, &self.targets, &self.limits)?;
        let mut found = Vec::new();
        for graph in &self.shapes {
            let data = Data::new(Box::new(Arc::clone(&self.triples)), self.limits.clone());
            let doubtful = graph.find_doubtful(&data, &scope)?;
            found.extend(graph.validate(&data, &doubtful)?);
        }
        // Whether the violations of a nested object or a value are counted in this batch.
        let mut is_counted = HashMap::new();
        for Violation { focus_node, .. } in &found {
            let node = match focus_node {
                Term::NamedNode(node) if scope.members.contains(node) => continue,
                Term::NamedNode(node) => Some(node),
                _ => None,
            };
            if is_counted.contains_key(focus_node) {
                continue;
            }
            let hash = self.hasher.hash_one(focus_node);
            let is_new = !self.remembered.contains(&hash)
                && match node {
                    Some(node) => !satisfies_filter(read, &self.members, node)?,
                    None => true,
                };
            if is_new && self.remembered.len() < MAX_REMEMBERED {
                self.remembered.insert(hash);
            }
            is_counted.insert(focus_node.clone(), is_new);
        }
        found.retain(|violation| is_counted.get(&violation.focus_node).copied().unwrap_or(true));
        Ok(found)
    }
}

/// Checks that a Business Object names shapes graphs, in whatever mode.
///
/// # Errors
/// `ErrorClass::Conflict` if it names none.
pub fn check_has_shapes(business_object: &Compiled) -> Result<(), GatewayError> {
    let definition = &business_object.object.definition;
    if definition.validation.as_ref().is_some_and(|validation| !validation.shapes.is_empty()) {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::Conflict,
        format!(
            "the Business Object {:?} has no shapes graphs; name them in `validation` of its definition",
            definition.name
        ),
    ))
}

#[cfg(test)]
mod tests;
