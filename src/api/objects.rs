//! `/api/v1/business-objects/{id}/objects`: the stored objects in the view.
use crate::shapes;
use penstock_auth::Caller;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_model::resource::Compiled;
use penstock_model::view::compute_etag;
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects;
use salvo::http::header::ETAG;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use std::sync::Arc;

/// Lists the stored objects in the view, ordered by URI: the content of an export.
///
/// With `uri`, the response is only that object, without a list around it.
#[endpoint(
    operation_id = "listObjects",
    tags("Objects"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("uri" = Option<String>, Query, description = "One object's URI; not together with `limit` or `cursor`."),
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent. A page of large objects ends earlier.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page, or with `uri` one object.", body = shapes::ObjectsOrObject)),
)]
pub(super) async fn list_objects(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["uri", "limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_cursor()?);
    let gateway = gateway(depot)?;
    let business_object = find_business_object(&gateway, path_parameter(req, "id"))?;
    if let Some(uri) = query.get("uri") {
        if query.get("limit").or(query.get("cursor")).is_some() {
            return Err(Problem::malformed("uri names one object: leave out limit and cursor"));
        }
        return object_reply(&gateway, caller(depot), &business_object, uri);
    }
    let page =
        objects::list_objects(&gateway, caller(depot), business_object, after, limit).await?;
    // The objects are JSON already, so the members of the page are put around them.
    let mut body = page.json;
    body.splice(..0, *br#"{"items":"#);
    body.extend_from_slice(br#","next":"#);
    match page.next {
        Some(uri) => body.extend_from_slice(format!("\"{}\"", cursor_after(&uri)).as_bytes()),
        None => body.extend_from_slice(b"null"),
    }
    body.push(b'}');
    Ok(Reply::bytes("application/json", body))
}

/// Returns one stored object in the view.
#[endpoint(
    operation_id = "getObject",
    tags("Objects"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("uri" = String, Path, description = "The object's URI, percent-encoded."),
    ),
    responses((status_code = 200, description = "The object.", body = shapes::ViewedObject,
        headers(("ETag" = String, description = "A digest of the view, for `If-Match` of an ingestion.")))),
)]
pub(super) async fn get_object(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = find_business_object(&gateway, path_parameter(req, "id"))?;
    object_reply(&gateway, caller(depot), &business_object, path_parameter(req, "uri"))
}

fn object_reply(
    gateway: &Gateway,
    by: &Caller,
    business_object: &Arc<Compiled>,
    uri: &str,
) -> ReplyResult {
    let json = objects::view_object(gateway, by, business_object, uri)?;
    let etag = compute_etag(&json);
    Ok(Reply::bytes("application/json", json).with_header(ETAG, &etag))
}
