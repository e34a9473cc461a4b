//! The types that exist independently of Business Objects.
use super::model::Model;
use async_graphql::dynamic::{
    Enum, Field, FieldFuture, InputObject, InputValue, Object, Scalar as DynamicScalar,
    SchemaBuilder, TypeRef,
};
use penstock_model::mapping::{Form, KINDS, Scalar, Value};

/// The query type.
pub(super) const QUERY_TYPE: &str = "Query";
/// The interface that every object of a Business Object implements.
pub(super) const NODE_TYPE: &str = "Node";
/// The enum of the types of Business Objects' objects.
pub(super) const OBJECT_TYPE: &str = "ObjectType";
/// The connection of objects that refer to an object.
pub(super) const REFERRERS_TYPE: &str = "ReferrerConnection";

/// The fields of the query type that always exist, or that Business Objects share.
pub(super) const SHARED_QUERY_FIELDS: [&str; 6] =
    ["authenticatedUser", "businessObjects", "exports", "targets", "object", "referredBy"];

/// The type of a change under review. A Business Object that has its name keeps it; the type is left out then.
pub(super) const CHANGE_TYPE: &str = "PenstockChange";
/// The field of the query type with the pending changes, which a Business Object can have too.
pub(super) const CHANGES_FIELD: &str = "penstockPendingChanges";

/// The default number of objects on a page.
pub(super) const DEFAULT_PAGE_SIZE: usize = 50;

