//! Applies an update (SPARQL 1.1 Update) to a transaction.
use crate::budget::{Budget, Limits};
use crate::dataset::Dataset;
use crate::delta::Delta;
use crate::evaluate::{evaluator, own_graphs, to_error, to_graphs};
use crate::graphs::Graphs;
use crate::internal_term::InternalTerm;
use crate::plan::plan;
use crate::request::{Copy, Operation, Update};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::catch;
use penstock_store::{Pattern, Read, Transaction};
use spareval::DeleteInsertQuad;
use spargebra::GraphUpdateOperation;
use spargebra::algebra::{GraphPattern, GraphTarget};
use spargebra::term::{GroundQuad, GroundTerm, NamedNodePattern};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// The limits of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateLimits {
    /// `service.limits.sparql.update`: quads that all operations add and remove
    pub quads: u64,
    /// The limits of its patterns.
    pub query: Limits,
}

/// What an update changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Quads that were added.
    pub inserted: u64,
    /// Quads that were removed.
    pub removed: u64,
}

/// Applies all operations of an update to a transaction. The later ones see what the earlier ones changed. After an
/// error the transaction must not be committed. Call it on a thread of [`crate::spawn_query_thread`]. Blocking.
///
/// With `skolemize`, each blank node that would be stored becomes an IRI that begins with it (RDF 1.1 Concepts, section
/// 3.5).
///
/// # Errors
/// [`ErrorClass::TooLarge`] past [`UpdateLimits::quads`]; [`ErrorClass::Invalid`] past another limit, and for a blank
/// node that would be stored; [`ErrorClass::NotFound`] if DROP or MOVE without SILENT names a graph without quads,
/// [`ErrorClass::Conflict`] if CREATE without SILENT names one with quads.
pub fn apply_update(
    update: &Update,
    transaction: &mut Transaction<'_>,
    limits: UpdateLimits,
    deadline: Instant,
    skolemize: Option<&NamedNode>,
) -> Result<Changes, GatewayError> {
    let budget = Arc::new(Budget::new(limits.query, deadline.into()));
    catch("the SPARQL request", || {
        let mut application = Application {
            transaction,
            budget: &budget,
            limits,
            skolemize,
            delta: Delta::default(),
            records_delta: false,
            changes: Changes::default(),
        };
        let is_evaluated = |operation: &Operation| {
            matches!(operation.kind, GraphUpdateOperation::DeleteInsert { .. })
        };
        let last_evaluated = update.operations.iter().rposition(is_evaluated);
        for (place, operation) in update.operations.iter().enumerate() {
            application.records_delta = last_evaluated.is_some_and(|last| place < last);
            application.apply(operation, update)?;
        }
        Ok(application.changes)
    })
}

struct Application<'a, 't> {
    transaction: &'a mut Transaction<'t>,
    budget: &'a Arc<Budget>,
    limits: UpdateLimits,
    skolemize: Option<&'a NamedNode>,
    delta: Delta,
    /// Whether a later operation evaluates a pattern, which needs the delta.
    records_delta: bool,
    changes: Changes,
}

/// Quads in the order in which they came. A single table would exist twice whenever it grows, and would be freed only as a
/// whole.
#[derive(Default)]
struct QuadList {
    blocks: Vec<Vec<Quad>>,
}

impl QuadList {
    const QUADS_PER_BLOCK: usize = 1_024;

    fn push(&mut self, quad: Quad) {
        match self.blocks.last_mut() {
            Some(last) if last.len() < Self::QUADS_PER_BLOCK => last.push(quad),
            _ => self.blocks.push(vec![quad]),
        }
    }

    fn into_quads(self) -> impl Iterator<Item = Quad> {
        self.blocks.into_iter().flatten()
    }
}

/// What one operation removes and adds.
#[derive(Default)]
struct EvaluatedQuads {
    removed: QuadList,
    inserted: QuadList,
}

