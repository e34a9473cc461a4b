//! Namespaces.
use crate::body::accept_answer;
use crate::names::wire_names;
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// Its name, as mappings write it.
    pub name: String,
    /// The prefix of every identifier, and the name of the graph.
    pub uri_base: String,
    /// How the local part is generated.
    pub generator: Generator,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// Valid parts of the definition that are probably mistakes.
    pub warnings: Vec<Warning>,
}

/// The definition of a namespace.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, transform = accept_answer::<Namespace>, example = json!({"generator": "counter"}))]
pub struct NamespaceDefinition {
    /// Its name, which must be that of the path.
    pub name: Option<String>,
    /// The prefix of every identifier; the default base when absent.
    pub uri_base: Option<String>,
    /// How the local part is generated; `uuid` when absent.
    pub generator: Option<Generator>,
}

/// A namespace that is defined with a Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct DefinedNamespace {
    /// Its name, as the mapping writes it.
    pub name: String,
    /// The prefix of every identifier; when absent its present base, or the default base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri_base: Option<String>,
    /// How the local part is generated; when absent the present generator, or `uuid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
}

/// How the local part of an identifier is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Generator {
    /// A UUID, version 7 (RFC 9562).
    #[default]
    Uuid,
    /// 1, 2, 3, ...; a number is never issued twice.
    Counter,
    /// Ten random characters of `0-9a-z`.
    Alphanumeric,
    /// No generator: clients send every URI.
    Manual,
}

wire_names!(Generator, "generator" {
    Uuid: "uuid", Counter: "counter", Alphanumeric: "alphanumeric", Manual: "manual",
});
