//! Request bodies: which are accepted, their size limits, and how much memory all of them use at once.
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
const WHOLE_BODY: Duration = Duration::from_mins(10);
/// The maximum time for a small body.
const SMALL_BODY: Duration = Duration::from_secs(30);
/// The maximum bytes of a small body, which has a few fields.
const SMALL: u64 = 64 << 10;
/// The maximum bytes of a small form, where three characters may encode one.
const FORM: u64 = 3 * SMALL;
/// The bytes of all small bodies at once, of authenticated and of unauthenticated clients.
const KNOWN: u64 = 4 << 20;
const STRANGERS: u64 = 1 << 20;
/// The maximum bytes of a body of an unauthenticated client: an email, a password and a return path,
/// percent-encoded.
const STRANGE: u64 = 10 << 10;
/// Concurrent request bodies of unauthenticated clients, per address (for IPv6 per /64) and in total.
/// Together they fit into their quota, so that none is refused because of the size of others.
const FROM_ONE: usize = 8;
const FROM_ALL: usize = 96;
/// The maximum bytes of a body that is accepted while memory is short.
const ALONE: u64 = 1 << 20;
/// How long the rest of a refused body is read and discarded, so that its sender can read the answer instead
/// of a connection reset.
const DISCARD: Duration = Duration::from_secs(2);

/// Limits the bytes of all bodies of one kind that are in memory at once.
#[derive(Debug)]
pub(super) struct Admission {
    /// One permit is [`Admission::UNIT`] bytes.
    permits: Arc<Semaphore>,
    /// The number of permits.
    all: usize,
    /// `None` for a quota so small that it does not count while memory is short.
    memory: Option<Memory>,
}

/// The quotas for bodies. Small bodies and those of unauthenticated clients have quotas of their own, so that
/// they never take the place of data.
#[derive(Debug)]
pub(super) struct Rooms {
    /// For data and definitions (`service.limits.in-flight`).
    pub(super) data: Admission,
    known: Admission,
    strangers: Admission,
    arriving: Arriving,
}

impl Rooms {
    /// Creates the quotas, with this many bytes for data, for a process with this memory limit.
    pub(super) fn new(data: u64, memory: &Memory) -> Self {
        let room = |bytes| Admission::new(bytes, memory.clone());
        Self {
            data: room(data),
            known: room(KNOWN),
            // Users must be able to sign in when memory is short and another body is arriving.
            strangers: Admission { memory: None, ..room(STRANGERS) },
            arriving: Arriving::default(),
        }
    }
}

/// The part of a quota that one body holds. Dropping it releases it.
#[derive(Debug)]
pub(super) struct Room {
    permits: Arc<Semaphore>,
    held: OwnedSemaphorePermit,
    memory: Option<Memory>,
}

impl Admission {
    const UNIT: u64 = 1024;

    /// Creates a quota of this many bytes for a process with this memory limit.
    pub(super) fn new(bytes: u64, memory: Memory) -> Self {
        let units = usize::try_from(bytes / Self::UNIT).unwrap_or(usize::MAX);
        let all = units.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(all)), all, memory: Some(memory) }
    }

    /// Returns a permit for a body of this many bytes, or 503. While memory is short, small bodies are
    /// accepted one at a time, so that they still make progress.
    pub(super) fn admit(&self, bytes: u64) -> Result<Room, Problem> {
        let is_alone = self.permits.available_permits() == self.all;
        if is_short(self.memory.as_ref()) && (bytes > ALONE || !is_alone) {
            return Err(short());
        }
        // A body of unknown length takes at least one unit.
        let units = u32::try_from(bytes.div_ceil(Self::UNIT).max(1)).unwrap_or(u32::MAX);
        let held = self.permits.clone().try_acquire_many_owned(units).map_err(|_| Self::full())?;
        Ok(Room { permits: self.permits.clone(), held, memory: self.memory.clone() })
    }

    fn full() -> Problem {
        Problem::unavailable(
            1,
            "the bodies of other requests use up the limit (service.limits.in-flight for data); try again",
        )
    }
}

