//! `/control/definitions`, only over the control socket: applies the files of `penstock apply`.
use penstock_http::access::MinimumRole::Local;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, post};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::definitions::ApplyDefinitions;
use penstock_service::blocking::run_blocking;
use penstock_service::definitions::{ApplyOptions, apply_files};
use salvo::http::StatusCode;

/// Returns the operations of the control socket.
pub(super) fn operations() -> Vec<Operation> {
    vec![post("/control/definitions", Local, apply_definitions)]
}

/// Applies the files in the body, or says what applying them would do.
async fn apply_definitions(mut call: Call<'_>) -> ReplyResult {
    let limit = call.state().settings().limits.body_bytes;
    let body = call.read_json().await.map_err(|problem| {
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
    let (gateway, by) = (call.gateway()?, call.caller().clone());
    let options = ApplyOptions::of_request(&asked);
    let report = run_blocking(move || apply_files(&gateway, &by, &asked.files, &options)).await?;
    Reply::json(&report)
}
