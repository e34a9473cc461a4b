//! `/api/v1/ingestions`: what was ingested and by whom. Clients that lost a response find it here.
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::PageQuery;
use penstock_http::query::{UuidCursor, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::ingestion::IngestionRecord;
use penstock_service::ingestions;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/ingestions", User, list_ingestions)
            .describe("listIngestions", "Ingestion", "Lists the ingestions, newest first.")
            .answer::<Page<IngestionRecord>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/ingestions/{id}", User, get_ingestion)
            .describe("getIngestion", "Ingestion", "Returns one ingestion.")
            .parameter("id", "Its `ingestionId`.")
            .answer::<IngestionRecord>(200, "Its record.")
            .problems(&[400, 404]),
    ]
}

async fn list_ingestions(call: Call<'_>, query: PageQuery<UuidCursor>) -> ReplyResult {
    let (gateway, by) = (call.gateway()?, call.caller());
    let found = ingestions::list_ingestions(&gateway, by, query.after, query.limit).await?;
    Reply::json(&Page { items: found.items, next: found.next.as_deref().map(cursor_after) })
}

async fn get_ingestion(call: Call<'_>) -> ReplyResult {
    let id = call.path("id").to_owned();
    Reply::json(&ingestions::find_ingestion(&call.gateway()?, id).await?)
}
