//! Business Objects, and objects through their view.
use super::namespace::Generator;
use salvo::oapi::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A Business Object as it is defined.
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
pub(in crate::http) struct Definition {
    /// Its name, unique on this gateway.
    #[salvo(schema(min_length = 1))]
    pub(in crate::http) name: String,
    /// Free text.
    #[salvo(schema(required = false))]
    pub(in crate::http) description: String,
    /// Whether it takes ingestions and exports; true when absent.
    #[salvo(schema(required = false))]
    pub(in crate::http) enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub(in crate::http) config: String,
    /// Namespaces that are defined with it, in the same commit.
    #[salvo(schema(required = false))]
    pub(in crate::http) namespaces: Vec<DefinedNamespace>,
    /// Which stored objects belong to it: all that satisfy every one.
    #[salvo(schema(required = false))]
    pub(in crate::http) conditions: Vec<Condition>,
    /// Where its exports go.
    #[salvo(schema(required = false))]
    pub(in crate::http) push_targets: Vec<PushTarget>,
    /// When full exports run by themselves: cron of 5 or 6 fields.
    #[salvo(schema(required = false))]
    pub(in crate::http) schedule: Option<String>,
    /// The IANA time zone of `schedule`; UTC when absent.
    #[salvo(schema(required = false))]
    pub(in crate::http) timezone: Option<String>,
    /// Whether changes are exported by themselves.
    #[salvo(schema(required = false))]
    pub(in crate::http) export_on_change: bool,
    /// How long an export on change waits for further changes (`5s`).
    #[salvo(schema(required = false))]
    pub(in crate::http) debounce: Option<String>,
    /// ISO 8601 duration after which unchanged, delivered objects are removed.
    #[salvo(schema(required = false))]
    pub(in crate::http) retention: Option<String>,
    /// Taken and not looked at, as the six that follow: an answer can be put back.
    #[salvo(schema(required = false))]
    pub(in crate::http) id: Value,
    /// As `id`.
    #[salvo(schema(required = false))]
    pub(in crate::http) version: Value,
    /// As `id`.
    #[salvo(schema(required = false))]
    pub(in crate::http) created_at: Value,
    /// As `id`.
    #[salvo(schema(required = false))]
    pub(in crate::http) updated_at: Value,
    /// As `id`.
    #[salvo(schema(required = false))]
    pub(in crate::http) updated_by: Value,
    /// As `id`.
    #[salvo(schema(required = false))]
    pub(in crate::http) created_namespaces: Value,
    /// As `id`.
    #[salvo(schema(required = false))]
    pub(in crate::http) warnings: Value,
}

/// A Business Object.
#[derive(ToSchema)]
#[salvo(schema(name = "BusinessObject", rename_all = "camelCase"))]
pub(in crate::http) struct BusinessObject {
    /// Its identifier, made at its creation.
    pub(in crate::http) id: String,
    /// Its name, unique on this gateway.
    pub(in crate::http) name: String,
    /// Free text.
    pub(in crate::http) description: String,
    /// Whether it takes ingestions and exports.
    pub(in crate::http) enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub(in crate::http) config: String,
    /// Namespaces that are defined with it.
    pub(in crate::http) namespaces: Vec<DefinedNamespace>,
    /// Which stored objects belong to it: all that satisfy every one.
    pub(in crate::http) conditions: Vec<Condition>,
    /// Where its exports go.
    pub(in crate::http) push_targets: Vec<PushTarget>,
    /// When full exports run by themselves.
    #[salvo(schema(required = false))]
    pub(in crate::http) schedule: Option<String>,
    /// The time zone of `schedule`.
    #[salvo(schema(required = false))]
    pub(in crate::http) timezone: Option<String>,
    /// Whether changes are exported by themselves.
    pub(in crate::http) export_on_change: bool,
    /// How long an export on change waits for further changes.
    #[salvo(schema(required = false))]
    pub(in crate::http) debounce: Option<String>,
    /// After what time unchanged, delivered objects are removed.
    #[salvo(schema(required = false))]
    pub(in crate::http) retention: Option<String>,
    /// 1 at its creation, one more with each change; the `ETag` is this in quotes.
    pub(in crate::http) version: u64,
    /// When it was created (RFC 3339, UTC).
    pub(in crate::http) created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub(in crate::http) updated_at: String,
    /// Who changed it last: an account's id, or `local`. Absent when that was before there were accounts.
    #[salvo(schema(required = false))]
    pub(in crate::http) updated_by: Option<String>,
    /// Namespaces that its last change created.
    pub(in crate::http) created_namespaces: Vec<String>,
    /// What is probably not meant in it.
    pub(in crate::http) warnings: Vec<Warning>,
}

/// A namespace that is defined with a Business Object.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "DefinedNamespace", rename_all = "camelCase"))]
pub(in crate::http) struct DefinedNamespace {
    /// Its name, as the mapping writes it.
    pub(in crate::http) name: String,
    /// What every identifier begins with; absent: the base that it has, or the default base.
    #[salvo(schema(required = false))]
    pub(in crate::http) uri_base: Option<String>,
    /// How the local part is made; absent: as it is, or `uuid`.
    #[salvo(schema(required = false))]
    pub(in crate::http) generator: Option<Generator>,
}

/// What is probably not meant in a definition.
#[derive(ToSchema)]
#[salvo(schema(name = "Warning"))]
pub(in crate::http) struct Warning {
    /// The line in `config`.
    #[salvo(schema(required = false))]
    pub(in crate::http) line: Option<u64>,
    /// The column in `config`, in characters.
    #[salvo(schema(required = false))]
    pub(in crate::http) column: Option<u64>,
    /// A JSON Pointer into the definition.
    #[salvo(schema(required = false))]
    pub(in crate::http) pointer: Option<String>,
    /// What it is, and what to do.
    pub(in crate::http) message: String,
}

/// One condition: some graph holds (object, predicate, value).
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "Condition"))]
pub(in crate::http) struct Condition {
    /// An IRI without angle brackets, or a name with a prefix of the mapping.
    pub(in crate::http) predicate: String,
    /// An IRI, or a name with a prefix of the mapping.
    pub(in crate::http) value: String,
}

/// One export target.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "PushTarget", rename_all = "camelCase"))]
pub(in crate::http) struct PushTarget {
    /// A valid S3 bucket name.
    #[salvo(schema(min_length = 3, max_length = 63))]
    pub(in crate::http) bucket_name: String,
}

/// A page of Business Objects.
#[derive(ToSchema)]
#[salvo(schema(name = "BusinessObjects"))]
pub(in crate::http) struct BusinessObjects {
    /// Ordered by name.
    pub(in crate::http) items: Vec<BusinessObject>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(in crate::http) next: Option<String>,
}

/// A page of objects through the view.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Objects"))]
pub(in crate::http) struct Objects {
    /// Ordered by URI.
    pub(in crate::http) items: Vec<BTreeMap<String, Value>>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(in crate::http) next: Option<String>,
}

/// A page of objects, or one of them.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[salvo(schema(name = "ObjectsOrObject"))]
pub(in crate::http) enum ObjectsOrObject {
    Page(Objects),
    One(ViewedObject),
}

/// One object in the configured structure, its `uri` included.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Object"))]
pub(in crate::http) struct ViewedObject {
    /// Its URI.
    pub(in crate::http) uri: String,
}

/// A JSON Schema (2020-12).
#[derive(ToSchema)]
#[salvo(schema(name = "JsonSchema"))]
pub(in crate::http) struct JsonSchema {
    /// The dialect.
    #[salvo(schema(rename = "$schema"))]
    pub(in crate::http) schema: String,
}
