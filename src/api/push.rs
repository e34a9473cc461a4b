//! `/api/v1/business-objects/{id}/push`: exports all objects of a Business Object now.
use crate::business_objects::find_business_object;
use crate::shapes;
use penstock_base::error::GatewayError;
use penstock_export::{self as export, ExportEntry, ExportRequester};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::trace;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::resource::Compiled;
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
struct Answer<'a> {
    exports: Vec<PushedExport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PushedExport<'a> {
    id: &'a str,
    sequence: u64,
    target: &'a str,
    object_count: u64,
    status: export::Status,
}

impl<'a> From<&'a ExportEntry> for PushedExport<'a> {
    fn from(entry: &'a ExportEntry) -> Self {
        Self {
            id: &entry.id,
            sequence: entry.sequence,
            target: &entry.target,
            object_count: entry.object_count,
            status: entry.status,
        }
    }
}

/// Exports all objects of a Business Object on behalf of the caller. The outer error is one of the task, the inner
/// one is of the export.
pub async fn push_all(
    depot: &Depot,
    gateway: Gateway,
    business_object: Arc<Compiled>,
) -> Result<Result<export::PushResult, GatewayError>, Problem> {
    let (caller, trace) = (caller(depot).clone(), trace(depot).to_string());
    let permit = match gateway.exporter.acquire_push_permit(&business_object).await {
        Ok(permit) => permit,
        Err(error) => return Ok(Err(error)),
    };
    run_blocking(move || {
        // The permit is held until the thread is done, even if the client has disconnected.
        let _permit = permit;
        let by = ExportRequester {
            check: &caller,
            account: Some(caller.id()),
            traceparent: Some(&trace),
        };
        Ok(gateway.exporter.push(&business_object, by))
    })
    .await
}

async fn push_and_reply(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = find_business_object(req, &gateway)?;
    let push = push_all(depot, gateway, business_object).await??;
    let answer = Answer {
        exports: push.exports.iter().map(PushedExport::from).collect(),
        reason: push.reason.as_deref(),
    };
    Ok(Reply::json(&answer)?.with_status(StatusCode::ACCEPTED))
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
