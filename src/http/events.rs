//! `/api/v1/events`: what happens, as server-sent events.
use super::caller::caller;
use super::problem::Problem;
use super::query::Query;
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::{gateway, state};
use bytes::Bytes;
use futures_util::stream;
use penstock_auth::{Credential, Role};
use penstock_base::events::{Event, Kind, Listener};
use salvo::http::ResBody;
use salvo::http::header::HeaderName;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The media type of the stream.
pub(super) const EVENTS: &str = "text/event-stream";
/// How often a sign of life is sent. At each, and before events are told, the listener is looked at anew.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A listener that takes nothing for so long is cut off.
const SLOW: Duration = Duration::from_secs(30);
/// Who came with an access token, whose end is not known here, comes again with a new one after this.
const WITH_TOKEN: Duration = Duration::from_mins(15);
/// After a break a client waits so long before it comes again.
const RETRY: Duration = Duration::from_secs(2);

/// Tells what happens, for as long as the client listens.
///
/// Each event is a `CloudEvent` in JSON. A client that was away sends the last `id` it has seen as
/// `Last-Event-ID` (browsers do so by themselves) and gets what came after it, as long as that is among
/// the last `service.events.depth` events. Otherwise the first event is one of type
/// `penstock.events.lost`, which comes whatever `types` asks for: read the resources again then. Without
/// the header the stream begins with what happens next. Every 15 s there is a sign of life.
///
/// The first event, and every 15 s one where others came that `types` does not ask for, is of type
/// `penstock.events.position`: its `id` is how far the stream has come, for `Last-Event-ID`. Ignore types that you do
/// not know.
#[endpoint(
    operation_id = "listen",
    tags("Gateway"),
    parameters(
        ("types" = Option<String>, Query, description = "Types of events, separated by commas; all of them when absent."),
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event that was seen."),
    ),
    responses((status_code = 200, description = "A stream without an end.", body = shapes::Event,
        content_type = "text/event-stream")),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["types"])?;
    let kinds = kinds(query.get("types"))?;
    let after = last_event_id(req)?;
    let gateway = gateway(depot)?;
    let listener = gateway.events.listen(after, &kinds).ok_or_else(|| {
        Problem::unavailable(
            HEARTBEAT.as_secs(),
            "as many as service.events.listeners allows listen to events already",
        )
    })?;
    let (sender, receiver) = mpsc::channel(1);
    let stopped = state(depot).stopped();
    let caller = caller(depot).clone();
    let begun = Instant::now();
    let still = move || {
        let is_over =
            matches!(caller.credential, Credential::Bearer { .. }) && begun.elapsed() > WITH_TOKEN;
        !is_over && gateway.auth.still(&caller).is_some_and(|role| role >= Role::User)
    };
    tokio::spawn(async move {
        tokio::select! {
            () = tell(listener, &sender, still) => {}
            () = sender.closed() => {}
            () = stopped => {}
        }
    });
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (Ok::<_, Infallible>(piece), receiver))
    });
    Ok(Reply::stream(EVENTS, ResBody::stream(pieces))
        // nginx would gather the stream into its buffers.
        .header(HeaderName::from_static("x-accel-buffering"), "no"))
}

/// Tells what happens until nobody takes it any more, or the listener may not hear it any more.
async fn tell(mut listener: Listener, sender: &Sender<Bytes>, still: impl Fn() -> bool) {
    let mut told = listener.at();
    // An id without data would do (HTML Standard, 9.2.6), but some clients dispatch that as an event without data.
    let mut piece = format!("retry: {}\n{}", RETRY.as_millis(), frames(&[listener.position()]));
    let mut beat = interval(HEARTBEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    loop {
        if !matches!(timeout(SLOW, sender.send(piece.into())).await, Ok(Ok(()))) {
            return;
        }
        piece = tokio::select! {
            biased;
            _ = beat.tick() => sign_of_life(&mut told, &listener),
            events = listener.next() => {
                told = events.last().map_or(told, |event| event.id);
                frames(&events)
            }
        };
        if !still() {
            return;
        }
    }
}

/// Returns a comment, or the position where it has moved by events that were not asked for: the client need not be
/// told of those as lost.
fn sign_of_life(told: &mut u64, listener: &Listener) -> String {
    if *told == listener.at() {
        return ":\n\n".to_owned();
    }
    *told = listener.at();
    frames(&[listener.position()])
}

fn frames(events: &[Event]) -> String {
    let mut text = String::new();
    for Event { id, kind, json } in events {
        let _ = write!(text, "id: {id}\nevent: {}\ndata: {json}\n\n", kind.name());
    }
    text
}

fn kinds(types: Option<&str>) -> Result<Vec<Kind>, Problem> {
    let Some(types) = types else { return Ok(Kind::ALL.to_vec()) };
    let named = |name: &str| Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let kinds = types.split(',').map(|name| {
        named(name.trim()).ok_or_else(|| {
            Problem::malformed(format!(
                "the query parameter types names {name:?}; the types are {}",
                Kind::ALL.map(Kind::name).join(", ")
            ))
        })
    });
    kinds.collect()
}

fn last_event_id(req: &Request) -> Result<Option<u64>, Problem> {
    let Some(value) = req.headers().get("last-event-id") else { return Ok(None) };
    let digits = |text: &&str| text.bytes().all(|b| b.is_ascii_digit());
    let id = value.to_str().ok().filter(digits);
    match id.and_then(|text| text.parse().ok()) {
        Some(id) => Ok(Some(id)),
        None => Err(Problem::malformed(
            "the header Last-Event-ID is no identifier of an event here; leave it out to begin anew",
        )),
    }
}
