//! Business Objects, and objects in their view.
use super::namespace::Generator;
use penstock_base::error::{Finding, Place};
use penstock_model::catalogue;
use penstock_model::namespace::NamespaceDefinition;
use penstock_model::resource;
use penstock_service::business_objects::CheckedBusinessObject;
use salvo_oapi::ToSchema;
use serde::{Deserialize, Serialize};

/// A Business Object.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) schedule: Option<String>,
    /// The time zone of `schedule`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) timezone: Option<String>,
    /// Whether changes are exported automatically.
    pub(crate) export_on_change: bool,
    /// How long an export on change waits for further changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) debounce: Option<String>,
    /// The time after which unchanged, delivered objects are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) retention: Option<String>,
    /// The shapes graphs that validate its objects; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) validation: Option<Validation>,
    /// Which ingestions become changes under review; absent if none do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) review: Option<Review>,
    /// Who approves changes; absent if Admins do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) approvers: Option<Vec<String>>,
    /// 1 at its creation, incremented by each change; in quotes it is the `ETag`.
    pub(crate) version: u64,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub(crate) updated_at: String,
    /// Who changed it last: an account's id, or `local`. Absent if that was before accounts existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) updated_by: Option<String>,
    /// Namespaces that its last change created.
    pub(crate) created_namespaces: Vec<String>,
    /// The progress of its deletion; only while it is being deleted with its objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) deleting: Option<Deleting>,
    /// Valid parts of the definition that are probably mistakes.
    pub(crate) warnings: Vec<Warning>,
}

/// The shapes graphs that validate the objects of a Business Object.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "Validation"))]
pub(crate) struct Validation {
    /// The names of the shapes graphs.
    pub(crate) shapes: Vec<String>,
    /// What a violation does.
    pub(crate) mode: ValidationMode,
}

/// What a violation of a shape does: it refuses the request, adds a warning to its answer, or nothing.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "ValidationMode", rename_all = "lowercase"))]
pub(crate) enum ValidationMode {
    Reject,
    Warn,
    Off,
}

/// Which ingestions become changes under review: none, only on request, or all.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Review", rename_all = "lowercase"))]
pub(crate) enum Review {
    Off,
    Optional,
    Required,
}

/// The progress of the deletion of a Business Object with its objects.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Deleting"))]
pub(crate) struct Deleting {
    /// The number of its objects that the deletion has not reached yet.
    pub(crate) remaining: u64,
}

/// What the deletion of a Business Object with its objects would do.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "DeletionCount"))]
pub(crate) struct DeletionCount {
    /// The number of its objects that it would delete, without the objects nested in them.
    pub(crate) objects: u64,
    /// The number of its objects that it would keep, because they also belong to another Business Object.
    pub(crate) kept: u64,
}

/// A namespace that is defined with a Business Object.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "DefinedNamespace", rename_all = "camelCase"))]
pub(crate) struct DefinedNamespace {
    /// Its name, as the mapping writes it.
    pub(crate) name: String,
    /// The prefix of every identifier; when absent its present base, or the default base.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) uri_base: Option<String>,
    /// How the local part is generated; when absent the present generator, or `uuid`.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    fn from(Finding { place, message, .. }: Finding) -> Self {
        let (pointer, line, column) = match place {
            Place::Pointer(pointer) => (Some(pointer), None, None),
            Place::Line { line, column } => (None, Some(line), Some(column)),
            Place::Whole => (None, None, None),
        };
        Self { line, column, pointer, message }
    }
}

/// One condition: some graph contains (object, predicate, value).
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "Condition"))]
pub(crate) struct Condition {
    /// An IRI without angle brackets, or a name with a prefix of the mapping.
    pub(crate) predicate: String,
    /// An IRI, or a name with a prefix of the mapping.
    pub(crate) value: String,
}

/// One export target.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "PushTarget", rename_all = "camelCase"))]
pub(crate) struct PushTarget {
    /// A valid S3 bucket name.
    #[salvo(schema(min_length = 3, max_length = 63))]
    pub(crate) bucket_name: String,
}

/// A page of Business Objects.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "BusinessObjects"))]
pub(crate) struct BusinessObjects {
    /// Ordered by name.
    pub(crate) items: Vec<BusinessObject>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// A JSON Schema (2020-12).
#[derive(ToSchema)]
#[salvo(schema(name = "JsonSchema"))]
#[expect(dead_code, reason = "it describes what the model writes")]
pub(crate) struct JsonSchema {
    /// The dialect.
    #[salvo(schema(rename = "$schema"))]
    pub(crate) schema: String,
}

impl From<CheckedBusinessObject> for BusinessObject {
    fn from(CheckedBusinessObject { compiled, warnings }: CheckedBusinessObject) -> Self {
        let object = compiled.object.clone();
        let definition = object.definition;
        Self {
            id: object.id,
            name: definition.name,
            description: definition.description,
            enabled: definition.enabled,
            config: definition.config,
            namespaces: definition.namespaces.into_iter().map(Into::into).collect(),
            conditions: definition.conditions.into_iter().map(Into::into).collect(),
            push_targets: definition.push_targets.into_iter().map(Into::into).collect(),
            schedule: definition.schedule,
            timezone: definition.timezone,
            export_on_change: definition.export_on_change,
            debounce: definition.debounce,
            retention: definition.retention,
            validation: definition.validation.map(Into::into),
            review: definition.review.map(Into::into),
            approvers: definition
                .approvers
                .map(|approvers| approvers.into_iter().map(Into::into).collect()),
            version: object.version,
            created_at: object.created_at,
            updated_at: object.updated_at,
            updated_by: object.updated_by,
            created_namespaces: object.created_namespaces,
            deleting: object.deleting.map(|deletion| Deleting { remaining: deletion.remaining }),
            warnings: warnings.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<catalogue::DeletionCount> for DeletionCount {
    fn from(catalogue::DeletionCount { objects, kept }: catalogue::DeletionCount) -> Self {
        Self { objects, kept }
    }
}

impl From<NamespaceDefinition> for DefinedNamespace {
    fn from(NamespaceDefinition { name, uri_base, generator }: NamespaceDefinition) -> Self {
        Self { name, uri_base, generator: generator.map(Into::into) }
    }
}

impl From<resource::Condition> for Condition {
    fn from(resource::Condition { predicate, value }: resource::Condition) -> Self {
        Self { predicate, value }
    }
}

impl From<resource::Validation> for Validation {
    fn from(resource::Validation { shapes, mode }: resource::Validation) -> Self {
        let mode = match mode {
            resource::ValidationMode::Reject => ValidationMode::Reject,
            resource::ValidationMode::Warn => ValidationMode::Warn,
            resource::ValidationMode::Off => ValidationMode::Off,
        };
        Self { shapes, mode }
    }
}

impl From<resource::Review> for Review {
    fn from(review: resource::Review) -> Self {
        match review {
            resource::Review::Off => Self::Off,
            resource::Review::Optional => Self::Optional,
            resource::Review::Required => Self::Required,
        }
    }
}

impl From<resource::PushTarget> for PushTarget {
    fn from(resource::PushTarget { bucket_name }: resource::PushTarget) -> Self {
        Self { bucket_name }
    }
}
