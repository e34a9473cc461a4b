//! `/api/v1/api-keys`: credentials of plant systems.
use penstock_auth::keys::NewApiKey;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, delete, get, post};
use penstock_http::parameters::PageQuery;
use penstock_http::path::encode_segment;
use penstock_http::query::UuidCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::api_key::{self, ApiKey, MadeApiKey};
use penstock_service::api_keys;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/api-keys", User, list_api_keys)
            .describe(
                "listApiKeys",
                "API keys",
                "Lists the API keys that the caller may see, in the order of their creation.\n\nAn Admin sees the keys \
                 of all accounts, other callers their own. An API key sees only keys of its own role or a lower one.",
            )
            .answer::<Page<ApiKey>>(200, "A page.")
            .problems(&[400]),
        post("/api/v1/api-keys", User, create_api_key)
            .describe(
                "createApiKey",
                "API keys",
                "Creates an API key, with at most the role of its creator. Only this response contains the key.",
            )
            .body::<api_key::NewApiKey>()
            .answer::<MadeApiKey>(201, "Created.")
            .location()
            .problems(&[400, 408, 409, 413, 415, 422, 507]),
        get("/api/v1/api-keys/{id}", User, get_api_key)
            .describe("getApiKey", "API keys", "Returns one API key, without its secret.")
            .answer::<ApiKey>(200, "The API key.")
            .problems(&[400, 404]),
        delete("/api/v1/api-keys/{id}", User, revoke_api_key)
            .describe("revokeApiKey", "API keys", "Revokes an API key.")
            .empty_answer(204, "Revoked.")
            .problems(&[400, 404, 507]),
    ]
}

async fn list_api_keys(call: Call<'_>, query: PageQuery<UuidCursor>) -> ReplyResult {
    let (gateway, after) = (call.gateway()?, query.after.as_deref());
    let keys = api_keys::list_keys(&gateway, call.caller(), after, query.limit + 1);
    Reply::json(&query.page(keys, |key| key.id.clone()))
}

async fn create_api_key(mut call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let new = NewApiKey::from_json(body.bytes())?;
    let (key, secret) = api_keys::create_key(&gateway, call.caller(), new).await?;
    let location = call.locate(&format!("/api/v1/api-keys/{}", encode_segment(&key.id)));
    let made = MadeApiKey { id: key.id, key: secret };
    Ok(Reply::json(&made)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

async fn get_api_key(call: Call<'_>) -> ReplyResult {
    Reply::json(&api_keys::find_key(&call.gateway()?, call.caller(), call.path("id"))?)
}

async fn revoke_api_key(call: Call<'_>) -> ReplyResult {
    api_keys::revoke_key(&call.gateway()?, call.caller(), call.path("id")).await?;
    Ok(Reply::no_content())
}
