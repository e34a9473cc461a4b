//! `/api/v1/exports`: the queue and its history.
use crate::shapes;
use bytes::Bytes;
use futures_util::stream;
use penstock_export::OpenedExport;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::exports::{self, ExportAction};
use salvo::http::ResBody;
use salvo::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, ETAG};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// The bytes of one piece of a file: what one response holds in memory.
const PIECE_BYTES: usize = 64 << 10;

/// Lists the exports, newest first: waiting and delivered ones.
#[endpoint(
    operation_id = "listExports",
    tags("Exports"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Exports)),
)]
pub(super) async fn list_exports(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_uuid_cursor()?);
    let mut entries = exports::list_exports(&gateway(depot)?, after, limit + 1).await?;
    let next = truncate_page(&mut entries, limit, |entry| &entry.id);
    let items = entries.into_iter().map(shapes::Export::from).collect();
    Reply::json(&shapes::Exports { items, next })
}

/// Returns one export.
#[endpoint(
    operation_id = "getExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export.", body = shapes::Export)),
)]
pub(super) async fn get_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let entry = exports::find_export(&gateway(depot)?, path_parameter(req, "id")).await?;
    Reply::json(&shapes::Export::from(entry))
}

/// Returns the file of an export, byte for byte as the target gets it. In the format `jsonl` that is one object a line
/// (`application/x-ndjson`). For a SPARQL store it is what changes in the graph (`application/n-quads`).
#[endpoint(
    operation_id = "getExportContent",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The file.", body = shapes::ExportFile,
        content_type = "application/json",
        headers(("ETag" = String, description = "The SHA-256 of the file in quotes.")))),
)]
pub(super) async fn get_export_content(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let OpenedExport { entry, file, length } =
        exports::open_export(&gateway(depot)?, caller(depot), path_parameter(req, "id")).await?;
    // A key may have any character, a quoted file name may not.
    let name = entry.file_name();
    let name = name.replace(|c: char| !c.is_ascii_graphic() || matches!(c, '"' | '\\'), "_");
    let pieces = stream::try_unfold(File::from_std(file), |mut file: File| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    });
    Ok(Reply::stream(entry.media_type(), ResBody::stream(pieces))
        .with_header(CONTENT_LENGTH, &length.to_string())
        .with_header(ETAG, &format!("\"{}\"", entry.sha256))
        .with_header(CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\"")))
}

async fn run_action(req: &Request, depot: &Depot, action: ExportAction) -> ReplyResult {
    Query::read(req, &[])?;
    let id = path_parameter(req, "id");
    let entry = exports::change_export(&gateway(depot)?, caller(depot), id, action).await?;
    Reply::json(&shapes::Export::from(entry))
}

/// Retries the delivery of a waiting export now, or queues a parked one again at its place.
#[endpoint(
    operation_id = "retryExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn retry_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    run_action(req, depot, ExportAction::Retry).await
}

/// Parks a waiting export, so that the exports after it are delivered.
#[endpoint(
    operation_id = "parkExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn park_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    run_action(req, depot, ExportAction::Park).await
}

/// Queues a delivered file again under its own key.
#[endpoint(
    operation_id = "replayExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn replay_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    run_action(req, depot, ExportAction::Replay).await
}
