//! Builds the schema's types from the model.
use super::field_definitions::{build_argument, build_field, build_page_field, parse_type_ref};
use super::model::{
    BusinessObjectTypes, FieldRole, Model, ObjectType, connection_type_name, filter_type_name,
};
use super::system::{
    DEFAULT_PAGE_SIZE, NODE_TYPE, OBJECT_TYPE, QUERY_TYPE, REFERRERS_TYPE, TEXT_TYPE,
};
use super::{summary, system_types};
use async_graphql::Value as Input;
use async_graphql::dynamic::{
    Enum, Field, InputObject, InputValue, Interface, InterfaceField, Object, Schema, SchemaBuilder,
    SchemaError, TypeRef,
};
use penstock_model::mapping::{Detail, FieldKind, Property, Shape};
use std::collections::BTreeSet;

/// The library's limit for nested selections. `cost` has refused deeper ones before.
const MAX_RECURSION: usize = 128;

/// The maximum number of characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// The description of a group, and of its type.
const GROUP_DESCRIPTION: &str = "A group of fields. It is null if none of them has a value.";

/// The description of the type of the members of a map.
const MEMBER_DESCRIPTION: &str = "A member of a map, with its name and its value.";

/// Builds a schema with the types of these Business Objects, as indexes into [`Model::business_objects`].
pub(super) fn build_schema(model: &Model, of: &BTreeSet<usize>) -> Result<Schema, SchemaError> {
    let mut query = Object::new(QUERY_TYPE).description("The entry points for reading.");
    query = system_types::add_query_fields(query, model);
    let mut schema = Schema::build(QUERY_TYPE, None, None)
        .limit_recursive_depth(MAX_RECURSION)
        .limit_directives(50);
    schema = system_types::register_types(schema, model);
    if !model.business_objects.is_empty() {
        (schema, query) = add_shared_types(schema, query, model);
    }
    if model.has_summaries {
        schema = summary::register_types(schema);
    }
    for place in of {
        let Some(business) = model.business_objects.get(*place) else { continue };
        let Some(object) = model.object_types.get(business.object) else { continue };
        query = add_query_fields(query, business, object);
        if model.has_summaries {
            query = add_summary_field(query, business, object);
        }
        schema = add_page_types(schema, business, object);
    }
    for object in model.object_types.iter().filter(|object| of.contains(&object.business)) {
        let Some(business) = model.business_objects.get(object.business) else { continue };
        let Some(shape) = object.find_shape(&business.compiled.mapping.root) else { continue };
        schema = schema.register(build_object_type(model, business, object, shape));
        schema = schema.register(build_filter_type(model, object));
    }
    schema.register(query).finish()
}

/// Adds the types and query fields that all Business Objects share.
fn add_shared_types(
    schema: SchemaBuilder,
    query: Object,
    model: &Model,
) -> (SchemaBuilder, Object) {
    let roots = model
        .business_objects
        .iter()
        .filter_map(|business| model.object_types.get(business.object));
    let types = Enum::new(OBJECT_TYPE)
        .description("The types of the objects of Business Objects.")
        .items(roots.map(|object| object.name.as_str()));
    let node = Interface::new(NODE_TYPE)
        .description("An object of a Business Object.")
        .field(InterfaceField::new("uri", parse_type_ref("ID!")).description("Its URI."))
        .field(add_referrer_arguments(
            InterfaceField::new("referredBy", TypeRef::named(REFERRERS_TYPE))
                .description("The objects that refer to it."),
            InterfaceField::argument,
        ));
    let referrers = Object::new(REFERRERS_TYPE)
        .description("A page of objects that refer to an object.")
        .field(build_field("nodes", parse_type_ref("[Node!]!"), "The objects."))
        .field(build_field(
            "edges",
            parse_type_ref("[ReferrerEdge!]!"),
            "The objects, and how they refer to it.",
        ))
        .field(build_field("pageInfo", parse_type_ref("PageInfo!"), "Where the page ends."));
    let edge = Object::new("ReferrerEdge")
        .description("An object that refers to another one.")
        .field(build_field(
            "cursor",
            parse_type_ref("String!"),
            "The value of `after` for a page that begins after it.",
        ))
        .field(build_field("node", parse_type_ref("Node!"), "The object."))
        .field(build_field("type", parse_type_ref("ObjectType!"), "Its type."))
        .field(build_field(
            "path",
            parse_type_ref("String!"),
            "The fields of its mapping that lead to the other object, separated by dots.",
        ));
    let schema = schema.register(types).register(node).register(referrers).register(edge);
    let one = build_field(
        "object",
        TypeRef::named(NODE_TYPE),
        "The object of a Business Object with this URI.",
    )
    .argument(build_argument("uri", "ID!", "The URI."))
    .argument(build_as_argument());
    let referred = build_field(
        "referredBy",
        TypeRef::named(REFERRERS_TYPE),
        "The objects that refer to an object.",
    )
    .argument(build_argument("uri", "ID!", "The URI of the object."));
    (schema, query.field(one).field(add_referrer_arguments(referred, Field::argument)))
}

