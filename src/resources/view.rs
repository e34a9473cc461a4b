//! Saved views of Business Objects.
use crate::body::accept_answer;
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The maximum number of columns of a table of objects, also in a saved view.
pub const MAX_COLUMNS: usize = 50;
/// The maximum length of the name of a view in characters.
pub const MAX_NAME_CHARS: usize = 100;
/// The maximum number of filters of a view.
pub const MAX_FILTERS: usize = 20;
/// The maximum length of the name of a field in characters, with those of the fields around it.
pub const MAX_FIELD_CHARS: usize = 500;
/// The maximum length of a value in characters.
pub const MAX_VALUE_CHARS: usize = 1_000;

/// A saved view: how somebody looks at a Business Object, under a name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The id of its Business Object.
    pub business_object: String,
    /// What an object must fulfil, all of them.
    pub filters: Vec<ViewFilter>,
    /// The field that orders the objects, with `-` before it for descending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_by: Option<String>,
    /// The fields that the table shows, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// The chart above the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<ViewChart>,
    /// Whether everybody sees it, or only its owner.
    pub shared: bool,
    /// The id of the account that saved it; null for local administration. A shared view outlasts its account.
    pub owner: Option<String>,
    /// A number that each change raises by 1 or more; in quotes it is the `ETag`.
    pub version: u64,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub updated_at: String,
    /// Who changed it last: the id of an account or API key, or `local`.
    pub updated_by: String,
    /// What no longer fits: its Business Object was deleted, or the mapping no longer has a field.
    pub warnings: Vec<Warning>,
}

/// A condition of a saved view, in texts as the address of a list has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ViewFilter {
    /// The field, with a dot before the name of a nested one: `place.room`.
    #[schemars(length(min = 1, max = MAX_FIELD_CHARS))]
    pub field: String,
    /// The test, as in GraphQL: `eq`, `in`, `contains`, `containsAnyCase`, `startsWith`, `before`, `after`, `atLeast`, `atMost`
    /// or `exists`. Several `in` of one field are one list.
    pub test: String,
    /// What the value is compared with; `true` or `false` for `exists`.
    #[schemars(length(max = MAX_VALUE_CHARS))]
    pub value: String,
}

/// The chart of a saved view.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ViewChart {
    /// The field whose dates or times are the horizontal axis: without it, the first one of the mapping; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The field whose numbers are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// The field with a line for each of its values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
}

/// A view to save. The members of an answer may be sent back.
#[derive(JsonSchema)]
#[schemars(
    rename_all = "camelCase",
    deny_unknown_fields,
    transform = accept_answer::<SavedView>,
    example = json!({
        "name": "Over the limit", "businessObject": "Pump", "filters": [{"field": "flow", "test": "after", "value": "10"}],
        "orderBy": "-flow",
    })
)]
pub struct NewView {
    /// Its name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub name: String,
    /// The id or name of its Business Object.
    pub business_object: String,
    /// What an object must fulfil, all of them.
    #[schemars(length(max = MAX_FILTERS))]
    pub filters: Option<Vec<ViewFilter>>,
    /// The field that orders the objects, with `-` before it for descending.
    pub order_by: Option<String>,
    /// The fields that the table shows, in this order.
    #[schemars(length(max = MAX_COLUMNS))]
    pub columns: Option<Vec<String>>,
    /// The chart above the table.
    pub chart: Option<ViewChart>,
    /// Whether everybody sees it. This needs the role Contributor; without it, the view is its owner's.
    pub shared: Option<bool>,
}
