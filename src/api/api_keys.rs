//! `/api/v1/api-keys`: credentials of plant systems.
use crate::shapes;
use penstock_auth::Authorized;
use penstock_auth::keys::{Key, NewApiKey};
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::{gateway, run_blocking};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use std::sync::Arc;

/// Lists the API keys that the caller may see, in the order of their creation.
///
/// An Admin sees the keys of all accounts, other callers their own. An API key sees only keys of its own role
/// or a lower one.
#[endpoint(
    operation_id = "listApiKeys",
    tags("API keys"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::ApiKeys)),
)]
pub(super) async fn list_api_keys(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_uuid_cursor()?);
    let keys = gateway(depot)?.auth.keys.list(caller(depot), after.as_deref(), limit + 1);
    let items = keys.iter().map(|key| shapes::ApiKey::from(&**key)).collect();
    page_reply(items, limit, |key: &shapes::ApiKey| &key.id)
}

/// Creates an API key, with at most the role of its creator. Only this response contains the key.
#[endpoint(
    operation_id = "createApiKey",
    tags("API keys"),
    request_body(content = shapes::NewApiKey, content_type = "application/json"),
    responses((status_code = 201, description = "Created.", body = shapes::MadeApiKey,
        headers(("Location" = String, description = "Its path.")))),
)]
pub(super) async fn create_api_key(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let (key, secret) =
        create_key(gateway, caller(depot), NewApiKey::from_json(body.bytes())?).await?;
    let prefix = &origin(depot).prefix;
    let location = format!("{prefix}/api/v1/api-keys/{}", encode_segment(&key.id));
    let made = shapes::MadeApiKey { id: key.id.clone(), key: secret };
    Ok(Reply::json(&made)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Creates an API key of this caller. Returns it with its secret.
pub async fn create_key(
    gateway: Gateway,
    by: &Authorized,
    new: NewApiKey,
) -> Result<(Arc<Key>, String), Problem> {
    let new =
        new.resolve(|name| gateway.catalogue.get(name).map(|found| found.object.id.clone()))?;
    gateway.disk.check_reserve()?;
    let by = by.clone();
    run_blocking(move || Ok(gateway.auth.keys.create_key(&by, new)?)).await
}

/// Returns one API key, without its secret.
#[endpoint(
    operation_id = "getApiKey",
    tags("API keys"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The API key.", body = shapes::ApiKey)),
)]
pub(super) async fn get_api_key(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    Reply::json(&shapes::ApiKey::from(&*find_key(req, depot)?))
}

/// Returns the key that `{id}` names, if the caller may see it.
pub fn find_key(req: &Request, depot: &Depot) -> Result<Arc<Key>, Problem> {
    let id = path_parameter(req, "id");
    let key = gateway(depot)?.auth.keys.get(caller(depot), id);
    key.ok_or_else(|| Problem::not_found(format!("there is no API key with the id {id:?}")))
}

/// Revokes an API key.
#[endpoint(
    operation_id = "revokeApiKey",
    tags("API keys"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 204, description = "Revoked.")),
)]
pub(super) async fn revoke_api_key(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    revoke_key(gateway, caller(depot), path_parameter(req, "id")).await?;
    Ok(Reply::no_content())
}

/// Revokes an API key on behalf of this caller.
pub async fn revoke_key(gateway: Gateway, by: &Authorized, id: &str) -> Result<(), Problem> {
    let (by, id) = (by.clone(), id.to_owned());
    run_blocking(move || Ok(gateway.auth.keys.revoke_key(&by, &id)?)).await
}
