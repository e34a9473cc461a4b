//! The Business Object as a client defines it (specification, 2.1).
//!
//! `read` reads a definition from a request body, and `check` validates it. `automatic` and `schedule` parse its settings
//! for automatic exports, `validation` the shapes graphs that validate its objects, `review` which ingestions become
//! changes under review. `show` converts what is stored to what is shown.

mod automatic;
mod check;
mod read;
mod review;
mod schedule;
mod show;
mod validation;

pub use automatic::AutomaticExports;
pub(crate) use check::condition_to_terms;
pub use check::expand_condition;
pub(crate) use review::{check_omitted_approvers, check_omitted_review};
pub(crate) use schedule::parse_zone;
pub use schedule::{Schedule, SettingError};
pub(crate) use validation::check_omitted_validation;

use super::mapping::{Mapping, ShapeSource};
use oxrdf::vocab::xsd;
use oxrdf::{NamedNode, Term};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::principal::Principal;
use penstock_resources::business_object::{Condition, PushTarget, Review, Validation};
use penstock_resources::ingestion::IngestionRecord;
use penstock_resources::namespace::DefinedNamespace;
use penstock_store::Format;
use serde::{Deserialize, Serialize};

/// A definition that a client sends, before it is validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDefinition {
    /// The definition. What could not be read has its default value.
    pub definition: Definition,
    /// What was found while it was read, in the order of its members.
    pub findings: Vec<Finding>,
}

/// A valid definition: its mapping, and its conditions as terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledDefinition {
    /// The definition.
    pub definition: Definition,
    /// Its mapping.
    pub mapping: Mapping,
    /// Its conditions.
    pub conditions: Conditions,
}

/// The definition that a client sends to create a Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The name, unique on this gateway.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Whether ingestions and exports are enabled.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub config: String,
    /// The namespaces that are defined with it.
    #[serde(default)]
    pub namespaces: Vec<DefinedNamespace>,
    /// The conditions that a stored object must satisfy to be a member; all must hold.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The targets of its exports.
    #[serde(default)]
    pub push_targets: Vec<PushTarget>,
    /// The schedule of automatic full exports: cron with 5 or 6 fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The IANA time zone of `schedule`; UTC when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Whether changes are exported automatically.
    #[serde(default)]
    pub export_on_change: bool,
    /// How long an export on change waits for further changes (`5s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce: Option<String>,
    /// The time after which unchanged, delivered objects are removed (ISO 8601 duration).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
    /// The shapes graphs that validate its objects. A stored definition has it only if it has shapes or a mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Which ingestions become changes under review. A stored definition has it only if it is not off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Who approves changes; Admins if absent. A stored definition has it only with an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<Principal>>,
}

impl Definition {
    /// Returns whether the definition sets the URI base of this namespace.
    pub fn has_base_for(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|given| given.name == namespace && given.uri_base.is_some())
    }
}

fn yes() -> bool {
    true
}

/// A stored Business Object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BusinessObject {
    /// The identifier: a UUID, generated when the Business Object is created.
    pub id: String,
    /// The definition that the client sent.
    #[serde(flatten)]
    pub definition: Definition,
    /// The version: a number that each change raises by 1 or more. The `ETag` is this number in quotes.
    pub version: u64,
    /// The time of its creation (RFC 3339, UTC).
    pub created_at: String,
    /// The time of its last change (RFC 3339, UTC).
    pub updated_at: String,
    /// The account that changed it last: its id, or `local`. `None` if that was before accounts existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
    /// The namespaces that its last change created, because the mapping names them and they did not exist.
    #[serde(default)]
    pub created_namespaces: Vec<String>,
    /// Whether its last change changed the `types` of the mapping, so that objects stored before lack some or have others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub changed_types: bool,
    /// The progress of its deletion, while it is being deleted together with its objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleting: Option<Deletion>,
}

impl BusinessObject {
    /// Returns the error of a request for it while it is being deleted with its objects.
    pub(crate) fn being_deleted_error(&self) -> GatewayError {
        let name = &self.definition.name;
        let message = format!("the Business Object {name:?} is being deleted with its objects");
        GatewayError::new(ErrorClass::Conflict, message)
    }

    /// Checks that it is not being deleted with its objects.
    ///
    /// # Errors
    /// `ErrorClass::Conflict`.
    pub(crate) fn check_not_deleting(&self) -> Result<(), GatewayError> {
        if self.deleting.is_some() { Err(self.being_deleted_error()) } else { Ok(()) }
    }
}

/// Returns whether a member can be left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The progress of the deletion of a Business Object together with its objects. The deletion passes through all members
/// in the order of their URIs, and ends with a pass that finds none to delete.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The number of members that the first pass has not reached yet.
    pub remaining: u64,
    /// The number of members that were deleted.
    pub deleted: u64,
    /// The URI of the last member that the current pass has reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_visited: Option<String>,
    /// The ingestion record of the whole deletion, once it has deleted a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<IngestionRecord>,
    /// Whether the current pass has deleted a member.
    pub has_deleted: bool,
}

impl Compiled {
    /// Returns the format that a store needs, because a version that knows only earlier ones would misread the definition, or
    /// ignore what it protects.
    pub(crate) fn required_format(&self) -> Format {
        let needs_third = self.object.definition.validation.is_some()
            || self.object.definition.review.is_some()
            || self.object.definition.approvers.is_some()
            || self.expand_conditions() != self.object.definition.conditions;
        let has_literal = self.conditions.iter().any(|(_, value)| value.is_literal());
        let format = match (has_literal, needs_third) {
            (true, _) => Format::V4,
            (false, true) => Format::V3,
            (false, false) => Format::default(),
        };
        self.mapping.required_format().max(format)
    }

    /// Returns what its shapes describe.
    pub fn shape_source(&self) -> ShapeSource<'_> {
        ShapeSource {
            id: &self.object.id,
            name: &self.object.definition.name,
            mapping: &self.mapping,
            conditions: &self.conditions,
        }
    }

    /// Returns its conditions with complete IRIs.
    pub fn expand_conditions(&self) -> Vec<Condition> {
        self.conditions.iter().map(|(predicate, value)| build_condition(predicate, value)).collect()
    }
}

/// Returns the condition of these terms, without prefixes.
fn build_condition(predicate: &NamedNode, value: &Term) -> Condition {
    let mut condition =
        Condition { predicate: predicate.as_str().to_owned(), ..Condition::default() };
    match value {
        Term::NamedNode(iri) => iri.as_str().clone_into(&mut condition.value),
        Term::Literal(literal) => {
            literal.value().clone_into(&mut condition.value);
            condition.language = literal.language().map(str::to_owned);
            // Without its datatype, it would be an IRI, or missing.
            let needs_datatype = literal.datatype() != xsd::STRING
                || condition.value.is_empty()
                || condition.value.contains(':');
            if condition.language.is_none() && needs_datatype {
                condition.datatype = Some(literal.datatype().as_str().to_owned());
            }
        }
        other => condition.value = other.to_string(),
    }
    condition
}

/// A compiled Business Object: its stored form, mapping, and conditions as terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// The stored form.
    pub object: BusinessObject,
    /// Its mapping.
    pub mapping: Mapping,
    /// Its conditions.
    pub conditions: Conditions,
}

/// Conditions as terms: predicate and value. The object has each of them, in any graph.
pub type Conditions = Vec<(NamedNode, Term)>;
