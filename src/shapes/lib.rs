//! Shapes: what data must look like, in SHACL Core or in ShEx.
//!
//! [`ShapesGraph::read`] reads and checks a shapes graph, [`ShapesGraph::validate`] validates objects with it. rudof's
//! crates `shacl`, `shex_ast` and `shex_validation` do the work. `data` gives them the triples of a snapshot, of a
//! transaction that is not committed yet, or of a file; nothing is copied into a store of their own. `budget` ends a
//! validation that exceeds its limits.
mod budget;
mod data;
mod describe;
mod graph;
mod shacl;
mod stored;
#[cfg(test)]
mod tests;
mod violation;

pub use budget::{Cancellation, Limits};
pub use data::{Data, Triples};
pub use graph::{Language, MAX_GRAPH_BYTES, Scope, ShapesFormat, ShapesGraph};
pub use stored::{Changes, StoredTriples};
pub use violation::{Severity, Violation};