impl Room {
    /// Extends the permit to this many bytes.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let units = (bytes as u64).div_ceil(Admission::UNIT);
        let more = units.saturating_sub(self.held.num_permits() as u64);
        if more > 0 {
            if bytes as u64 > ALONE && is_short(self.memory.as_ref()) {
                return Err(short());
            }
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let more = self.permits.clone().try_acquire_many_owned(more);
            self.held.merge(more.map_err(|_| Admission::full())?);
        }
        Ok(())
    }
}

fn is_short(memory: Option<&Memory>) -> bool {
    memory.is_some_and(|memory| memory.level() == Level::Short)
}

/// 503: the process has used nearly all of its memory limit.
fn short() -> Problem {
    Problem::unavailable(
        5,
        "memory is short (service.limits.memory, or the limit of the gateway's control group): bodies of up \
         to 1 MiB are accepted one at a time, larger ones are not; try again, or send less at once",
    )
}

/// The bodies of unauthenticated clients that are arriving. A new one always gets a slot: if its address, or
/// all of them, use all slots, the oldest body is cut off. So slow clients never prevent others from signing
/// in, from however many addresses they send.
#[derive(Debug, Default)]
struct Arriving(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    next: u64,
    /// In the order in which they began. Dropping the sender cuts the body off.
    bodies: BTreeMap<u64, (Option<IpAddr>, oneshot::Sender<()>)>,
}

/// The slot of one such body. Dropping it frees the slot.
struct Place<'a> {
    arriving: &'a Arriving,
    id: u64,
}

impl Arriving {
    /// Takes a slot. The receiver ends when another body takes the slot.
    fn enter(&self, from: Option<IpAddr>) -> (Place<'_>, oneshot::Receiver<()>) {
        let from = from.map(network::of);
        let (keep, cut_off) = oneshot::channel();
        let mut places = self.places();
        let mut own = places.bodies.iter().filter(|(_, (address, _))| *address == from);
        let slowest = match (own.next(), own.count() + 1) {
            (Some((id, _)), count) if count >= FROM_ONE => Some(*id),
            _ if places.bodies.len() >= FROM_ALL => places.bodies.keys().next().copied(),
            _ => None,
        };
        if let Some(id) = slowest {
            places.bodies.remove(&id);
        }
        let id = places.next;
        places.next += 1;
        places.bodies.insert(id, (from, keep));
        (Place { arriving: self, id }, cut_off)
    }

    // Nothing panics while they are held.
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.arriving.places().bodies.remove(&self.id);
    }
}

/// A body in memory, with its permit.
#[derive(Debug)]
pub(super) struct Whole {
    bytes: Vec<u8>,
    _room: Room,
}

impl Whole {
    /// Returns the bytes, only borrowed. So the code that processes them holds the permit as long as the bytes, on
    /// any thread, even if the client has disconnected.
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
    Lines,
}

/// Returns which of the `taken` media types the request declares. There is no default, so that no browser
/// form can reach a route.
pub(super) fn media_type(req: &Request, taken: &[MediaType]) -> Result<MediaType, Problem> {
    if let Some(coding) = req.headers().get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("Content-Encoding is {}; send the body uncompressed", shown(coding)),
        ));
    }
    let declared = req.headers().get(CONTENT_TYPE);
    let known = declared.and_then(|value| value.to_str().ok()).and_then(read_media_type);
    known.filter(|found| taken.contains(found)).ok_or_else(|| {
        let expected: Vec<_> = taken
            .iter()
            .map(|taken| match taken {
                MediaType::Json => "application/json",
                MediaType::Lines => "application/x-ndjson",
            })
            .collect();
        let found = declared.map_or_else(|| "missing".to_owned(), shown);
        Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("Content-Type is {found}; it must be {} (in UTF-8)", expected.join(" or ")),
        )
    })
}

fn shown(value: &HeaderValue) -> String {
    format!("{:?}", String::from_utf8_lossy(value.as_bytes()))
}

fn read_media_type(text: &str) -> Option<MediaType> {
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
        "application/x-ndjson" => Some(MediaType::Lines),
        _ => None,
    }
}

/// The limits for reading a body.
#[derive(Debug, Clone, Copy)]
struct Terms<'a> {
    room: &'a Admission,
    limit: u64,
    within: Duration,
    /// Whether the whole body needs its permit before it arrives. Otherwise the permit grows with what has
    /// arrived.
    reserves: bool,
}

