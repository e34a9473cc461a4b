//! Request bodies: the accepted media types, the size limits, and the memory that all bodies may use at once.
use super::access::check_after_body;
use super::origin::Origin;
use super::problem::Problem;
use super::state::{State, state};
use http_body_util::BodyExt;
use penstock_base::memory::{Level, Memory};
use penstock_base::network;
use salvo::http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue};
use salvo::http::{Method, ReqBody, StatusCode};
use salvo::{Depot, Request};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// The maximum time until a whole body has arrived, however slowly its bytes come.
const BODY_TIMEOUT: Duration = Duration::from_mins(10);
/// The maximum time for a small body.
const SMALL_BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes of a small body, which has a few fields.
const MAX_SMALL_BODY_BYTES: u64 = 64 << 10;
/// The maximum number of bytes of a small form, where percent-encoding may need three characters for one byte.
const MAX_FORM_BYTES: u64 = 3 * MAX_SMALL_BODY_BYTES;
/// The maximum number of bytes of all concurrent small bodies of authenticated clients.
const AUTHENTICATED_QUOTA_BYTES: u64 = 4 << 20;
/// The maximum number of bytes of all concurrent bodies of unauthenticated clients.
const UNAUTHENTICATED_QUOTA_BYTES: u64 = 1 << 20;
/// The maximum number of bytes of a body of an unauthenticated client: an email, a password and a return
/// path, percent-encoded.
const MAX_UNAUTHENTICATED_BODY_BYTES: u64 = 10 << 10;
/// The maximum number of concurrent request bodies of unauthenticated clients from one address (for IPv6,
/// from one /64).
const MAX_BODIES_PER_ADDRESS: usize = 8;
/// The maximum number of concurrent request bodies of all unauthenticated clients. Together they fit into
/// their quota, so that none is refused because of the size of others.
const MAX_UNAUTHENTICATED_BODIES: usize = 96;
/// The maximum number of bytes of a body that is accepted while memory is short.
const MAX_BODY_BYTES_WHEN_MEMORY_SHORT: u64 = 1 << 20;
/// How long the rest of a refused body is read and discarded. Without that, its sender would get a connection
/// reset instead of the response.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Limits the bytes of all bodies of one kind that are in memory at once.
#[derive(Debug)]
pub(super) struct BodyQuota {
    /// One permit stands for [`BodyQuota::PERMIT_BYTES`] bytes.
    permits: Arc<Semaphore>,
    /// The number of permits.
    total_permits: usize,
    /// `None` for a quota so small that its bodies are accepted even while memory is short.
    memory: Option<Memory>,
}

/// The quotas for bodies. Small bodies, and those of unauthenticated clients, have separate quotas, so that
/// they never use up the quota of data.
#[derive(Debug)]
pub(super) struct BodyQuotas {
    /// For data and definitions (`service.limits.in-flight`).
    pub(super) data: BodyQuota,
    /// For small bodies of authenticated clients.
    authenticated: BodyQuota,
    /// For bodies of unauthenticated clients.
    unauthenticated: BodyQuota,
    incoming: IncomingBodies,
}

impl BodyQuotas {
    /// Creates the quotas, with this many bytes for data, for a process with this memory limit.
    pub(super) fn new(data: u64, memory: &Memory) -> Self {
        let quota = |bytes| BodyQuota::new(bytes, memory.clone());
        Self {
            data: quota(data),
            authenticated: quota(AUTHENTICATED_QUOTA_BYTES),
            // Users must be able to sign in even while memory is short and other bodies are arriving.
            unauthenticated: BodyQuota { memory: None, ..quota(UNAUTHENTICATED_QUOTA_BYTES) },
            incoming: IncomingBodies::default(),
        }
    }
}

/// The part of a quota that one body holds. Dropping it releases it.
#[derive(Debug)]
pub(super) struct BodyPermit {
    permits: Arc<Semaphore>,
    held: OwnedSemaphorePermit,
    memory: Option<Memory>,
}

impl BodyQuota {
    const PERMIT_BYTES: u64 = 1024;

