//! Registers the types that exist independently of Business Objects, and their fields of the query type.
use super::field_definitions::{build_argument, build_field, build_page_field, parse_type_ref};
use super::gateway_types::{CHANGE_TYPE, GATEWAY_TYPES, GatewayType};
use super::model::Model;
use super::system::{CHANGES_FIELD, DIRECTION, TEXT_TYPE, list_filters, list_scalars};
use async_graphql::dynamic::{
    Enum, EnumItem, InputObject, InputValue, Object, Scalar as DynamicScalar, SchemaBuilder,
    TypeRef,
};
use penstock_model::mapping::{CODE_SCALAR, Scalar};

/// The scalars that these types have.
const SHARED_SCALARS: [&str; 3] = ["IRI", "Integer", "DateTime"];

const TESTS: &[(&str, &str)] = &[
    ("language", "It is in this language. Without it, it is in any."),
    ("eq", "It equals this. Numbers are compared as numbers, dates and times as moments."),
    ("in", "It equals one of these."),
    ("contains", "It contains this text."),
    ("containsAnyCase", "It contains this text, ignoring case."),
    ("startsWith", "It begins with this text."),
    ("before", "It is a smaller number, or an earlier date or time."),
    ("after", "It is a greater number, or a later date or time."),
    ("atLeast", "It is this number, date or time, or a greater or later one."),
    ("atMost", "It is this number, date or time, or a smaller or earlier one."),
    ("exists", "There is a value, or with `false` there is none."),
];

/// Returns whether such a type, or one of GraphQL itself, is an input type of the schema.
pub(super) fn is_input(model: &Model, name: &str) -> bool {
    let [_, enums] = &*GATEWAY_TYPES;
    let here = list_scalars().any(|scalar| scalar.name == name)
        || enums.iter().any(|one| one.name == name)
        || name == DIRECTION.0
        || list_filters().any(|of| of.filter == name);
    ["Int", "Float", "String", "Boolean", "ID"].contains(&name) || here && is_used(model, name)
}

/// Returns whether the schema uses a scalar, enum or filter. Introspection and the SDL omit the others.
fn is_used(model: &Model, name: &str) -> bool {
    match (name, name.strip_suffix("Filter")) {
        ("Direction" | "IDFilter", _) => !model.business_objects.is_empty(),
        (_, Some(_)) => model.has_filter(name),
        (_, None) if list_scalars().any(|scalar| scalar.name == name) => {
            SHARED_SCALARS.contains(&name)
                || model.has_leaf(name)
                || model.has_summaries && name == CODE_SCALAR.name
        }
        (_, None) => true,
    }
}

/// Registers the gateway's own types.
pub(super) fn register_types(mut schema: SchemaBuilder, model: &Model) -> SchemaBuilder {
    for Scalar { name, about, .. } in list_scalars().filter(|one| is_used(model, one.name)) {
        let Some((description, url)) = *about else { continue };
        let scalar = DynamicScalar::new(*name).description(description).specified_by_url(url);
        schema = schema.register(scalar);
    }
    let (name, description, values) = DIRECTION;
    if is_used(model, name) {
        schema = schema.register(Enum::new(name).description(description).items(values));
    }
    let [objects, enums] = &*GATEWAY_TYPES;
    for GatewayType { name, description, members } in enums {
        let values =
            members.iter().map(|one| EnumItem::new(&one.name).description(&one.description));
        schema = schema.register(Enum::new(name).description(description).items(values));
    }
    for of in list_filters().filter(|of| is_used(model, of.filter)) {
        let about =
            format!("A filter for a value of type {}. All given tests must match.", of.name);
        let mut filter = InputObject::new(of.filter).description(about);
        for (test, description) in TESTS.iter().filter(|(test, _)| of.tests.contains(test)) {
            let kind = match *test {
                "in" => TypeRef::named_nn_list(of.name),
                "exists" => TypeRef::named(TypeRef::BOOLEAN),
                "contains" | "containsAnyCase" | "startsWith" => TypeRef::named(TypeRef::STRING),
                _ => TypeRef::named(of.name),
            };
            filter = filter.field(InputValue::new(*test, kind).description(*description));
        }
        schema = schema.register(filter);
    }
    if model.has_texts() {
        let text = Object::new(TEXT_TYPE)
            .description("A text and its language.")
            .field(build_field(
                "language",
                parse_type_ref("String!"),
                "The language tag (RFC 5646).",
            ))
            .field(build_field("value", parse_type_ref("String!"), "The text."));
        schema = schema.register(text);
    }
    for GatewayType { name, description, members } in objects {
        if name == "Target" && !model.whole || name.starts_with(CHANGE_TYPE) && !model.has_changes {
            continue;
        }
        let mut object = Object::new(name).description(description);
        for member in members {
            let kind = parse_type_ref(&member.kind);
            object = object.field(build_field(&member.name, kind, &member.description));
        }
        schema = schema.register(object);
    }
    schema
}

/// Adds the fields for the gateway's own types to the query type.
pub(super) fn add_query_fields(mut query: Object, model: &Model) -> Object {
    query = query
        .field(build_field(
            "authenticatedUser",
            parse_type_ref("AuthenticatedUser!"),
            "The account that sent the request.",
        ))
        .field(build_field(
            "businessObjects",
            parse_type_ref("[BusinessObject!]!"),
            "The Business Objects, sorted by name.",
        ))
        .field(
            build_page_field("exports", "ExportConnection", "The exports, newest first.")
                .argument(build_argument(
                    "businessObject",
                    "ID",
                    "Only exports of the Business Object with this id or name.",
                ))
                .argument(build_argument(
                    "target",
                    "String",
                    "Only exports to the target with this name.",
                ))
                .argument(build_argument("status", "ExportStatus", "Only exports in this state.")),
        );
    if model.has_changes {
        query = query.field(
            build_field(
                CHANGES_FIELD,
                parse_type_ref(&format!("[{CHANGE_TYPE}!]!")),
                "The changes under review that the caller may see, newest first; an error past 1,000.",
            )
            .argument(build_argument(
                "businessObject",
                "ID",
                "Only changes of the Business Object with this id or name.",
            )),
        );
    }
    if model.whole {
        query = query.field(build_field(
            "targets",
            parse_type_ref("[Target!]"),
            "Every target that the configuration, a Business Object or the queue names, sorted by name.",
        ));
    }
    query
}
