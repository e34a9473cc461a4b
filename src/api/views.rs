//! `/api/v1/views`: saved views of Business Objects.
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::etag::{ChangeConditions, format_etag};
use penstock_http::operation::{Operation, delete, get, post, put};
use penstock_http::parameters::PageQuery;
use penstock_http::path::encode_segment;
use penstock_http::query::UuidCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::views::ViewContent;
use penstock_resources::Page;
use penstock_resources::view::{NewView, SavedView};
use penstock_service::views;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/views", User, list_views)
            .describe(
                "listViews",
                "Views",
                "Lists the saved views that the caller sees, in the order of their creation: its own, and shared ones.",
            )
            .answer::<Page<SavedView>>(200, "A page.")
            .problems(&[400]),
        post("/api/v1/views", User, create_view)
            .describe(
                "createView",
                "Views",
                "Saves a view of the caller.\n\nOnly Contributors share views. An account has one view of a Business \
                 Object with a name. The same request again has the same answer.",
            )
            .body::<NewView>()
            .answer::<SavedView>(201, "Created.")
            .etag()
            .location()
            .problems(&[400, 408, 409, 413, 415, 422, 507]),
        get("/api/v1/views/{id}", User, get_view)
            .describe("getView", "Views", "Returns one saved view.")
            .answer::<SavedView>(200, "The view.")
            .etag()
            .problems(&[400, 404]),
        put("/api/v1/views/{id}", User, replace_view)
            .describe(
                "replaceView",
                "Views",
                "Replaces a saved view.\n\nContributors replace shared views of all accounts, others only their own views.",
            )
            .body::<NewView>()
            .answer::<SavedView>(200, "Replaced, or unchanged.")
            .etag()
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/views/{id}", User, delete_view)
            .describe(
                "deleteView",
                "Views",
                "Deletes a saved view.\n\nContributors delete shared views of all accounts, others only their own views.",
            )
            .parameter("If-Match", "Delete only this version.")
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 412, 507]),
    ]
}

penstock_http::parameters! {
    /// Which views are listed.
    struct ViewsQuery {
        "businessObject" => business_object: Option<String>, "Only views of the Business Object with this id or name.";
        ..page: PageQuery<UuidCursor>
    }
}

/// Responds with one view and its entity tag.
fn view_reply(view: &SavedView) -> ReplyResult {
    Ok(Reply::json(view)?.with_header(ETAG, &format_etag(view.version)))
}

async fn list_views(call: Call<'_>, query: ViewsQuery) -> ReplyResult {
    let ViewsQuery { business_object, page } = query;
    let (gateway, after) = (call.gateway()?, page.after.as_deref());
    let of = business_object.as_deref();
    let listed = views::list_views(&gateway, call.caller(), of, after, page.limit + 1);
    Reply::json(&page.page(listed, |view| view.id.clone()))
}

async fn create_view(mut call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let content = ViewContent::from_json(body.bytes())?;
    let view = views::create_view(&gateway, call.caller(), content).await?;
    let location = call.locate(&format!("/api/v1/views/{}", encode_segment(&view.id)));
    Ok(view_reply(&view)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

async fn get_view(call: Call<'_>) -> ReplyResult {
    view_reply(&views::find_view(&call.gateway()?, call.caller(), call.path("id"))?)
}

async fn replace_view(mut call: Call<'_>, conditions: ChangeConditions) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let (by, id) = (call.caller(), call.path("id"));
    let view = views::find_view(&gateway, by, id)?;
    let content = ViewContent::from_json(body.bytes())?;
    let conditions = conditions.check(Some(view.version))?;
    view_reply(&views::replace_view(&gateway, by, id, content, conditions).await?)
}

async fn delete_view(call: Call<'_>, conditions: ChangeConditions) -> ReplyResult {
    let (gateway, by, id) = (call.gateway()?, call.caller(), call.path("id"));
    let view = views::find_view(&gateway, by, id)?;
    let conditions = conditions.check(Some(view.version))?;
    views::delete_view(&gateway, by, id, conditions).await?;
    Ok(Reply::no_content())
}
