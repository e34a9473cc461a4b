//! From nodes to the tree of shapes.
use super::Mapping;
use crate::fault::Finding;

/// Compiles the text of a `config`, YAML or JSON.
///
/// # Errors
/// Every fault found, in the order of the text, each with line and column.
pub fn compile(config: &str) -> Result<Mapping, Vec<Finding>> {
    let _ = config;
    todo!()
}