impl Application<'_, '_> {
    fn apply(&mut self, operation: &Operation, update: &Update) -> Result<(), GatewayError> {
        match &operation.kind {
            GraphUpdateOperation::InsertData { data } => {
                data.iter().try_for_each(|quad| self.insert(to_quad(quad.clone())))
            }
            GraphUpdateOperation::DeleteData { data } => data.iter().try_for_each(|quad| {
                let GroundQuad { subject, predicate, object, graph_name } = quad.clone();
                let object = match object {
                    GroundTerm::NamedNode(node) => node.into(),
                    GroundTerm::Literal(literal) => Term::from(literal),
                    // It is refused before the parser, and no quad has one.
                    GroundTerm::Triple(_) => return Ok(()),
                };
                self.remove(Quad::new(subject, predicate, object, to_graph(graph_name)))
            }),
            GraphUpdateOperation::DeleteInsert { .. } => {
                // All solutions come before the first change.
                let EvaluatedQuads { removed, inserted } = self.evaluate(operation, update)?;
                removed.into_quads().try_for_each(|quad| self.remove(quad))?;
                inserted.into_quads().try_for_each(|quad| self.insert(quad))
            }
            // The store has no empty graphs: a graph without quads is clear, and does not exist.
            GraphUpdateOperation::Clear { graph, .. } => self.clear(graph, true),
            GraphUpdateOperation::Drop { graph, silent } => self.clear(graph, *silent),
            GraphUpdateOperation::Create { graph, silent } => {
                let graph = GraphName::NamedNode(graph.clone());
                if *silent || self.list(Some(&graph), 1)?.is_empty() {
                    return Ok(());
                }
                let detail = format!("the graph {graph} exists already; use CREATE SILENT");
                Err(GatewayError::new(ErrorClass::Conflict, detail))
            }
            GraphUpdateOperation::Load { .. } => {
                Err(GatewayError::new(ErrorClass::Invalid, "LOAD is not allowed in updates"))
            }
        }
    }

    fn evaluate(
        &self,
        operation: &Operation,
        update: &Update,
    ) -> Result<EvaluatedQuads, GatewayError> {
        let GraphUpdateOperation::DeleteInsert { delete, insert, using, pattern } = &operation.kind
        else {
            return Ok(EvaluatedQuads::default());
        };
        let mut dataset = Dataset::new(self.transaction.prior_codes(), self.budget);
        let mut graphs = to_graphs(&dataset, using.as_ref());
        if let Some(copy) = operation.copy {
            self.check_copied(copy, pattern)?;
            graphs = Graphs { default: Some(vec![InternalTerm::DEFAULT_GRAPH]), named: None };
        }
        dataset.set_graphs(graphs);
        if let Some(delta) = self.delta.to_codes(|term| dataset.encode(term)) {
            dataset.set_delta(delta);
        }
        let evaluator = evaluator(self.budget);
        let pattern = plan((**pattern).clone(), &dataset, &evaluator, None);
        let (delete, insert) = (delete.clone(), insert.clone());
        let mut prepared = evaluator.prepare_delete_insert(
            delete,
            insert,
            update.base_iri.clone(),
            None,
            &pattern,
        );
        *prepared.dataset_mut() = own_graphs();
        let quads = prepared.execute(&dataset).map_err(|error| to_error(&error))?;
        let mut evaluated = EvaluatedQuads::default();
        for quad in quads {
            match quad.map_err(|error| to_error(&error))? {
                DeleteInsertQuad::Delete(quad) => evaluated.removed.push(quad),
                DeleteInsertQuad::Insert(quad) => evaluated.inserted.push(quad),
            }
        }
        Ok(evaluated)
    }

    /// Refuses to copy a named graph without quads, which would only delete the target.
    fn check_copied(&self, copy: Copy, pattern: &GraphPattern) -> Result<(), GatewayError> {
        let GraphPattern::Graph { name: NamedNodePattern::NamedNode(graph), .. } = pattern else {
            return Ok(());
        };
        if copy.is_silent || !self.list(Some(&graph.clone().into()), 1)?.is_empty() {
            return Ok(());
        }
        let detail =
            format!("the graph {graph} has no quads to copy; use SILENT if that is no error");
        Err(GatewayError::new(ErrorClass::NotFound, detail))
    }

