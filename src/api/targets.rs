//! `/api/v1/targets`: the export targets, their state, and a test of whether they would accept files.
use crate::shapes;
use penstock_http::path::path_parameter;
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{gateway, run_blocking};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Lists every target that the configuration, a Business Object or the queue names.
#[endpoint(
    operation_id = "listTargets",
    tags("Exports"),
    responses((status_code = 200, description = "All targets.", body = shapes::Targets)),
)]
pub(super) async fn list_targets(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    let targets = run_blocking(move || Ok(exporter.list_targets()?)).await?;
    page_reply(targets, usize::MAX, |target| &target.name)
}

/// Tests whether a target would accept files, with its configured credentials. The test writes nothing.
///
/// A failed test has its reason in `cause`; the status is 200 then, too.
#[endpoint(
    operation_id = "testTarget",
    tags("Exports"),
    parameters(("bucketName" = String, Path, description = "The target's bucketName.")),
    responses((status_code = 200, description = "The result of the test.", body = shapes::TargetTest)),
)]
pub(super) async fn test_target(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    Reply::json(&exporter.test_target(path_parameter(req, "bucketName")).await?)
}
