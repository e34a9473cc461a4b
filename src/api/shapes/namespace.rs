//! Namespaces.
use super::business_object::Warning;
use penstock_model::namespace;
use penstock_service::namespaces::CheckedNamespace;
use salvo_oapi::ToSchema;
use serde::{Deserialize, Serialize};

/// A namespace.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Generator", rename_all = "lowercase"))]
pub(crate) enum Generator {
    Uuid,
    Counter,
    Alphanumeric,
    Manual,
}

impl From<namespace::Generator> for Generator {
    fn from(generator: namespace::Generator) -> Self {
        match generator {
            namespace::Generator::Uuid => Self::Uuid,
            namespace::Generator::Counter => Self::Counter,
            namespace::Generator::Alphanumeric => Self::Alphanumeric,
            namespace::Generator::Manual => Self::Manual,
        }
    }
}

impl From<CheckedNamespace> for Namespace {
    fn from(CheckedNamespace { namespace, warnings }: CheckedNamespace) -> Self {
        Self {
            name: namespace.name,
            uri_base: namespace.uri_base,
            generator: namespace.generator.into(),
            created_at: namespace.created_at,
            warnings: warnings.into_iter().map(Warning::from).collect(),
        }
    }
}

/// A page of namespaces.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Namespaces"))]
pub(crate) struct Namespaces {
    /// Ordered by name.
    pub(crate) items: Vec<Namespace>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