/// Adds the arguments for references from other objects.
fn add_referrer_arguments<F>(field: F, add: fn(F, InputValue) -> F) -> F {
    let first = InputValue::new("first", TypeRef::named(TypeRef::INT))
        .default_value(DEFAULT_PAGE_SIZE)
        .description("The maximum number of items of the page.");
    let more = [
        first,
        build_argument("after", "String", "The `endCursor` of the previous page."),
        build_argument("type", OBJECT_TYPE, "Only objects of this type."),
        build_argument(
            "path",
            "String",
            "Only references through these fields of the mapping, separated by dots.",
        ),
    ];
    more.into_iter().fold(field, add)
}

fn build_as_argument() -> InputValue {
    build_argument(
        "as",
        OBJECT_TYPE,
        "The type to read the object as. The default is the type of the first Business Object, by name, that it belongs to.",
    )
}

/// Adds the fields of the query type for one Business Object.
fn add_query_fields(query: Object, business: &BusinessObjectTypes, object: &ObjectType) -> Object {
    let name = &business.compiled.object.definition.name;
    let one = build_field(
        &business.one,
        TypeRef::named(&object.name),
        to_single_line(&format!("The object of {name} with this URI.")),
    );
    let about = to_single_line(&format!("The objects of {name}, ordered by URI or by `orderBy`."));
    let many = build_page_field(&business.many, connection_type_name(&object.name), about)
        .argument(build_argument("where", &filter_type_name(&object.name), "The filter."))
        .argument(build_argument("orderBy", &format!("{}Order", object.name), "The order."));
    query.field(one.argument(build_argument("uri", "ID!", "The URI."))).field(many)
}

/// Adds the field of the query type for the summary of one Business Object.
fn add_summary_field(query: Object, business: &BusinessObjectTypes, object: &ObjectType) -> Object {
    let name = &business.compiled.object.definition.name;
    let filter = filter_type_name(&object.name);
    query.field(summary::build_summary_field(&business.summary, &filter, &to_single_line(name)))
}

/// Adds the types of a Business Object's connection.
fn add_page_types(
    schema: SchemaBuilder,
    business: &BusinessObjectTypes,
    object: &ObjectType,
) -> SchemaBuilder {
    let name = &object.name;
    let page = Object::new(connection_type_name(name))
        .description(format!("A page of objects of type {name}."))
        .field(build_field("nodes", TypeRef::named_nn_list_nn(name), "The objects."))
        .field(build_field(
            "edges",
            parse_type_ref(&format!("[{name}Edge!]!")),
            "The objects with their cursors.",
        ))
        .field(build_field("pageInfo", parse_type_ref("PageInfo!"), "Where the page ends."))
        .field(build_field(
            "totalCount",
            TypeRef::named("Integer"),
            "The number of objects that match the filter. They are counted only if this field is selected.",
        ));
    let edge = Object::new(format!("{name}Edge"))
        .description(format!("An object of type {name} on a page."))
        .field(build_field(
            "cursor",
            parse_type_ref("String!"),
            "The value of `after` for a page that begins after it.",
        ))
        .field(build_field("node", TypeRef::named_nn(name), "The object."));
    let fields = Enum::new(format!("{name}OrderField"))
        .description(format!("What objects of type {name} can be ordered by."))
        .items(business.orders.iter().map(|(name, _)| name.as_str()));
    let order = InputObject::new(format!("{name}Order"))
        .description(
            "An order. Equal objects are ordered by URI; objects without a value come last.",
        )
        .field(InputValue::new("field", parse_type_ref(&format!("{name}OrderField!"))))
        .field(
            InputValue::new("direction", TypeRef::named("Direction"))
                .default_value(Input::Enum(async_graphql::Name::new("ASC"))),
        );
    schema.register(page).register(edge).register(fields).register(order)
}

