//! Answers that are written on a thread of their own. The first bytes are held back, so that an error before them has its
//! own status. An error after them breaks off the response, so that it does not look complete.
use bytes::Bytes;
use futures_util::stream;
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_service::sparql::{no_answer_error, start_query_thread};
use penstock_sparql::Deadline;
use salvo::Request;
use salvo::conn::ConnCtrl;
use salvo::http::header::HeaderName;
use salvo::http::{ResBody, StatusCode, Version};
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// The header with the warnings about a query.
const WARNING_HEADER: &str = "penstock-warning";
/// The bytes that are held back, and those of each further piece.
const PIECE_BYTES: usize = 64 << 10;
/// The maximum number of pieces that wait for a slow client.
const MAX_PENDING_PIECES: usize = 2;
/// How often a writer looks whether its client has taken a piece.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);
/// How long a client may take to read what was sent before an answer was broken off.
const MAX_ABORT_DELAY: Duration = Duration::from_millis(500);

/// The bytes that a client must take in each second. The time in which the answer is computed does not count.
const MIN_RATE: u64 = 8 << 10;
/// How much longer a client may take.
const GRACE_TIME: Duration = Duration::from_secs(30);

/// How long a client may take.
#[derive(Debug, Clone)]
pub(crate) enum WriteLimit {
    /// The whole answer must be taken by then. It is cancelled when the client disconnects.
    Until(Deadline),
    /// The client must take the answer at [`MIN_RATE`] on average, after [`GRACE_TIME`].
    Rate,
}

/// What an answer begins with.
struct Beginning {
    media_type: &'static str,
    /// The value of [`WARNING_HEADER`].
    warning: Option<String>,
    start: Start,
}

/// The beginning of the body.
enum Start {
    /// The whole answer.
    Whole(Vec<u8>),
    /// The pieces of an answer, as they come.
    Pieces(mpsc::Receiver<Bytes>),
}

/// Cancels what writes an answer when the client disconnects: it is dropped with the request or with the response.
struct CancelOnDrop(WriteLimit);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let WriteLimit::Until(deadline) = &self.0 {
            deadline.cancel();
        }
    }
}

/// What is written to a client.
pub(crate) struct AnswerWriter {
    media_type: &'static str,
    warning: Option<String>,
    limit: WriteLimit,
    /// The bytes that were sent, and how long the client let them wait.
    sent: u64,
    waited: Duration,
    /// What is not sent yet.
    piece: Vec<u8>,
    /// Begins the response; `None` once it has begun.
    start: Option<oneshot::Sender<Result<Beginning, Problem>>>,
    /// Sends pieces once the response has begun.
    pieces: Option<mpsc::Sender<Bytes>>,
    /// Set once everything was sent. Otherwise the response ends with an error.
    is_complete: Arc<AtomicBool>,
    /// The connection, if this answer is the only one on it.
    connection: Option<ConnCtrl>,
}

/// Runs `work` on a thread of its own, and returns what it writes as the response to `req`.
pub(crate) async fn stream_answer(
    req: &Request,
    limit: WriteLimit,
    work: impl FnOnce(&mut AnswerWriter) -> Result<(), Problem> + Send + 'static,
) -> ReplyResult {
    let (start, started) = oneshot::channel();
    let guard = CancelOnDrop(limit.clone());
    let is_complete = Arc::new(AtomicBool::new(false));
    let mut writer = AnswerWriter {
        media_type: "application/octet-stream",
        warning: None,
        limit,
        sent: 0,
        waited: Duration::ZERO,
        piece: Vec::new(),
        start: Some(start),
        pieces: None,
        is_complete: is_complete.clone(),
        connection: find_own_connection(req),
    };
    start_query_thread(move || {
        let result = work(&mut writer);
        writer.finish(result);
    })?;
    let started = started.await.unwrap_or_else(|_| Err(no_answer_error().into()))?;
    let Beginning { media_type, warning, start } = started;
    let reply = match start {
        Start::Whole(bytes) => Reply::bytes(media_type, bytes),
        Start::Pieces(_) if req.version() < Version::HTTP_11 => {
            return Err(Problem::new(
                StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                "with HTTP/1.0, an answer of more than 64 KiB that breaks off looks complete; use HTTP/1.1 (in nginx: \
                 proxy_http_version 1.1), or select less",
            ));
        }
        Start::Pieces(receiver) => {
            let pieces = stream::unfold(
                (receiver, guard, is_complete),
                |(mut receiver, guard, is_complete)| async {
                    let piece = match receiver.recv().await {
                        Some(piece) => Ok(piece),
                        None if is_complete.load(Ordering::Acquire) => return None,
                        None => {
                            // The next call ends the stream.
                            is_complete.store(true, Ordering::Release);
                            Err(io::Error::other("the answer was broken off"))
                        }
                    };
                    Some((piece, (receiver, guard, is_complete)))
                },
            );
            Reply::stream(media_type, ResBody::stream(pieces))
        }
    };
    Ok(with_warning(reply, warning))
}

/// Adds the warnings about a query, which a header can hold.
pub(super) fn with_warnings(reply: Reply, warnings: &[String]) -> Reply {
    with_warning(reply, join_warnings(warnings))
}

fn with_warning(reply: Reply, warning: Option<String>) -> Reply {
    match warning {
        Some(warning) => reply.with_header(HeaderName::from_static(WARNING_HEADER), &warning),
        None => reply,
    }
}

