//! The types that are there whatever Business Objects there are.
use super::model::Model;
use async_graphql::dynamic::{
    Enum, Field, FieldFuture, InputObject, InputValue, Object, Scalar, SchemaBuilder, TypeRef,
};

/// The type of what can be read.
pub(super) const QUERY: &str = "Query";
/// What every object of a Business Object is.
pub(super) const NODE: &str = "Node";
/// The types of Business Objects' objects.
pub(super) const OBJECT_TYPE: &str = "ObjectType";
/// What refers to an object.
pub(super) const REFERRERS: &str = "ReferrerConnection";

/// The fields of the query type that are there always, or that Business Objects share.
pub(super) const QUERIES: [&str; 6] =
    ["authenticatedUser", "businessObjects", "exports", "targets", "object", "referredBy"];

/// Objects on a page when the request does not say.
pub(super) const FIRST: usize = 50;

/// A field that shows the member of the same name of what it stands in.
pub(super) type Member = (&'static str, &'static str, &'static str);

/// Types that show what the gateway knows, by their members: name, type, description.
pub(super) const OBJECTS: &[(&str, &str, &[Member])] = &[
    (
        "AuthenticatedUser",
        "The account that sent the request.",
        &[
            ("id", "ID!", "Its identifier."),
            ("givenName", "String", "The given name."),
            ("familyName", "String", "The family name."),
            ("email", "String", "The email; of a service account synthetic."),
            ("organization", "String", "The organization."),
            ("roles", "[String!]!", "Its role, as a list of one."),
            ("serviceAccount", "Boolean!", "Whether it is a client application's."),
        ],
    ),
    (
        "BusinessObject",
        "A named, configured JSON view of what is stored.",
        &[
            ("id", "ID!", "Its identifier."),
            ("name", "String!", "Its name."),
            ("description", "String!", "Free text."),
            (
                "enabled",
                "Boolean!",
                "Whether it takes ingestions and exports; it is read in any case.",
            ),
            ("config", "String!", "The mapping, as YAML."),
            ("namespaces", "[PenstockNamespace!]!", "Namespaces that are defined with it."),
            (
                "conditions",
                "[Condition!]!",
                "Which stored objects belong to it: all that satisfy every one.",
            ),
            ("pushTargets", "[PushTarget!]!", "Where its exports go."),
            ("schedule", "String", "When full exports run by themselves: cron."),
            ("timezone", "String", "The IANA time zone of the schedule; UTC when absent."),
            ("exportOnChange", "Boolean!", "Whether changes are exported by themselves."),
            ("debounce", "String", "How long an export on change waits for further changes."),
            (
                "retention",
                "String",
                "After which time unchanged, delivered objects are removed (ISO 8601).",
            ),
            ("version", "Integer!", "1 at its creation, one more with each change."),
            ("createdAt", "DateTime!", "When it was created."),
            ("updatedAt", "DateTime!", "When it was last changed."),
            ("updatedBy", "ID", "Who changed it last."),
            ("createdNamespaces", "[String!]!", "Namespaces that its last change created."),
            ("type", "String", "The type of its objects in this schema."),
            ("typeMissing", "String", "Why this schema has no type for its objects, if so."),
        ],
    ),
    (
        "Condition",
        "Some graph holds (object, predicate, value).",
        &[
            ("predicate", "IRI!", "The predicate: an IRI, or a name with a prefix of the mapping."),
            ("value", "IRI!", "The value: an IRI, or a name with a prefix of the mapping."),
        ],
    ),
    (
        "PenstockNamespace",
        "A namespace that is defined with a Business Object.",
        &[
            ("name", "String!", "Its name."),
            ("uriBase", "IRI", "What every identifier begins with, if the definition says so."),
            ("generator", "String", "How identifiers are made, if the definition says so."),
        ],
    ),
    ("PushTarget", "Where exports go.", &[("bucketName", "String!", "Its name.")]),
    (
        "Export",
        "One file for one Business Object and one target.",
        &[
            ("id", "ID!", "Its identifier."),
            ("businessObject", "ID!", "The Business Object's id."),
            ("businessObjectName", "String!", "The Business Object's name, as in the key."),
            ("target", "String!", "The bucketName."),
            (
                "sequence",
                "Integer!",
                "From 1, without a gap, per target and Business Object name; 0 while it waits for room.",
            ),
            ("kind", "ExportKind!", "What it holds."),
            ("status", "ExportStatus!", "How far it has come."),
            ("objectCount", "Integer!", "Objects in it."),
            ("bytes", "Integer!", "Bytes of the file."),
            ("dataChecksum", "String!", "`metadata.data_checksum` of the file."),
            ("sha256", "String!", "SHA-256 of the whole file, lowercase hex."),
            ("key", "String!", "The key in the bucket, prefix included."),
            ("createdAt", "DateTime!", "When it was made."),
            ("deliveredAt", "DateTime", "When the target had taken it."),
            ("attempts", "Integer!", "Attempts so far."),
            ("lastError", "String", "Why the last attempt failed."),
            ("pushedBy", "ID", "The account that pushed it."),
            ("warnings", "[String!]", "What the view warned of."),
        ],
    ),
    (
        "ExportConnection",
        "A page of exports, newest first.",
        &[
            ("nodes", "[Export!]!", "The exports."),
            ("edges", "[ExportEdge!]!", "The exports with their cursors."),
            ("pageInfo", "PageInfo!", "Where the page ends."),
        ],
    ),
    (
        "ExportEdge",
        "An export on a page.",
        &[
            ("cursor", "String!", "What the next page begins after, if it is the last."),
            ("node", "Export!", "The export."),
        ],
    ),
    (
        "Target",
        "Where exports go, and how it is.",
        &[
            ("name", "String!", "The bucketName."),
            ("type", "String!", "`directory` or `s3`."),
            ("reachable", "Boolean", "Whether the last attempt reached it; null before the first."),
            ("blocked", "String", "Why its head of the queue does not get through."),
            ("blockedBy", "String", "What kind of cause that is."),
            ("blockedSince", "DateTime", "When its head first failed."),
            ("attempts", "Integer!", "Failed attempts at its head."),
            ("nextAttempt", "DateTime", "When the next attempt is due."),
            ("paused", "String", "Why nothing is delivered now though nothing is wrong."),
            ("depth", "Integer!", "Exports that wait for it."),
            (
                "waiting",
                "Integer!",
                "Business Objects whose exports by themselves wait for room in the spool.",
            ),
            ("bytes", "Integer!", "Bytes that wait for it."),
            ("oldest", "DateTime", "When the oldest that waits was made."),
            ("lastDelivery", "DateTime", "When the last one was delivered."),
        ],
    ),
    (
        "PageInfo",
        "Where a page begins and ends.",
        &[
            ("hasNextPage", "Boolean!", "Whether there is more after it."),
            ("hasPreviousPage", "Boolean!", "Whether it began after a cursor."),
            ("startCursor", "String", "The cursor of its first item."),
            ("endCursor", "String", "The cursor of its last item: `after` of the next page."),
        ],
    ),
];

const SCALARS: &[(&str, &str, &str)] = &[
    ("IRI", "An IRI (RFC 3987), as a string.", "https://www.rfc-editor.org/rfc/rfc3987"),
    (
        "Integer",
        "A whole number of any size, as a JSON number with all its digits. A stored value that is none is written as the JSON view writes it. As input also a string of digits.",
        "https://www.w3.org/TR/xmlschema11-2/#integer",
    ),
    (
        "Number",
        "A number of any size and precision, as a JSON number with the digits that came in. A stored value that is none (INF, NaN) is written as the JSON view writes it: as a string. As input also a string of digits.",
        "https://www.w3.org/TR/xmlschema11-2/#decimal",
    ),
    (
        "Date",
        "A date, as a string in the form that came in: `2026-03-01`, maybe with a time zone.",
        "https://www.w3.org/TR/xmlschema11-2/#date",
    ),
    (
        "DateTime",
        "A date and time, as a string in the form that came in: `2026-03-01T12:00:00.5Z`.",
        "https://www.w3.org/TR/xmlschema11-2/#dateTime",
    ),
];

const ENUMS: &[(&str, &str, &[&str])] = &[
    ("Direction", "Which way a list is ordered.", &["ASC", "DESC"]),
    ("ExportKind", "What an export holds.", &["full", "incremental", "deleted"]),
    (
        "ExportStatus",
        "How far an export has come.",
        &["waiting", "queued", "delivering", "delivered", "blocked", "parked"],
    ),
];

/// The tests of a filter: those of one value that all hold for it. Each name has what it does in [`TESTS`].
const FILTERS: &[(&str, &str, &[&str])] = &[
    ("StringFilter", "String", &["eq", "in", "contains", "containsAnyCase", "exists"]),
    ("IRIFilter", "IRI", &["eq", "in", "contains", "containsAnyCase", "exists"]),
    ("IDFilter", "ID", &["eq", "in", "contains", "containsAnyCase"]),
    ("IntegerFilter", "Integer", &["eq", "in", "before", "after", "exists"]),
    ("NumberFilter", "Number", &["eq", "in", "before", "after", "exists"]),
    ("DateFilter", "Date", &["eq", "in", "before", "after", "exists"]),
    ("DateTimeFilter", "DateTime", &["eq", "in", "before", "after", "exists"]),
    ("BooleanFilter", "Boolean", &["eq", "exists"]),
];

const TESTS: &[(&str, &str)] = &[
    ("eq", "It is this: a number by number, a date or time by the moment."),
    ("in", "It is one of these."),
    ("contains", "It contains this text."),
    ("containsAnyCase", "It contains this text, small and capital letters being the same."),
    ("before", "It is a smaller number, or an earlier date or time."),
    ("after", "It is a greater number, or a later date or time."),
    ("exists", "There is a value, or with `false` none."),
];

/// The names of all types here, and of those that GraphQL has.
pub(super) fn names() -> Vec<&'static str> {
    let built_in = ["Int", "Float", "String", "Boolean", "ID", "Mutation", "Subscription"];
    let shared = [QUERY, NODE, OBJECT_TYPE, REFERRERS, "ReferrerEdge"];
    built_in
        .into_iter()
        .chain(shared)
        .chain(OBJECTS.iter().map(|(name, ..)| *name))
        .chain(SCALARS.iter().map(|(name, ..)| *name))
        .chain(ENUMS.iter().map(|(name, ..)| *name))
        .chain(FILTERS.iter().map(|(name, ..)| *name))
        .collect()
}

