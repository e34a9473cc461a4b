//! Namespaces.
use super::business_object::Warning;
use salvo::oapi::ToSchema;
use serde::Deserialize;
use serde_json::Value;

/// The definition of a namespace.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NamespaceDefinition", example = json!({"generator": "counter"})))]
pub(crate) struct NamespaceDefinition {
    /// Its name, which must be that of the path.
    #[salvo(schema(required = false))]
    pub(crate) name: Option<String>,
    /// The prefix of every identifier; the default base when absent.
    #[salvo(schema(required = false))]
    pub(crate) uri_base: Option<String>,
    /// How the local part is generated; `uuid` when absent.
    #[salvo(schema(required = false))]
    pub(crate) generator: Option<Generator>,
    /// Accepted and ignored, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `createdAt`.
    #[salvo(schema(required = false))]
    pub(crate) warnings: Value,
}

/// A namespace.
#[derive(ToSchema)]
#[salvo(schema(name = "Namespace", rename_all = "camelCase"))]
pub(crate) struct Namespace {
    /// Its name, as mappings write it.
    pub(crate) name: String,
    /// The prefix of every identifier, and the name of the graph.
    pub(crate) uri_base: String,
    /// How the local part is generated.
    pub(crate) generator: Generator,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// Valid parts of the definition that are probably mistakes.
    pub(crate) warnings: Vec<Warning>,
}

/// How the local part of an identifier is generated.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Generator", rename_all = "lowercase"))]
pub(crate) enum Generator {
    Uuid,
    Counter,
    Alphanumeric,
    Manual,
}

/// A page of namespaces.
#[derive(ToSchema)]
#[salvo(schema(name = "Namespaces"))]
pub(crate) struct Namespaces {
    /// Ordered by name.
    pub(crate) items: Vec<Namespace>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
