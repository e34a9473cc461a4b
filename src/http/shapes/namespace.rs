//! Namespaces.
use super::business_object::Warning;
use salvo::oapi::ToSchema;
use serde::Deserialize;
use serde_json::Value;

/// A namespace as it is put.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NamespaceDefinition", example = json!({"generator": "counter"})))]
pub(in crate::http) struct NamespaceDefinition {
    /// Its name, which must be that of the path.
    #[salvo(schema(required = false))]
    pub(in crate::http) name: Option<String>,
    /// What every identifier begins with; the default base when absent.
    #[salvo(schema(required = false))]
    pub(in crate::http) uri_base: Option<String>,
    /// How the local part is made; `uuid` when absent.
    #[salvo(schema(required = false))]
    pub(in crate::http) generator: Option<Generator>,
    /// Taken and not looked at, so that an answer can be put back.
    #[salvo(schema(required = false))]
    pub(in crate::http) created_at: Value,
    /// As `createdAt`.
    #[salvo(schema(required = false))]
    pub(in crate::http) warnings: Value,
}

/// A namespace.
#[derive(ToSchema)]
#[salvo(schema(name = "Namespace", rename_all = "camelCase"))]
pub(in crate::http) struct Namespace {
    /// Its name, as mappings write it.
    pub(in crate::http) name: String,
    /// What every identifier begins with; also the name of the graph.
    pub(in crate::http) uri_base: String,
    /// How the local part is made.
    pub(in crate::http) generator: Generator,
    /// When it was created (RFC 3339, UTC).
    pub(in crate::http) created_at: String,
    /// What is probably not meant in it.
    pub(in crate::http) warnings: Vec<Warning>,
}

/// How the local part of an identifier is made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Generator", rename_all = "lowercase"))]
pub(in crate::http) enum Generator {
    Uuid,
    Counter,
    Alphanumeric,
    Manual,
}

/// A page of namespaces.
#[derive(ToSchema)]
#[salvo(schema(name = "Namespaces"))]
pub(in crate::http) struct Namespaces {
    /// Ordered by name.
    pub(in crate::http) items: Vec<Namespace>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(in crate::http) next: Option<String>,
}
