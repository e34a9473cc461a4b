//! `/api/v1/targets`: the export targets, their state, and a test of whether they would accept files.
use crate::shapes;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::targets;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Lists every target that the configuration, a Business Object or the queue names.
#[endpoint(
    operation_id = "listTargets",
    tags("Exports"),
    responses((status_code = 200, description = "All targets.", body = shapes::Targets)),
)]
pub(super) async fn list_targets(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let targets = targets::list_targets(&gateway(depot)?).await?;
    let items = targets.into_iter().map(shapes::Target::from).collect();
    Reply::json(&shapes::Targets { items, next: None })
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
    let name = path_parameter(req, "bucketName");
    let result = targets::test_target(&gateway(depot)?, caller(depot), name).await?;
    Reply::json(&shapes::TargetTest::from(result))
}
