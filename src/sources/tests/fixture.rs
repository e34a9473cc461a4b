//! A session with a store that tests can break.
use crate::capacity::{Capacity, SessionCapacity};
use crate::handshake::Endpoint;
use crate::message_store::MessageStore;
use crate::packets::ConnectRequest;
use crate::session::{Session, Timings};
use crate::subscriptions::Subscriptions;
use parking_lot::{Condvar, Mutex, MutexGuard};
use penstock_base::error::GatewayError;
use penstock_config::{BrokerUrl, Source, Subscription};
use penstock_service::sources::{
    ConnectionState, Message, NotStored, NotStoredCode, Stored, StoredSession,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The time in which anything that a test waits for must happen, also on a loaded machine.
pub(super) const TIMEOUT: Duration = Duration::from_mins(2);
/// The Business Object of all sessions.
const BUSINESS_OBJECT: &str = "Pumps";

/// Keeps messages in memory.
#[derive(Default)]
pub(super) struct FakeStore {
    state: Mutex<FakeState>,
    opened: Condvar,
}

#[derive(Default)]
pub(super) struct FakeState {
    /// The topic, payload and subscription (the maximum if none matches) of each message, in the order in which they were
    /// stored.
    pub(super) stored: Vec<(String, Vec<u8>, usize)>,
    /// The whole lengths of truncated messages.
    pub(super) truncated: Vec<u64>,
    /// The number of messages of each batch.
    pub(super) batches: Vec<usize>,
    /// How many messages of a batch are stored before one fails, if only some are.
    pub(super) max_stored: Option<usize>,
    /// Why nothing can be stored.
    pub(super) failure: Option<NotStored>,
    /// The number of attempts that failed.
    pub(super) failed: usize,
    /// The bytes of the message about which it was last asked whether it can be stored.
    pub(super) asked_bytes: usize,
    /// Why the session must not connect.
    pub(super) refusal: Option<NotStored>,
    /// Whether storing waits.
    pub(super) is_closed: bool,
    /// Whether a batch waits for that.
    pub(super) is_waiting: bool,
    pub(super) session: StoredSession,
    pub(super) connection: ConnectionState,
    /// The protocol of each connection.
    pub(super) protocols: Vec<&'static str>,
    /// Why connections ended, or were not opened.
    pub(super) causes: Vec<String>,
}

impl FakeStore {
    /// Changes or reads the state.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut FakeState) -> T) -> T {
        let result = work(&mut self.lock());
        self.opened.notify_all();
        result
    }

    /// A test that failed must not let the session fail too.
    fn lock(&self) -> MutexGuard<'_, FakeState> {
        self.state.lock()
    }

    /// Waits until the state is as expected.
    pub(super) async fn wait_until(&self, what: &str, is_reached: impl Fn(&FakeState) -> bool) {
        let begun = Instant::now();
        while !is_reached(&self.lock()) {
            let state = self.lock();
            assert!(
                begun.elapsed() < TIMEOUT,
                "{what}: {} stored, last cause {:?}, {:?}",
                state.stored.len(),
                state.causes.last(),
                state.connection
            );
            drop(state);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until this number of different payloads is stored.
    pub(super) async fn wait_for(&self, count: usize) {
        let what = format!("{count} different messages are stored");
        self.wait_until(&what, |state| {
            state.stored.len() >= count && state.count_different() >= count
        })
        .await;
    }

    /// Returns the stored payloads as text.
    pub(super) fn payloads(&self) -> Vec<String> {
        self.with(|state| {
            let texts = state.stored.iter().map(|(_, payload, _)| String::from_utf8_lossy(payload));
            texts.map(Into::into).collect()
        })
    }
}

impl FakeState {
    /// Returns the number of different payloads that were stored.
    pub(super) fn count_different(&self) -> usize {
        let payloads: std::collections::BTreeSet<&[u8]> =
            self.stored.iter().map(|(_, payload, _)| payload.as_slice()).collect();
        payloads.len()
    }
}

impl MessageStore for FakeStore {
    fn check_connectable(&self) -> Result<(), NotStored> {
        self.with(|state| state.refusal.clone().map_or(Ok(()), Err))
    }

    fn check_storable(&self, bytes: usize) -> Result<(), NotStored> {
        self.with(|state| {
            state.asked_bytes = bytes;
            state.failure.clone().map_or(Ok(()), Err)
        })
    }

    fn store_messages(&self, messages: &[Message]) -> Result<Stored, NotStored> {
        let mut state = self.lock();
        state.is_waiting = true;
        while state.is_closed {
            self.opened.wait(&mut state);
        }
        state.is_waiting = false;
        if let Some(failure) = state.failure.clone() {
            state.failed += 1;
            return Err(failure);
        }
        let messages = messages.get(..state.max_stored.unwrap_or(usize::MAX)).unwrap_or(messages);
        for message in messages {
            let payload = message.payload.to_vec();
            let subscription = message.subscription.unwrap_or(usize::MAX);
            state.stored.push((message.topic.clone(), payload, subscription));
            state.truncated.extend(message.truncated);
        }
        state.batches.push(messages.len());
        Ok(Stored { messages: messages.len(), objects: messages.len() as u64, ..Stored::default() })
    }

    fn load_session(&self) -> Result<StoredSession, GatewayError> {
        Ok(self.with(|state| state.session.clone()))
    }

    fn save_session(&self, session: &StoredSession) -> Result<(), GatewayError> {
        self.with(|state| state.session = session.clone());
        Ok(())
    }

    fn report_connected(&self, protocol: &'static str) {
        self.with(|state| state.protocols.push(protocol));
    }

    fn report_disconnected(&self, cause: &str) {
        self.with(|state| state.causes.push(cause.to_owned()));
    }

    fn update_state(&self, change: &mut dyn FnMut(&mut ConnectionState)) {
        self.with(|state| change(&mut state.connection));
    }
}

/// Returns an error that passes.
pub(super) fn unavailable() -> NotStored {
    NotStored { code: NotStoredCode::Unavailable, message: "the gateway is busy".to_owned() }
}

/// What a test sets of a session.
pub(crate) struct Setup {
    pub(crate) source: Source,
    pub(super) capacity: Capacity,
    pub(super) max_payload_bytes: usize,
    pub(super) client_id: String,
    pub(super) subscribe_timeout: Duration,
}

impl Setup {
    /// A source at this port that subscribes to these topics.
    pub(crate) fn new(port: u16, topics: &[&str]) -> Self {
        let subscription = |topic: &&str| Subscription {
            topic: (*topic).to_owned(),
            business_object: BUSINESS_OBJECT.to_owned(),
            mode: "MERGE",
            is_document: false,
            fields: BTreeMap::new(),
        };
        let source = Source {
            kind: "mqtt",
            url: BrokerUrl { uses_tls: false, host: "127.0.0.1".to_owned(), port },
            client_id: None,
            username: None,
            password: None,
            ca_file: None,
            client_certificate: None,
            client_key: None,
            is_insecure: false,
            session_expiry: Duration::from_hours(1),
            receive_maximum: 1_000,
            subscriptions: topics.iter().map(subscription).collect(),
        };
        let capacity = Capacity::new(8 << 20, 1);
        let client_id = "penstock-test-Pumps".to_owned();
        let subscribe_timeout = Timings::default().subscribe_timeout;
        Self { source, capacity, max_payload_bytes: 1 << 20, client_id, subscribe_timeout }
    }

    /// Returns the capacity of the session.
    fn session_capacity(&self) -> SessionCapacity {
        self.capacity.for_session(self.source.receive_maximum)
    }

    /// Returns what opens connections.
    pub(super) fn endpoint(&self) -> Endpoint {
        let source = self.source.clone();
        Endpoint {
            request: ConnectRequest {
                client_id: self.client_id.clone(),
                username: source.username.clone(),
                password: source.password.clone(),
                is_clean_start: false,
                keep_alive_seconds: 10,
                session_expiry: source.session_expiry,
                receive_maximum: source.receive_maximum,
            },
            source,
            capacity: self.session_capacity(),
            max_payload_bytes: self.max_payload_bytes,
        }
    }

    /// Runs the session until it is stopped.
    pub(super) fn run(&self, store: &Arc<FakeStore>) -> Running {
        let (stop, stopped) = watch::channel(false);
        let session = Session {
            endpoint: self.endpoint(),
            subscriptions: Subscriptions::select(&self.source, BUSINESS_OBJECT),
            store: store.clone(),
            timings: Timings {
                first_connect_delay: Duration::from_millis(20),
                max_connect_delay: Duration::from_millis(200),
                first_store_delay: Duration::from_millis(10),
                max_store_delay: Duration::from_millis(50),
                subscribe_delay: Duration::from_millis(200),
                subscribe_timeout: self.subscribe_timeout,
                ..Timings::default()
            },
            stopped,
        };
        Running { stop, session: tokio::spawn(session.run()) }
    }

    /// Runs the session, and waits until everything is subscribed to.
    pub(super) async fn run_subscribed(&self, store: &Arc<FakeStore>) -> Running {
        let connections = store.with(|state| state.protocols.len());
        let running = self.run(store);
        let topics = Subscriptions::select(&self.source, BUSINESS_OBJECT).topics();
        store
            .wait_until("the session is subscribed", |state| {
                state.protocols.len() > connections
                    && state.session.topics == topics
                    && state.session.pending.is_empty()
            })
            .await;
        running
    }
}

/// A running session.
pub(super) struct Running {
    stop: watch::Sender<bool>,
    session: JoinHandle<()>,
}

impl Running {
    /// Tells the session to stop, and returns a future that waits until it has stopped in order.
    pub(super) fn stop(self) -> impl Future<Output = ()> {
        self.stop.send(true).unwrap();
        async { self.session.await.unwrap() }
    }

    /// Ends it as SIGKILL would, without a farewell.
    pub(super) async fn kill(self) {
        self.session.abort();
        let _ = self.session.await;
    }
}
