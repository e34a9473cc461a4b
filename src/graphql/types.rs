//! Builds the schema's types from the model.
use super::model::{Business, Leaf, Model, ObjectType, Role, connection, filter};
use super::system::{self, NODE, OBJECT_TYPE, QUERY, REFERRERS, argument, field, paged, type_ref};
use async_graphql::Value as Input;
use async_graphql::dynamic::{
    Enum, Field, InputObject, InputValue, Interface, InterfaceField, Object, Schema, SchemaBuilder,
    SchemaError, TypeRef,
};
use penstock_model::mapping::{FieldKind, Literal, Property, Shape, Value};
use std::collections::BTreeSet;

/// The library's limit for nested selections. `cost` has refused deeper ones before.
const RECURSION: usize = 128;

/// The maximum number of characters of a description.
const LONGEST: usize = 1_000;

/// Builds a schema with the types of these Business Objects, as indexes into [`Model::business`].
pub(super) fn schema(model: &Model, of: &BTreeSet<usize>) -> Result<Schema, SchemaError> {
    let mut query = Object::new(QUERY).description("The entry points for reading.");
    query = system::queries(query, model.whole);
    let mut schema =
        Schema::build(QUERY, None, None).limit_recursive_depth(RECURSION).limit_directives(50);
    schema = system::register(schema, model);
    if !model.business.is_empty() {
        (schema, query) = shared(schema, query, model);
    }
    for place in of {
        let Some(business) = model.business.get(*place) else { continue };
        let Some(object) = model.objects.get(business.object) else { continue };
        query = queries(query, business, object);
        schema = paging(schema, business, object);
    }
    for object in model.objects.iter().filter(|object| of.contains(&object.business)) {
        let Some(business) = model.business.get(object.business) else { continue };
        let Some(shape) = object.shape(&business.compiled.mapping.root) else { continue };
        schema = schema.register(output(model, business, object, shape));
        schema = schema.register(input(model, object));
    }
    schema.register(query).finish()
}

/// Adds the types and query fields that all Business Objects share.
fn shared(schema: SchemaBuilder, query: Object, model: &Model) -> (SchemaBuilder, Object) {
    let roots = model.business.iter().filter_map(|business| model.objects.get(business.object));
    let types = Enum::new(OBJECT_TYPE)
        .description("The types of the objects of Business Objects.")
        .items(roots.map(|object| object.name.as_str()));
    let node = Interface::new(NODE)
        .description("An object of a Business Object.")
        .field(InterfaceField::new("uri", type_ref("ID!")).description("Its URI."))
        .field(through(
            InterfaceField::new("referredBy", TypeRef::named(REFERRERS))
                .description("The objects that refer to it."),
            InterfaceField::argument,
        ));
    let referrers = Object::new(REFERRERS)
        .description("A page of objects that refer to an object.")
        .field(field("nodes", type_ref("[Node!]!"), "The objects."))
        .field(field(
            "edges",
            type_ref("[ReferrerEdge!]!"),
            "The objects, and how they refer to it.",
        ))
        .field(field("pageInfo", type_ref("PageInfo!"), "Where the page ends."));
    let edge = Object::new("ReferrerEdge")
        .description("An object that refers to another one.")
        .field(field(
            "cursor",
            type_ref("String!"),
            "The value of `after` for a page that begins after it.",
        ))
        .field(field("node", type_ref("Node!"), "The object."))
        .field(field("type", type_ref("ObjectType!"), "Its type."))
        .field(field(
            "path",
            type_ref("String!"),
            "The fields of its mapping that lead to the other object, separated by dots.",
        ));
    let schema = schema.register(types).register(node).register(referrers).register(edge);
    let one =
        field("object", TypeRef::named(NODE), "The object of a Business Object with this URI.")
            .argument(argument("uri", "ID!", "The URI."))
            .argument(as_type());
    let referred =
        field("referredBy", TypeRef::named(REFERRERS), "The objects that refer to an object.")
            .argument(argument("uri", "ID!", "The URI of the object."));
    (schema, query.field(one).field(through(referred, Field::argument)))
}

/// Adds the arguments for references from other objects.
fn through<F>(field: F, add: fn(F, InputValue) -> F) -> F {
    let first = InputValue::new("first", TypeRef::named(TypeRef::INT))
        .default_value(system::FIRST)
        .description("The maximum number of items of the page.");
    let more = [
        first,
        argument("after", "String", "The `endCursor` of the previous page."),
        argument("type", OBJECT_TYPE, "Only objects of this type."),
        argument(
            "path",
            "String",
            "Only references through these fields of the mapping, separated by dots.",
        ),
    ];
    more.into_iter().fold(field, add)
}

fn as_type() -> InputValue {
    argument(
        "as",
        OBJECT_TYPE,
        "The type to read the object as. The default is the type of the first Business Object, by name, that it belongs to.",
    )
}

/// Adds the fields of the query type for one Business Object.
fn queries(query: Object, business: &Business, object: &ObjectType) -> Object {
    let name = &business.compiled.object.definition.name;
    let one = field(
        &business.one,
        TypeRef::named(&object.name),
        line(&format!("The object of {name} with this URI.")),
    );
    let about = line(&format!("The objects of {name}, ordered by URI or by `orderBy`."));
    let many = paged(&business.many, connection(&object.name), about)
        .argument(argument("where", &filter(&object.name), "The filter."))
        .argument(argument("orderBy", &format!("{}Order", object.name), "The order."));
    query.field(one.argument(argument("uri", "ID!", "The URI."))).field(many)
}