    fn clear(&mut self, graph: &GraphTarget, is_silent: bool) -> Result<(), GatewayError> {
        let quads = match graph {
            GraphTarget::NamedNode(node) => {
                let quads = self.list(Some(&node.clone().into()), usize::MAX)?;
                if quads.is_empty() && !is_silent {
                    return Err(GatewayError::new(
                        ErrorClass::NotFound,
                        format!("the graph {node} has no quads; use SILENT if that is no error"),
                    ));
                }
                quads
            }
            GraphTarget::DefaultGraph => self.list(Some(&GraphName::DefaultGraph), usize::MAX)?,
            GraphTarget::NamedGraphs => {
                let mut quads = self.list(None, usize::MAX)?;
                quads.retain(|quad| quad.graph_name != GraphName::DefaultGraph);
                quads
            }
            GraphTarget::AllGraphs => self.list(None, usize::MAX)?,
        };
        quads.into_iter().try_for_each(|quad| self.remove(quad))
    }

    /// Lists quads, in the state that earlier operations left.
    fn list(&self, graph: Option<&GraphName>, limit: usize) -> Result<Vec<Quad>, GatewayError> {
        let mut quads = Vec::new();
        let pattern = Pattern { graph: graph.cloned(), ..Pattern::default() };
        self.transaction.for_each(&pattern, &mut |quad| {
            self.budget.check();
            quads.push(quad);
            if quads.len() >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(quads)
    }

    fn insert(&mut self, mut quad: Quad) -> Result<(), GatewayError> {
        self.skolemize(&mut quad)?;
        if self.transaction.insert(quad.as_ref())? {
            self.changes.inserted += 1;
            if self.records_delta {
                self.delta.record_insertion(quad);
            }
        }
        self.check_size()
    }

    fn remove(&mut self, quad: Quad) -> Result<(), GatewayError> {
        if self.transaction.remove(quad.as_ref())? {
            self.changes.removed += 1;
            if self.records_delta {
                self.delta.record_removal(quad);
            }
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), GatewayError> {
        self.budget.check();
        let Changes { inserted, removed } = self.changes;
        if inserted + removed > self.limits.quads {
            return Err(GatewayError::new(
                ErrorClass::TooLarge,
                format!(
                    "the update adds and removes more quads than service.limits.sparql.update ({}); split it",
                    self.limits.quads
                ),
            ));
        }
        Ok(())
    }

    /// Replaces the blank nodes of a quad, or refuses them.
    fn skolemize(&self, quad: &mut Quad) -> Result<(), GatewayError> {
        let replace = |node: &oxrdf::BlankNode| match self.skolemize {
            Some(base) => {
                Ok(NamedNode::new_unchecked(format!("{}{}", base.as_str(), node.as_str())))
            }
            None => Err(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "the update would store the blank node {node}, which nothing could refer to later; add ?skolemize=<IRI> to the request, and it becomes an IRI that begins with it"
                ),
            )),
        };
        if let NamedOrBlankNode::BlankNode(node) = &quad.subject {
            quad.subject = replace(node)?.into();
        }
        if let Term::BlankNode(node) = &quad.object {
            quad.object = replace(node)?.into();
        }
        if let GraphName::BlankNode(node) = &quad.graph_name {
            quad.graph_name = replace(node)?.into();
        }
        Ok(())
    }
}

fn to_quad(quad: spargebra::term::Quad) -> Quad {
    Quad::new(quad.subject, quad.predicate, quad.object, to_graph(quad.graph_name))
}

fn to_graph(graph: spargebra::term::GraphName) -> GraphName {
    match graph {
        spargebra::term::GraphName::NamedNode(node) => GraphName::NamedNode(node),
        spargebra::term::GraphName::DefaultGraph => GraphName::DefaultGraph,
    }
}