    /// Creates a quota of this many bytes for a process with this memory limit.
    pub(super) fn new(bytes: u64, memory: Memory) -> Self {
        let permits = usize::try_from(bytes / Self::PERMIT_BYTES).unwrap_or(usize::MAX);
        let total_permits = permits.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(total_permits)),
            total_permits,
            memory: Some(memory),
        }
    }

    /// Returns a permit for a body of this many bytes, or 503. While memory is short, it accepts only bodies of
    /// up to [`MAX_BODY_BYTES_WHEN_MEMORY_SHORT`], one at a time, so that clients still make progress.
    pub(super) fn try_acquire(&self, bytes: u64) -> Result<BodyPermit, Problem> {
        let is_alone = self.permits.available_permits() == self.total_permits;
        if is_memory_short(self.memory.as_ref())
            && (bytes > MAX_BODY_BYTES_WHEN_MEMORY_SHORT || !is_alone)
        {
            return Err(memory_short_problem());
        }
        // A body of unknown length takes at least one permit.
        let units = u32::try_from(bytes.div_ceil(Self::PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        let held = self
            .permits
            .clone()
            .try_acquire_many_owned(units)
            .map_err(|_| Self::exhausted_problem())?;
        Ok(BodyPermit { permits: self.permits.clone(), held, memory: self.memory.clone() })
    }

    fn exhausted_problem() -> Problem {
        Problem::unavailable(
            1,
            "the bodies of other requests use up the limit (service.limits.in-flight for data); try again",
        )
    }
}

impl BodyPermit {
    /// Extends the permit to this many bytes.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), Problem> {
        let units = (bytes as u64).div_ceil(BodyQuota::PERMIT_BYTES);
        let more = units.saturating_sub(self.held.num_permits() as u64);
        if more > 0 {
            if bytes as u64 > MAX_BODY_BYTES_WHEN_MEMORY_SHORT
                && is_memory_short(self.memory.as_ref())
            {
                return Err(memory_short_problem());
            }
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let more = self.permits.clone().try_acquire_many_owned(more);
            self.held.merge(more.map_err(|_| BodyQuota::exhausted_problem())?);
        }
        Ok(())
    }
}

fn is_memory_short(memory: Option<&Memory>) -> bool {
    memory.is_some_and(|memory| memory.current_level() == Level::Short)
}

/// 503: the process has used nearly all of its memory limit.
fn memory_short_problem() -> Problem {
    Problem::unavailable(
        5,
        "memory is short (service.limits.memory, or the limit of the gateway's control group): bodies of up \
         to 1 MiB are accepted one at a time, larger ones are not; try again, or send less at once",
    )
}

/// The bodies of unauthenticated clients that are arriving. A new body always gets a slot. If all slots of its
/// address, or of all clients, are in use, the oldest of these bodies is cut off. So slow clients never prevent
/// others from signing in, however many addresses they use.
#[derive(Debug, Default)]
struct IncomingBodies(Mutex<IncomingSlots>);

#[derive(Debug, Default)]
struct IncomingSlots {
    next: u64,
    /// The bodies in the order in which they began, each with its address. Dropping the sender cuts the body off.
    bodies: BTreeMap<u64, (Option<IpAddr>, oneshot::Sender<()>)>,
}

/// The slot of one such body. Dropping this value frees the slot.
struct IncomingSlot<'a> {
    incoming: &'a IncomingBodies,
    id: u64,
}

impl IncomingBodies {
    /// Takes a slot. The receiver resolves when another body takes the slot away.
    fn take_slot(&self, from: Option<IpAddr>) -> (IncomingSlot<'_>, oneshot::Receiver<()>) {
        let from = from.map(network::network_of);
        let (keep, cut_off) = oneshot::channel();
        let mut slots = self.lock_slots();
        let mut own = slots.bodies.iter().filter(|(_, (address, _))| *address == from);
        let slowest = match (own.next(), own.count() + 1) {
            (Some((id, _)), count) if count >= MAX_BODIES_PER_ADDRESS => Some(*id),
            _ if slots.bodies.len() >= MAX_UNAUTHENTICATED_BODIES => {
                slots.bodies.keys().next().copied()
            }
            _ => None,
        };
        if let Some(id) = slowest {
            slots.bodies.remove(&id);
        }
        let id = slots.next;
        slots.next += 1;
        slots.bodies.insert(id, (from, keep));
        (IncomingSlot { incoming: self, id }, cut_off)
    }

