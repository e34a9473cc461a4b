//! The Business Object as a client defines it (specification, 2.1).
//!
//! `read` takes a definition out of a request body; `automatic` and `schedule` read what it says of
//! exports by themselves.

mod automatic;
mod read;
mod schedule;

pub use automatic::Automatic;
pub use schedule::{Schedule, Wrong};

use super::mapping::Mapping;
use super::namespace::NamespaceDefinition;
use oxrdf::{NamedNode, Term};
use serde::{Deserialize, Serialize};

/// What a client gives: the request of creation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Its name, unique on this gateway.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Whether it takes ingestions and exports.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub config: String,
    /// Namespaces that are defined together with it.
    #[serde(default)]
    pub namespaces: Vec<NamespaceDefinition>,
    /// Which stored objects belong to it: all that satisfy every one.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// Where its exports go.
    #[serde(default)]
    pub push_targets: Vec<PushTarget>,
    /// When full exports run by themselves: cron of 5 or 6 fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The IANA time zone of `schedule`; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether changes are exported by themselves.
    #[serde(default)]
    pub export_on_change: bool,
    /// How long an export on change waits for further changes (`5s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce: Option<String>,
    /// ISO 8601 duration after which unchanged, delivered objects are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
}

impl Definition {
    /// Whether it says which URI base the namespace of this name has.
    pub fn gives_base(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|given| given.name == namespace && given.uri_base.is_some())
    }
}

fn yes() -> bool {
    true
}

/// One condition: some graph holds (object, predicate, value).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// An IRI without angle brackets, or a name with a prefix of the mapping.
    pub predicate: String,
    /// An IRI, or a name with a prefix of the mapping.
    pub value: String,
}

/// One export target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushTarget {
    /// A valid S3 bucket name; see `service.export.targets.*` for where it leads.
    pub bucket_name: String,
}

/// A stored Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BusinessObject {
    /// Its identifier: a UUID, made at its creation.
    pub id: String,
    /// What the client gave.
    #[serde(flatten)]
    pub definition: Definition,
    /// 1 at its creation, one more with each change; the `ETag` is this in quotes.
    pub version: u64,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub updated_at: String,
    /// Who changed it last: an account's id, or `local`. `None` when that was before there were accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    /// Namespaces that its last change created, because the mapping names them and nobody had.
    #[serde(default)]
    pub created_namespaces: Vec<String>,
}

impl Compiled {
    /// Its conditions with whole IRIs.
    pub fn conditions_in_full(&self) -> Vec<Condition> {
        let iri = |term: &Term| match term {
            Term::NamedNode(iri) => iri.as_str().to_owned(),
            other => other.to_string(),
        };
        let full = |(predicate, value): &(NamedNode, Term)| Condition {
            predicate: predicate.as_str().to_owned(),
            value: iri(value),
        };
        self.conditions.iter().map(full).collect()
    }
}

/// A Business Object ready for use: stored form, mapping, conditions as terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The stored form.
    pub object: BusinessObject,
    /// Its mapping.
    pub mapping: Mapping,
    /// Its conditions.
    pub conditions: Conditions,
}

/// Conditions as terms: some graph holds (object, predicate, value).
pub type Conditions = Vec<(NamedNode, Term)>;
