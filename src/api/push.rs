//! `/api/v1/business-objects/{id}/push`: exports all objects of a Business Object now.
use penstock_http::access::MinimumRole::Contributor;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::export::Push;
use penstock_service::business_objects::find_business_object;
use penstock_service::exports::push_business_object;
use salvo::http::StatusCode;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    let path = "/api/v1/business-objects/{id}/push";
    let by_get = get(path, Contributor, push).describe(
        "pushByGet",
        "Exports",
        "Exports everything now to every push target. The files contain the state at the time of the \
         response.\n\nThis GET has side effects, as the specification requires. With a session it is accepted only from \
         this gateway's own pages.",
    );
    let by_post = post(path, Contributor, push).describe(
        "push",
        "Exports",
        "Exports everything now to every push target. The files contain the state at the time of the response.",
    );
    let all = [by_get, by_post].map(|operation| {
        operation
            .parameter("id", "The Business Object's id or name.")
            .answer::<Push>(202, "Queued.")
            .problems(&[400, 404, 409, 413, 422, 507])
    });
    all.into()
}

async fn push(call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    let (by, trace) = (call.caller(), call.trace().to_string());
    let push = push_business_object(&gateway, by, business_object, trace).await?;
    Ok(Reply::json(&push)?.with_status(StatusCode::ACCEPTED))
}
