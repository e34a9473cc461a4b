//! `/api/v1/ingestions`: what was ingested and by whom. Clients that lost a response find it here.
use crate::shapes;
use penstock_http::path::path_parameter;
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::ingestions;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

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
pub(super) async fn list_ingestions(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_uuid_cursor()?);
    let mut records = ingestions::list_ingestions(&gateway(depot)?, after, limit + 1).await?;
    let next = truncate_page(&mut records, limit, |record| &record.id);
    let items = records.into_iter().map(Into::into).collect();
    Reply::json(&shapes::Ingestions { items, next })
}

/// Returns one ingestion.
#[endpoint(
    operation_id = "getIngestion",
    tags("Ingestion"),
    parameters(("id" = String, Path, description = "Its `ingestionId`.")),
    responses((status_code = 200, description = "Its record.", body = shapes::IngestionRecord)),
)]
pub(super) async fn get_ingestion(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let id = path_parameter(req, "id").to_owned();
    let record = ingestions::find_ingestion(&gateway(depot)?, id).await?;
    Reply::json(&shapes::IngestionRecord::from(record))
}
