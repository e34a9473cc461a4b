//! Business Objects.
use crate::body::accept_answer;
use crate::names::wire_names;
use crate::namespace::DefinedNamespace;
use crate::warning::Warning;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BusinessObject {
    /// Its identifier, generated at its creation.
    pub id: String,
    /// Its definition.
    #[serde(flatten)]
    pub definition: Definition,
    /// A number that each change raises by 1 or more; in quotes it is the `ETag`.
    pub version: u64,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub updated_at: String,
    /// Who changed it last: an account's id, or `local`. Absent if that was before accounts existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    /// Namespaces that its last change created.
    pub created_namespaces: Vec<String>,
    /// The progress of its deletion; only while it is being deleted with its objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting: Option<Deleting>,
    /// Valid parts of the definition that are probably mistakes.
    pub warnings: Vec<Warning>,
}

/// The definition of a Business Object, as an answer and the body of a request have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name, unique on this gateway.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Free text.
    pub description: String,
    /// Whether it accepts ingestions and exports; true unless the definition says otherwise.
    pub enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub config: String,
    /// Namespaces that are defined with it, in the same commit.
    pub namespaces: Vec<DefinedNamespace>,
    /// The conditions that every object of it satisfies.
    pub conditions: Vec<Condition>,
    /// The targets of its exports.
    pub push_targets: Vec<PushTarget>,
    /// When full exports run automatically: cron with 5 or 6 fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The IANA time zone of `schedule`; UTC when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether changes are exported automatically.
    pub export_on_change: bool,
    /// How long an export on change waits for further changes (`5s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debounce: Option<String>,
    /// ISO 8601 duration after which unchanged, delivered objects are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
    /// The shapes graphs that validate its objects; absent if there are none. If a new definition leaves it out and the
    /// stored one has it, the new one is refused (409); empty `shapes` and the mode `off` remove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Which ingestions become changes under review; absent if none do. If a new definition leaves it out and the stored
    /// one has it, the new one is refused (409); `off` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Who approves changes: `user:<id or email>` or `group:<name>`; absent if Admins do. If a new definition leaves it
    /// out and the stored one has it, the new one is refused (409); an empty list removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<String>>,
}

/// The definition of a Business Object.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields, transform = require_name_and_config, transform = accept_answer::<BusinessObject>, example = json!({
    "name": "Pump",
    "description": "Pumps of the plant",
    "enabled": true,
    "config": "type: object\npath: Pump:.\nfields:\n  name:\n    type: string\n    path: <https://plant.example/name>\n",
    "conditions": [],
    "pushTargets": [{"bucketName": "plant-exports"}],
}))]
pub struct BusinessObjectDefinition {
    /// Its members.
    #[schemars(flatten)]
    pub definition: Definition,
}

/// Describes that a body can leave out all members but the name and the mapping.
fn require_name_and_config(body: &mut Schema) {
    body.insert("required".to_owned(), json!(["name", "config"]));
}

/// The shapes graphs that validate the objects of a Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Validation {
    /// The names of the shapes graphs.
    pub shapes: Vec<String>,
    /// What a violation does.
    pub mode: ValidationMode,
}

/// What a violation of a shape does: it refuses the request, adds a warning to its answer, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValidationMode {
    /// The request is refused.
    Reject,
    /// The answer has a warning.
    Warn,
    /// Nothing; objects are not validated.
    #[default]
    Off,
}

wire_names!(ValidationMode, "mode" { Reject: "reject", Warn: "warn", Off: "off" });

/// Which ingestions become changes under review: none, only on request, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Review {
    /// None.
    #[default]
    Off,
    /// The ingestions that ask for it.
    Optional,
    /// All of them. No other commit may change the objects.
    Required,
}

wire_names!(Review, "review" { Off: "off", Optional: "optional", Required: "required" });

/// The progress of the deletion of a Business Object with its objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deleting {
    /// The number of its objects that the deletion has not reached yet.
    pub remaining: u64,
}

/// What the deletion of a Business Object with its objects would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct DeletionCount {
    /// The number of its objects that it would delete, without the objects nested in them.
    pub objects: u64,
    /// The number of its objects that it would keep, because they also belong to another Business Object, or are nested in
    /// an object that requires a review.
    pub kept: u64,
}

/// One condition: some graph contains (object, predicate, value).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Condition {
    /// An IRI without angle brackets, or a name with a prefix of the mapping.
    pub predicate: String,
    /// An IRI, or a name with a prefix of the mapping. The text of a literal if it has no colon, or with `datatype` or
    /// `language`.
    pub value: String,
    /// The datatype of the literal, as `predicate`. Without it and without `language`, a value without a colon is a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datatype: Option<String>,
    /// The language of the literal (RFC 5646).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

impl Condition {
    /// Returns whether the value is an IRI, not a literal.
    pub fn has_iri(&self) -> bool {
        self.datatype.is_none() && self.language.is_none() && self.value.contains(':')
    }

    /// Returns the value with its language or datatype.
    pub fn describe_value(&self) -> String {
        let Self { predicate: _, value, datatype, language } = self;
        match (language, datatype) {
            (Some(language), _) => format!("{value}@{language}"),
            (None, Some(datatype)) => format!("{value}^^{datatype}"),
            (None, None) => value.clone(),
        }
    }
}

/// One export target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct PushTarget {
    /// A valid S3 bucket name; `service.export.targets.*` configures where it leads.
    #[schemars(length(min = 3, max = 63))]
    pub bucket_name: String,
}

/// A JSON Schema (2020-12). The model writes it, so this type only describes it.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename = "JsonSchema")]
pub struct ObjectSchema {
    /// The dialect.
    #[schemars(rename = "$schema")]
    pub schema: String,
}
