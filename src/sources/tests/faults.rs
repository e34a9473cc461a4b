//! The broker and the connection fail, and nothing is lost.
use super::broker::Broker;
use super::fixture::{FakeStore, Running, Setup, TIMEOUT, unavailable};
use super::proxy::{OldBroker, Plan, Proxy, Recorded, split_packets};
use super::publisher::Publisher;
use jiff::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The types of packets in the upper half of their first byte.
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
const DISCONNECT: u8 = 14;

/// Starts a broker, a proxy before it, and a subscribed session at the proxy.
async fn start_subscribed() -> (Broker, Proxy, Setup, Arc<FakeStore>, Running) {
    let broker = Broker::start();
    let proxy = Proxy::start(broker.port, OldBroker::No).await;
    let setup = Setup::new(proxy.port, &["plant/#"]);
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    (broker, proxy, setup, store, running)
}

async fn publish_numbered(publisher: &mut Publisher, range: std::ops::Range<usize>) {
    for number in range {
        publisher.send_message("plant/1", format!("{number:06}").as_bytes(), false).await;
    }
    publisher.finish().await;
}

/// Returns the packet identifiers in these packets of QoS 1 or in acknowledgements.
fn packet_ids(bytes: &[u8], packet_type: u8) -> Vec<u16> {
    let packets = split_packets(bytes).into_iter().filter(|(first, _)| first >> 4 == packet_type);
    packets
        .map(|(_, body)| {
            let at = match packet_type {
                PUBLISH => 2 + usize::from(u16::from_be_bytes([body[0], body[1]])),
                _ => 0,
            };
            u16::from_be_bytes([body[at], body[at + 1]])
        })
        .collect()
}

