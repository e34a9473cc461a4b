//! Reads request bodies within their limits of size, time and memory.

mod media_type;
pub(crate) mod quota;

pub use media_type::{MediaType, check_media_type, find_charset, find_media_type};
pub use quota::BodyPermit;

use super::access::check_after_body;
use super::encoding::decode::DecodeError;
use super::origin::Origin;
use super::problem::Problem;
use super::state::{State, state};
use http_body_util::BodyExt;
use quota::{BodyQuota, MAX_UNAUTHENTICATED_BODY_BYTES};
use salvo::http::header::EXPECT;
use salvo::http::{Method, ReqBody, StatusCode};
use salvo::{Depot, Request};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The maximum time until a whole body has arrived, however slowly its bytes come.
const BODY_TIMEOUT: Duration = Duration::from_mins(10);
/// The maximum time for a small body.
const SMALL_BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes of a small body, which has a few fields.
const MAX_SMALL_BODY_BYTES: u64 = 64 << 10;
/// The maximum number of bytes of a small form, where percent-encoding may need three characters for one byte.
const MAX_FORM_BYTES: u64 = 3 * MAX_SMALL_BODY_BYTES;
/// How long the rest of a refused body is read and discarded. Without that, its sender would get a connection
/// reset instead of the response.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// The byte order mark of UTF-8. It is not part of the text that it precedes: parsers of JSON may ignore it (RFC 8259, 8.1).
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A body in memory, with its permit.
#[derive(Debug)]
pub struct BufferedBody {
    bytes: Vec<u8>,
    permit: BodyPermit,
}

impl BufferedBody {
    /// Borrows the bytes. They cannot be taken out, so the code that processes them also keeps the permit, even
    /// on another thread and after the client has disconnected.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Drops the bytes. The permit then counts what takes their place, such as an answer that waits.
    pub fn into_permit(self) -> BodyPermit {
        self.permit
    }
}

impl AsRef<[u8]> for BufferedBody {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// The limits for reading a body.
#[derive(Debug, Clone, Copy)]
struct BodyLimits<'a> {
    quota: &'a BodyQuota,
    max_bytes: u64,
    read_timeout: Duration,
    /// Whether the permit for the whole body is acquired before the body arrives. Otherwise the permit grows
    /// with the bytes that have arrived.
    reserves_quota: bool,
}

impl<'a> BodyLimits<'a> {
    fn small(quota: &'a BodyQuota, max_bytes: u64) -> Self {
        Self { quota, max_bytes, read_timeout: SMALL_BODY_TIMEOUT, reserves_quota: false }
    }
}

/// Reads the whole body of a JSON request, up to `service.limits.body`.
pub async fn read_json_body(req: &mut Request, depot: &mut Depot) -> Result<BufferedBody, Problem> {
    check_media_type(req, &[MediaType::Json])?;
    read_whole_body(req, depot).await
}

/// Reads the whole body of a request, up to `service.limits.body`. The media type must be checked before.
pub async fn read_whole_body(
    req: &mut Request,
    depot: &mut Depot,
) -> Result<BufferedBody, Problem> {
    read_body_up_to(req, depot, u64::MAX).await
}

/// Reads the whole body of a request, as [`read_whole_body`], up to `max_bytes`.
pub async fn read_body_up_to(
    req: &mut Request,
    depot: &mut Depot,
    max_bytes: u64,
) -> Result<BufferedBody, Problem> {
    let state = state(depot);
    let quota = &state.body_quotas.data;
    let limit = state.settings.limits.body_bytes.min(max_bytes);
    read_caller_body(
        req,
        depot,
        BodyLimits { quota, max_bytes: limit, read_timeout: BODY_TIMEOUT, reserves_quota: true },
    )
    .await
}

/// Reads the whole body of a JSON request with a few fields.
pub async fn read_small_json(
    req: &mut Request,
    depot: &mut Depot,
) -> Result<BufferedBody, Problem> {
    check_media_type(req, &[MediaType::Json])?;
    let state = state(depot);
    read_caller_body(
        req,
        depot,
        BodyLimits::small(&state.body_quotas.authenticated, MAX_SMALL_BODY_BYTES),
    )
    .await
}

/// Reads a whole form with a few fields.
pub async fn read_small_form(
    req: &mut Request,
    depot: &mut Depot,
) -> Result<BufferedBody, Problem> {
    let state = state(depot);
    read_caller_body(
        req,
        depot,
        BodyLimits::small(&state.body_quotas.authenticated, MAX_FORM_BYTES),
    )
    .await
}

/// Reads the whole body of a caller, without a byte order mark. The caller must still be allowed to use the route when it has
/// arrived.
async fn read_caller_body(
    req: &mut Request,
    depot: &mut Depot,
    limits: BodyLimits<'_>,
) -> Result<BufferedBody, Problem> {
    let mut whole = read_within_limits(req, limits).await?;
    if whole.bytes.starts_with(BYTE_ORDER_MARK) {
        whole.bytes.drain(..BYTE_ORDER_MARK.len());
    }
    check_after_body(req, depot)?;
    Ok(whole)
}

/// Reads a body of an unauthenticated client: a form or JSON with a few fields.
pub async fn read_unauthenticated_body(
    req: &mut Request,
    state: &State,
    origin: &Origin,
) -> Result<BufferedBody, Problem> {
    let quotas = &state.body_quotas;
    let (_slot, cut_off) = quotas.incoming.take_slot(origin.client);
    tokio::select! {
        biased;
        whole = read_within_limits(req, BodyLimits::small(&quotas.unauthenticated, MAX_UNAUTHENTICATED_BODY_BYTES)) => whole,
        _ = cut_off => Err(Problem::unavailable(
            1,
            "the body was cut off because it arrived slowly and newer requests without a session needed its \
             place; send the request again",
        )),
    }
}

