//! `/api/v1/namespaces`: names, URI bases, and how identifiers are made.
use super::body;
use super::business_objects::{SEGMENT, path};
use super::caller::caller;
use super::problem::Problem;
use super::query::{Query, page};
use super::reply::{Outcome, Reply};
use super::service::origin;
use super::shapes;
use super::state::{blocking, gateway};
use crate::auth::Authorized;
use crate::business_object::namespace::{self, Namespace, default_base};
use crate::gateway::Gateway;
use percent_encoding::utf8_percent_encode;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Lists the namespaces, ordered by name.
#[endpoint(
    operation_id = "listNamespaces",
    tags("Namespaces"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the page before."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Namespaces)),
)]
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.cursor()?);
    let store = gateway(depot)?.store;
    let namespaces =
        blocking(move || Ok(namespace::list(&store.read(), after.as_deref(), limit + 1)?)).await?;
    page(namespaces, limit, |namespace| &namespace.name)
}

/// One namespace.
#[endpoint(
    operation_id = "getNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 200, description = "It.", body = shapes::Namespace)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let store = gateway(depot)?.store;
    let name = path(req, "name").to_owned();
    let namespace = blocking(move || {
        namespace::get(&store.read(), &name)?
            .ok_or_else(|| Problem::not_found(format!("there is no namespace {name:?}")))
    })
    .await?;
    Reply::json(&namespace)
}

/// Creates a namespace, or changes one that is not used yet.
#[endpoint(
    operation_id = "putNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    request_body(content = shapes::NamespaceDefinition, content_type = "application/json"),
    responses(
        (status_code = 200, description = "Changed, or as it was.", body = shapes::Namespace),
        (status_code = 201, description = "Created.", body = shapes::Namespace,
            headers(("Location" = String, description = "Its path."))),
    ),
)]
pub(super) async fn put(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let (by, name) = (caller(depot).clone(), path(req, "name").to_owned());
    let (namespace, created) = blocking(move || define(&gateway, &by, &name, body.bytes())).await?;
    let reply = Reply::json(&namespace)?;
    if !created {
        return Ok(reply);
    }
    let prefix = &origin(depot).prefix;
    let name = utf8_percent_encode(&namespace.name, SEGMENT);
    let location = format!("{prefix}/api/v1/namespaces/{name}");
    Ok(reply.status(StatusCode::CREATED).header(LOCATION, &location))
}

/// Creates or changes a namespace as this body says; true when it was created. Blocks.
pub(super) fn define(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    body: &[u8],
) -> Result<(Namespace, bool), Problem> {
    gateway.disk.take_in()?;
    let namespace = Namespace::read(name, body, &base(gateway, name))?;
    let (done, _) = gateway.store.commit(by, |change| namespace::put(change, namespace))?;
    tracing::info!(namespace = name, "A namespace was defined.");
    Ok(done)
}

/// The URI base of a namespace that is given none.
pub(super) fn base(gateway: &Gateway, name: &str) -> String {
    default_base(gateway.settings.base_url.as_deref(), &gateway.gateway_id, name)
}

/// Deletes a namespace that is not used.
#[endpoint(
    operation_id = "deleteNamespace",
    tags("Namespaces"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let (by, name) = (caller(depot).clone(), path(req, "name").to_owned());
    blocking(move || remove(&gateway, &by, &name)).await?;
    Ok(Reply::nothing())
}

/// Deletes a namespace that is not used. Blocks.
pub(super) fn remove(gateway: &Gateway, by: &Authorized, name: &str) -> Result<(), Problem> {
    gateway.store.commit(by, |change| namespace::delete(change, name))?;
    tracing::info!(namespace = name, "A namespace was deleted.");
    Ok(())
}
