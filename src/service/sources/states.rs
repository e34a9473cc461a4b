//! The state of each connection of the sources. The connections write it, and clients read it.
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use penstock_base::time;
use penstock_config::Source;
use penstock_resources::source::SourceTest;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The states of all connections of all sources.
#[derive(Default)]
pub struct SourceStates {
    /// By source and Business Object, as the settings name them.
    connections: Mutex<BTreeMap<(String, String), Connection>>,
    tester: Mutex<Option<Arc<ConnectionTester>>>,
    /// Held while a batch is stored although memory is short.
    store_while_memory_short: Mutex<()>,
}

/// A connection and its rate.
#[derive(Debug, Default)]
struct Connection {
    state: ConnectionState,
    rate: Rate,
}

/// The number of messages in the running minute and in the one before.
#[derive(Debug, Default)]
struct Rate {
    /// When the running minute began.
    begun: Option<Instant>,
    running: u64,
    before: u64,
}

impl Rate {
    const PERIOD: Duration = Duration::from_mins(1);

    /// Begins another minute if the running one has ended.
    fn advance(&mut self, now: Instant) {
        let Some(begun) = self.begun else {
            self.begun = Some(now);
            return;
        };
        let passed = now.saturating_duration_since(begun);
        if passed >= 2 * Self::PERIOD {
            *self = Self { begun: Some(now), running: 0, before: 0 };
        } else if passed >= Self::PERIOD {
            *self = Self { begun: Some(begun + Self::PERIOD), running: 0, before: self.running };
        }
    }

    fn add(&mut self, now: Instant, messages: u64) {
        self.advance(now);
        self.running += messages;
    }

    /// Returns the number of messages in the 60 s before `now`, as if those of the minute before had come evenly.
    fn per_minute(&mut self, now: Instant) -> u64 {
        self.advance(now);
        let passed = self.begun.map_or(Self::PERIOD, |begun| now.saturating_duration_since(begun));
        let rest = Self::PERIOD.saturating_sub(passed).as_millis();
        let earlier = u128::from(self.before) * rest / Self::PERIOD.as_millis();
        self.running.saturating_add(u64::try_from(earlier).unwrap_or(u64::MAX))
    }
}

/// Tests the connection of the source with this name.
pub type ConnectionTester =
    dyn Fn(String) -> Pin<Box<dyn Future<Output = SourceTest> + Send>> + Send + Sync;

/// The state of the connection of one source for one Business Object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionState {
    /// The client id of its session.
    pub client_id: String,
    /// Since when it is connected; `None` while it is not.
    pub connected_since: Option<Timestamp>,
    /// The version of the protocol of the last connection: `5` or `3.1.1`.
    pub protocol: Option<&'static str>,
    /// The number of messages received since the start, repeated ones included.
    pub received: u64,
    /// The number of messages acknowledged since the start.
    pub acknowledged: u64,
    /// The number of messages that became dead letters since the start.
    pub dead_letters: u64,
    /// The number of messages, and of objects in them, that were acknowledged and not kept since the start: of removed
    /// subscriptions, or invalid ones beyond `service.limits.rejected.bytes`.
    pub dropped: u64,
    /// The number of attempts to store messages that failed with an internal error since a message was stored.
    pub internal_failures: u32,
    /// When the broker last had no session although an earlier connection had one.
    pub session_lost_at: Option<Timestamp>,
    /// How long the broker keeps the session without a connection, if that is shorter than `session-expiry`.
    pub shorter_expiry: Option<Duration>,
    /// Why another client with the same client id probably took the last connection; `None` if it ended otherwise.
    pub contested: Option<ConnectionError>,
    /// When the last message was received.
    pub last_message_at: Option<Timestamp>,
    /// The number of messages that wait to be stored.
    pub waiting_messages: u64,
    /// The bytes of these messages.
    pub waiting_bytes: u64,
    /// Why it has no connection, or why its messages cannot be stored. `None` once that succeeds again.
    pub error: Option<ConnectionError>,
}

/// The last error of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionError {
    /// When it happened.
    pub at: Timestamp,
    /// What failed, and why.
    pub message: String,
}

impl ConnectionError {
    /// Creates an error of now.
    pub fn now(message: impl Into<String>) -> Self {
        Self { at: Timestamp::now(), message: message.into() }
    }
}

impl SourceStates {
    /// Creates the states of connections that have not been opened yet.
    pub fn new(sources: &BTreeMap<String, Source>) -> Self {
        let mut connections = BTreeMap::new();
        for (name, source) in sources {
            for business_object in source.business_objects() {
                let key = (name.clone(), business_object.to_owned());
                connections.insert(key, Connection::default());
            }
        }
        Self { connections: Mutex::new(connections), ..Self::default() }
    }

    /// Returns the permit to store a batch although memory is short; `None` while another batch has it.
    pub(super) fn try_store_while_memory_short(&self) -> Option<MutexGuard<'_, ()>> {
        self.store_while_memory_short.try_lock()
    }

    /// Changes the state of a connection.
    pub fn update(
        &self,
        source: &str,
        business_object: &str,
        change: impl FnOnce(&mut ConnectionState),
    ) {
        let key = (source.to_owned(), business_object.to_owned());
        let mut connections = self.lock_connections();
        let Connection { state, rate } = connections.entry(key).or_default();
        let before = state.received;
        change(state);
        rate.add(Instant::now(), state.received.saturating_sub(before));
    }

    /// Returns the states of the connections of a source, by Business Object, and how many messages came in the last
    /// minute.
    pub fn list(&self, source: &str) -> Vec<(String, ConnectionState, u64)> {
        let now = Instant::now();
        let mut connections = self.lock_connections();
        let own = connections.iter_mut().filter(|((name, _), _)| name == source);
        own.map(|((_, business_object), Connection { state, rate })| {
            (business_object.clone(), state.clone(), rate.per_minute(now))
        })
        .collect()
    }

    /// Sets what tests connections.
    pub fn set_tester(&self, tester: Arc<ConnectionTester>) {
        *self.tester.lock() = Some(tester);
    }

    pub(super) fn tester(&self) -> Option<Arc<ConnectionTester>> {
        self.tester.lock().clone()
    }

    fn lock_connections(&self) -> MutexGuard<'_, BTreeMap<(String, String), Connection>> {
        self.connections.lock()
    }
}

impl fmt::Debug for SourceStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceStates")
            .field("connections", &*self.lock_connections())
            .finish_non_exhaustive()
    }
}

/// The data of an event about a connection.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublishedConnection<'a> {
    source: &'a str,
    business_object: &'a str,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

impl<'a> PublishedConnection<'a> {
    pub(super) fn now(source: &'a str, business_object: &'a str, cause: Option<&'a str>) -> Self {
        Self { source, business_object, at: time::now_rfc3339(), cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let (mut rate, begin) = (Rate::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        rate.add(at(0), 60);
        assert_eq!(rate.per_minute(at(30)), 60);
        assert_eq!(rate.per_minute(at(75)), 45);
        rate.add(at(90), 5);
        assert_eq!(rate.per_minute(at(90)), 35);
        assert_eq!(rate.per_minute(at(120)), 5);
        assert_eq!(rate.per_minute(at(300)), 0);
    }
}
