//! Summaries of objects.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// How many objects each group has.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// The groups: the largest first, those of times in order.
    pub rows: Vec<SummaryRow>,
    /// Whether these are all groups.
    pub complete: bool,
}

/// A group of objects. Besides its members it has one for each measure, named as in the request: `min(flow)`. It is null
/// if no object has a value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SummaryRow {
    /// The value of the group, null for none; with two groups an array of both. Absent if the request has no group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Value>,
    /// How many objects it has.
    pub count: u64,
    /// The measures.
    #[serde(flatten)]
    pub measures: Map<String, Value>,
}
