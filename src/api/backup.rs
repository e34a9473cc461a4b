//! `/control/backup`, only over the control socket: the content of the store as a stream, and the takeover of the
//! continuous backup.
use bytes::Bytes;
use futures_util::stream;
use penstock_base::blocking::spawn_blocking;
use penstock_base::error::GatewayError;
use penstock_http::access::MinimumRole::Local;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_service::backup;
use salvo::http::body::{BytesFrame, Frame};
use salvo::http::header::TRAILER;
use salvo::http::{HeaderMap, HeaderName, HeaderValue, ResBody};
use std::io::{self, Write};
use tokio::sync::mpsc::{Sender, channel};

/// The maximum number of pieces that wait for a slow reader; each has about 100 KiB.
const MAX_PENDING_PIECES: usize = 4;

/// Returns the operations of the control socket.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/control/backup", Local, stream_backup),
        post("/control/backup/take-over", Local, take_over_backup),
    ]
}

/// Streams a backup. If the backup fails, the gateway breaks the connection, so that the stream is visibly
/// incomplete.
async fn stream_backup(call: Call<'_>) -> ReplyResult {
    let (gateway, by) = (call.gateway()?, call.caller().clone());
    Ok(stream_written("application/octet-stream", move |pieces| {
        backup::write_backup(&gateway, &by, pieces).map(|_| None)
    }))
}

/// Makes this gateway the one that writes the continuous backup.
async fn take_over_backup(call: Call<'_>) -> ReplyResult {
    backup::take_over_backup(&call.gateway()?, call.caller()).await?;
    Ok(Reply::no_content())
}

/// The trailer of a stream with a warning about it.
const WARNING_TRAILER: &str = "penstock-warning";

/// Runs `write` on a thread that may block. Returns what it writes as a stream, with the warning that it returns as a
/// trailer. After an error it breaks the connection, so that an incomplete stream does not look complete.
pub(super) fn stream_written(
    media_type: &'static str,
    write: impl FnOnce(&mut Pieces) -> Result<Option<String>, GatewayError> + Send + 'static,
) -> Reply {
    let (sender, receiver) = channel(MAX_PENDING_PIECES);
    spawn_blocking(move || {
        let mut pieces = Pieces(sender);
        let last = match write(&mut pieces) {
            Ok(warning) => warning.and_then(|text| HeaderValue::from_str(&text).ok()).map(|text| {
                Ok(Frame::trailers(HeaderMap::from_iter([(
                    HeaderName::from_static(WARNING_TRAILER),
                    text,
                )])))
            }),
            Err(error) => Some(Err(io::Error::other(error))),
        };
        if let Some(last) = last {
            // A reader that has disconnected does not need it.
            let _ = pieces.0.blocking_send(last);
        }
    });
    let pieces = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece| (piece.map(BytesFrame), receiver))
    });
    Reply::stream(media_type, ResBody::stream(pieces)).with_header(TRAILER, WARNING_TRAILER)
}

/// Passes on what is written. Writing blocks while the reader is behind.
pub(super) struct Pieces(Sender<io::Result<Frame<Bytes>>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Frame::data(Bytes::copy_from_slice(bytes));
        self.0.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
