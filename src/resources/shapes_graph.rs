//! Shapes graphs that users define.
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::Serialize;

/// A shapes graph, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShapesGraph {
    /// Its name, as Business Objects write it.
    pub name: String,
    /// The media type of its text.
    pub media_type: String,
    /// A number that each change raises by 1 or more; in quotes it is the `ETag`.
    pub version: u64,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub updated_at: String,
    /// Who changed it last: an account's id, or `local`.
    pub updated_by: String,
    /// The names of the Business Objects that name it.
    pub used_by: Vec<String>,
    /// What is probably wrong with it.
    pub warnings: Vec<Warning>,
}
