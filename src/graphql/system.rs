//! The types that exist independently of Business Objects.
use super::gateway_types::{CHANGE_TYPE, GATEWAY_TYPES, GatewayType};
use super::model::Model;
use async_graphql::dynamic::{
    Enum, EnumItem, Field, FieldFuture, InputObject, InputValue, Object, Scalar as DynamicScalar,
    SchemaBuilder, TypeRef,
};
use penstock_model::mapping::{self, CODE_SCALAR, Form, KINDS, Scalar, Value};
use std::collections::HashSet;

/// The query type.
pub(super) const QUERY_TYPE: &str = "Query";
/// The interface that every object of a Business Object implements.
pub(super) const NODE_TYPE: &str = "Node";
/// The enum of the types of Business Objects' objects.
pub(super) const OBJECT_TYPE: &str = "ObjectType";
/// The type of a text with its language.
pub(super) const TEXT_TYPE: &str = "PenstockLanguageText";
/// The connection of objects that refer to an object.
pub(super) const REFERRERS_TYPE: &str = "ReferrerConnection";

/// The fields of the query type that always exist, or that Business Objects share.
pub(super) const SHARED_QUERY_FIELDS: [&str; 6] =
    ["authenticatedUser", "businessObjects", "exports", "targets", "object", "referredBy"];

/// The field of the query type with the pending changes, which a Business Object can have too.
pub(super) const CHANGES_FIELD: &str = "penstockPendingChanges";

/// The fields of the query type that must not be null, unless a Business Object has their name.
pub(super) const NON_NULL_QUERY_FIELDS: [&str; 3] =
    ["authenticatedUser", "businessObjects", CHANGES_FIELD];

/// The default number of objects on a page.
pub(super) const DEFAULT_PAGE_SIZE: usize = 50;

/// The scalars that the types of this module have.
const SHARED_SCALARS: [&str; 3] = ["IRI", "Integer", "DateTime"];

/// The enum of the direction of an order: name, description, values.
const DIRECTION: (&str, &str, [&str; 2]) =
    ("Direction", "The direction of an order.", ["ASC", "DESC"]);

/// The type of the URI of an object.
const ID: Scalar = Scalar {
    name: "ID",
    about: None,
    filter: "IDFilter",
    tests: &["eq", "in", "contains", "containsAnyCase", "startsWith"],
};

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

/// Returns the types of values that GraphQL does not have itself.
fn list_scalars() -> impl Iterator<Item = &'static Scalar> {
    let named = mapping::list_scalars().filter(|scalar| scalar.about.is_some());
    keep_first(named, |scalar| scalar.name)
}

/// Returns whether the values of a type are numbers of any size.
pub(super) fn is_number(name: &str) -> bool {
    let mut kinds = KINDS.iter().map(Value::kind);
    kinds.any(|kind| kind.graphql.name == name && kind.form == Form::Number)
}

/// Returns the types of values that have a filter.
fn list_filters() -> impl Iterator<Item = &'static Scalar> {
    let searchable = mapping::list_scalars().filter(|scalar| !scalar.tests.is_empty());
    keep_first(searchable.chain([&ID]), |scalar| scalar.filter)
}

/// Keeps the first type with each name.
fn keep_first(
    all: impl Iterator<Item = &'static Scalar>,
    name: fn(&Scalar) -> &'static str,
) -> impl Iterator<Item = &'static Scalar> {
    let mut known = HashSet::new();
    all.filter(move |scalar| known.insert(name(scalar)))
}

/// Returns the names of all types that Business Objects cannot use: those here, and GraphQL's own.
pub(super) fn list_type_names() -> Vec<&'static str> {
    let built_in = ["Int", "Float", "String", "Boolean", "ID", "Mutation", "Subscription"];
    let shared = [
        QUERY_TYPE,
        NODE_TYPE,
        OBJECT_TYPE,
        TEXT_TYPE,
        REFERRERS_TYPE,
        "ReferrerEdge",
        DIRECTION.0,
    ];
    let own = GATEWAY_TYPES.iter().flatten().map(|one| &*one.name);
    built_in
        .into_iter()
        .chain(shared)
        .chain(own.filter(|name| !name.starts_with(CHANGE_TYPE)))
        .chain(list_scalars().map(|scalar| scalar.name))
        .chain(list_filters().map(|of| of.filter))
        .collect()
}

/// Returns whether a type of this module, or of GraphQL itself, is an input type of the schema.
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

/// Creates a field of the schema. The library never resolves it: the module `execute` provides its value.
pub(super) fn build_field(
    name: impl Into<String>,
    kind: TypeRef,
    description: impl Into<String>,
) -> Field {
    Field::new(name, kind, |_| FieldFuture::Value(None)).description(description)
}

/// Creates a field that leads to a connection.
pub(super) fn build_page_field(
    name: impl Into<String>,
    kind: impl Into<String>,
    description: impl Into<String>,
) -> Field {
    let first = InputValue::new("first", TypeRef::named(TypeRef::INT))
        .default_value(DEFAULT_PAGE_SIZE)
        .description("The maximum number of items of the page.");
    build_field(name, TypeRef::named(kind), description).argument(first).argument(build_argument(
        "after",
        "String",
        "The `endCursor` of the previous page.",
    ))
}

/// Creates an argument of a field.
pub(super) fn build_argument(name: &str, kind: &str, description: &str) -> InputValue {
    InputValue::new(name, parse_type_ref(kind)).description(description)
}

/// Parses a type in GraphQL's notation, such as `[String!]!`.
pub(super) fn parse_type_ref(text: &str) -> TypeRef {
    if let Some(inner) = text.strip_suffix('!') {
        return TypeRef::NonNull(Box::new(parse_type_ref(inner)));
    }
    match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => TypeRef::List(Box::new(parse_type_ref(inner))),
        None => TypeRef::named(text),
    }
}

/// Returns the inner type of a type in GraphQL's notation, and whether it is a list.
pub(super) fn inner_type(text: &str) -> (&str, bool) {
    (text.trim_matches(['[', ']', '!']), text.starts_with('['))
}
