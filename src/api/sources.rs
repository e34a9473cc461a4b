//! `/api/v1/sources`: the sources, their connections, and a test of a connection.
use crate::shapes;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::sources;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Lists every source of the configuration.
#[endpoint(
    operation_id = "listSources",
    tags("Sources"),
    responses((status_code = 200, description = "All sources.", body = shapes::Sources)),
)]
pub(super) async fn list_sources(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let all = sources::list_sources(&gateway(depot)?, caller(depot))?;
    let items = all.into_iter().map(shapes::Source::from).collect();
    Reply::json(&shapes::Sources { items, next: None })
}

/// Returns a source.
#[endpoint(
    operation_id = "getSource",
    tags("Sources"),
    parameters(("name" = String, Path, description = "The name of the source.")),
    responses((status_code = 200, description = "The source.", body = shapes::Source)),
)]
pub(super) async fn get_source(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let source = sources::read_source(&gateway(depot)?, caller(depot), name)?;
    Reply::json(&shapes::Source::from(source))
}

/// Tests whether the gateway can connect to the broker of a source, with the configured credentials. The test uses a
/// session of its own, subscribes to nothing and receives no message.
///
/// A failed test has its reason in `cause`; the status is 200 then, too.
#[endpoint(
    operation_id = "testSource",
    tags("Sources"),
    parameters(("name" = String, Path, description = "The name of the source.")),
    responses((status_code = 200, description = "The result of the test.", body = shapes::SourceTest)),
)]
pub(super) async fn test_source(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let name = path_parameter(req, "name");
    let result = sources::test_source(&gateway(depot)?, caller(depot), name).await?;
    Reply::json(&shapes::SourceTest::new(name, result))
}