/// Whether a type is one of values, and stands in the schema.
pub(super) fn is_input(model: &Model, name: &str) -> bool {
    let here = SCALARS.iter().any(|(scalar, ..)| *scalar == name)
        || ENUMS.iter().any(|(items, ..)| *items == name)
        || FILTERS.iter().any(|(filter, ..)| *filter == name);
    ["Int", "Float", "String", "Boolean", "ID"].contains(&name) || here && is_used(model, name)
}

/// Whether something leads to a type of values. Introspection shows no others, and neither does the SDL.
fn is_used(model: &Model, name: &str) -> bool {
    match (name, name.strip_suffix("Filter")) {
        ("Direction" | "IDFilter", _) => !model.business.is_empty(),
        ("Number" | "Date", _) => model.has_leaf(name),
        (_, Some(of)) => model.has_leaf(of),
        (_, None) => true,
    }
}

/// The members of a type of [`OBJECTS`].
pub(super) fn members(type_name: &str) -> Option<&'static [Member]> {
    OBJECTS.iter().find(|(name, ..)| *name == type_name).map(|(.., members)| *members)
}

/// Registers them.
pub(super) fn register(mut schema: SchemaBuilder, model: &Model) -> SchemaBuilder {
    for (name, description, url) in SCALARS.iter().filter(|(name, ..)| is_used(model, name)) {
        let scalar = Scalar::new(*name).description(*description).specified_by_url(*url);
        schema = schema.register(scalar);
    }
    for (name, description, values) in ENUMS.iter().filter(|(name, ..)| is_used(model, name)) {
        let items = Enum::new(*name).description(*description).items(values.iter().copied());
        schema = schema.register(items);
    }
    for (name, of, tests) in FILTERS.iter().filter(|(name, ..)| is_used(model, name)) {
        let about = format!("What is asked of a value of type {of}. All that is given must hold.");
        let mut filter = InputObject::new(*name).description(about);
        for (test, description) in TESTS.iter().filter(|(test, _)| tests.contains(test)) {
            let kind = match *test {
                "in" => TypeRef::named_nn_list(*of),
                "exists" => TypeRef::named(TypeRef::BOOLEAN),
                "contains" | "containsAnyCase" => TypeRef::named(TypeRef::STRING),
                _ => TypeRef::named(*of),
            };
            filter = filter.field(InputValue::new(*test, kind).description(*description));
        }
        schema = schema.register(filter);
    }
    for (name, description, members) in OBJECTS {
        if *name == "Target" && !model.whole {
            continue;
        }
        let mut object = Object::new(*name).description(*description);
        for (member, kind, description) in *members {
            object = object.field(field(*member, type_ref(kind), *description));
        }
        schema = schema.register(object);
    }
    schema
}

