//! `/api/v1/business-objects/{id}/push`: exports all objects of a Business Object now.
use crate::shapes;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::trace;
use penstock_http::state::gateway;
use penstock_service::business_objects::find_business_object;
use penstock_service::exports::push_business_object;
use salvo::http::StatusCode;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

async fn push_and_reply(req: &Request, depot: &Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = find_business_object(&gateway, path_parameter(req, "id"))?;
    let (by, trace) = (caller(depot), trace(depot).to_string());
    let push = push_business_object(&gateway, by, business_object, trace).await?;
    Ok(Reply::json(&shapes::Push::from(push))?.with_status(StatusCode::ACCEPTED))
}

/// Exports everything now to every push target. The files contain the state at the time of the response.
///
/// This GET has side effects, as the specification requires. With a session it is accepted only from this
/// gateway's own pages.
#[endpoint(
    operation_id = "pushByGet",
    tags("Exports"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 202, description = "Queued.", body = shapes::Push)),
)]
pub(super) async fn push_by_get(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    push_and_reply(req, depot).await
}

/// Exports everything now to every push target. The files contain the state at the time of the response.
#[endpoint(
    operation_id = "push",
    tags("Exports"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 202, description = "Queued.", body = shapes::Push)),
)]
pub(super) async fn push_by_post(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    push_and_reply(req, depot).await
}