/// A field of one of the gateway's own types, read from the JSON member of the same name: name, type, description.
pub(super) type Member = (&'static str, &'static str, &'static str);

/// The gateway's own types: name, description, members.
pub(super) const SYSTEM_TYPES: &[(&str, &str, &[Member])] = &[
    (
        "AuthenticatedUser",
        "The account that sent the request.",
        &[
            ("id", "ID!", "Its identifier."),
            ("givenName", "String", "The given name."),
            ("familyName", "String", "The family name."),
            ("email", "String", "The email address; synthetic for a service account."),
            ("organization", "String", "The organization."),
            ("roles", "[String!]!", "Its role, as a list of one."),
            ("serviceAccount", "Boolean!", "Whether it is the account of a client application."),
        ],
    ),
    (
        "BusinessObject",
        "A named, configured JSON view of the stored data.",
        &[
            ("id", "ID!", "Its identifier."),
            ("name", "String!", "Its name."),
            ("description", "String!", "Free text."),
            (
                "enabled",
                "Boolean!",
                "Whether it accepts ingestions and exports; it can be read in any case.",
            ),
            ("config", "String!", "The mapping, as YAML."),
            ("namespaces", "[PenstockNamespace!]!", "The namespaces that are defined with it."),
            (
                "conditions",
                "[Condition!]!",
                "Which stored objects belong to it: those that satisfy every condition.",
            ),
            ("pushTargets", "[PushTarget!]!", "Where its exports go."),
            ("schedule", "String", "When full exports run automatically: a cron expression."),
            ("timezone", "String", "The IANA time zone of the schedule; UTC when absent."),
            ("exportOnChange", "Boolean!", "Whether changes are exported automatically."),
            ("debounce", "String", "How long an export on change waits for further changes."),
            (
                "retention",
                "String",
                "The time after which unchanged, delivered objects are removed (ISO 8601).",
            ),
            (
                "validation",
                "PenstockValidation",
                "The shapes graphs that validate its objects; null if there are none.",
            ),
            (
                "review",
                "String",
                "Which ingestions become changes under review: `optional` or `required`; null if none do.",
            ),
            (
                "approvers",
                "[String!]",
                "Who approves changes: `user:<id or email>` or `group:<name>`; null if Admins do.",
            ),
            ("version", "Integer!", "1 at its creation, incremented by each change."),
            ("createdAt", "DateTime!", "When it was created."),
            ("updatedAt", "DateTime!", "When it was last changed."),
            ("updatedBy", "ID", "Who changed it last."),
            ("createdNamespaces", "[String!]!", "The namespaces that its last change created."),
            (
                "deleting",
                "PenstockDeletion",
                "The progress of its deletion, while it is being deleted with its objects.",
            ),
            (
                "warnings",
                "[PenstockWarning!]!",
                "Valid parts of the definition that are probably mistakes.",
            ),
            ("type", "String", "The type of its objects in this schema."),
            (
                "typeMissing",
                "String",
                "Why this schema has no type for its objects; null if it has one.",
            ),
        ],
    ),
    (
        "Condition",
        "A condition: any graph contains the quad (object, predicate, value).",
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
            ("uriBase", "IRI", "The prefix of every identifier, if the definition has one."),
            (
                "generator",
                "String",
                "How identifiers are generated, if the definition has a generator.",
            ),
        ],
    ),
    (
        "PenstockValidation",
        "The shapes graphs that validate the objects of a Business Object.",
        &[
            ("shapes", "[String!]!", "The names of the shapes graphs."),
            ("mode", "String!", "What a violation does: `reject`, `warn` or `off`."),
        ],
    ),
    (
        "PenstockDeletion",
        "The progress of the deletion of a Business Object with its objects.",
        &[(
            "remaining",
            "Integer!",
            "The number of its objects that the deletion has not reached yet.",
        )],
    ),
    (
        "PenstockWarning",
        "A valid part of a definition that is probably a mistake.",
        &[
            ("line", "Integer", "The line in `config`."),
            ("column", "Integer", "The column in `config`, in characters."),
            ("pointer", "String", "A JSON Pointer into the definition."),
            ("message", "String!", "What was found, and what to do."),
        ],
    ),
    (
        CHANGE_TYPE,
        "A change under review that is not published yet. `/api/v1/changes/{id}` has its difference.",
        &[
            ("id", "ID!", "Its identifier."),
            ("state", "String!", "`draft` or `submitted`."),
            ("version", "Integer!", "1 at its creation, incremented by each step."),
            ("businessObject", "ID!", "The Business Object's id."),
            ("businessObjectName", "String!", "The Business Object's name at that time."),
            ("mode", "String!", "The mode of the ingestion."),
            ("author", "ID!", "The account that sent it."),
            ("changeOwners", "[String!]!", "The users and groups that see it too."),
            ("approvers", "[String!]!", "Who approves it; empty if Admins do."),
            (
                "bypass",
                "Boolean!",
                "Whether it may change objects of other Business Objects that require a review.",
            ),
            ("createdAt", "DateTime!", "When it was created."),
            ("updatedAt", "DateTime!", "When its last step was."),
            ("created", "Integer!", "The number of objects that it creates."),
            ("updated", "Integer!", "The number of objects that it changes."),
            ("unchanged", "Integer!", "The number of objects that it names and does not change."),
            ("deleted", "Integer!", "The number of objects that it removes."),
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
                "From 1, without a gap, per target and Business Object name; 0 while it waits for spool space.",
            ),
            ("kind", "ExportKind!", "What it contains."),
            ("status", "ExportStatus!", "Its state."),
            ("objectCount", "Integer!", "The number of objects in it."),
            ("bytes", "Integer!", "The size of the file in bytes."),
            ("dataChecksum", "String!", "`metadata.data_checksum` of the file."),
            ("sha256", "String!", "SHA-256 of the whole file, lowercase hex."),
            ("key", "String!", "The key in the bucket, including the prefix."),
            ("createdAt", "DateTime!", "When it was created."),
            (
                "clock",
                "String",
                "Why that time may be wrong: `unsynchronised` or `behind`; null if it is reliable.",
            ),
            (
                "commit",
                "Integer",
                "The journal sequence of the commit whose state a full export shows; null for other kinds, and if the export mixes several commits.",
            ),
            ("deliveredAt", "DateTime", "When the target confirmed it."),
            ("attempts", "Integer!", "The number of attempts so far."),
            ("lastError", "String", "Why the last attempt failed."),
            ("pushedBy", "ID", "The account that pushed it."),
            ("traceparent", "String", "The trace that the push was part of (W3C Trace Context)."),
            ("warnings", "[String!]", "The warnings while it was rendered."),
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
            ("cursor", "String!", "The value of `after` for a page that begins after it."),
            ("node", "Export!", "The export."),
        ],
    ),
    (
        "Target",
        "Where exports go, and its state.",
        &[
            ("name", "String!", "The bucketName."),
            ("type", "String!", "`directory`, `s3` or `sparql`."),
            ("reachable", "Boolean", "Whether the last attempt reached it; null before the first."),
            ("blocked", "String", "Why the first export of its queue cannot be delivered."),
            ("blockedBy", "String", "The class of that cause."),
            ("blockedSince", "DateTime", "When the first export of its queue first failed."),
            (
                "attempts",
                "Integer!",
                "The number of failed attempts for the first export of its queue.",
            ),
            ("nextAttempt", "DateTime", "When the next attempt is due."),
            ("paused", "String", "Why deliveries pause although there is no error."),
            ("remark", "String", "What an operator should know although there is no error."),
            ("depth", "Integer!", "The number of exports in its queue."),
            (
                "waiting",
                "Integer!",
                "The number of Business Objects whose automatic exports wait for spool space.",
            ),
            ("bytes", "Integer!", "The size of its queue in bytes."),
            ("oldest", "DateTime", "When the oldest export in its queue was created."),
            (
                "oldestAgeSeconds",
                "Integer",
                "Seconds since then; 0 if the clock has since been set back before that time.",
            ),
            ("lastDelivery", "DateTime", "When the last export was delivered."),
        ],
    ),
    (
        "PageInfo",
        "Where a page begins and ends.",
        &[
            ("hasNextPage", "Boolean!", "Whether there are items after it."),
            ("hasPreviousPage", "Boolean!", "Whether it began after a cursor."),
            ("startCursor", "String", "The cursor of its first item."),
            ("endCursor", "String", "The cursor of its last item: `after` of the next page."),
        ],
    ),
];

