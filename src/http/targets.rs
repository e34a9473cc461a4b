//! `/api/v1/targets`: where exports go, and how each target is.
use super::query::{Query, page};
use super::reply::Outcome;
use super::shapes;
use super::state::{blocking, gateway};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Lists every target that the configuration, a Business Object or the queue names.
#[endpoint(
    operation_id = "listTargets",
    tags("Exports"),
    responses((status_code = 200, description = "All of them.", body = shapes::Targets)),
)]
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    let targets = blocking(move || Ok(exporter.targets()?)).await?;
    page(targets, usize::MAX, |target| &target.name)
}
