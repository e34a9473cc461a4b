//! `/api/v1/business-objects/{id}/objects`: the stored objects in the view.
use penstock_auth::Caller;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::PageQuery;
use penstock_http::problem::Problem;
use penstock_http::query::{TextCursor, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::resource::Compiled;
use penstock_model::view::compute_etag;
use penstock_resources::object::{ObjectsOrObject, ViewedObject};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects;
use salvo::http::header::ETAG;
use std::sync::Arc;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/business-objects/{id}/objects", User, list_objects)
            .describe(
                "listObjects",
                "Objects",
                "Lists the stored objects in the view, ordered by URI: the content of an export.\n\nWith `uri`, the \
                 response is only that object, without a list around it.",
            )
            .parameter("id", "The Business Object's id or name.")
            .parameter(
                "limit",
                "Items of a page, 1 to 1000; 100 when absent. A page of large objects ends earlier.",
            )
            .answer::<ObjectsOrObject>(200, "A page, or with `uri` one object.")
            .problems(&[400, 404, 413]),
        get("/api/v1/business-objects/{id}/objects/{uri}", User, get_object)
            .describe("getObject", "Objects", "Returns one stored object in the view.")
            .parameter("id", "The Business Object's id or name.")
            .parameter("uri", "The object's URI, percent-encoded.")
            .answer::<ViewedObject>(200, "The object.")
            .answer_header("ETag", "A digest of the view, for `If-Match` of an ingestion.")
            .problems(&[400, 404, 413]),
    ]
}

penstock_http::parameters! {
    /// Which objects are listed.
    struct ObjectsQuery {
        "uri" => uri: Option<String>, "One object's URI; not together with `limit` or `cursor`.";
        ..page: PageQuery<TextCursor>
    }
}

async fn list_objects(call: Call<'_>, query: ObjectsQuery) -> ReplyResult {
    let ObjectsQuery { uri, page: PageQuery { limit, after } } = query;
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    if let Some(uri) = uri {
        if after.is_some() || call.req.queries().contains_key("limit") {
            return Err(Problem::malformed("uri names one object: leave out limit and cursor"));
        }
        return object_reply(&gateway, call.caller(), &business_object, &uri);
    }
    let page =
        objects::list_objects(&gateway, call.caller(), business_object, after, limit).await?;
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

async fn get_object(call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    object_reply(&gateway, call.caller(), &business_object, call.path("uri"))
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
