//! The gateway's own types, from the schemas of what the REST API shows, so that they have all its members.
use penstock_resources::account::Account;
use penstock_resources::business_object::BusinessObject;
use penstock_resources::change::Change;
use penstock_resources::export::{Export, Target};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::sync::LazyLock;

/// The type of a change under review. A Business Object that has its name keeps it; the type is left out then.
pub(super) const CHANGE_TYPE: &str = "PenstockChange";

/// The types that have another name in the REST API, where they cannot take the name of a Business Object's type. Only a
/// Business Object whose type is [`CHANGE_TYPE`] can have a type with the name that ends in `_History`.
const RENAMED: [(&str, &str); 7] = [
    ("User", "AuthenticatedUser"),
    ("DefinedNamespace", "PenstockNamespace"),
    ("Validation", "PenstockValidation"),
    ("Deleting", "PenstockDeletion"),
    ("Warning", "PenstockWarning"),
    ("Change", CHANGE_TYPE),
    ("ChangeStep", "PenstockChange_History"),
];

/// The enums of the schema. Other texts with fixed values have the type `String`.
const ENUMS: [&str; 2] = ["ExportKind", "ExportStatus"];

/// The types of members whose schema says only that they are texts, and the names of these members.
const TEXTS: [(&str, &str); 3] = [
    ("ID", "id apiKey approvedBy author businessObject by pushedBy updatedBy"),
    (
        "DateTime",
        "at blockedSince createdAt deliveredAt firstLogin lastDelivery lastLogin nextAttempt oldest updatedAt",
    ),
    ("IRI", "predicate uriBase value"),
];

/// The members that an account always has and the control socket, which has none, lacks.
const ABSENT_WITHOUT_ACCOUNT: [&str; 2] = ["source", "createdAt"];

/// A type with fields, or an enum.
#[derive(Debug)]
pub(super) struct GatewayType {
    pub(super) name: String,
    pub(super) description: String,
    /// The fields; of an enum its values.
    pub(super) members: Vec<Member>,
}

/// A field, read from the JSON member of the same name, or a value of an enum.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// The type of a field in GraphQL's notation.
    pub(super) kind: String,
    pub(super) description: String,
}

/// The types with fields, and the enums.
pub(super) static GATEWAY_TYPES: LazyLock<[Vec<GatewayType>; 2]> = LazyLock::new(|| {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.subschema_for::<Account>();
    generator.subschema_for::<ListedBusinessObject<'_>>();
    generator.subschema_for::<Change>();
    generator.subschema_for::<ExportConnection<'_>>();
    generator.subschema_for::<Target>();
    let schemas = generator.take_definitions(true);
    let (mut objects, mut enums) = (Vec::new(), Vec::new());
    for (name, schema) in &schemas {
        let build = |members| {
            let name = rename_type(name).to_owned();
            GatewayType { name, description: describe(schema), members }
        };
        if is_object(schema) {
            objects.push(build(list_fields(name, schema, &schemas)));
        } else if ENUMS.contains(&name.as_str()) {
            enums.push(build(list_values(schema)));
        }
    }
    [objects, enums]
});

/// A Business Object, and the type of its objects.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    rename = "BusinessObject",
    description = "A named, configured JSON view of the stored data."
)]
pub(super) struct ListedBusinessObject<'a> {
    #[serde(flatten)]
    pub(super) business_object: &'a BusinessObject,
    /// The type of its objects in this schema.
    #[serde(rename = "type")]
    pub(super) object_type: Option<&'a str>,
    /// Why this schema has no type for its objects; null if it has one.
    pub(super) type_missing: Option<&'a str>,
}

/// A page of exports, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportConnection<'a> {
    /// The exports.
    pub(super) nodes: &'a [Export],
    /// The exports with their cursors.
    pub(super) edges: Vec<ExportEdge<'a>>,
    /// Where the page ends.
    pub(super) page_info: PageInfo,
}

/// An export on a page.
#[derive(Serialize, JsonSchema)]
pub(super) struct ExportEdge<'a> {
    /// The value of `after` for a page that begins after it.
    pub(super) cursor: &'a str,
    /// The export.
    pub(super) node: &'a Export,
}

/// Where a page begins and ends.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageInfo {
    /// Whether there are items after it.
    pub(super) has_next_page: bool,
    /// Whether it began after a cursor.
    pub(super) has_previous_page: bool,
    /// The cursor of its first item.
    pub(super) start_cursor: Option<String>,
    /// The cursor of its last item: `after` of the next page.
    pub(super) end_cursor: Option<String>,
}