    // No code panics while it holds the lock.
    fn lock_slots(&self) -> MutexGuard<'_, IncomingSlots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IncomingSlot<'_> {
    fn drop(&mut self) {
        self.incoming.lock_slots().bodies.remove(&self.id);
    }
}

/// A body in memory, with its permit.
#[derive(Debug)]
pub(super) struct BufferedBody {
    bytes: Vec<u8>,
    _permit: BodyPermit,
}

impl BufferedBody {
    /// Borrows the bytes. They cannot be taken out, so the code that processes them also keeps the permit, even
    /// on another thread and after the client has disconnected.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A media type that a route accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    /// `application/json`
    Json,
    /// `application/x-ndjson`
    NdJson,
}

/// Returns which of the accepted media types the request declares. There is no default, so that no form in a
/// browser can be sent to a route of the API.
pub(super) fn check_media_type(req: &Request, taken: &[MediaType]) -> Result<MediaType, Problem> {
    if let Some(coding) = req.headers().get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "Content-Encoding is {}; send the body uncompressed",
                quote_header_value(coding)
            ),
        ));
    }
    let declared = req.headers().get(CONTENT_TYPE);
    let known = declared.and_then(|value| value.to_str().ok()).and_then(parse_media_type);
    known.filter(|found| taken.contains(found)).ok_or_else(|| {
        let expected: Vec<_> = taken
            .iter()
            .map(|taken| match taken {
                MediaType::Json => "application/json",
                MediaType::NdJson => "application/x-ndjson",
            })
            .collect();
        let found = declared.map_or_else(|| "missing".to_owned(), quote_header_value);
        Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("Content-Type is {found}; it must be {} (in UTF-8)", expected.join(" or ")),
        )
    })
}

fn quote_header_value(value: &HeaderValue) -> String {
    format!("{:?}", String::from_utf8_lossy(value.as_bytes()))
}

