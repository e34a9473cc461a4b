//! `/api/v1/namespaces`: names, URI bases, and how identifiers are created.
use crate::shapes;
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::etag::read_existence_preconditions;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_model::namespace::NamespaceDefinition;
use penstock_service::namespaces;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Lists the namespaces, ordered by name.
#[endpoint(
    operation_id = "listNamespaces",
    tags("Namespaces"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Namespaces)),
)]
pub(super) async fn list_namespaces(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_cursor()?);
    let listed = namespaces::list_namespaces(&gateway(depot)?, after, limit + 1).await?;
    let mut items: Vec<_> = listed.into_iter().map(shapes::Namespace::from).collect();
    let next = truncate_page(&mut items, limit, |namespace| &namespace.name);
    Reply::json(&shapes::Namespaces { items, next })
}

/// Returns one namespace.
#[endpoint(
    operation_id = "getNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 200, description = "The namespace.", body = shapes::Namespace)),
)]
pub(super) async fn get_namespace(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let found = namespaces::find_namespace(&gateway(depot)?, name).await?;
    Reply::json(&shapes::Namespace::from(found))
}

/// Creates a namespace, or changes one that is not used yet.
#[endpoint(
    operation_id = "putNamespace",
    tags("Namespaces"),
    parameters(
        ("name" = String, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "`*`: change only. A namespace has no `ETag`."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: create only."),
    ),
    request_body(content = shapes::NamespaceDefinition, content_type = "application/json"),
    responses(
        (status_code = 200, description = "Changed, or unchanged.", body = shapes::Namespace),
        (status_code = 201, description = "Created.", body = shapes::Namespace,
            headers(("Location" = String, description = "Its path."))),
    ),
)]
pub(super) async fn put_namespace(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let definition = NamespaceDefinition::from_json(path_parameter(req, "name"), body.bytes())?;
    let preconditions = read_existence_preconditions(req)?;
    let (defined, created) =
        namespaces::define_namespace(&gateway, caller(depot), definition, preconditions).await?;
    let namespace = shapes::Namespace::from(defined);
    let reply = Reply::json(&namespace)?;
    if !created {
        return Ok(reply);
    }
    let prefix = &origin(depot).prefix;
    let name = encode_segment(&namespace.name);
    let location = format!("{prefix}/api/v1/namespaces/{name}");
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Deletes a namespace that is not used.
#[endpoint(
    operation_id = "deleteNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_namespace(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let (gateway, preconditions) = (gateway(depot)?, read_existence_preconditions(req)?);
    namespaces::delete_namespace(&gateway, caller(depot), name, preconditions).await?;
    Ok(Reply::no_content())
}