/// Returns the fields of a type, if it is one of the gateway's own with fields.
pub(super) fn find_members(type_name: &str) -> Option<&'static [Member]> {
    let [objects, _] = &*GATEWAY_TYPES;
    objects.iter().find(|one| one.name == type_name).map(|one| &*one.members)
}

/// Returns the inner type of a type in GraphQL's notation, and whether it is a list.
pub(super) fn inner_type(text: &str) -> (&str, bool) {
    (text.trim_matches(['[', ']', '!']), text.starts_with('['))
}

fn is_object(schema: &Json) -> bool {
    schema["properties"].is_object()
}

fn rename_type(name: &str) -> &str {
    RENAMED.iter().find(|(known, _)| *known == name).map_or(name, |&(_, renamed)| renamed)
}

fn describe(schema: &Json) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

fn list_fields(of: &str, schema: &Json, schemas: &Map<String, Json>) -> Vec<Member> {
    let required = schema["required"].as_array();
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|one| one == name))
            && !(of == "User" && ABSENT_WITHOUT_ACCOUNT.contains(&name))
    };
    let build = |(name, schema): (&String, &Json)| {
        let kind = derive_kind(name, schema, schemas);
        let kind = if is_required(name) { kind } else { make_nullable(&kind) };
        Member { name: name.clone(), kind, description: describe(schema) }
    };
    schema["properties"].as_object().into_iter().flatten().map(build).collect()
}

fn list_values(schema: &Json) -> Vec<Member> {
    let build = |value: &Json| {
        let name = value["const"].as_str().unwrap_or_default().to_owned();
        Member { name, kind: String::new(), description: describe(value) }
    };
    schema["oneOf"].as_array().into_iter().flatten().map(build).collect()
}

/// Returns the type of a member, or of its items, in GraphQL's notation.
fn derive_kind(member: &str, schema: &Json, schemas: &Map<String, Json>) -> String {
    if let Some(choices) = schema["anyOf"].as_array() {
        let other = choices.iter().find(|choice| choice["type"] != "null");
        return make_nullable(&derive_kind(member, other.unwrap_or(&Json::Null), schemas));
    }
    let has_type = |name: &str| match &schema["type"] {
        Json::Array(types) => types.iter().any(|one| one == name),
        only => only == name,
    };
    let kind = match schema["$ref"].as_str().map(|to| to.trim_start_matches("#/$defs/")) {
        Some(to) if ENUMS.contains(&to) || schemas.get(to).is_some_and(is_object) => {
            rename_type(to).to_owned()
        }
        None if has_type("array") => {
            format!("[{}]", derive_kind(member, &schema["items"], schemas))
        }
        None if has_type("boolean") => "Boolean".to_owned(),
        None if has_type("integer") => "Integer".to_owned(),
        _ => {
            let is_member = |names: &str| names.split(' ').any(|name| name == member);
            let text = TEXTS.iter().find(|(_, names)| is_member(names));
            text.map_or("String", |&(scalar, _)| scalar).to_owned()
        }
    };
    if has_type("null") { kind } else { kind + "!" }
}

fn make_nullable(kind: &str) -> String {
    kind.trim_end_matches('!').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of Business Objects' types must not change because the REST API has a new type.
    #[test]
    fn the_types_are_named_explicitly() {
        let mut names: Vec<_> =
            GATEWAY_TYPES.iter().flatten().map(|one| one.name.as_str()).collect();
        names.sort_unstable();
        let expected = "AuthenticatedUser BusinessObject Condition Export ExportConnection ExportEdge ExportKind \
            ExportStatus PageInfo PenstockChange PenstockChange_History PenstockDeletion PenstockNamespace \
            PenstockValidation PenstockWarning PushTarget Target";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn types_follow_the_schemas() {
        for (of, name, expected) in [
            ("AuthenticatedUser", "roles", "[String!]!"),
            ("AuthenticatedUser", "createdAt", "DateTime"),
            ("BusinessObject", "id", "ID!"),
            ("BusinessObject", "typeMissing", "String"),
            ("BusinessObject", "validation", "PenstockValidation"),
            ("BusinessObject", "approvers", "[String!]"),
            ("BusinessObject", "namespaces", "[PenstockNamespace!]!"),
            ("Export", "status", "ExportStatus!"),
            ("Export", "clock", "String"),
            ("PenstockNamespace", "uriBase", "IRI"),
            ("PenstockChange", "history", "[PenstockChange_History!]!"),
            ("Target", "oldestAgeSeconds", "Integer"),
        ] {
            let members = find_members(of).unwrap();
            let member = members.iter().find(|member| member.name == name).unwrap();
            assert_eq!(member.kind, expected, "{of}.{name}");
        }
    }
}
