//! `/api/v1/exports`: the queue and its history.
use bytes::Bytes;
use futures_util::stream;
use penstock_export::{ExportExt as _, OpenedExport};
use penstock_http::access::MinimumRole::{Admin, User};
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::PageQuery;
use penstock_http::query::{UuidCursor, cursor_after};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::export::{Export, ExportFile};
use penstock_service::exports::{self, ExportAction};
use salvo::http::ResBody;
use salvo::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, ETAG};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// The bytes of one piece of a file: what one response holds in memory.
const PIECE_BYTES: usize = 64 << 10;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    let retry = post("/api/v1/exports/{id}/retry", Admin, retry_export).describe(
        "retryExport",
        "Exports",
        "Retries the delivery of a waiting export now, or queues a parked one again at its place.",
    );
    let park = post("/api/v1/exports/{id}/park", Admin, park_export).describe(
        "parkExport",
        "Exports",
        "Parks a waiting export, so that the exports after it are delivered.",
    );
    let replay = post("/api/v1/exports/{id}/replay", Admin, replay_export).describe(
        "replayExport",
        "Exports",
        "Queues a delivered file again under its own key.",
    );
    let mut operations = vec![
        get("/api/v1/exports", User, list_exports)
            .describe(
                "listExports",
                "Exports",
                "Lists the exports, newest first: waiting and delivered ones.",
            )
            .answer::<Page<Export>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/exports/{id}", User, get_export)
            .describe("getExport", "Exports", "Returns one export.")
            .answer::<Export>(200, "The export.")
            .problems(&[400, 404]),
        get("/api/v1/exports/{id}/content", User, get_export_content)
            .describe(
                "getExportContent",
                "Exports",
                "Returns the file of an export, byte for byte as the target gets it. In the format `jsonl` that is one \
                 object a line (`application/x-ndjson`). For a SPARQL store it is what changes in the graph \
                 (`application/n-quads`).",
            )
            .answer::<ExportFile>(200, "The file.")
            .answer_as::<String>("application/x-ndjson")
            .answer_header("ETag", "The SHA-256 of the file in quotes.")
            .problems(&[400, 404]),
    ];
    operations.extend([retry, park, replay].map(|action| {
        action.answer::<Export>(200, "The export after the change.").problems(&[400, 404, 409, 507])
    }));
    operations
}

async fn list_exports(call: Call<'_>, query: PageQuery<UuidCursor>) -> ReplyResult {
    let (gateway, by) = (call.gateway()?, call.caller());
    let found = exports::list_exports(&gateway, by, query.after, query.limit).await?;
    Reply::json(&Page { items: found.items, next: found.next.as_deref().map(cursor_after) })
}

async fn get_export(call: Call<'_>) -> ReplyResult {
    Reply::json(&exports::find_export(&call.gateway()?, call.path("id")).await?)
}

async fn get_export_content(call: Call<'_>) -> ReplyResult {
    let OpenedExport { entry, file, length, .. } =
        exports::open_export(&call.gateway()?, call.caller(), call.path("id")).await?;
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

async fn run_action(call: Call<'_>, action: ExportAction) -> ReplyResult {
    let (gateway, id) = (call.gateway()?, call.path("id"));
    Reply::json(&exports::change_export(&gateway, call.caller(), id, action).await?)
}

async fn retry_export(call: Call<'_>) -> ReplyResult {
    run_action(call, ExportAction::Retry).await
}

async fn park_export(call: Call<'_>) -> ReplyResult {
    run_action(call, ExportAction::Park).await
}

async fn replay_export(call: Call<'_>) -> ReplyResult {
    run_action(call, ExportAction::Replay).await
}
