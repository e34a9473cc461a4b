//! Brokers that break the protocol, or that are hostile. Each one follows a script.
use super::fixture::{FakeStore, Setup};
use super::proxy::split_packets;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// CONNACK of MQTT 5, with a keep-alive interval of 2 s.
const ACCEPTED: &[u8] = &[0x20, 6, 0, 0, 3, 0x13, 0, 2];
/// CONNACK of MQTT 3.1.1. It also refuses MQTT 5.
const ACCEPTED_V311: &[u8] = &[0x20, 2, 0, 0];
/// SUBACK for the first packet with one topic filter.
const SUBSCRIBED: &[u8] = &[0x90, 4, 0, 1, 0, 1];
/// In place of a packet: the broker closes the connection.
const CLOSE: &[u8] = b"close";
const PINGREQ: u8 = 0xC0;
const PINGRESP: &[u8] = &[0xD0, 0];

/// A broker that sends the next packet of its script for each packet that it gets, and answers every PINGREQ.
struct ScriptedBroker {
    port: u16,
    /// The first bytes of each connection.
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    running: JoinHandle<()>,
}

impl ScriptedBroker {
    async fn start(script: &[&[u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let script: Vec<Vec<u8>> = script.iter().map(|packet| packet.to_vec()).collect();
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = received.clone();
        let running = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut script = script.clone().into_iter();
                let (mut input, mut answered) = (Vec::new(), 0);
                // The gateway may close the connection at any time.
                'open: while stream.read_buf(&mut input).await.is_ok_and(|bytes| bytes > 0) {
                    for (first, _) in split_packets(&input).into_iter().skip(answered) {
                        answered += 1;
                        let answer = match first {
                            PINGREQ => Some(PINGRESP.to_vec()),
                            _ => script.next(),
                        };
                        if answer.as_deref() == Some(CLOSE) {
                            break 'open;
                        }
                        let _ = stream.write_all(&answer.unwrap_or_default()).await;
                    }
                }
                shared.lock().push(input);
            }
        });
        Self { port, received, running }
    }

    /// Runs a session until its connection ends. Returns why it ended.
    async fn end_connection(script: &[&[u8]]) -> String {
        let broker = Self::start(script).await;
        let store = Arc::new(FakeStore::default());
        let mut setup = Setup::new(broker.port, &["plant/#"]);
        // Only a script without another packet waits for it.
        if script.last().is_some_and(|packet| packet.is_empty()) {
            setup.subscribe_timeout = Duration::from_secs(1);
        }
        let running = setup.run(&store);
        store.wait_until("the connection ends", |state| !state.causes.is_empty()).await;
        running.stop().await;
        store.with(|state| state.causes.remove(0))
    }
}

impl Drop for ScriptedBroker {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Returns a packet with this body.
fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let (high, low) = (body.len() / 128, body.len() % 128);
    let length = [u8::try_from(low).unwrap() | 0x80, u8::try_from(high).unwrap()];
    [&[first][..], &length, body].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_a_broker_that_breaks_the_protocol_ends_with_the_reason() {
    let long_control = packet(0x90, &[0; 5_000]);
    // The reason code, the length of the properties, and the reason string of 4,000 bytes (MQTT 5, 3.14.2).
    let reason = [&[0x8B, 0xA3, 0x1F, 0x1F, 0x0F, 0xA0][..], &[b'x'; 4_000]].concat();
    let disconnect = packet(0xE0, &reason);
    for (script, expected) in [
        (&[&[0x32, 7, 0, 1, b'a', 0, 1, 0, b'x'][..]][..], "it comes before CONNACK"),
        (&[ACCEPTED, &[0x34, 7, 0, 1, b'a', 0, 1, 0, b'x']], "a higher QoS than subscribed"),
        (&[ACCEPTED, &[0x30, 3, 0, 0, 0]], "a message has no topic"),
        (&[ACCEPTED, &[0xF0, 2, 0x18, 0]], "does not belong there"),
        (&[ACCEPTED, &long_control], "it is too long"),
        (&[ACCEPTED, &disconnect], "the broker shuts down (\"xxx"),
        (&[ACCEPTED, &[0x90, 5, 0, 1, 0, 1, 1]], "does not belong to a subscription"),
        (&[ACCEPTED, b""], "has not answered SUBSCRIBE or UNSUBSCRIBE for 1 s"),
    ] {
        let cause = ScriptedBroker::end_connection(script).await;
        assert!(cause.contains(expected) && cause.len() < 300, "{expected}: {cause}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_client_with_the_same_client_id_is_named() {
    // DISCONNECT with the reason code 0x8E, and closings without a reason, as brokers of MQTT 3.1.1 do it.
    let taken_over: &[u8] = &[0xE0, 2, 0x8E, 0];
    for (accepted, end, expected) in [
        (ACCEPTED, taken_over, "connected with the same client id: \"penstock-test-Pumps\""),
        (ACCEPTED_V311, CLOSE, "another client uses the client id \"penstock-test-Pumps\""),
    ] {
        let broker = ScriptedBroker::start(&[accepted, end]).await;
        let store = Arc::new(FakeStore::default());
        let running = Setup::new(broker.port, &["plant/#"]).run(&store);
        let is_named = |cause: &String| cause.contains(expected) && cause.contains("gateway-id");
        store.wait_until(expected, |state| state.causes.iter().any(is_named)).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_takes_mqtt_5_for_3_1_1_gets_3_1_1() {
    let broker = ScriptedBroker::start(&[ACCEPTED_V311]).await;
    let setup = Setup::new(broker.port, &["plant/#"]);
    let opened = setup.endpoint().open(false).await.map_err(|why| panic!("{why}"));
    assert_eq!(opened.unwrap().codec.protocol().name(), "3.1.1");
    // The level of the protocol follows its name.
    assert_eq!(broker.received.lock()[0][8], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_no_subscription_matches_is_stored_and_not_dropped() {
    let message = [0x32, 13, 0, 7, b'$', b'q', b'/', b'h', b'a', b'l', b'l', 0, 1, 0, b'x'];
    let both = [SUBSCRIBED, &message].concat();
    let broker = ScriptedBroker::start(&[ACCEPTED, &both]).await;
    let store = Arc::new(FakeStore::default());
    let running = Setup::new(broker.port, &["plant/#"]).run(&store);
    store.wait_until("it is acknowledged", |state| state.connection.acknowledged > 0).await;
    running.stop().await;
    store.with(|state| {
        assert_eq!(state.stored[0], ("$q/hall".to_owned(), b"x".to_vec(), usize::MAX));
        assert_eq!(state.connection.dropped, 0);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_shortens_the_session_is_reported() {
    // CONNACK with a session expiry interval of 60 s.
    let accepted = [0x20, 8, 0, 0, 5, 0x11, 0, 0, 0, 60];
    let broker = ScriptedBroker::start(&[&accepted, SUBSCRIBED]).await;
    let store = Arc::new(FakeStore::default());
    let running = Setup::new(broker.port, &["plant/#"]).run_subscribed(&store).await;
    running.stop().await;
    let granted = store.with(|state| state.connection.shorter_expiry);
    assert_eq!(granted.map(|granted| granted.as_secs()), Some(60));
}
