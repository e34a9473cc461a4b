//! `/api/v1/namespaces`: names, URI bases, and how identifiers are created.
use crate::definitions::{
    Served, delete_definition, get_definition, list_definitions, put_definition,
};
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::etag::PutConditions;
use penstock_http::operation::{Operation, delete, get, put};
use penstock_http::reply::ReplyResult;
use penstock_model::namespace::parse_definition;
use penstock_resources::Page;
use penstock_resources::namespace::{Namespace, NamespaceDefinition};
use penstock_service::definitions::Kind as _;
use penstock_service::namespaces::Namespaces;

impl Served for Namespaces {
    const PATH: &'static str = "/api/v1/namespaces";
}

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/namespaces", User, list_definitions::<Namespaces>)
            .describe("listNamespaces", "Namespaces", "Lists the namespaces, ordered by name.")
            .answer::<Page<Namespace>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/namespaces/{name}", User, get_definition::<Namespaces>)
            .describe("getNamespace", "Namespaces", "Returns one namespace.")
            .answer::<Namespace>(200, "The namespace.")
            .problems(&[400, 404]),
        put("/api/v1/namespaces/{name}", Namespaces::MIN_ROLE.into(), put_namespace)
            .describe(
                "putNamespace",
                "Namespaces",
                "Creates a namespace, or changes one that is not used yet.",
            )
            .parameter("If-Match", "`*`: change only. A namespace has no `ETag`.")
            .body::<NamespaceDefinition>()
            .answer::<Namespace>(200, "Changed, or unchanged.")
            .answer::<Namespace>(201, "Created.")
            .location()
            .problems(&[400, 408, 409, 412, 413, 415, 422, 507]),
        delete(
            "/api/v1/namespaces/{name}",
            Namespaces::MIN_ROLE.into(),
            delete_definition::<Namespaces>,
        )
        .describe("deleteNamespace", "Namespaces", "Deletes a namespace that is not used.")
        .parameter("If-Match", "`*`, or absent. A namespace has no `ETag`.")
        .empty_answer(204, "Deleted.")
        .problems(&[400, 404, 409, 412, 422, 507]),
    ]
}

async fn put_namespace(mut call: Call<'_>, conditions: PutConditions) -> ReplyResult {
    let body = call.read_small_json().await?;
    let name = call.path("name");
    let new = parse_definition(name, body.bytes())?;
    put_definition::<Namespaces>(&call, name, new, &conditions).await
}
