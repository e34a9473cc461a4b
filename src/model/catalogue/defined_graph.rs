//! What the catalogue has in memory of each shapes graph.
use crate::shapes_graphs::{GraphMetadata, StoredGraph};
use penstock_base::error::GatewayError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A defined shapes graph.
#[derive(Debug, Clone)]
pub struct DefinedGraph {
    /// What is known about it.
    pub metadata: GraphMetadata,
    /// The length of its text in bytes.
    pub bytes: usize,
    /// Why this version cannot compile it, if so.
    pub fault: Option<GatewayError>,
}

impl DefinedGraph {
    /// Creates the entry of a graph that compiles.
    pub(super) fn from_stored(StoredGraph { metadata, text }: StoredGraph) -> Self {
        Self { metadata, bytes: text.len(), fault: None }
    }
}

/// All shapes graphs, by name.
pub(super) type DefinedGraphs = BTreeMap<String, Arc<DefinedGraph>>;
