//! Shapes graphs that users define.
use super::business_object::Warning;
use penstock_model::shapes_graphs::GraphMetadata;
use penstock_service::shapes_graphs::CheckedGraph;
use salvo_oapi::ToSchema;
use serde::Serialize;

/// A shapes graph, without its text.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ShapesGraph", rename_all = "camelCase"))]
pub(crate) struct ShapesGraph {
    /// Its name, as Business Objects write it.
    pub(crate) name: String,
    /// The media type of its text.
    pub(crate) media_type: String,
    /// 1 at its creation, incremented by each change; in quotes it is the `ETag`.
    pub(crate) version: u64,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub(crate) updated_at: String,
    /// Who changed it last: an account's id, or `local`.
    pub(crate) updated_by: String,
    /// The names of the Business Objects that name it.
    pub(crate) used_by: Vec<String>,
    /// What is probably wrong with it.
    pub(crate) warnings: Vec<Warning>,
}

impl From<CheckedGraph> for ShapesGraph {
    fn from(CheckedGraph { metadata, used_by, warnings }: CheckedGraph) -> Self {
        let GraphMetadata { name, format, version, created_at, updated_at, updated_by } = metadata;
        Self {
            name,
            media_type: format.media_type().to_owned(),
            version,
            created_at,
            updated_at,
            updated_by,
            used_by,
            warnings: warnings.into_iter().map(Warning::from).collect(),
        }
    }
}

/// A page of shapes graphs.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ShapesGraphs"))]
pub(crate) struct ShapesGraphs {
    /// Ordered by name.
    pub(crate) items: Vec<ShapesGraph>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
