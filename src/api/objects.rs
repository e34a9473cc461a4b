//! `/api/v1/business-objects/{id}/objects`: the stored objects in the view.
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::{AnyPageQuery, FilterParameters};
use penstock_http::problem::Problem;
use penstock_http::query::{TextCursor, cursor_after, parse_cursor};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::resource::Compiled;
use penstock_model::search::{Order, parse_filters};
use penstock_model::view::compute_etag;
use penstock_resources::object::{ObjectsOrObject, ViewedObject};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{self, ObjectSearch, ObjectsPage};
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
                 response is only that object, without a list around it. `filter.…` lists only the objects that pass \
                 all filters, and `orderBy` lists them in another order.",
            )
            .parameter("id", "The Business Object's id or name.")
            .parameter(
                "limit",
                "Items of a page, 1 to 1000; 100 when absent. A page of large objects ends earlier.",
            )
            .answer::<ObjectsOrObject>(200, "A page, or with `uri` one object.")
            .problems(&[400, 404, 413, 422]),
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
        "uri" => uri: Option<String>, "One object's URI; not together with other parameters.";
        "filter." => filters: FilterParameters, "`filter.<field>=value` or `filter.<field>.<test>=value`, with the tests of GraphQL: `eq`, `in` (repeat the parameter), `contains`, `containsAnyCase`, `startsWith`, `before`, `after`, `atLeast`, `atMost` and `exists` (`true` or `false`). The fields of nested objects and the members of maps are named with dots. An object must pass all filters; those below one array, for the same element.";
        "orderBy" => order_by: Option<String>, "The field that the objects are ordered by, with `-` before it for descending. Objects without a value come last. By `uri` when absent.";
        ..page: AnyPageQuery
    }
}

async fn list_objects(call: Call<'_>, query: ObjectsQuery) -> ReplyResult {
    let ObjectsQuery { uri, filters, order_by, page: AnyPageQuery { limit, cursor } } = query;
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    let is_search = !filters.0.is_empty() || order_by.is_some();
    if let Some(uri) = uri {
        if cursor.is_some() || call.req.queries().contains_key("limit") {
            return Err(Problem::malformed("uri names one object: leave out limit and cursor"));
        }
        if is_search {
            return Err(Problem::malformed("uri names one object: leave out filters and orderBy"));
        }
        return object_reply(&gateway, call.caller(), &business_object, &uri);
    }
    let (by, shape) = (call.caller(), &business_object.mapping.root);
    let page = if is_search {
        let given = filters.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
        let search = ObjectSearch {
            filter: parse_filters(shape, given)?,
            order: parse_order(&business_object, order_by.as_deref())?,
            after: cursor,
            limit,
        };
        objects::list_found_objects(&gateway, by, business_object, search).await?
    } else {
        let after = cursor.as_deref().map(parse_cursor::<TextCursor>).transpose()?;
        let page = objects::list_objects(&gateway, by, business_object, after, limit).await?;
        let next = page.next.map(|uri| cursor_after(&uri));
        ObjectsPage { next, ..page }
    };
    // The objects are JSON already, so the members of the page are put around them.
    let mut body = page.json;
    body.splice(..0, *br#"{"items":"#);
    body.extend_from_slice(br#","next":"#);
    match page.next {
        Some(cursor) => body.extend_from_slice(format!("\"{cursor}\"").as_bytes()),
        None => body.extend_from_slice(b"null"),
    }
    body.push(b'}');
    Ok(Reply::bytes("application/json", body))
}

/// Reads `orderBy`.
fn parse_order(business_object: &Compiled, text: Option<&str>) -> Result<Order, GatewayError> {
    let Some(text) = text else { return Ok(Order::default()) };
    Order::parse(&business_object.mapping.root, text).map_err(|error| {
        let detail = format!("the query parameter orderBy: {}", error.detail);
        GatewayError { detail, ..error }
    })
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
