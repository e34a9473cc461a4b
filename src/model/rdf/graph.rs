//! Writes or deletes one graph in one commit.
use super::LoadOptions;
use super::read::{DocumentReader, ReadRules};
use oxrdf::{GraphName, Quad};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::ingestion::QuadCounts;
use penstock_store::{Error, Pattern, Read, Transaction};
use std::ops::ControlFlow;

/// The rules of a document that a client sends for one graph.
const GRAPH_RULES: ReadRules = ReadRules {
    skolemize_option: "?skolemize=<IRI>",
    blank_node_class: ErrorClass::Invalid,
    allows_named_graphs: false,
};
/// The number of quads that are collected before they are removed.
const REMOVED_AT_ONCE: usize = 10_000;

/// A change of one graph.
#[derive(Debug, Clone, Copy)]
pub struct GraphWrite<'a> {
    /// The graph. The default graph is the unnamed one.
    pub graph: &'a GraphName,
    /// Whether its quads are removed first.
    pub replaces: bool,
    /// The document to add, which is read with these options.
    pub document: Option<(&'a LoadOptions, &'a [u8])>,
    /// `service.limits.sparql.update`: the maximum number of quads of the document, and of those that are removed.
    pub max_quads: u64,
}

/// What a change of a graph did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenGraph {
    /// Whether the graph had quads before.
    pub existed: bool,
    /// The quads that it changed.
    pub quads: QuadCounts,
}

/// Returns whether a graph has quads.
pub fn has_quads(read: &dyn Read, graph: &GraphName) -> Result<bool, Error> {
    read.any(&graph_pattern(graph))
}

/// Applies the change to the transaction.
///
/// # Errors
/// - `ErrorClass::Malformed` for an error in the document, with its place
/// - `ErrorClass::Invalid` for a blank node
/// - `ErrorClass::TooLarge` if it changes more quads than allowed
pub fn write_graph(
    transaction: &mut Transaction<'_>,
    write: &GraphWrite<'_>,
) -> Result<WrittenGraph, GatewayError> {
    let existed = has_quads(transaction, write.graph)?;
    let removed = if write.replaces { remove_graph(transaction, write)? } else { 0 };
    let mut inserted = 0;
    if let Some((options, text)) = write.document {
        let mut reader = DocumentReader::new(options, &GRAPH_RULES, text)?;
        let mut read = 0;
        while let Some(quad) = reader.next_quad()? {
            read += 1;
            check_limit(read, write.max_quads)?;
            inserted += u64::from(transaction.insert(quad.as_ref())?);
        }
    }
    // A quad that was removed and inserted again is not a change.
    let kept = removed - transaction.removed_quads().min(removed);
    let quads = QuadCounts { inserted: inserted - kept.min(inserted), removed: removed - kept };
    Ok(WrittenGraph { existed, quads })
}

/// Removes all quads of the graph, and returns their number.
fn remove_graph(
    transaction: &mut Transaction<'_>,
    write: &GraphWrite<'_>,
) -> Result<u64, GatewayError> {
    let pattern = graph_pattern(write.graph);
    let mut removed = 0;
    loop {
        let mut quads: Vec<Quad> = Vec::new();
        transaction.for_each(&pattern, &mut |quad| {
            quads.push(quad);
            if quads.len() < REMOVED_AT_ONCE {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        if quads.is_empty() {
            return Ok(removed);
        }
        removed += quads.len() as u64;
        check_limit(removed, write.max_quads)?;
        for quad in &quads {
            transaction.remove(quad.as_ref())?;
        }
    }
}

fn check_limit(quads: u64, limit: u64) -> Result<(), GatewayError> {
    if quads <= limit {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::TooLarge,
        format!(
            "the request changes more quads than one commit may (service.limits.sparql.update={limit}); send the \
             document in parts with POST, or load it with `penstock load`"
        ),
    ))
}

fn graph_pattern(graph: &GraphName) -> Pattern {
    Pattern { graph: Some(graph.clone()), ..Pattern::default() }
}