/// Adds the types of a Business Object's connection.
fn paging(schema: SchemaBuilder, business: &Business, object: &ObjectType) -> SchemaBuilder {
    let name = &object.name;
    let page = Object::new(connection(name))
        .description(format!("A page of objects of type {name}."))
        .field(field("nodes", TypeRef::named_nn_list_nn(name), "The objects."))
        .field(field(
            "edges",
            type_ref(&format!("[{name}Edge!]!")),
            "The objects with their cursors.",
        ))
        .field(field("pageInfo", type_ref("PageInfo!"), "Where the page ends."))
        .field(field(
            "totalCount",
            TypeRef::named("Integer"),
            "The number of objects that match the filter. They are counted only if this field is selected.",
        ));
    let edge = Object::new(format!("{name}Edge"))
        .description(format!("An object of type {name} on a page."))
        .field(field(
            "cursor",
            type_ref("String!"),
            "The value of `after` for a page that begins after it.",
        ))
        .field(field("node", TypeRef::named_nn(name), "The object."));
    let fields = Enum::new(format!("{name}OrderField"))
        .description(format!("What objects of type {name} can be ordered by."))
        .items(business.orders.iter().map(|(name, _)| name.as_str()));
    let order = InputObject::new(format!("{name}Order"))
        .description(
            "An order. Equal objects are ordered by URI; objects without a value come last.",
        )
        .field(InputValue::new("field", type_ref(&format!("{name}OrderField!"))))
        .field(
            InputValue::new("direction", TypeRef::named("Direction"))
                .default_value(Input::Enum(async_graphql::Name::new("ASC"))),
        );
    schema.register(page).register(edge).register(fields).register(order)
}

/// Builds the type of objects.
fn output(model: &Model, business: &Business, object: &ObjectType, shape: &Shape) -> Object {
    let definition = &business.compiled.object.definition;
    let about = match (object.is_root(), definition.description.as_str()) {
        (true, "") => format!("An object of {}.", definition.name),
        (true, description) => description.to_owned(),
        (false, _) => format!("An object of the namespace {}.", shape.namespace),
    };
    let mut made = Object::new(&object.name).description(line(&about));
    if object.is_root() {
        made = made.implement(NODE);
    }
    for own in &object.fields {
        made = made.field(match own.role {
            Role::Uri => field(&own.name, type_ref("ID!"), "Its URI."),
            Role::Leaf(place, leaf, many) => {
                field(&own.name, listed(leaf.type_name(), many), told(shape, place))
            }
            Role::Nested(place, to, many) => {
                let to = model.objects.get(to).map_or("", |to| &to.name);
                field(&own.name, listed(to, many), told(shape, place))
            }
            Role::Followed(place, many) => {
                let to = if many { type_ref("[Node]") } else { type_ref(NODE) };
                let of = shape.fields.get(place).map_or("", |field| &field.name);
                let about = format!("The objects of Business Objects that `{of}` refers to.");
                field(&own.name, to, line(&about)).argument(as_type())
            }
            Role::AsObject => {
                let about =
                    "The same object as the object of a Business Object, if it belongs to one.";
                field(&own.name, type_ref(NODE), about).argument(as_type())
            }
            Role::ReferredBy => through(
                field(&own.name, TypeRef::named(REFERRERS), "The objects that refer to it."),
                Field::argument,
            ),
        });
    }
    made
}

/// Builds the filter for a type of objects.
fn input(model: &Model, object: &ObjectType) -> InputObject {
    let own = filter(&object.name);
    let mut made = InputObject::new(&own)
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
            Role::Uri => "IDFilter".to_owned(),
            Role::Leaf(_, leaf, _) => format!("{}Filter", leaf.type_name()),
            Role::Nested(_, to, _) => match model.objects.get(to) {
                Some(to) => filter(&to.name),
                None => continue,
            },
            Role::Followed(..) | Role::AsObject | Role::ReferredBy => continue,
        };
        made = made.field(InputValue::new(&field.name, TypeRef::named(kind)));
    }
    made
}

fn listed(name: &str, many: bool) -> TypeRef {
    if many { TypeRef::named_nn_list(name) } else { TypeRef::named(name) }
}

/// Describes a field according to its mapping.
fn told(shape: &Shape, place: usize) -> String {
    let Some(field) = shape.fields.get(place) else { return String::new() };
    let FieldKind::Property(Property { predicate, required, value, .. }) = &field.kind else {
        return String::new();
    };
    let kind = match value {
        Value::Literal(Literal::Language(tag)) => format!(", in the language {tag}"),
        Value::Literal(Literal::Typed(datatype)) => format!(", of type <{}>", datatype.as_str()),
        Value::Object(nested) => format!(", an object of the namespace {}", nested.namespace),
        Value::Literal(_) | Value::Resource => String::new(),
    };
    let required = if *required { ", required" } else { "" };
    line(&format!("`{}`: <{}>{kind}{required}", field.name, predicate.as_str()))
}

/// Returns a text as one line that means the same in a block string and in introspection.
fn line(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut line = words.join(" ").replace("\"\"\"", "'''");
    if let Some((end, _)) = line.char_indices().nth(LONGEST) {
        line.truncate(end);
    }
    line
}

impl Leaf {
    /// Whether GraphQL's own type allows only values of that type.
    pub(super) fn is_strict(self) -> bool {
        self == Self::Boolean
    }
}