/// Builds the type of objects.
fn build_object_type(
    model: &Model,
    business: &BusinessObjectTypes,
    object: &ObjectType,
    shape: &Shape,
) -> Object {
    let definition = &business.compiled.object.definition;
    let about = match (object.is_root(), definition.description.as_str()) {
        (true, "") => format!("An object of {}.", definition.name),
        (true, description) => description.to_owned(),
        (false, _) if object.group.is_some() => GROUP_DESCRIPTION.to_owned(),
        (false, _) if object.is_member => MEMBER_DESCRIPTION.to_owned(),
        (false, _) => format!("An object of the namespace {}.", shape.namespace),
    };
    let mut built = Object::new(&object.name).description(to_single_line(&about));
    if object.is_root() {
        built = built.implement(NODE_TYPE);
    }
    let name_of = |to: usize| model.object_types.get(to).map_or("", |to| &to.name);
    for own in &object.fields {
        built = built.field(match own.role {
            FieldRole::Uri => build_field(&own.name, parse_type_ref("ID!"), "Its URI."),
            FieldRole::Leaf(place, leaf, many) => build_field(
                &own.name,
                list_or_single(leaf.name, many),
                describe_field(shape, place),
            ),
            FieldRole::Texts(place, _) => build_field(
                &own.name,
                TypeRef::named_nn_list(TEXT_TYPE),
                describe_field(shape, place),
            ),
            FieldRole::Nested(place, to, many) => {
                let to = list_or_single(name_of(to), many);
                build_field(&own.name, to, describe_field(shape, place))
            }
            FieldRole::Group(to) => {
                build_field(&own.name, TypeRef::named(name_of(to)), GROUP_DESCRIPTION)
            }
            FieldRole::Member(to) => {
                let to = TypeRef::named_nn(name_of(to));
                build_field(&own.name, to, "The value of the member.")
            }
            FieldRole::Followed(place, many) => {
                let to = if many { parse_type_ref("[Node]") } else { parse_type_ref(NODE_TYPE) };
                let of = shape.fields.get(place).map_or("", |field| &field.name);
                let about = format!("The objects of Business Objects that `{of}` refers to.");
                build_field(&own.name, to, to_single_line(&about)).argument(build_as_argument())
            }
            FieldRole::AsObject => {
                let about =
                    "The same object as the object of a Business Object, if it belongs to one.";
                build_field(&own.name, parse_type_ref(NODE_TYPE), about)
                    .argument(build_as_argument())
            }
            FieldRole::ReferredBy => add_referrer_arguments(
                build_field(
                    &own.name,
                    TypeRef::named(REFERRERS_TYPE),
                    "The objects that refer to it.",
                ),
                Field::argument,
            ),
        });
    }
    built
}

/// Builds the filter for a type of objects.
fn build_filter_type(model: &Model, object: &ObjectType) -> InputObject {
    let own = filter_type_name(&object.name);
    let mut built = InputObject::new(&own)
        .description(format!(
            "A filter for an object of type {}. All given filters must match.",
            object.name
        ))
        .field(
            InputValue::new("and", TypeRef::named_nn_list(&own)).description("All of these match."),
        )
        .field(
            InputValue::new("or", TypeRef::named_nn_list(&own))
                .description("At least one of these matches."),
        )
        .field(InputValue::new("not", TypeRef::named(&own)).description("This does not match."));
    for field in &object.fields {
        let kind = match field.role {
            FieldRole::Uri => "IDFilter".to_owned(),
            FieldRole::Leaf(_, leaf, _) if leaf.tests.is_empty() => continue,
            FieldRole::Leaf(_, leaf, _) | FieldRole::Texts(_, leaf) => leaf.filter.to_owned(),
            FieldRole::Nested(_, to, _) | FieldRole::Group(to) | FieldRole::Member(to) => {
                match model.object_types.get(to) {
                    Some(to) => filter_type_name(&to.name),
                    None => continue,
                }
            }
            FieldRole::Followed(..) | FieldRole::AsObject | FieldRole::ReferredBy => continue,
        };
        built = built.field(InputValue::new(&field.name, TypeRef::named(kind)));
    }
    built
}

fn list_or_single(name: &str, many: bool) -> TypeRef {
    if many { TypeRef::named_nn_list(name) } else { TypeRef::named(name) }
}

/// Describes a field of a shape, as the mapping defines it.
fn describe_field(shape: &Shape, place: usize) -> String {
    let Some(field) = shape.fields.get(place) else { return String::new() };
    let FieldKind::Property(Property { predicate, required, value, .. }) = &field.kind else {
        return String::new();
    };
    let kind = match value.detail() {
        Detail::Language(tag) => format!(", in the language {tag}"),
        Detail::Datatype(datatype) => format!(", of type <{}>", datatype.as_str()),
        Detail::Objects(nested) => format!(", an object of the namespace {}", nested.namespace),
        Detail::None => String::new(),
    };
    let required = if *required { ", required" } else { "" };
    to_single_line(&format!("`{}`: <{}>{kind}{required}", field.name, predicate.as_str()))
}

/// Returns a text as one line, without characters that change in a block string of the SDL.
fn to_single_line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut line = words.join(" ").replace("\"\"\"", "'''");
    if let Some((end, _)) = line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        line.truncate(end);
    }
    line
}
