//! `/api/v1/namespaces`: names, URI bases, and how identifiers are created.
use penstock_http::access::MinimumRole::{Contributor, User};
use penstock_http::call::Call;
use penstock_http::etag::read_existence_preconditions;
use penstock_http::operation::{Operation, delete, get, put};
use penstock_http::parameters::PageQuery;
use penstock_http::path::encode_segment;
use penstock_http::query::TextCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::namespace::parse_definition;
use penstock_resources::Page;
use penstock_resources::namespace::{Namespace, NamespaceDefinition};
use penstock_service::namespaces;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/namespaces", User, list_namespaces)
            .describe("listNamespaces", "Namespaces", "Lists the namespaces, ordered by name.")
            .answer::<Page<Namespace>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/namespaces/{name}", User, get_namespace)
            .describe("getNamespace", "Namespaces", "Returns one namespace.")
            .answer::<Namespace>(200, "The namespace.")
            .problems(&[400, 404]),
        put("/api/v1/namespaces/{name}", Contributor, put_namespace)
            .describe(
                "putNamespace",
                "Namespaces",
                "Creates a namespace, or changes one that is not used yet.",
            )
            .header("If-Match", "`*`: change only. A namespace has no `ETag`.")
            .header("If-None-Match", "`*`: create only.")
            .body::<NamespaceDefinition>()
            .answer::<Namespace>(200, "Changed, or unchanged.")
            .answer::<Namespace>(201, "Created.")
            .location()
            .problems(&[400, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/namespaces/{name}", Contributor, delete_namespace)
            .describe("deleteNamespace", "Namespaces", "Deletes a namespace that is not used.")
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 409, 412, 422, 507]),
    ]
}

async fn list_namespaces(call: Call<'_>, query: PageQuery<TextCursor>) -> ReplyResult {
    let (gateway, after) = (call.gateway()?, query.after.clone());
    let listed = namespaces::list_namespaces(&gateway, after, query.limit + 1).await?;
    Reply::json(&query.page(listed, |namespace| namespace.name.clone()))
}

async fn get_namespace(call: Call<'_>) -> ReplyResult {
    Reply::json(&namespaces::find_namespace(&call.gateway()?, call.path("name")).await?)
}

async fn put_namespace(mut call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let definition = parse_definition(call.path("name"), body.bytes())?;
    let preconditions = read_existence_preconditions(call.req)?;
    let (namespace, created) =
        namespaces::define_namespace(&gateway, call.caller(), definition, preconditions).await?;
    let reply = Reply::json(&namespace)?;
    if !created {
        return Ok(reply);
    }
    let location = call.locate(&format!("/api/v1/namespaces/{}", encode_segment(&namespace.name)));
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

async fn delete_namespace(call: Call<'_>) -> ReplyResult {
    let (gateway, preconditions) = (call.gateway()?, read_existence_preconditions(call.req)?);
    let (by, name) = (call.caller(), call.path("name"));
    namespaces::delete_namespace(&gateway, by, name, preconditions).await?;
    Ok(Reply::no_content())
}