async fn read_within_limits(
    req: &mut Request,
    limits: BodyLimits<'_>,
) -> Result<BufferedBody, Problem> {
    media_type::check_encoding(req)?;
    let mut body = req.take_body();
    match buffer_body(&mut body, limits).await {
        Ok(whole) => Ok(whole),
        Err(problem) => {
            // Puts the body back, so that `discard_unread_body` can discard the rest.
            req.replace_body(body);
            Err(problem)
        }
    }
}

async fn buffer_body(body: &mut ReqBody, limits: BodyLimits<'_>) -> Result<BufferedBody, Problem> {
    use salvo::hyper::body::Body;
    let declared = body.size_hint().exact();
    if declared.is_some_and(|bytes| bytes > limits.max_bytes) {
        return Err(body_too_large(limits.max_bytes));
    }
    let expected = declared.filter(|_| limits.reserves_quota).unwrap_or_default();
    let mut permit = limits.quota.try_acquire(expected)?;
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(usize::MAX));
    let deadline = Instant::now() + limits.read_timeout;
    while let Some(frame) = timeout_at(deadline, body.frame()).await.map_err(|_| body_too_slow())? {
        if let Ok(data) = frame.map_err(|error| body_read_error(&error))?.into_data() {
            if (bytes.len() + data.len()) as u64 > limits.max_bytes {
                return Err(body_too_large(limits.max_bytes));
            }
            permit.grow_to(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
    }
    Ok(BufferedBody { bytes, permit })
}

/// 413: a line of NDJSON exceeds the limit.
pub fn line_too_large(limit: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "a line is longer than service.limits.body allows ({limit} bytes); an object must fit \
             into one line"
        ),
    )
}

/// 413: a record of CSV, which begins in this line, exceeds the limit.
pub fn record_too_large(limit: u64, line: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "the record in line {line} is longer than service.limits.body allows ({limit} bytes); perhaps a quote has no \
             closing one"
        ),
    )
}

/// 413: a body exceeds the limit.
fn body_too_large(limit: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "the body exceeds the limit of this route ({limit} bytes; service.limits.body for data); \
             send less at once, or application/x-ndjson"
        ),
    )
}

/// Returns the problem of a body that could not be read to its end.
pub fn body_read_error(error: &std::io::Error) -> Problem {
    match DecodeError::find(error) {
        Some(DecodeError::Transport(error)) => body_read_error(error),
        Some(error @ DecodeError::Malformed { .. }) => Problem::malformed(error.to_string()),
        Some(error @ DecodeError::Ratio) => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())
        }
        Some(DecodeError::NoMemory(detail)) => Problem::unavailable(1, detail),
        None if error.kind() == ErrorKind::TimedOut => body_too_slow(),
        None => Problem::malformed("the body ended before it was complete"),
    }
}

fn body_too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body arrived too slowly; send it again")
}

/// Discards the part of the body that the handler has not read, for a limited time, while the response is sent.
pub(super) fn discard_unread_body(req: &mut Request) {
    // With `Expect: 100-continue`, reading would ask the client for the body that was refused.
    if req.method() != Method::GET && !req.headers().contains_key(EXPECT) {
        discard_body(req.take_body());
    }
}

/// Discards the rest of a body, for a limited time.
pub fn discard_body(mut body: ReqBody) {
    use salvo::hyper::body::Body;
    if !body.is_end_stream() {
        tokio::spawn(timeout(DISCARD_TIMEOUT, async move {
            while let Some(Ok(_)) = body.frame().await {}
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use penstock_base::memory::Memory;
    use salvo::hyper::body::{Body, Frame, SizeHint};
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// A body that declares its length and sends only one byte.
    struct Stuck {
        declared: u64,
        is_begun: bool,
    }

    impl Body for Stuck {
        type Data = Bytes;
        type Error = Box<dyn std::error::Error + Send + Sync>;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            if std::mem::replace(&mut self.is_begun, true) {
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"a")))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.declared)
        }
    }

    fn stuck(declared: u64) -> ReqBody {
        let inner = Box::pin(Stuck { declared, is_begun: false });
        ReqBody::Boxed { inner, fuse_config: None }
    }

    #[tokio::test]
    async fn a_small_body_takes_the_quota_of_what_has_arrived_and_times_out_soon() {
        let quota = BodyQuota::new(2 * 1024, Memory::new(None));
        let limits = BodyLimits {
            read_timeout: Duration::from_millis(50),
            ..BodyLimits::small(&quota, MAX_SMALL_BODY_BYTES)
        };
        let (mut one, mut other) = (stuck(MAX_SMALL_BODY_BYTES), stuck(MAX_SMALL_BODY_BYTES));
        // Each of them declares more than the quota.
        let (one, other) =
            tokio::join!(buffer_body(&mut one, limits), buffer_body(&mut other, limits));
        for refused in [one, other] {
            assert_eq!(refused.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        }
        let refused = buffer_body(&mut stuck(MAX_SMALL_BODY_BYTES + 1), limits).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        // A body of data needs its whole quota in advance.
        let data = BodyLimits { reserves_quota: true, ..limits };
        let refused = buffer_body(&mut stuck(MAX_SMALL_BODY_BYTES), data).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