/// Joins warnings to one line of ASCII.
fn join_warnings(warnings: &[String]) -> Option<String> {
    let joined = warnings.join(" ");
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        other => other.escape_default().to_string(),
    };
    (!joined.is_empty()).then(|| joined.chars().map(escape).collect())
}

/// Returns how much longer a client may let an answer wait of which this many bytes were sent, after it has waited this
/// long in total.
fn compute_patience(sent: u64, waited: Duration) -> Duration {
    (GRACE_TIME + Duration::from_secs(sent / MIN_RATE)).saturating_sub(waited)
}

/// Returns the connection of a request, unless it carries the responses to others at the same time (HTTP/2).
fn find_own_connection(req: &Request) -> Option<ConnCtrl> {
    let is_shared = req.version() == Version::HTTP_2;
    req.extensions().get::<ConnCtrl>().filter(|_| !is_shared).cloned()
}

impl AnswerWriter {
    /// Adds the warnings, before anything is written.
    pub(crate) fn set_warnings(&mut self, warnings: &[String]) {
        self.warning = join_warnings(warnings);
    }

    /// Sets the media type, before anything is written.
    pub(crate) fn set_media_type(&mut self, media_type: &'static str) {
        self.media_type = media_type;
    }

    /// Fails if the client has disconnected.
    fn check_client(&self) -> io::Result<()> {
        let is_gone = match (&self.start, &self.pieces) {
            (Some(start), _) => start.is_closed(),
            (None, Some(pieces)) => pieces.is_closed(),
            (None, None) => true,
        };
        if is_gone { Err(ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// Sends what is not sent yet. Begins the response if necessary.
    fn send_piece(&mut self) -> io::Result<()> {
        if let Some(start) = self.start.take() {
            let (sender, receiver) = mpsc::channel(MAX_PENDING_PIECES);
            let begun = start.send(Ok(Beginning {
                media_type: self.media_type,
                warning: self.warning.take(),
                start: Start::Pieces(receiver),
            }));
            begun.map_err(|_| ErrorKind::BrokenPipe)?;
            self.pieces = Some(sender);
        }
        let piece = std::mem::take(&mut self.piece);
        self.send(piece.into())
    }

    /// Waits until the client has taken enough of what was sent before, and sends this.
    fn send(&mut self, mut piece: Bytes) -> io::Result<()> {
        let Some(pieces) = &self.pieces else { return Err(ErrorKind::BrokenPipe.into()) };
        let begun = Instant::now();
        self.sent += piece.len() as u64;
        let deadline = match &self.limit {
            WriteLimit::Until(deadline) => deadline.at(),
            WriteLimit::Rate => begun + compute_patience(self.sent, self.waited),
        };
        // This thread must not need the runtime, which may be shut down meanwhile.
        loop {
            piece = match pieces.try_send(piece) {
                Ok(()) => {
                    self.waited += begun.elapsed();
                    return Ok(());
                }
                Err(TrySendError::Closed(_)) => return Err(ErrorKind::BrokenPipe.into()),
                Err(TrySendError::Full(piece)) => piece,
            };
            if Instant::now() >= deadline {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "the client did not read the answer fast enough",
                ));
            }
            thread::sleep(RETRY_INTERVAL);
        }
    }

    fn finish(mut self, result: Result<(), Problem>) {
        if let Some(start) = self.start.take() {
            let piece = std::mem::take(&mut self.piece);
            // If the client has disconnected, it needs no answer.
            let _ = start.send(result.map(|()| Beginning {
                media_type: self.media_type,
                warning: self.warning.take(),
                start: Start::Whole(piece),
            }));
            return;
        }
        let result = match result {
            Ok(()) if self.piece.is_empty() => Ok(()),
            Ok(()) => self.send_piece().map_err(|error| error.to_string()),
            Err(problem) => Err(problem.detail().to_owned()),
        };
        match result {
            Ok(()) => self.is_complete.store(true, Ordering::Release),
            Err(cause) => {
                tracing::warn!(cause, "An answer was broken off after its first bytes.");
                self.abort_unread();
            }
        }
    }

    /// Ends the connection if its client does not read what was sent before. The server notices the end of the pieces only
    /// when it has sent the others.
    fn abort_unread(self) {
        let (Some(pieces), Some(connection)) = (self.pieces, self.connection) else { return };
        let until = Instant::now() + MAX_ABORT_DELAY;
        while pieces.capacity() < MAX_PENDING_PIECES && !pieces.is_closed() {
            if Instant::now() >= until {
                return connection.abort();
            }
            thread::sleep(RETRY_INTERVAL);
        }
    }
}

impl Write for AnswerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_client()?;
        if self.piece.len() >= PIECE_BYTES {
            self.send_piece()?;
        }
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        Ok(taken)
    }

    /// Sends nothing, so that an answer is not split into small pieces. Fails if the client has disconnected.
    fn flush(&mut self) -> io::Result<()> {
        self.check_client()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_a_client_follows_from_the_minimum_rate() {
        let seconds = Duration::from_secs;
        assert_eq!(compute_patience(0, Duration::ZERO), GRACE_TIME);
        // At 128 bytes a second a piece of 64 KiB takes 512 s.
        assert_eq!(compute_patience(2 * PIECE_BYTES as u64, seconds(512)), Duration::ZERO);
        // At twice the minimum it has time left, however long the answer is.
        for minutes in [1, 10, 1000] {
            let waited = seconds(60 * minutes);
            let left = compute_patience(2 * MIN_RATE * 60 * minutes, waited);
            assert_eq!(left, GRACE_TIME + waited);
        }
    }
}
