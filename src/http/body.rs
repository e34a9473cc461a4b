//! Request bodies: what is taken, how much of it, and how much of all of them at once.
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

/// A whole body must have come within this time, however slowly its bytes drip.
const WHOLE_BODY: Duration = Duration::from_mins(10);
/// The same of one that is small.
const SMALL_BODY: Duration = Duration::from_secs(30);
/// Bytes of a small body: of some few fields.
const SMALL: u64 = 64 << 10;
/// Bytes of such a one as a form, where three characters may stand for one.
const FORM: u64 = 3 * SMALL;
/// Bytes of all small bodies at once of those who are known, and of strangers.
const KNOWN: u64 = 4 << 20;
const STRANGERS: u64 = 1 << 20;
/// Bytes of a body of an unauthenticated client: of an email, a password and a path to go on to, percent-encoded.
const STRANGE: u64 = 10 << 10;
/// Bodies of unauthenticated clients that are on their way at once from one address (for IPv6 its /64), and
/// from all. Together they fit into their room, so that none is refused for the size of others.
const FROM_ONE: usize = 8;
const FROM_ALL: usize = 96;
/// Bytes of a body that is taken while memory is short.
const ALONE: u64 = 1 << 20;
/// For so long a refused body is read and thrown away, so that its sender gets to read the answer
/// instead of a reset connection.
const DISCARD: Duration = Duration::from_secs(2);

/// Bounds the bytes of all bodies of a kind that are in memory at once.
#[derive(Debug)]
pub(super) struct Admission {
    /// One permit is [`Admission::UNIT`] bytes.
    permits: Arc<Semaphore>,
    /// How many there are.
    all: usize,
    /// `None` for a room so small that it counts for nothing while memory is short.
    memory: Option<Memory>,
}

/// The rooms for bodies. Those that anybody may send have one of their own, so that none of them takes the
/// place of data; strangers have another.
#[derive(Debug)]
pub(super) struct Rooms {
    /// For data and definitions (`service.limits.in-flight`).
    pub(super) data: Admission,
    known: Admission,
    strangers: Admission,
    arriving: Arriving,
}

impl Rooms {
    /// So many bytes for data, of a process that has this memory.
    pub(super) fn new(data: u64, memory: &Memory) -> Self {
        let room = |bytes| Admission::new(bytes, memory.clone());
        Self {
            data: room(data),
            known: room(KNOWN),
            // Nobody may be kept from signing in because memory is short and another body is on its way.
            strangers: Admission { memory: None, ..room(STRANGERS) },
            arriving: Arriving::default(),
        }
    }
}

/// The room that one body has been given; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Room {
    permits: Arc<Semaphore>,
    held: OwnedSemaphorePermit,
    memory: Option<Memory>,
}

impl Admission {
    const UNIT: u64 = 1024;

    /// Room for so many bytes, of a process that has this memory.
    pub(super) fn new(bytes: u64, memory: Memory) -> Self {
        let units = usize::try_from(bytes / Self::UNIT).unwrap_or(usize::MAX);
        let all = units.clamp(1, Semaphore::MAX_PERMITS);
        Self { permits: Arc::new(Semaphore::new(all)), all, memory: Some(memory) }
    }

    /// Room for a body of so many bytes, or 503. While memory is short small bodies are taken one at a time,
    /// so that what arrives then still gets on.
    pub(super) fn admit(&self, bytes: u64) -> Result<Room, Problem> {
        let is_alone = self.permits.available_permits() == self.all;
        if is_short(self.memory.as_ref()) && (bytes > ALONE || !is_alone) {
            return Err(short());
        }
        // One of unknown length counts, too.
        let units = u32::try_from(bytes.div_ceil(Self::UNIT).max(1)).unwrap_or(u32::MAX);
        let held = self.permits.clone().try_acquire_many_owned(units).map_err(|_| Self::full())?;
        Ok(Room { permits: self.permits.clone(), held, memory: self.memory.clone() })
    }

    fn full() -> Problem {
        Problem::unavailable(
            1,
            "the bodies of other requests fill the room for them (for data service.limits.in-flight); try again",
        )
    }
}

