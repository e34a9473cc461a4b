//! Limits responses that are not sent yet: the memory they take, and how long a client may leave them unread.
//!
//! [`UnsentResponses`](super::unsent::UnsentResponses) counts the bytes in memory of each caller's responses, until the
//! kernel has the last byte. Responses to unauthenticated clients are not counted: they are small, or part of the program.
//!
//! [`watch_reader`] ends HTTP/2 connections on which a response is not read. With HTTP/1.1 the transport detects it
//! (a write that waits, see `src/cli/app/servers.rs`). HTTP/2 has a window for each stream: a client that never opens it
//! can still reply to pings, and so keep the whole response in memory.
use super::access::READ_ONLY_POST_SUFFIXES;
use super::caller::caller_if_known;
use super::origin::origin;
use super::state::state;
use super::unsent::{share_owner, unread_problem};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use salvo::conn::ConnCtrl;
use salvo::http::header::{
    CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
};
use salvo::http::{Method, ResBody, StatusCode, Version};
use salvo::hyper::body::{Body, Frame, SizeHint};
use salvo::{Depot, Request, Response};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// The media type of server-sent events, whose response has no end.
pub const EVENT_STREAM_MEDIA_TYPE: &str = "text/event-stream";
/// The maximum time from one piece of a response to the next, while the client leaves it unread.
pub(super) const MAX_UNREAD_TIME: Duration = Duration::from_mins(5);
/// The bytes of one piece, the unit in which progress is measured.
const PIECE_BYTES: usize = 16 << 10;
/// The maximum number of bytes of a response that is not counted.
const MAX_UNCOUNTED_BYTES: usize = 1 << 10;
/// The bytes that a streamed response counts as: the pieces that wait in the stream and in the layers below it.
const STREAM_SHARE_BYTES: u64 = 256 << 10;

/// Bytes that keep a value alive while any of them is in memory.
struct GuardedBytes<T> {
    bytes: Bytes,
    _until_sent: T,
}

impl<T> AsRef<[u8]> for GuardedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn hold_until_sent<T: Send + 'static>(bytes: Bytes, until_sent: T) -> Bytes {
    Bytes::from_owner(GuardedBytes { bytes, _until_sent: until_sent })
}

/// Counts the response to a caller. If there is no capacity, replaces the result of a read by 503. The result of
/// a change is always sent.
pub(super) fn count_response(req: &Request, depot: &Depot, res: &mut Response) {
    let Some(caller) = caller_if_known(depot).filter(|_| !origin(depot).control) else { return };
    let is_get = *req.method() == Method::GET;
    let has_own_limit = || {
        let kind = res.headers().get(CONTENT_TYPE);
        !is_get || kind.is_some_and(|kind| kind == EVENT_STREAM_MEDIA_TYPE)
    };
    let bytes = match &res.body {
        ResBody::Once(bytes) if bytes.len() <= MAX_UNCOUNTED_BYTES => return,
        ResBody::Once(bytes) => bytes.len() as u64,
        ResBody::None | ResBody::Error(_) => return,
        _ if has_own_limit() => return,
        _ => STREAM_SHARE_BYTES,
    };
    let only_reads = res.status_code == Some(StatusCode::OK)
        && (is_get || READ_ONLY_POST_SUFFIXES.iter().any(|end| req.matched_path().ends_with(end)));
    let (unsent, who) = (&state(depot).unsent_responses, share_owner(caller));
    let counted = if only_reads {
        unsent.reads.try_acquire(who, bytes)
    } else {
        Some(unsent.changes.force_acquire(who, bytes))
    };
    let Some(counted) = counted else {
        for header in [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_DISPOSITION, ETAG] {
            res.headers_mut().remove(header);
        }
        unread_problem().write_response(req, depot, res);
        return;
    };
    let body = match res.take_body() {
        ResBody::Once(bytes) => ResBody::Once(hold_until_sent(bytes, counted)),
        stream => boxed_body(stream.map_frame(move |frame| {
            // The closure owns `counted`, so that it is dropped with the stream.
            let _ = &counted;
            frame
        })),
    };
    res.replace_body(body);
}

fn boxed_body<B>(body: B) -> ResBody
where
    B: Body<Data = Bytes, Error = std::io::Error> + Send + Sync + 'static,
{
    ResBody::Boxed(Box::pin(body.map_err(Into::into)))
}

/// Ends an HTTP/2 connection when the response stays unread for this long.
pub(super) fn watch_reader(req: &Request, res: &mut Response, max_unread_time: Duration) {
    let Some(connection) = req.extensions().get::<ConnCtrl>() else { return };
    if req.version() != Version::HTTP_2 || res.body.is_none() || res.body.is_error() {
        return;
    }
    let (alive, gone) = oneshot::channel();
    let state = Mutex::new(ProgressState {
        last_moved: Instant::now(),
        unsent_pieces: 0,
        source_waits: false,
    });
    let progress = Arc::new(Progress { state, _alive: alive });
    tokio::spawn(abort_if_unread(
        Arc::downgrade(&progress),
        gone,
        connection.clone(),
        max_unread_time,
    ));
    let body = WatchedBody { inner: res.take_body(), rest: Bytes::new(), progress };
    res.replace_body(boxed_body(body));
}

async fn abort_if_unread(
    progress: Weak<Progress>,
    mut gone: oneshot::Receiver<()>,
    connection: ConnCtrl,
    max_unread_time: Duration,
) {
    let mut until = Instant::now() + max_unread_time;
    while timeout_at(until, &mut gone).await.is_err() {
        let Some(last) = progress.upgrade().map(|progress| progress.last_progress()) else {
            return;
        };
        until = last + max_unread_time;
        if until <= Instant::now() {
            tracing::debug!("Ended a connection because the client did not read a response on it.");
            connection.abort();
            return;
        }
    }
}

/// The progress of a response. Dropped with the last of its bytes.
struct Progress {
    state: Mutex<ProgressState>,
    _alive: oneshot::Sender<()>,
}

struct ProgressState {
    last_moved: Instant,
    /// The number of pieces that were passed on and are still in memory.
    unsent_pieces: usize,
    /// Whether the source of the response has no data at the moment.
    source_waits: bool,
}

impl Progress {
    /// Returns the time of the last progress; now, if the response waits for its source and not for the client.
    fn last_progress(&self) -> Instant {
        let state = self.state.lock();
        if state.unsent_pieces == 0 && state.source_waits {
            Instant::now()
        } else {
            state.last_moved
        }
    }
}

/// A piece that is in memory until it is sent.
struct UnsentPiece(Arc<Progress>);

impl UnsentPiece {
    fn new(progress: &Arc<Progress>) -> Self {
        let mut state = progress.state.lock();
        state.unsent_pieces += 1;
        state.last_moved = Instant::now();
        state.source_waits = false;
        drop(state);
        Self(progress.clone())
    }
}

impl Drop for UnsentPiece {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.unsent_pieces -= 1;
        state.last_moved = Instant::now();
    }
}

/// A response that is sent in pieces, which show whether the client reads it.
struct WatchedBody {
    inner: ResBody,
    /// The rest of the last frame.
    rest: Bytes,
    progress: Arc<Progress>,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            this.progress.state.lock().source_waits = true;
            match ready!(Pin::new(&mut this.inner).poll_frame(context)?) {
                None => return Poll::Ready(None),
                Some(frame) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES));
        let piece = hold_until_sent(piece, UnsentPiece::new(&this.progress));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(inner.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests;