/// The scalars that the types of this module have.
const SHARED_SCALARS: [&str; 3] = ["IRI", "Integer", "DateTime"];

const ENUMS: &[(&str, &str, &[&str])] = &[
    ("Direction", "The direction of an order.", &["ASC", "DESC"]),
    ("ExportKind", "What an export contains.", &["full", "incremental", "deleted"]),
    (
        "ExportStatus",
        "The state of an export.",
        &["waiting", "queued", "delivering", "delivered", "blocked", "parked"],
    ),
];

/// The type of the URI of an object.
const ID: Scalar = Scalar {
    name: "ID",
    about: None,
    filter: "IDFilter",
    tests: &["eq", "in", "contains", "containsAnyCase"],
};

const TESTS: &[(&str, &str)] = &[
    ("eq", "It equals this. Numbers are compared as numbers, dates and times as moments."),
    ("in", "It equals one of these."),
    ("contains", "It contains this text."),
    ("containsAnyCase", "It contains this text, ignoring case."),
    ("before", "It is a smaller number, or an earlier date or time."),
    ("after", "It is a greater number, or a later date or time."),
    ("exists", "There is a value, or with `false` there is none."),
];

/// Returns the types of values that GraphQL does not have itself.
fn list_scalars() -> impl Iterator<Item = &'static Scalar> {
    KINDS.iter().map(|value| &value.kind().graphql).filter(|scalar| scalar.about.is_some())
}

/// Returns whether the values of a type are numbers of any size.
pub(super) fn is_number(name: &str) -> bool {
    let mut kinds = KINDS.iter().map(Value::kind);
    kinds.any(|kind| kind.graphql.name == name && kind.form == Form::Number)
}

