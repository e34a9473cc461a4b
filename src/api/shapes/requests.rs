//! The bodies of requests. They only describe: the layers below read the bodies, and report every error with its place.
#![expect(dead_code, reason = "the fields are there to be described")]
use super::account::AccountRole;
use super::api_key::Role;
use super::business_object::{Condition, DefinedNamespace, PushTarget, Review, Validation};
use super::namespace::Generator;
use salvo_oapi::ToSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
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
    /// The shapes graphs that validate its objects. If it is left out and the stored definition has it, the definition is
    /// refused (409); empty `shapes` and the mode `off` remove it.
    #[salvo(schema(required = false))]
    pub(crate) validation: Option<Validation>,
    /// Which ingestions become changes under review; `off` when absent. If it is left out and the stored definition has
    /// another value, the definition is refused (409).
    #[salvo(schema(required = false))]
    pub(crate) review: Option<Review>,
    /// Who approves changes: `user:<id or email>` or `group:<name>`; Admins when absent. If it is left out and the stored
    /// definition has it, the definition is refused (409); an empty list removes it.
    #[salvo(schema(required = false))]
    pub(crate) approvers: Option<Vec<String>>,
    /// Accepted and ignored, like the seven fields that follow, so that a response can be sent back.
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
    pub(crate) deleting: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) warnings: Value,
}

/// A new built-in account.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewUser", example = json!({
    "email": "operator@plant.example", "password": "correct horse battery staple", "roles": ["Contributor"],
})))]
pub(crate) struct NewAccount {
    /// The given name.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) given_name: Option<String>,
    /// The family name.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) family_name: Option<String>,
    /// The organization.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) organization: Option<String>,
    /// Whether it may sign in; true when absent.
    #[salvo(schema(required = false))]
    pub(crate) enabled: Option<bool>,
    /// The name to sign in with, unique among the built-in accounts. It need not be an email.
    #[salvo(schema(min_length = 1, max_length = 254))]
    pub(crate) email: String,
    /// Its role, a list of one.
    #[salvo(schema(min_items = 1, max_items = 1))]
    pub(crate) roles: Vec<AccountRole>,
    /// The password.
    #[salvo(schema(min_length = 12, max_length = 1024))]
    pub(crate) password: String,
    /// Accepted and ignored, like the eight fields that follow, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) id: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) service_account: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) source: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) first_login: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) last_login: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) issuer: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) subject: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) client_id: Value,
}

/// The new values of an account.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "UserChange", example = json!({
    "givenName": "Ada", "familyName": "Byron", "roles": ["User"], "enabled": true,
})))]
pub(crate) struct AccountChange {
    /// The given name; removed when absent.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) given_name: Option<String>,
    /// The family name; removed when absent.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) family_name: Option<String>,
    /// The organization; removed when absent.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) organization: Option<String>,
    /// The name to sign in with; unchanged when absent.
    #[salvo(schema(required = false, min_length = 1, max_length = 254))]
    pub(crate) email: Option<String>,
    /// Its role, a list of one; unchanged when absent.
    #[salvo(schema(required = false, min_items = 1, max_items = 1))]
    pub(crate) roles: Option<Vec<AccountRole>>,
    /// Whether it may sign in; unchanged when absent.
    #[salvo(schema(required = false))]
    pub(crate) enabled: Option<bool>,
    /// Accepted and ignored, like the eight fields that follow, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) id: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) service_account: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) source: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) first_login: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) last_login: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) issuer: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) subject: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) client_id: Value,
}

/// A new password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewPassword"))]
pub(crate) struct NewPassword {
    /// The current password, required for the caller's own account.
    #[salvo(schema(required = false))]
    pub(crate) current_password: Option<String>,
    /// The new password.
    #[salvo(schema(min_length = 12, max_length = 1024))]
    pub(crate) password: String,
}

/// A new API key.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewApiKey", example = json!({"name": "line 4", "role": "Contributor"})))]
pub(crate) struct NewApiKey {
    /// What it is for.
    #[salvo(schema(min_length = 1, max_length = 200))]
    pub(crate) name: String,
    /// Its role; at most that of its creator.
    pub(crate) role: Role,
    /// When it expires (RFC 3339); never when absent.
    #[salvo(schema(required = false))]
    pub(crate) expires_at: Option<String>,
    /// The id or name of the Business Object that it is restricted to; all when neither this nor `businessObjects` is
    /// given.
    #[salvo(schema(required = false))]
    pub(crate) business_object: Option<String>,
    /// The ids or names of the Business Objects that it is restricted to, in addition to `businessObject`.
    #[salvo(schema(required = false, min_items = 1, max_items = 100))]
    pub(crate) business_objects: Option<Vec<String>>,
}

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

/// The body of an ingestion.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "IngestionRequest", example = json!({"data": [{"name": "P-101"}]})))]
pub(crate) struct IngestionRequest {
    /// Objects with the field names of the mapping; `uri` is optional.
    pub(crate) data: Vec<BTreeMap<String, Value>>,
    /// The metadata of an export file. It is checked, and not stored.
    #[serde(default)]
    #[salvo(schema(required = false))]
    pub(crate) metadata: Option<BTreeMap<String, Value>>,
}

/// A GraphQL request.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlRequest", rename_all = "camelCase"))]
pub(crate) struct GraphqlRequest {
    /// The document.
    pub(crate) query: String,
    /// The operation to execute, if there is more than one.
    #[salvo(schema(required = false))]
    pub(crate) operation_name: Option<String>,
    /// The values of its variables.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) variables: Option<Map<String, Value>>,
    /// Not used; no extension is supported.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) extensions: Option<Map<String, Value>>,
}

/// A SPARQL query as a form.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[salvo(schema(name = "SparqlQueryForm"))]
pub(crate) struct SparqlQueryForm {
    /// The query.
    pub(crate) query: String,
    /// The graphs of the default graph, in place of `FROM`.
    #[salvo(schema(required = false))]
    pub(crate) default_graph_uri: Vec<String>,
    /// The named graphs, in place of `FROM NAMED`.
    #[salvo(schema(required = false))]
    pub(crate) named_graph_uri: Vec<String>,
}

/// A SPARQL update as a form.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[salvo(schema(name = "SparqlUpdateForm"))]
pub(crate) struct SparqlUpdateForm {
    /// The update.
    pub(crate) update: String,
    /// The graphs of the default graph of `WHERE`, in place of `USING`.
    #[salvo(schema(required = false))]
    pub(crate) using_graph_uri: Vec<String>,
    /// The named graphs of `WHERE`, in place of `USING NAMED`.
    #[salvo(schema(required = false))]
    pub(crate) using_named_graph_uri: Vec<String>,
    /// Replace each blank node that would be stored by an IRI that begins with this one.
    #[salvo(schema(required = false))]
    pub(crate) skolemize: Option<String>,
    /// Change objects of Business Objects that refuse what violates their shapes.
    #[salvo(schema(required = false))]
    pub(crate) bypass: Option<bool>,
}
