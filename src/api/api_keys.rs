//! `/api/v1/api-keys`: credentials of plant systems.
use crate::shapes;
use penstock_auth::keys::NewApiKey;
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_service::api_keys;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

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
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let mut keys = api_keys::list_keys(&gateway, by, after.as_deref(), limit + 1);
    let next = truncate_page(&mut keys, limit, |key| &key.id);
    let items = keys.iter().map(|key| shapes::ApiKey::from(&**key)).collect();
    Reply::json(&shapes::ApiKeys { items, next })
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
    let new = NewApiKey::from_json(body.bytes())?;
    let (key, secret) = api_keys::create_key(&gateway, caller(depot), new).await?;
    let prefix = &origin(depot).prefix;
    let location = format!("{prefix}/api/v1/api-keys/{}", encode_segment(&key.id));
    let made = shapes::MadeApiKey { id: key.id.clone(), key: secret };
    Ok(Reply::json(&made)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
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
    let (gateway, id) = (gateway(depot)?, path_parameter(req, "id"));
    Reply::json(&shapes::ApiKey::from(&*api_keys::find_key(&gateway, caller(depot), id)?))
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
    let (gateway, id) = (gateway(depot)?, path_parameter(req, "id"));
    api_keys::revoke_key(&gateway, caller(depot), id).await?;
    Ok(Reply::no_content())
}