/// Returns the types of values that have a filter.
fn list_filters() -> impl Iterator<Item = &'static Scalar> {
    KINDS.iter().map(|value| &value.kind().graphql).chain([&ID])
}

/// Returns the names of all types that Business Objects cannot use: those here, and GraphQL's own.
pub(super) fn list_type_names() -> Vec<&'static str> {
    let built_in = ["Int", "Float", "String", "Boolean", "ID", "Mutation", "Subscription"];
    let shared = [QUERY_TYPE, NODE_TYPE, OBJECT_TYPE, REFERRERS_TYPE, "ReferrerEdge"];
    built_in
        .into_iter()
        .chain(shared)
        .chain(SYSTEM_TYPES.iter().map(|(name, ..)| *name).filter(|name| *name != CHANGE_TYPE))
        .chain(list_scalars().map(|scalar| scalar.name))
        .chain(ENUMS.iter().map(|(name, ..)| *name))
        .chain(list_filters().map(|of| of.filter))
        .collect()
}

/// Returns whether a type of this module, or of GraphQL itself, is an input type of the schema.
pub(super) fn is_input(model: &Model, name: &str) -> bool {
    let here = list_scalars().any(|scalar| scalar.name == name)
        || ENUMS.iter().any(|(items, ..)| *items == name)
        || list_filters().any(|of| of.filter == name);
    ["Int", "Float", "String", "Boolean", "ID"].contains(&name) || here && is_used(model, name)
}

/// Returns whether the schema uses a scalar, enum or filter. Introspection and the SDL omit the others.
fn is_used(model: &Model, name: &str) -> bool {
    match (name, name.strip_suffix("Filter")) {
        ("Direction" | "IDFilter", _) => !model.business_objects.is_empty(),
        (_, Some(of)) => model.has_leaf(of),
        (_, None) if list_scalars().any(|scalar| scalar.name == name) => {
            SHARED_SCALARS.contains(&name) || model.has_leaf(name)
        }
        (_, None) => true,
    }
}

/// Returns the members of a type of [`SYSTEM_TYPES`].
pub(super) fn find_members(type_name: &str) -> Option<&'static [Member]> {
    SYSTEM_TYPES.iter().find(|(name, ..)| *name == type_name).map(|(.., members)| *members)
}

/// Registers the gateway's own types.
pub(super) fn register_types(mut schema: SchemaBuilder, model: &Model) -> SchemaBuilder {
    for Scalar { name, about, .. } in list_scalars().filter(|one| is_used(model, one.name)) {
        let Some((description, url)) = *about else { continue };
        let scalar = DynamicScalar::new(*name).description(description).specified_by_url(url);
        schema = schema.register(scalar);
    }
    for (name, description, values) in ENUMS.iter().filter(|(name, ..)| is_used(model, name)) {
        let items = Enum::new(*name).description(*description).items(values.iter().copied());
        schema = schema.register(items);
    }
    for of in list_filters().filter(|of| is_used(model, of.filter)) {
        let about =
            format!("A filter for a value of type {}. All given tests must match.", of.name);
        let mut filter = InputObject::new(of.filter).description(about);
        for (test, description) in TESTS.iter().filter(|(test, _)| of.tests.contains(test)) {
            let kind = match *test {
                "in" => TypeRef::named_nn_list(of.name),
                "exists" => TypeRef::named(TypeRef::BOOLEAN),
                "contains" | "containsAnyCase" => TypeRef::named(TypeRef::STRING),
                _ => TypeRef::named(of.name),
            };
            filter = filter.field(InputValue::new(*test, kind).description(*description));
        }
        schema = schema.register(filter);
    }
    for (name, description, members) in SYSTEM_TYPES {
        if *name == "Target" && !model.whole || *name == CHANGE_TYPE && !model.has_changes {
            continue;
        }
        let mut object = Object::new(*name).description(*description);
        for (member, kind, description) in *members {
            object = object.field(build_field(*member, parse_type_ref(kind), *description));
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
