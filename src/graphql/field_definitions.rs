//! Creates fields and arguments of the library's schema, with types in GraphQL's notation.
use super::system::DEFAULT_PAGE_SIZE;
use async_graphql::dynamic::{Field, FieldFuture, InputValue, TypeRef};

/// Creates a field of the schema. The library never resolves it: `root_fields` and what it calls provide its value.
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
