//! `/api/v1/exports`: the queue and its history.
use super::business_objects::path;
use super::caller::caller;
use super::problem::Problem;
use super::query::{Query, page};
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::{blocking, gateway};
use bytes::Bytes;
use futures_util::stream;
use penstock_base::commit::CommitCheck;
use penstock_base::fault::Fault;
use penstock_export::{Content, Entry, Exporter};
use salvo::http::ResBody;
use salvo::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, ETAG};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// The bytes of a file that are in memory at once.
const PIECE: usize = 64 << 10;

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
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.uuid_cursor()?);
    let exporter = gateway(depot)?.exporter;
    let entries = blocking(move || Ok(exporter.list(after.as_deref(), limit + 1)?)).await?;
    page(entries, limit, |entry| &entry.id)
}

/// Returns one export.
#[endpoint(
    operation_id = "getExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export.", body = shapes::Export)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    let id = path(req, "id").to_owned();
    let entry = blocking(move || {
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
pub(super) async fn content(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    let id = path(req, "id").to_owned();
    let Content { entry, file, length } = blocking(move || Ok(exporter.content(&id)?)).await?;
    let name = entry.key.rsplit('/').next().unwrap_or_default().to_owned();
    let pieces = stream::try_unfold(File::from_std(file), |mut file: File| async move {
        let mut piece = vec![0; PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    });
    Ok(Reply::stream("application/json", ResBody::stream(pieces))
        .header(CONTENT_LENGTH, &length.to_string())
        .header(ETAG, &format!("\"{}\"", entry.sha256))
        .header(CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\"")))
}

async fn act(
    req: &mut Request,
    depot: &mut Depot,
    action: impl FnOnce(&Exporter, &dyn CommitCheck, &str) -> Result<Entry, Fault> + Send + 'static,
) -> Outcome {
    Query::read(req, &[])?;
    let exporter = gateway(depot)?.exporter;
    let (by, id) = (caller(depot).clone(), path(req, "id").to_owned());
    Reply::json(&blocking(move || Ok(action(&exporter, &by, &id)?)).await?)
}

/// Retries the delivery of a waiting export now, or queues a parked one again at its place.
#[endpoint(
    operation_id = "retryExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn retry(req: &mut Request, depot: &mut Depot) -> Outcome {
    act(req, depot, Exporter::retry).await
}

/// Parks a waiting export, so that the exports after it are delivered.
#[endpoint(
    operation_id = "parkExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn park(req: &mut Request, depot: &mut Depot) -> Outcome {
    act(req, depot, Exporter::park).await
}

/// Queues a delivered file again under its own key.
#[endpoint(
    operation_id = "replayExport",
    tags("Exports"),
    parameters(("id" = String, Path, description = "Its id.")),
    responses((status_code = 200, description = "The export after the change.", body = shapes::Export)),
)]
pub(super) async fn replay(req: &mut Request, depot: &mut Depot) -> Outcome {
    act(req, depot, Exporter::replay).await
}
