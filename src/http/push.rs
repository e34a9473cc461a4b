//! `/api/v1/business-objects/{id}/push`: exports everything now.
use super::business_objects::named;
use super::caller::caller;
use super::problem::Problem;
use super::query::Query;
use super::reply::{Outcome, Reply};
use super::service::trace;
use super::shapes;
use super::state::{blocking, gateway};
use penstock_base::fault::Fault;
use penstock_export::{self as export, By, Entry};
use penstock_model::resource::Compiled;
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use serde::Serialize;
use std::sync::Arc;

#[derive(Serialize)]
struct Answer<'a> {
    exports: Vec<Pushed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pushed<'a> {
    id: &'a str,
    sequence: u64,
    target: &'a str,
    object_count: u64,
    status: export::Status,
}

impl<'a> From<&'a Entry> for Pushed<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            id: &entry.id,
            sequence: entry.sequence,
            target: &entry.target,
            object_count: entry.object_count,
            status: entry.status,
        }
    }
}

/// Exports everything of a Business Object on behalf of this request's caller.
pub(super) async fn everything(
    depot: &Depot,
    gateway: Gateway,
    business_object: Arc<Compiled>,
) -> Result<Result<export::Push, Fault>, Problem> {
    let (caller, trace) = (caller(depot).clone(), trace(depot).to_string());
    let turn = match gateway.exporter.turn(&business_object).await {
        Ok(turn) => turn,
        Err(fault) => return Ok(Err(fault)),
    };
    blocking(move || {
        // The permit is held until the thread is done, even if the client has disconnected.
        let _turn = turn;
        let by = By { check: &caller, account: Some(caller.id()), traceparent: Some(&trace) };
        Ok(gateway.exporter.push(&business_object, by))
    })
    .await
}

async fn push(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let business_object = named(req, &gateway)?;
    let push = everything(depot, gateway, business_object).await??;
    let answer = Answer {
        exports: push.exports.iter().map(Pushed::from).collect(),
        reason: push.reason.as_deref(),
    };
    Ok(Reply::json(&answer)?.status(StatusCode::ACCEPTED))
}

/// Exports everything now to every push target. The files contain the state at the time of the response.
///
/// This GET acts, as the specification requires. With a session it is accepted only from this gateway's own
/// pages.
#[endpoint(
    operation_id = "pushByGet",
    tags("Exports"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 202, description = "Queued.", body = shapes::Push)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    push(req, depot).await
}

/// Exports everything now to every push target. The files contain the state at the time of the response.
#[endpoint(
    operation_id = "push",
    tags("Exports"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 202, description = "Queued.", body = shapes::Push)),
)]
pub(super) async fn post(req: &mut Request, depot: &mut Depot) -> Outcome {
    push(req, depot).await
}
