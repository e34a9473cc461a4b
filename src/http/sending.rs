//! Limits the responses that are not sent yet: their memory, and how long a client may leave them unread.
//!
//! [`Unread`] counts the bytes in memory for callers, until the kernel has the last byte. Responses to
//! unauthenticated clients are small, or part of the program.
//!
//! [`watch`] ends HTTP/2 connections on which a response is not read. With HTTP/1.1 the transport detects it
//! (a write that waits, see `app.rs`). HTTP/2 has a window for each stream: a client that opens none can
//! still reply to pings and keep everything in memory.
use super::access::ONLY_READS;
use super::caller::caller_if_known;
use super::events::EVENTS;
use super::problem::Problem;
use super::service::origin;
use super::share::Shares;
use super::state::state;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use penstock_auth::{Caller, Credential};
use salvo::conn::ConnCtrl;
use salvo::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use salvo::http::{Method, ResBody, StatusCode, Version};
use salvo::hyper::body::{Body, Frame, SizeHint};
use salvo::{Depot, Request, Response};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// The maximum time that a response may stay unread, from one piece to the next.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);
/// Bytes of one piece, the unit in which progress is measured.
const PIECE: usize = 16 << 10;
/// The maximum bytes of a response that is not counted.
const TINY: usize = 1 << 10;
/// The bytes that a stream counts for: the pieces that wait in it and below it.
const STREAM: u64 = 256 << 10;

/// The bytes of responses that are not sent yet.
#[derive(Debug)]
pub(super) struct Unread {
    /// Results of reads, which can be repeated.
    read: Shares<String>,
    /// Results of changes.
    done: Shares<String>,
}

impl Unread {
    /// Allows this many bytes of each kind for all callers together, and half of them for each.
    pub(super) fn new(most: u64) -> Self {
        Self { read: Shares::new(most, most / 2), done: Shares::new(most, most / 2) }
    }

    /// Refuses callers that leave so many results of changes unread that no capacity is left for another one.
    pub(super) fn check(&self, caller: &Caller) -> Result<(), Problem> {
        if self.done.has_room(&who(caller)) { Ok(()) } else { Err(unread()) }
    }
}

/// Returns the owner of a response's share. Each key has its own, not that of its creator.
fn who(caller: &Caller) -> String {
    match &caller.credential {
        Credential::ApiKey { id, .. } => id.clone(),
        _ => caller.id().to_owned(),
    }
}

/// Bytes that hold a value for as long as one of them is in memory.
struct Held<T> {
    bytes: Bytes,
    _until_sent: T,
}

impl<T> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn held<T: Send + 'static>(bytes: Bytes, until_sent: T) -> Bytes {
    Bytes::from_owner(Held { bytes, _until_sent: until_sent })
}

fn unread() -> Problem {
    Problem::unavailable(
        1,
        "unread responses to other requests use up service.limits.in-flight, or the half of it \
         that one account or key may use; read them and try again",
    )
}

/// Counts the response to a caller. Without capacity, a read gets 503 instead. The result of a change must
/// always be sent.
pub(super) fn count(req: &Request, depot: &Depot, res: &mut Response) {
    let Some(caller) = caller_if_known(depot).filter(|_| !origin(depot).control) else { return };
    let is_get = *req.method() == Method::GET;
    let has_bound_of_its_own = || {
        let kind = res.headers().get(CONTENT_TYPE);
        !is_get || kind.is_some_and(|kind| kind == EVENTS)
    };
    let bytes = match &res.body {
        ResBody::Once(bytes) if bytes.len() <= TINY => return,
        ResBody::Once(bytes) => bytes.len() as u64,
        ResBody::None | ResBody::Error(_) => return,
        _ if has_bound_of_its_own() => return,
        _ => STREAM,
    };
    let only_reads = res.status_code == Some(StatusCode::OK)
        && (is_get || req.matched_path().ends_with(ONLY_READS));
    let (unread, who) = (&state(depot).unread, who(caller));
    let counted =
        if only_reads { unread.read.take(&who, bytes) } else { Some(unread.done.add(&who, bytes)) };
    let Some(counted) = counted else {
        for header in [CONTENT_LENGTH, CONTENT_DISPOSITION, ETAG] {
            res.headers_mut().remove(header);
        }
        self::unread().give(req, depot, res);
        return;
    };
    let body = match res.take_body() {
        ResBody::Once(bytes) => ResBody::Once(held(bytes, counted)),
        stream => boxed(stream.map_frame(move |frame| {
            // Moved in here so that it is dropped with the stream.
            let _ = &counted;
            frame
        })),
    };
    res.replace_body(body);
}

fn boxed<B>(body: B) -> ResBody
where
    B: Body<Data = Bytes, Error = std::io::Error> + Send + Sync + 'static,
{
    ResBody::Boxed(Box::pin(body.map_err(Into::into)))
}

/// Ends an HTTP/2 connection when the response stays unread for this long.
pub(super) fn watch(req: &Request, res: &mut Response, patience: Duration) {
    let Some(connection) = req.extensions().get::<ConnCtrl>() else { return };
    if req.version() != Version::HTTP_2 || res.body.is_none() || res.body.is_error() {
        return;
    }
    let (alive, gone) = oneshot::channel();
    let state = Mutex::new(Moved { last: Instant::now(), unsent: 0, source_waits: false });
    let progress = Arc::new(Progress { state, _alive: alive });
    tokio::spawn(end_unread(Arc::downgrade(&progress), gone, connection.clone(), patience));
    let body = Watched { inner: res.take_body(), rest: Bytes::new(), progress };
    res.replace_body(boxed(body));
}

async fn end_unread(
    progress: Weak<Progress>,
    mut gone: oneshot::Receiver<()>,
    connection: ConnCtrl,
    patience: Duration,
) {
    let mut until = Instant::now() + patience;
    while timeout_at(until, &mut gone).await.is_err() {
        let Some(last) = progress.upgrade().map(|progress| progress.last()) else { return };
        until = last + patience;
        if until <= Instant::now() {
            tracing::debug!("Ended a connection because the client did not read a response on it.");
            connection.abort();
            return;
        }
    }
}

/// The progress of a response. Dropped with the last of its bytes.
struct Progress {
    state: Mutex<Moved>,
    _alive: oneshot::Sender<()>,
}

struct Moved {
    last: Instant,
    /// Pieces that were passed on and are still in memory.
    unsent: usize,
    /// Whether the source of the response has no data at the moment.
    source_waits: bool,
}

impl Progress {
    /// Returns when it last moved, or now if it does not wait for the client.
    fn last(&self) -> Instant {
        let state = self.state();
        if state.unsent == 0 && state.source_waits { Instant::now() } else { state.last }
    }

    fn state(&self) -> MutexGuard<'_, Moved> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece that is in memory until it is sent.
struct Unsent(Arc<Progress>);

impl Unsent {
    fn new(progress: &Arc<Progress>) -> Self {
        let mut state = progress.state();
        state.unsent += 1;
        state.last = Instant::now();
        state.source_waits = false;
        drop(state);
        Self(progress.clone())
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.unsent -= 1;
        state.last = Instant::now();
    }
}

/// A response in pieces, which show whether it is read.
struct Watched {
    inner: ResBody,
    /// The rest of the last frame.
    rest: Bytes,
    progress: Arc<Progress>,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            this.progress.state().source_waits = true;
            match ready!(Pin::new(&mut this.inner).poll_frame(context)?) {
                None => return Poll::Ready(None),
                Some(frame) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        let piece = held(piece, Unsent::new(&this.progress));
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