impl<'a> Terms<'a> {
    fn small(room: &'a Admission, limit: u64) -> Self {
        Self { room, limit, within: SMALL_BODY, reserves: false }
    }
}

/// Reads the whole body of a JSON request, up to `service.limits.body`.
pub(super) async fn json(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    media_type(req, &[MediaType::Json])?;
    whole(req, depot).await
}

/// Reads a whole body whose media type was checked.
pub(super) async fn whole(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    let state = state(depot);
    let (room, limit) = (&state.rooms.data, state.settings.limits.body);
    of_caller(req, depot, Terms { room, limit, within: WHOLE_BODY, reserves: true }).await
}

/// Reads the whole body of a JSON request with a few fields.
pub(super) async fn few(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    media_type(req, &[MediaType::Json])?;
    let state = state(depot);
    of_caller(req, depot, Terms::small(&state.rooms.known, SMALL)).await
}

/// Reads a whole form with a few fields.
pub(super) async fn form(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    let state = state(depot);
    of_caller(req, depot, Terms::small(&state.rooms.known, FORM)).await
}

/// Reads a whole body of a caller, who must still be allowed to use the route when the body has arrived.
async fn of_caller(
    req: &mut Request,
    depot: &mut Depot,
    terms: Terms<'_>,
) -> Result<Whole, Problem> {
    let whole = within(req, terms).await?;
    check_after_body(req, depot)?;
    Ok(whole)
}

/// Reads a body of an unauthenticated client: a form or JSON with a few fields.
pub(super) async fn of_stranger(
    req: &mut Request,
    state: &State,
    origin: &Origin,
) -> Result<Whole, Problem> {
    let rooms = &state.rooms;
    let (_place, cut_off) = rooms.arriving.enter(origin.client);
    tokio::select! {
        biased;
        whole = within(req, Terms::small(&rooms.strangers, STRANGE)) => whole,
        _ = cut_off => Err(Problem::unavailable(
            1,
            "the body was cut off because it arrived slowly and newer requests without a session needed its \
             place; send the request again",
        )),
    }
}

async fn within(req: &mut Request, terms: Terms<'_>) -> Result<Whole, Problem> {
    let mut body = req.take_body();
    match read(&mut body, terms).await {
        Ok(whole) => Ok(whole),
        Err(problem) => {
            // `leave` discards the rest of it.
            req.replace_body(body);
            Err(problem)
        }
    }
}

async fn read(body: &mut ReqBody, terms: Terms<'_>) -> Result<Whole, Problem> {
    use salvo::hyper::body::Body;
    let declared = body.size_hint().exact();
    if declared.is_some_and(|bytes| bytes > terms.limit) {
        return Err(too_large(terms.limit));
    }
    let expected = declared.filter(|_| terms.reserves).unwrap_or_default();
    let mut room = terms.room.admit(expected)?;
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(usize::MAX));
    let deadline = Instant::now() + terms.within;
    while let Some(frame) = timeout_at(deadline, body.frame()).await.map_err(|_| too_slow())? {
        if let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() {
            if (bytes.len() + data.len()) as u64 > terms.limit {
                return Err(too_large(terms.limit));
            }
            room.grow(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Whole { bytes, _room: room })
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
fn too_large(limit: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "the body exceeds the limit of this route ({limit} bytes; service.limits.body for data); \
             send less at once, or application/x-ndjson"
        ),
    )
}

/// Returns the problem of a body that could not be read to its end.
pub(super) fn broken(error: &std::io::Error) -> Problem {
    if error.kind() == ErrorKind::TimedOut {
        too_slow()
    } else {
        Problem::malformed("the body ended before it was complete")
    }
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body arrived too slowly; send it again")
}

/// Discards what a handler has not read of the body, for a limited time, in parallel to the response.
pub(super) fn leave(req: &mut Request) {
    // Reading after `Expect: 100-continue` would request the body that was refused.
    if req.method() != Method::GET && !req.headers().contains_key(EXPECT) {
        discard(req.take_body());
    }
}

