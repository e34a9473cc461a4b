//! `/control/backup`, only over the control socket: the content of the store as a stream.
use bytes::Bytes;
use futures_util::stream;
use penstock_auth::audit::Audit;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::gateway::data_events;
use penstock_store::ReadStore;
use salvo::http::ResBody;
use salvo::{Depot, Request, handler};
use std::io::{self, Write};
use tokio::sync::mpsc::{Sender, channel};

/// The maximum number of pieces that wait for a slow reader; each has about 100 KiB.
const MAX_PENDING_PIECES: usize = 4;

/// Streams a backup. If the backup fails, the gateway breaks the connection, so that the stream is visibly
/// incomplete.
#[handler]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    Ok(stream_written("application/octet-stream", move |pieces| {
        write_backup(&gateway.store, &gateway.auth.audit, pieces);
    }))
}

/// Runs `write` on a thread that may block. Returns what it writes as a stream.
pub(super) fn stream_written(
    media_type: &'static str,
    write: impl FnOnce(&mut Pieces) + Send + 'static,
) -> Reply {
    let (sender, receiver) = channel(MAX_PENDING_PIECES);
    tokio::task::spawn_blocking(move || write(&mut Pieces(sender)));
    let pieces = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (piece, receiver))
    });
    Reply::stream(media_type, ResBody::stream(pieces))
}

fn write_backup(store: &ReadStore, audit: &Audit, pieces: &mut Pieces) {
    let result = store.write_backup(pieces);
    audit.record_event(data_events::backup_event(&result));
    match result {
        Ok(backup) => {
            tracing::info!(
                sequence = backup.sequence,
                quads = backup.quads,
                "A backup was written."
            );
        }
        Err(cause) => {
            tracing::warn!(%cause, "A backup failed.");
            pieces.break_connection(cause);
        }
    }
}

/// Passes on what is written. Writing blocks while the reader is behind.
pub(super) struct Pieces(Sender<io::Result<Bytes>>);

impl Pieces {
    /// Breaks the connection, so that an incomplete stream does not look complete.
    pub(super) fn break_connection(
        &self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) {
        // A reader that has disconnected needs no error.
        let _ = self.0.blocking_send(Err(io::Error::other(cause)));
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        self.0.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
