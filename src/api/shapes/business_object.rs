//! Business Objects, and objects in their view.
use super::namespace::Generator;
use penstock_base::error::{Finding, Place};
use salvo::oapi::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The definition of a Business Object.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "BusinessObjectDefinition", example = json!({
    "name": "Pump",
    "description": "Pumps of the plant",
    "enabled": true,
    "config": "type: object\npath: Pump:.\nfields:\n  name:\n    type: string\n    path: <https://plant.example/name>\n",
    "conditions": [],
    "pushTargets": [{"bucketName": "plant-exports"}],
})))]
pub(crate) struct Definition {
    /// Its name, unique on this gateway.
    #[salvo(schema(min_length = 1))]
    pub(crate) name: String,
    /// Free text.
    #[salvo(schema(required = false))]
    pub(crate) description: String,
    /// Whether it accepts ingestions and exports; true when absent.
    #[salvo(schema(required = false))]
    pub(crate) enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub(crate) config: String,
    /// Namespaces that are defined with it, in the same commit.
    #[salvo(schema(required = false))]
    pub(crate) namespaces: Vec<DefinedNamespace>,
    /// The conditions that every object of it satisfies.
    #[salvo(schema(required = false))]
    pub(crate) conditions: Vec<Condition>,
    /// The targets of its exports.
    #[salvo(schema(required = false))]
    pub(crate) push_targets: Vec<PushTarget>,
    /// When full exports run automatically: cron with 5 or 6 fields.
    #[salvo(schema(required = false))]
    pub(crate) schedule: Option<String>,
    /// The IANA time zone of `schedule`; UTC when absent.
    #[salvo(schema(required = false))]
    pub(crate) timezone: Option<String>,
    /// Whether changes are exported automatically.
    #[salvo(schema(required = false))]
    pub(crate) export_on_change: bool,
    /// How long an export on change waits for further changes (`5s`).
    #[salvo(schema(required = false))]
    pub(crate) debounce: Option<String>,
    /// ISO 8601 duration after which unchanged, delivered objects are removed.
    #[salvo(schema(required = false))]
    pub(crate) retention: Option<String>,
    /// Accepted and ignored, like the six fields that follow, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) id: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) version: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) updated_at: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) updated_by: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) created_namespaces: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) warnings: Value,
}

/// A Business Object.
#[derive(ToSchema)]
#[salvo(schema(name = "BusinessObject", rename_all = "camelCase"))]
pub(crate) struct BusinessObject {
    /// Its identifier, generated at its creation.
    pub(crate) id: String,
    /// Its name, unique on this gateway.
    pub(crate) name: String,
    /// Free text.
    pub(crate) description: String,
    /// Whether it accepts ingestions and exports.
    pub(crate) enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub(crate) config: String,
    /// Namespaces that are defined with it.
    pub(crate) namespaces: Vec<DefinedNamespace>,
    /// The conditions that every object of it satisfies.
    pub(crate) conditions: Vec<Condition>,
    /// The targets of its exports.
    pub(crate) push_targets: Vec<PushTarget>,
    /// When full exports run automatically.
    #[salvo(schema(required = false))]
    pub(crate) schedule: Option<String>,
    /// The time zone of `schedule`.
    #[salvo(schema(required = false))]
    pub(crate) timezone: Option<String>,
    /// Whether changes are exported automatically.
    pub(crate) export_on_change: bool,
    /// How long an export on change waits for further changes.
    #[salvo(schema(required = false))]
    pub(crate) debounce: Option<String>,
    /// The time after which unchanged, delivered objects are removed.
    #[salvo(schema(required = false))]
    pub(crate) retention: Option<String>,
    /// 1 at its creation, incremented by each change; in quotes it is the `ETag`.
    pub(crate) version: u64,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub(crate) updated_at: String,
    /// Who changed it last: an account's id, or `local`. Absent if that was before accounts existed.
    #[salvo(schema(required = false))]
    pub(crate) updated_by: Option<String>,
    /// Namespaces that its last change created.
    pub(crate) created_namespaces: Vec<String>,
    /// Valid parts of the definition that are probably mistakes.
    pub(crate) warnings: Vec<Warning>,
}

/// A namespace that is defined with a Business Object.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "DefinedNamespace", rename_all = "camelCase"))]
pub(crate) struct DefinedNamespace {
    /// Its name, as the mapping writes it.
    pub(crate) name: String,
    /// The prefix of every identifier; when absent its present base, or the default base.
    #[salvo(schema(required = false))]
    pub(crate) uri_base: Option<String>,
    /// How the local part is generated; when absent the present generator, or `uuid`.
    #[salvo(schema(required = false))]
    pub(crate) generator: Option<Generator>,
}

/// A valid part of a definition that is probably a mistake.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Warning"))]
pub(crate) struct Warning {
    /// The line in `config`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) line: Option<u64>,
    /// The column in `config`, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) column: Option<u64>,
    /// A JSON Pointer into the definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) pointer: Option<String>,
    /// What was found, and what to do.
    pub(crate) message: String,
}

impl From<Finding> for Warning {
    fn from(Finding { place, message }: Finding) -> Self {
        let (pointer, line, column) = match place {
            Place::Pointer(pointer) => (Some(pointer), None, None),
            Place::Line { line, column } => (None, Some(line), Some(column)),
            Place::Whole => (None, None, None),
        };
        Self { line, column, pointer, message }
    }
}

/// One condition: some graph contains (object, predicate, value).
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "Condition"))]
pub(crate) struct Condition {
    /// An IRI without angle brackets, or a name with a prefix of the mapping.
    pub(crate) predicate: String,
    /// An IRI, or a name with a prefix of the mapping.
    pub(crate) value: String,
}

/// One export target.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "PushTarget", rename_all = "camelCase"))]
pub(crate) struct PushTarget {
    /// A valid S3 bucket name.
    #[salvo(schema(min_length = 3, max_length = 63))]
    pub(crate) bucket_name: String,
}

/// A page of Business Objects.
#[derive(ToSchema)]
#[salvo(schema(name = "BusinessObjects"))]
pub(crate) struct BusinessObjects {
    /// Ordered by name.
    pub(crate) items: Vec<BusinessObject>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// A page of objects in the view.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Objects"))]
pub(crate) struct Objects {
    /// Ordered by URI.
    pub(crate) items: Vec<BTreeMap<String, Value>>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// A page of objects, or one of them.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[salvo(schema(name = "ObjectsOrObject"))]
pub(crate) enum ObjectsOrObject {
    Page(Objects),
    One(ViewedObject),
}

/// One object in the configured structure, its `uri` included.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Object"))]
pub(crate) struct ViewedObject {
    /// Its URI.
    pub(crate) uri: String,
}

/// A JSON Schema (2020-12).
#[derive(ToSchema)]
#[salvo(schema(name = "JsonSchema"))]
pub(crate) struct JsonSchema {
    /// The dialect.
    #[salvo(schema(rename = "$schema"))]
    pub(crate) schema: String,
}
