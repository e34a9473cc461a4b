//! `/api/v1/events`: events as server-sent events.
use bytes::Bytes;
use futures_util::stream;
use penstock_auth::Credential;
use penstock_base::events::{Audience, Event, EventKind, Listener};
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::sending::EVENT_STREAM_MEDIA_TYPE;
use penstock_resources::event;
use penstock_service::changes::is_in_audience;
use salvo::Request;
use salvo::http::ResBody;
use salvo::http::header::HeaderName;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{MissedTickBehavior, interval, timeout};

/// The interval of heartbeats. At each one, and before events are sent, the listener is authorized again.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// A listener that reads nothing for this long is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum time of a stream with an access token. The stream does not know when the token expires, so the
/// client has to reconnect with a valid one.
const MAX_TOKEN_STREAM_TIME: Duration = Duration::from_mins(15);
/// How long a client waits before it reconnects.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/events", User, listen_to_events)
            .describe(
                "listen",
                "Gateway",
                "Streams events for as long as the client listens.\n\n\
                 Events about changes under review are sent only to those who may see the change.\n\n\
                 Each event is a `CloudEvent` in JSON. A client that reconnects sends the last `id` it has seen as \
                 `Last-Event-ID`; browsers do so automatically. It gets the events after that one, if it is among the \
                 last `service.events.depth` events.\n\n\
                 Otherwise the first event is of type `penstock.events.lost`, whatever `types` selects: read the \
                 resources again then. Without the header the stream begins with the next event. Every 15 s there is \
                 a heartbeat.\n\n\
                 The first event is of type `penstock.events.position`. So is one every 15 s if there were events \
                 that `types` does not select. Its `id` is the current position in the stream, for `Last-Event-ID`. \
                 Ignore types that you do not know.",
            )
            .header("Last-Event-ID", "The `id` of the last event that the client has seen.")
            .empty_answer(200, "An endless stream.")
            .answer_as::<event::Event>(EVENT_STREAM_MEDIA_TYPE)
            .problems(&[400]),
    ]
}

penstock_http::parameters! {
    /// Which events are sent.
    struct EventsQuery {
        "types" => types: Option<String>, "Types of events, separated by commas; all types when absent.";
    }
}

async fn listen_to_events(call: Call<'_>, query: EventsQuery) -> ReplyResult {
    let kinds = parse_kinds(query.types.as_deref())?;
    let after = read_last_event_id(call.req)?;
    let (gateway, caller) = (call.gateway()?, call.caller().clone());
    let (of_caller, by) = (gateway.clone(), caller.clone());
    let is_member = move |audience: &Audience| is_in_audience(&of_caller, &by, audience);
    let listener = gateway.events.listen_as(caller.id(), after, &kinds, is_member);
    let listener = listener.ok_or_else(|| {
        Problem::unavailable(
            HEARTBEAT_INTERVAL.as_secs(),
            "the number of listeners has reached service.events.listeners, or the half of it that one account may \
             have; try again later",
        )
    })?;
    let (sender, receiver) = mpsc::channel(1);
    let stopped = call.state().wait_for_stop();
    let begun = Instant::now();
    let still = move || {
        let is_over = matches!(caller.credential, Credential::Bearer { .. })
            && begun.elapsed() > MAX_TOKEN_STREAM_TIME;
        !is_over && caller.with_current_role().is_ok()
    };
    tokio::spawn(async move {
        tokio::select! {
            () = send_events(listener, &sender, still) => {}
            () = sender.closed() => {}
            () = stopped => {}
        }
    });
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (Ok::<_, Infallible>(piece), receiver))
    });
    Ok(Reply::stream(EVENT_STREAM_MEDIA_TYPE, ResBody::stream(pieces))
        // nginx would buffer the stream.
        .with_header(HeaderName::from_static("x-accel-buffering"), "no"))
}

/// Sends events until the client disconnects or the listener is no longer authorized.
async fn send_events(mut listener: Listener, sender: &Sender<Bytes>, still: impl Fn() -> bool) {
    let mut reported_id = listener.last_id();
    // By the HTML Standard (9.2.6) a block with only an id sets the position, but some clients dispatch it as an
    // event without data. So the position is an event of its own.
    let mut piece = format!(
        "retry: {}\n{}",
        RETRY_DELAY.as_millis(),
        format_events(&[listener.position_event()])
    );
    let mut beat = interval(HEARTBEAT_INTERVAL);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    loop {
        if !matches!(timeout(SEND_TIMEOUT, sender.send(piece.into())).await, Ok(Ok(()))) {
            return;
        }
        piece = tokio::select! {
            biased;
            _ = beat.tick() => heartbeat(&mut reported_id, &listener),
            events = listener.next() => {
                reported_id = events.last().map_or(reported_id, |event| event.id);
                format_events(&events)
            }
        };
        if !still() {
            return;
        }
    }
}

/// Returns a comment, or a position event if events that the client did not select have moved the position. So
/// these events do not count as lost when the client reconnects.
fn heartbeat(reported_id: &mut u64, listener: &Listener) -> String {
    if *reported_id == listener.last_id() {
        return ":\n\n".to_owned();
    }
    *reported_id = listener.last_id();
    format_events(&[listener.position_event()])
}

fn format_events(events: &[Event]) -> String {
    let mut text = String::new();
    for Event { id, kind, json, .. } in events {
        let _ = write!(text, "id: {id}\nevent: {}\ndata: {json}\n\n", kind.name());
    }
    text
}

fn parse_kinds(types: Option<&str>) -> Result<Vec<EventKind>, Problem> {
    let Some(types) = types else { return Ok(EventKind::ALL.to_vec()) };
    let named = |name: &str| EventKind::ALL.into_iter().find(|kind| kind.name() == name);
    let kinds = types.split(',').map(|name| {
        named(name.trim()).ok_or_else(|| {
            Problem::malformed(format!(
                "the query parameter types names {name:?}; the types are {}",
                EventKind::ALL.map(EventKind::name).join(", ")
            ))
        })
    });
    kinds.collect()
}

fn read_last_event_id(req: &Request) -> Result<Option<u64>, Problem> {
    let Some(value) = req.headers().get("last-event-id") else { return Ok(None) };
    let digits = |text: &&str| text.bytes().all(|b| b.is_ascii_digit());
    let id = value.to_str().ok().filter(digits);
    match id.and_then(|text| text.parse().ok()) {
        Some(id) => Ok(Some(id)),
        None => Err(Problem::malformed(
            "the header Last-Event-ID is not the id of an event of this gateway; leave it out to start with the next event",
        )),
    }
}
