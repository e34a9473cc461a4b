//! `/control/definitions`, only over the control socket: applies the files of `penstock apply`.
use crate::shapes::{AppliedDefinitions, ApplyDefinitions};
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{gateway, state};
use penstock_service::blocking::run_blocking;
use penstock_service::definitions::apply_files;
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

/// Applies the files in the body, or says what applying them would do.
#[handler]
pub(super) async fn apply_definitions(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let limit = state(depot).settings().limits.body_bytes;
    let body = body::read_json_body(req, depot).await.map_err(|problem| {
        if problem.status() != StatusCode::PAYLOAD_TOO_LARGE {
            return problem;
        }
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the files are larger than service.limits.body allows ({limit} bytes as JSON); divide the folder, raise the \
                 setting, or stop the service: without it the command has no such limit"
            ),
        )
    })?;
    let asked: ApplyDefinitions = serde_json::from_slice(body.bytes())
        .map_err(|error| Problem::malformed(format!("the body cannot be read: {error}")))?;
    let (gateway, by) = (gateway(depot)?, caller(depot).clone());
    let (files, options) = asked.into_parts();
    let report = run_blocking(move || apply_files(&gateway, &by, &files, &options)).await?;
    Reply::json(&AppliedDefinitions::from(report))
}
