//! `/api/v1/ingestions`: what was ingested and by whom. Clients that lost a response find it here.
use super::business_objects::path;
use super::problem::Problem;
use super::query::{Query, page};
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::{blocking, gateway};
use penstock_model::ingest;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Lists the ingestions, newest first.
#[endpoint(
    operation_id = "listIngestions",
    tags("Ingestion"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Ingestions)),
)]
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.uuid_cursor()?);
    let store = gateway(depot)?.store;
    let records =
        blocking(move || Ok(ingest::records(&store, after.as_deref(), limit + 1)?)).await?;
    page(records, limit, |record| &record.id)
}

/// Returns one ingestion.
#[endpoint(
    operation_id = "getIngestion",
    tags("Ingestion"),
    parameters(("id" = String, Path, description = "Its `ingestionId`.")),
    responses((status_code = 200, description = "Its record.", body = shapes::IngestionRecord)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let store = gateway(depot)?.store;
    let id = path(req, "id").to_owned();
    let record = blocking(move || {
        ingest::record(&store, &id)?.ok_or_else(|| {
            Problem::not_found(format!(
                "there is no ingestion {id:?}, or its record is no longer kept"
            ))
        })
    })
    .await?;
    Reply::json(&record)
}