/// Discards the rest of a body, for a limited time.
pub(super) fn discard(mut body: ReqBody) {
    use salvo::hyper::body::Body;
    if !body.is_end_stream() {
        tokio::spawn(timeout(
            DISCARD,
            async move { while let Some(Ok(_)) = body.frame().await {} },
        ));
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
            assert_eq!(read_media_type(json), Some(MediaType::Json), "{json}");
        }
        assert_eq!(read_media_type("application/x-ndjson"), Some(MediaType::Lines));
        for bad in ["", "text/plain", "application/json; charset=latin1", "application/json; x"] {
            assert_eq!(read_media_type(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_quota_of_all_bodies_is_limited() {
        let admission = Admission::new(10 * 1024, Memory::new(None));
        let mut first = admission.admit(6 * 1024).unwrap();
        assert!(admission.admit(5 * 1024).is_err());
        first.grow(10 * 1024).unwrap();
        assert!(first.grow(10 * 1024 + 1).is_err());
        assert!(admission.admit(1).is_err());
        drop(first);
        admission.admit(10 * 1024).unwrap();
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
        let admission = Admission::new(2 * 1024, Memory::new(None));
        let terms = Terms { within: Duration::from_millis(50), ..Terms::small(&admission, SMALL) };
        let (mut one, mut other) = (stuck(SMALL), stuck(SMALL));
        // They would exceed the quota together, and each one on its own.
        let (one, other) = tokio::join!(read(&mut one, terms), read(&mut other, terms));
        for refused in [one, other] {
            assert_eq!(refused.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        }
        let refused = read(&mut stuck(SMALL + 1), terms).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        // A body of data needs its whole quota in advance.
        let data = Terms { reserves: true, ..terms };
        let refused = read(&mut stuck(SMALL), data).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn a_new_body_of_an_unauthenticated_client_always_gets_a_slot() {
        let arriving = Arriving::default();
        let address = |n: usize| Some(IpAddr::V4(u32::try_from(n).unwrap().into()));
        let mut held: Vec<_> = (0..FROM_ALL).map(|n| arriving.enter(address(n))).collect();
        assert!(held.iter_mut().all(|(_, cut_off)| cut_off.try_recv() == Err(Empty)));
        let (place, mut cut_off) = arriving.enter(address(1000));
        assert_eq!(held[0].1.try_recv(), Err(Closed));
        assert_eq!((held[1].1.try_recv(), cut_off.try_recv()), (Err(Empty), Err(Empty)));
        // Dropping a slot that was cut off frees no second slot.
        held.remove(0);
        assert_eq!(arriving.places().bodies.len(), FROM_ALL);
        drop((place, held));
        assert!(arriving.places().bodies.is_empty());

        // One address cuts off only its own bodies.
        let (_other, mut others) = arriving.enter(address(1));
        let network = |n: usize| Some(format!("2001:db8::{n:x}").parse().unwrap());
        let mut own: Vec<_> = (0..=FROM_ONE).map(|n| arriving.enter(network(n))).collect();
        assert_eq!((own[0].1.try_recv(), own[1].1.try_recv()), (Err(Closed), Err(Empty)));
        assert_eq!(others.try_recv(), Err(Empty));
        assert!(FROM_ALL as u64 * STRANGE <= STRANGERS);
    }

    #[tokio::test]
    async fn users_can_sign_in_while_memory_is_short() {
        let rooms = Rooms::new(64 << 20, &Memory::new(Some(1)));
        let _slow = rooms.strangers.admit(STRANGE).unwrap();
        rooms.strangers.admit(STRANGE).unwrap();
        let _known = rooms.known.admit(1).unwrap();
        assert!(rooms.known.admit(1).is_err());
    }

    #[test]
    fn accepts_small_bodies_one_at_a_time_while_memory_is_short() {
        let admission = Admission::new(64 << 20, Memory::new(Some(1)));
        assert!(admission.admit(ALONE + 1).is_err());
        let mut alone = admission.admit(10).unwrap();
        assert!(admission.admit(10).is_err());
        alone.grow(1 << 20).unwrap();
        assert!(alone.grow((1 << 20) + 1024).is_err());
        drop(alone);
        admission.admit(ALONE).unwrap();
    }
}