/// The fields of the query type for them.
pub(super) fn queries(mut query: Object, whole: bool) -> Object {
    query = query
        .field(field(
            "authenticatedUser",
            type_ref("AuthenticatedUser!"),
            "The account that sent the request.",
        ))
        .field(field(
            "businessObjects",
            type_ref("[BusinessObject!]!"),
            "The Business Objects, by name.",
        ))
        .field(
            paged("exports", "ExportConnection", "The exports, newest first.")
                .argument(argument(
                    "businessObject",
                    "ID",
                    "Those of the Business Object with this id or name.",
                ))
                .argument(argument("target", "String", "Those for the target of this name."))
                .argument(argument("status", "ExportStatus", "Those that have come so far.")),
        );
    if whole {
        query = query.field(field(
            "targets",
            type_ref("[Target!]"),
            "Every target that the configuration, a Business Object or the queue names, by name.",
        ));
    }
    query
}

/// A field of the schema. What stands there is told by `execute`, which knows all that is asked at once.
pub(super) fn field(
    name: impl Into<String>,
    kind: TypeRef,
    description: impl Into<String>,
) -> Field {
    Field::new(name, kind, |_| FieldFuture::Value(None)).description(description)
}

/// A field that leads to a connection.
pub(super) fn paged(
    name: impl Into<String>,
    kind: impl Into<String>,
    description: impl Into<String>,
) -> Field {
    let first = InputValue::new("first", TypeRef::named(TypeRef::INT))
        .default_value(FIRST)
        .description("The most items of the page.");
    field(name, TypeRef::named(kind), description).argument(first).argument(argument(
        "after",
        "String",
        "The `endCursor` of the page before.",
    ))
}

/// An argument of a field.
pub(super) fn argument(name: &str, kind: &str, description: &str) -> InputValue {
    InputValue::new(name, type_ref(kind)).description(description)
}

/// A type as GraphQL writes it: `[String!]!`.
pub(super) fn type_ref(text: &str) -> TypeRef {
    if let Some(inner) = text.strip_suffix('!') {
        return TypeRef::NonNull(Box::new(type_ref(inner)));
    }
    match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => TypeRef::List(Box::new(type_ref(inner))),
        None => TypeRef::named(text),
    }
}

/// The type within a type as GraphQL writes it, and whether it is a list.
pub(super) fn inner(text: &str) -> (&str, bool) {
    (text.trim_matches(['[', ']', '!']), text.starts_with('['))
}