impl Room {
    /// Makes it as large as these bytes need.
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

/// 503: the process has used up nearly all the memory that it may have.
fn short() -> Problem {
    Problem::unavailable(
        5,
        "memory is short (service.limits.memory, or the limit of the gateway's control group): bodies of up \
         to 1 MiB are taken one at a time, larger ones not; try again, or send less at once",
    )
}

/// The bodies of unauthenticated clients that are on their way. A new one always finds a place: where an
/// address, or all of them, have as many as they may, the body that has taken longest is cut off. So clients
/// that send slowly, from however many addresses, keep nobody from signing in.
#[derive(Debug, Default)]
struct Arriving(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    next: u64,
    /// By the order in which they began; dropping the sender cuts the body off.
    bodies: BTreeMap<u64, (Option<IpAddr>, oneshot::Sender<()>)>,
}

/// The place of one such body, until this is dropped.
struct Place<'a> {
    arriving: &'a Arriving,
    id: u64,
}

impl Arriving {
    /// Takes a place. The receiver ends when the body has to make room for another one.
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

/// A body in memory, and the room that it takes.
#[derive(Debug)]
pub(super) struct Whole {
    bytes: Vec<u8>,
    _room: Room,
}

impl Whole {
    /// What came. Only borrowed: whoever works on it, on whatever thread, holds the room as long as the bytes,
    /// also when the client has gone away meanwhile.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a route takes as its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    /// `application/json`
    Json,
    /// `application/x-ndjson`
    Lines,
}

/// Which of the `taken` media types the request declares: none is taken for granted, so that no
/// browser form can reach a route.
pub(super) fn media_type(req: &Request, taken: &[MediaType]) -> Result<MediaType, Problem> {
    if let Some(coding) = req.headers().get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "Content-Encoding is {}; send the body as it is, without compression",
                shown(coding)
            ),
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

/// What is taken of a body.
#[derive(Debug, Clone, Copy)]
struct Terms<'a> {
    room: &'a Admission,
    limit: u64,
    within: Duration,
    /// Whether it has its room before it comes, all of it. Else room is taken up by what has come.
    reserves: bool,
}

impl<'a> Terms<'a> {
    fn small(room: &'a Admission, limit: u64) -> Self {
        Self { room, limit, within: SMALL_BODY, reserves: false }
    }
}

/// Reads the whole body of a JSON request, no more of it than `service.limits.body`.
pub(super) async fn json(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    media_type(req, &[MediaType::Json])?;
    whole(req, depot).await
}

/// Reads a whole body whose media type has been looked at.
pub(super) async fn whole(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    let state = state(depot);
    let (room, limit) = (&state.rooms.data, state.settings.limits.body);
    of_caller(req, depot, Terms { room, limit, within: WHOLE_BODY, reserves: true }).await
}

/// Reads the whole body of a JSON request of some few fields.
pub(super) async fn few(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    media_type(req, &[MediaType::Json])?;
    let state = state(depot);
    of_caller(req, depot, Terms::small(&state.rooms.known, SMALL)).await
}

/// Reads a whole form of some few fields.
pub(super) async fn form(req: &mut Request, depot: &mut Depot) -> Result<Whole, Problem> {
    let state = state(depot);
    of_caller(req, depot, Terms::small(&state.rooms.known, FORM)).await
}

/// Reads a whole body of a caller, who must still be allowed to use the route when the body has come.
async fn of_caller(
    req: &mut Request,
    depot: &mut Depot,
    terms: Terms<'_>,
) -> Result<Whole, Problem> {
    let whole = within(req, terms).await?;
    check_after_body(req, depot)?;
    Ok(whole)
}

/// Reads what a stranger may send: a form or JSON of some few fields.
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
            "the body was cut off because it came slowly and newer requests without a session needed its \
             place; send the request again",
        )),
    }
}

async fn within(req: &mut Request, terms: Terms<'_>) -> Result<Whole, Problem> {
    let mut body = req.take_body();
    match read(&mut body, terms).await {
        Ok(whole) => Ok(whole),
        Err(problem) => {
            // What is left of it is thrown away by `leave`.
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

/// 413: a line of NDJSON is over the limit.
pub(super) fn line_too_large(limit: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "a line is longer than service.limits.body allows ({limit} bytes); an object must fit \
             into one line"
        ),
    )
}

/// 413: a body is over the limit.
fn too_large(limit: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "the body is longer than is allowed here ({limit} bytes; service.limits.body for data); \
             send less at once, or application/x-ndjson"
        ),
    )
}