/// Returns what has passed through the last connection, which the gateway has closed. The proxy may still read it.
async fn until_disconnected(proxy: &Proxy) -> Recorded {
    let begun = Instant::now();
    loop {
        let recorded = proxy.recorded().pop().unwrap();
        let last = split_packets(&recorded.from_client).last().map(|(first, _)| first >> 4);
        if last == Some(DISCONNECT) {
            return recorded;
        }
        assert!(begun.elapsed() < TIMEOUT, "no DISCONNECT was sent");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_published_while_the_broker_restarts_or_the_gateway_is_down_are_stored() {
    let mut broker = Broker::start();
    let setup = Setup::new(broker.port, &["plant/#"]);
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_numbered(&mut publisher, 0..10).await;
    store.wait_for(10).await;
    running.stop().await;
    publish_numbered(&mut publisher, 10..20).await;
    broker.stop();
    broker.run();
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_numbered(&mut publisher, 20..30).await;
    let running = setup.run(&store);
    store.wait_for(30).await;
    let resumed = store.payloads().len();
    broker.stop();
    store.wait_until("the loss is reported", |state| !state.causes.is_empty()).await;
    broker.run();
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_numbered(&mut publisher, 30..40).await;
    store.wait_for(40).await;
    running.stop().await;
    // The broker sends messages again whose acknowledgements it had not read when the connection ended, and no others.
    let mut seen = HashSet::new();
    let mut first = Vec::new();
    for (at, payload) in store.payloads().into_iter().enumerate() {
        if seen.insert(payload.clone()) {
            first.push(payload);
        } else {
            assert!(
                at < resumed || *payload >= *"000010",
                "{payload} was sent again although it was acknowledged"
            );
        }
    }
    assert_eq!(first, (0..40).map(|n| format!("{n:06}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_broker_that_lost_the_session_is_subscribed_to_again() {
    let mut broker = Broker::start();
    let store = Arc::new(FakeStore::default());
    let running = Setup::new(broker.port, &["plant/#"]).run_subscribed(&store).await;
    broker.kill();
    let _ = std::fs::remove_file(broker.folder.path().join("mosquitto.db"));
    let connections = store.with(|state| state.protocols.len());
    // What the store knows of the lost session must not keep the gateway from subscribing.
    broker.run();
    store.wait_until("it is connected", |state| state.protocols.len() > connections).await;
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    let mut number = 0;
    // The subscription may come after the first messages, which the broker then drops.
    while store.with(|state| state.stored.is_empty()) {
        publisher.publish("plant/1", format!("{number}")).await;
        number += 1;
    }
    assert!(store.with(|state| state.connection.session_lost_at).is_some());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_at_any_byte_loses_nothing() {
    let broker = Broker::start();
    let proxy = Proxy::start(broker.port, OldBroker::No).await;
    let setup = Setup::new(proxy.port, &["plant/#"]);
    let store = Arc::new(FakeStore::default());
    setup.run_subscribed(&store).await.stop().await;
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    let mut published = 0;
    // CONNACK, SUBACK and the first messages of the broker, and CONNECT, SUBSCRIBE and the first acknowledgements.
    let from_broker = (1..24).chain((24..90).step_by(5)).map(Plan::CutAfterBroker);
    let from_client = (1..120).step_by(6).map(Plan::CutAfterClient);
    for plan in from_broker.chain(from_client) {
        publish_numbered(&mut publisher, published..published + 5).await;
        published += 5;
        proxy.plan(plan);
        let running = setup.run(&store);
        store.wait_for(published).await;
        running.stop().await;
    }
    assert!(store.with(|state| state.causes.len()) > 20);
    let mut expected: Vec<String> = (0..published).map(|number| format!("{number:06}")).collect();
    let mut stored = store.payloads();
    stored.sort();
    stored.dedup();
    expected.sort();
    assert_eq!(stored, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_before_it_is_stored_and_the_order_is_that_of_receipt() {
    let (broker, proxy, _, store, running) = start_subscribed().await;
    store.with(|state| state.is_closed = true);
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_numbered(&mut publisher, 0..500).await;
    let all_came = |state: &super::fixture::FakeState| state.connection.received == 500;
    store.wait_until("all are received", all_came).await;
    let before = proxy.recorded().pop().unwrap();
    assert_eq!(packet_ids(&before.from_client, PUBACK), Vec::<u16>::new());
    let received = packet_ids(&before.from_broker, PUBLISH);
    assert_eq!(received.len(), 500);
    // A temporary error changes neither.
    store.with(|state| {
        state.failure = Some(unavailable());
        state.is_closed = false;
    });
    store.wait_until("storing failed three times", |state| state.failed >= 3).await;
    assert_eq!(packet_ids(&proxy.recorded().pop().unwrap().from_client, PUBACK), [0_u16; 0]);
    let shown = store.with(|state| state.connection.error.clone()).expect("the error is shown");
    assert_eq!(shown.message, "the gateway is busy");
    store.with(|state| state.failure = None);
    let all_acknowledged = |state: &super::fixture::FakeState| state.connection.acknowledged == 500;
    store.wait_until("all are acknowledged", all_acknowledged).await;
    running.stop().await;
    let after = until_disconnected(&proxy).await;
    assert_eq!(packet_ids(&after.from_client, PUBACK), received);
    assert_eq!(store.payloads(), (0..500).map(|n| format!("{n:06}")).collect::<Vec<_>>());
    store.with(|state| {
        assert_eq!(state.connection.error, None);
        assert_eq!(state.causes, Vec::<String>::new());
        // The first message was a batch; what came meanwhile are few.
        assert!(state.batches.len() <= 10, "{:?}", state.batches);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stored_part_of_a_batch_is_acknowledged_and_only_the_rest_is_stored_again() {
    let (broker, proxy, _, store, running) = start_subscribed().await;
    store.with(|state| (state.is_closed, state.max_stored) = (true, Some(3)));
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_numbered(&mut publisher, 0..20).await;
    store.wait_until("all are received", |state| state.connection.received == 20).await;
    store.with(|state| state.is_closed = false);
    store.wait_until("all are acknowledged", |state| state.connection.acknowledged == 20).await;
    running.stop().await;
    assert_eq!(store.payloads(), (0..20).map(|n| format!("{n:06}")).collect::<Vec<_>>());
    assert!(store.with(|state| state.batches.iter().all(|batch| *batch <= 3)));
    let recorded = until_disconnected(&proxy).await;
    let received = packet_ids(&recorded.from_broker, PUBLISH);
    assert_eq!(packet_ids(&recorded.from_client, PUBACK), received);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_acknowledges_the_running_batch_and_closes_the_connection_in_order() {
    let (broker, proxy, setup, store, running) = start_subscribed().await;
    store.with(|state| state.is_closed = true);
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publisher.publish("plant/1", "running").await;
    store.wait_until("a batch is being stored", |state| state.is_waiting).await;
    publisher.publish("plant/1", "gathered").await;
    store.wait_until("both are received", |state| state.connection.received == 2).await;
    store.with(|state| state.connection.connected_since = Some(Timestamp::now()));
    let stopped = running.stop();
    store.with(|state| state.is_closed = false);
    stopped.await;
    assert_eq!(store.payloads(), ["running"]);
    assert_eq!(store.with(|state| state.connection.connected_since), None);
    let sent = until_disconnected(&proxy).await.from_client;
    assert_eq!(packet_ids(&sent, PUBACK).len(), 1);
    // Only the gathered message comes again.
    let running = setup.run(&store);
    store.wait_for(2).await;
    running.stop().await;
    assert_eq!(store.payloads(), ["running", "gathered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_waits_for_the_running_batch_before_messages_come_again() {
    let (broker, proxy, _, store, running) = start_subscribed().await;
    store.with(|state| state.is_closed = true);
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publisher.publish("plant/1", "first").await;
    store.wait_until("a batch is being stored", |state| state.is_waiting).await;
    publisher.publish("plant/1", "second").await;
    store.wait_until("both are received", |state| state.connection.received == 2).await;
    let connections = proxy.recorded().len();
    proxy.cut();
    let acknowledged = store.with(|state| state.connection.acknowledged);
    assert_eq!((acknowledged, proxy.recorded().len()), (0, connections));
    store.with(|state| state.is_closed = false);
    store.wait_for(2).await;
    running.stop().await;
    let payloads = store.payloads();
    // The first one was stored, and comes again because its acknowledgement was lost.
    assert_eq!(payloads[0], "first");
    assert_eq!(payloads.last().unwrap(), "second");
    assert_eq!(payloads.iter().filter(|one| *one == "second").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_must_not_write_does_not_connect() {
    let broker = Broker::start();
    let proxy = Proxy::start(broker.port, OldBroker::No).await;
    let store = Arc::new(FakeStore::default());
    store.with(|state| state.refusal = Some(unavailable()));
    let running = Setup::new(proxy.port, &["plant/#"]).run(&store);
    store.wait_until("it was refused twice", |state| state.causes.len() >= 2).await;
    assert!(proxy.recorded().is_empty());
    store.with(|state| state.refusal = None);
    store.wait_until("it connects", |state| !state.protocols.is_empty()).await;
    running.stop().await;
}
