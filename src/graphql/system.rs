//! The names of what exists independently of Business Objects: types, scalars, filters, and fields of the query type.
use super::gateway_types::{CHANGE_TYPE, GATEWAY_TYPES};
use penstock_model::mapping::{self, Form, KINDS, Scalar, Value};
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

/// The type of a summary. A Business Object that has its name keeps it; there are no summaries then.
pub(super) const SUMMARY_TYPE: &str = "PenstockSummary";
/// The type of a group. Only a Business Object whose type is [`SUMMARY_TYPE`] can have a type with this name.
pub(super) const SUMMARY_ROW_TYPE: &str = "PenstockSummary_Row";
/// What the name of the field with the summary of a Business Object ends with.
pub(super) const SUMMARY_ENDING: &str = "Summary";

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

/// The enum of the direction of an order: name, description, values.
pub(super) const DIRECTION: (&str, &str, [&str; 2]) =
    ("Direction", "The direction of an order.", ["ASC", "DESC"]);

/// The type of the URI of an object.
const ID: Scalar = Scalar {
    name: "ID",
    about: None,
    filter: "IDFilter",
    tests: &["eq", "in", "contains", "containsAnyCase", "startsWith"],
};

/// Returns the types of values that GraphQL does not have itself.
pub(super) fn list_scalars() -> impl Iterator<Item = &'static Scalar> {
    let named = mapping::list_scalars().filter(|scalar| scalar.about.is_some());
    keep_first(named, |scalar| scalar.name)
}

/// Returns whether the values of a type are numbers of any size.
pub(super) fn is_number(name: &str) -> bool {
    let mut kinds = KINDS.iter().map(Value::kind);
    kinds.any(|kind| kind.graphql.name == name && kind.form == Form::Number)
}

/// Returns the types of values that have a filter.
pub(super) fn list_filters() -> impl Iterator<Item = &'static Scalar> {
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

/// Returns the names of all types that Business Objects cannot use: those that always exist, and GraphQL's own.
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