/// The body could not be read to its end.
pub(super) fn broken(error: &std::io::Error) -> Problem {
    if error.kind() == ErrorKind::TimedOut {
        too_slow()
    } else {
        Problem::malformed("the body ended before it was whole")
    }
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body came too slowly; send it again")
}

/// Throws away what a handler has left of the body, for a while, beside the answer.
pub(super) fn leave(req: &mut Request) {
    // Reading after `Expect: 100-continue` would ask for the very body that was refused.
    if req.method() != Method::GET && !req.headers().contains_key(EXPECT) {
        discard(req.take_body());
    }
}

/// Throws away what is left of a body, for a while.
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
    fn media_types_are_read_with_their_parameters() {
        for json in ["application/json", "Application/JSON; charset=UTF-8", "application/json;"] {
            assert_eq!(read_media_type(json), Some(MediaType::Json), "{json}");
        }
        assert_eq!(read_media_type("application/x-ndjson"), Some(MediaType::Lines));
        for bad in ["", "text/plain", "application/json; charset=latin1", "application/json; x"] {
            assert_eq!(read_media_type(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_room_of_all_bodies_is_bounded() {
        let admission = Admission::new(10 * 1024, Memory::new(None));
        let mut first = admission.admit(6 * 1024).unwrap();
        assert!(admission.admit(5 * 1024).is_err());
        first.grow(10 * 1024).unwrap();
        assert!(first.grow(10 * 1024 + 1).is_err());
        assert!(admission.admit(1).is_err());
        drop(first);
        admission.admit(10 * 1024).unwrap();
    }

    /// A body that says its length, and of which no more than a byte comes.
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
    async fn a_small_body_takes_the_room_of_what_has_come_and_has_little_time() {
        let admission = Admission::new(2 * 1024, Memory::new(None));
        let terms = Terms { within: Duration::from_millis(50), ..Terms::small(&admission, SMALL) };
        let (mut one, mut other) = (stuck(SMALL), stuck(SMALL));
        // They would not fit beside each other, nor even alone.
        let (one, other) = tokio::join!(read(&mut one, terms), read(&mut other, terms));
        for refused in [one, other] {
            assert_eq!(refused.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        }
        let refused = read(&mut stuck(SMALL + 1), terms).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        // What is for data has its room before it comes.
        let data = Terms { reserves: true, ..terms };
        let refused = read(&mut stuck(SMALL), data).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[tokio::test]
    async fn a_new_body_of_an_unauthenticated_client_finds_a_place_whoever_holds_the_others() {
        let arriving = Arriving::default();
        let address = |n: usize| Some(IpAddr::V4(u32::try_from(n).unwrap().into()));
        let mut held: Vec<_> = (0..FROM_ALL).map(|n| arriving.enter(address(n))).collect();
        assert!(held.iter_mut().all(|(_, cut_off)| cut_off.try_recv() == Err(Empty)));
        let (place, mut cut_off) = arriving.enter(address(1000));
        assert_eq!(held[0].1.try_recv(), Err(Closed));
        assert_eq!((held[1].1.try_recv(), cut_off.try_recv()), (Err(Empty), Err(Empty)));
        // Dropping one that was cut off frees no second place.
        held.remove(0);
        assert_eq!(arriving.places().bodies.len(), FROM_ALL);
        drop((place, held));
        assert!(arriving.places().bodies.is_empty());

        // One address cuts off its own alone.
        let (_other, mut others) = arriving.enter(address(1));
        let network = |n: usize| Some(format!("2001:db8::{n:x}").parse().unwrap());
        let mut own: Vec<_> = (0..=FROM_ONE).map(|n| arriving.enter(network(n))).collect();
        assert_eq!((own[0].1.try_recv(), own[1].1.try_recv()), (Err(Closed), Err(Empty)));
        assert_eq!(others.try_recv(), Err(Empty));
        assert!(FROM_ALL as u64 * STRANGE <= STRANGERS);
    }

    #[tokio::test]
    async fn memory_that_is_short_keeps_nobody_from_signing_in() {
        let rooms = Rooms::new(64 << 20, &Memory::new(Some(1)));
        let _slow = rooms.strangers.admit(STRANGE).unwrap();
        rooms.strangers.admit(STRANGE).unwrap();
        let _known = rooms.known.admit(1).unwrap();
        assert!(rooms.known.admit(1).is_err());
    }

    #[test]
    fn while_memory_is_short_small_bodies_are_taken_one_at_a_time() {
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