fn parse_media_type(text: &str) -> Option<MediaType> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next()?.to_ascii_lowercase();
    for parameter in parts.filter(|part| !part.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("charset")
            && !value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        {
            return None;
        }
    }
    match name.as_str() {
        "application/json" => Some(MediaType::Json),
        "application/x-ndjson" => Some(MediaType::NdJson),
        _ => None,
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
pub(super) async fn read_json_body(
    req: &mut Request,
    depot: &mut Depot,
) -> Result<BufferedBody, Problem> {
    check_media_type(req, &[MediaType::Json])?;
    read_whole_body(req, depot).await
}

/// Reads the whole body of a request, up to `service.limits.body`. The media type must be checked before.
pub(super) async fn read_whole_body(
    req: &mut Request,
    depot: &mut Depot,
) -> Result<BufferedBody, Problem> {
    let state = state(depot);
    let (quota, limit) = (&state.body_quotas.data, state.settings.limits.body_bytes);
    read_caller_body(
        req,
        depot,
        BodyLimits { quota, max_bytes: limit, read_timeout: BODY_TIMEOUT, reserves_quota: true },
    )
    .await
}

/// Reads the whole body of a JSON request with a few fields.
pub(super) async fn read_small_json(
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
pub(super) async fn read_small_form(
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

/// Reads the whole body of a caller. The caller must still be allowed to use the route when it has arrived.
async fn read_caller_body(
    req: &mut Request,
    depot: &mut Depot,
    limits: BodyLimits<'_>,
) -> Result<BufferedBody, Problem> {
    let whole = read_within_limits(req, limits).await?;
    check_after_body(req, depot)?;
    Ok(whole)
}

/// Reads a body of an unauthenticated client: a form or JSON with a few fields.
pub(super) async fn read_unauthenticated_body(
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
    Ok(BufferedBody { bytes, _permit: permit })
}

/// 413: a line of NDJSON exceeds the limit.
pub(super) fn line_too_large(limit: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "a line is longer than service.limits.body allows ({limit} bytes); an object must fit \
             into one line"
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
pub(super) fn body_read_error(error: &std::io::Error) -> Problem {
    if error.kind() == ErrorKind::TimedOut {
        body_too_slow()
    } else {
        Problem::malformed("the body ended before it was complete")
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
pub(super) fn discard_body(mut body: ReqBody) {
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
    use salvo::hyper::body::{Body, Frame, SizeHint};
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::sync::oneshot::error::TryRecvError::{Closed, Empty};

    #[test]
    fn parses_media_types_with_parameters() {
        for json in ["application/json", "Application/JSON; charset=UTF-8", "application/json;"] {
            assert_eq!(parse_media_type(json), Some(MediaType::Json), "{json}");
        }
        assert_eq!(parse_media_type("application/x-ndjson"), Some(MediaType::NdJson));
        for bad in ["", "text/plain", "application/json; charset=latin1", "application/json; x"] {
            assert_eq!(parse_media_type(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_quota_of_all_bodies_is_limited() {
        let quota = BodyQuota::new(10 * 1024, Memory::new(None));
        let mut first = quota.try_acquire(6 * 1024).unwrap();
        assert!(quota.try_acquire(5 * 1024).is_err());
        first.grow_to(10 * 1024).unwrap();
        assert!(first.grow_to(10 * 1024 + 1).is_err());
        assert!(quota.try_acquire(1).is_err());
        drop(first);
        quota.try_acquire(10 * 1024).unwrap();
    }

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

    #[tokio::test]
    async fn a_new_body_of_an_unauthenticated_client_always_gets_a_slot() {
        let incoming = IncomingBodies::default();
        let address = |n: usize| Some(IpAddr::V4(u32::try_from(n).unwrap().into()));
        let mut held: Vec<_> =
            (0..MAX_UNAUTHENTICATED_BODIES).map(|n| incoming.take_slot(address(n))).collect();
        assert!(held.iter_mut().all(|(_, cut_off)| cut_off.try_recv() == Err(Empty)));
        let (slot, mut cut_off) = incoming.take_slot(address(1000));
        assert_eq!(held[0].1.try_recv(), Err(Closed));
        assert_eq!((held[1].1.try_recv(), cut_off.try_recv()), (Err(Empty), Err(Empty)));
        // Dropping a slot that was cut off frees no second slot.
        held.remove(0);
        assert_eq!(incoming.lock_slots().bodies.len(), MAX_UNAUTHENTICATED_BODIES);
        drop((slot, held));
        assert!(incoming.lock_slots().bodies.is_empty());

        // One address cuts off only its own bodies.
        let (_other, mut others) = incoming.take_slot(address(1));
        let network = |n: usize| Some(format!("2001:db8::{n:x}").parse().unwrap());
        let mut own: Vec<_> =
            (0..=MAX_BODIES_PER_ADDRESS).map(|n| incoming.take_slot(network(n))).collect();
        assert_eq!((own[0].1.try_recv(), own[1].1.try_recv()), (Err(Closed), Err(Empty)));
        assert_eq!(others.try_recv(), Err(Empty));
        assert!(
            MAX_UNAUTHENTICATED_BODIES as u64 * MAX_UNAUTHENTICATED_BODY_BYTES
                <= UNAUTHENTICATED_QUOTA_BYTES
        );
    }

    #[tokio::test]
    async fn users_can_sign_in_while_memory_is_short() {
        let quotas = BodyQuotas::new(64 << 20, &Memory::new(Some(1)));
        let _slow = quotas.unauthenticated.try_acquire(MAX_UNAUTHENTICATED_BODY_BYTES).unwrap();
        quotas.unauthenticated.try_acquire(MAX_UNAUTHENTICATED_BODY_BYTES).unwrap();
        let _known = quotas.authenticated.try_acquire(1).unwrap();
        assert!(quotas.authenticated.try_acquire(1).is_err());
    }

    #[test]
    fn accepts_small_bodies_one_at_a_time_while_memory_is_short() {
        let quota = BodyQuota::new(64 << 20, Memory::new(Some(1)));
        assert!(quota.try_acquire(MAX_BODY_BYTES_WHEN_MEMORY_SHORT + 1).is_err());
        let mut alone = quota.try_acquire(10).unwrap();
        assert!(quota.try_acquire(10).is_err());
        alone.grow_to(1 << 20).unwrap();
        assert!(alone.grow_to((1 << 20) + 1024).is_err());
        drop(alone);
        quota.try_acquire(MAX_BODY_BYTES_WHEN_MEMORY_SHORT).unwrap();
    }
}
