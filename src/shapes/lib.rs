//! Shapes: what data must look like, in SHACL Core or in `ShEx`.
//!
//! [`ShapesGraph::read`] reads and checks a shapes graph, [`ShapesGraph::validate`] validates objects with it. rudof's
//! crates `shacl`, `shex_ast` and `shex_validation` do the work. `data` gives them the triples of a snapshot or of a
//! file; nothing is copied into a store of their own. `lend` gives them those of a transaction, which only its own thread
//! can read. `budget` ends a validation that exceeds its limits.
mod budget;
mod data;
mod describe;
mod document;
mod graph;
mod lend;
mod paths;
mod patterns;
mod report;
mod scope;
mod shacl;
mod shex;
#[cfg(test)]
mod tests;
mod violation;

pub use budget::{Budget, Cancellation, Limits};
pub use data::{Data, StoredTriples, TriplePattern, Triples, to_subject};
pub use document::Document;
pub use graph::{Language, MAX_GRAPH_BYTES, ShapesFormat, ShapesGraph};
pub use lend::{VALIDATION_STACK_BYTES, lend_triples};
pub use report::ReportWriter;
pub use scope::{Properties, Scope, Targets};
pub use violation::{Severity, Violation};
