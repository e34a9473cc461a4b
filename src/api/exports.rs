//! `/api/v1/exports`: the queue and its history.
use crate::shapes;
use bytes::Bytes;
use futures_util::stream;
use penstock_base::commit::CommitCheck;
use penstock_base::error::GatewayError;
use penstock_export::{ExportEntry, Exporter, OpenedExport};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{gateway, run_blocking};
use salvo::http::ResBody;
use salvo::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, ETAG};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
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
    let exporter = gateway(depot)?.exporter;
    let entries = run_blocking(move || Ok(exporter.list(after.as_deref(), limit + 1)?)).await?;
    page_reply(entries, limit, |entry| &entry.id)
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
    let exporter = gateway(depot)?.exporter;
    let id = path_parameter(req, "id").to_owned();
    let entry = run_blocking(move || {
        exporter
            .get(&id)?
            .ok_or_else(|| Problem::not_found(format!("there is no export with the id {id:?}")))
    })
    .await?;
    Reply::json(&entry)
}

/// Returns the file of an export, byte for byte as the target gets it.
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
    let exporter = gateway(depot)?.exporter;
    let id = path_parameter(req, "id").to_owned();
    let OpenedExport { entry, file, length } =
        run_blocking(move || Ok(exporter.open_content(&id)?)).await?;
    let name = entry.key.rsplit('/').next().unwrap_or_default().to_owned();
    let pieces = stream::try_unfold(File::from_std(file), |mut file: File| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    });
    Ok(Reply::stream("application/json", ResBody::stream(pieces))
        .with_header(CONTENT_LENGTH, &length.to_string())
        .with_header(ETAG, &format!("\"{}\"", entry.sha256))
        .with_header(CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\"")))
}

async fn run_action(
    req: &mut Request,
    depot: &mut Depot,
    action: impl FnOnce(&Exporter, &dyn CommitCheck, &str) -> Result<ExportEntry, GatewayError>
    + Send
    + 'static,
) -> ReplyResult {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    let (by, id) = (caller(depot).clone(), path_parameter(req, "id").to_owned());
    Reply::json(&run_blocking(move || Ok(action(&exporter, &by, &id)?)).await?)
}

/// Retries the delivery of a waiting export now, or queues a parked one again at its place.
#[endpoint(
    operation_id = "retryExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn retry_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    run_action(req, depot, Exporter::retry).await
}

/// Parks a waiting export, so that the exports after it are delivered.
#[endpoint(
    operation_id = "parkExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn park_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    run_action(req, depot, Exporter::park).await
}

/// Queues a delivered file again under its own key.
#[endpoint(
    operation_id = "replayExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn replay_export(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    run_action(req, depot, Exporter::replay).await
}
