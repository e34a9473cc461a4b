//! Stored shapes graphs.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_shapes::{ShapesFormat, ShapesGraph};
use penstock_store::Read;
use std::sync::Arc;

/// Returns a compiled shapes graph.
pub(crate) fn read_compiled(
    read: &impl Read,
    name: &str,
) -> Result<Arc<ShapesGraph>, GatewayError> {
    let text = read.read_document("shapes-graphs", name.as_bytes())?;
    let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else {
        let why = format!("there is no shapes graph {name:?}");
        return Err(GatewayError::new(ErrorClass::Damaged, why));
    };
    let graph = ShapesGraph::read(&text, ShapesFormat::Rdf(oxrdfio::RdfFormat::Turtle))?;
    Ok(Arc::new(graph))
}
