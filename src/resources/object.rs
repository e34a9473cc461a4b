//! Objects, as an ingestion sends them and as the view shows them. The model reads and writes their JSON, so these types
//! only describe it.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The body of an ingestion.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields, example = json!({"data": [{"name": "P-101"}]}))]
pub struct IngestionRequest {
    /// Objects with the field names of the mapping; `uri` is optional.
    pub data: Vec<BTreeMap<String, Value>>,
    /// The metadata of an export file. It is checked, and not stored.
    pub metadata: Option<BTreeMap<String, Value>>,
}

/// A page of objects in the view.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Objects {
    /// Ordered by URI.
    pub items: Vec<BTreeMap<String, Value>>,
    /// The `cursor` of the next page, or null.
    pub next: Option<String>,
}

/// A page of objects, or one of them.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ObjectsOrObject {
    /// A page.
    Page(Objects),
    /// With `uri`, that object.
    One(ViewedObject),
}

/// One object in the configured structure, its `uri` included.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Object")]
pub struct ViewedObject {
    /// Its URI.
    pub uri: String,
}
