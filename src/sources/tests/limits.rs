//! What the gateway holds is limited, and what exceeds a limit waits at the broker.
use super::broker::Broker;
use super::fixture::{FakeStore, Running, Setup, unavailable};
use super::publisher::Publisher;
use crate::capacity::Capacity;
use crate::reader::TRUNCATED_BYTES;
use penstock_service::sources::{NotStored, NotStoredCode};
use std::sync::Arc;

/// Publishes this number of different messages of 10,000 bytes.
async fn publish_large(publisher: &mut Publisher, topic: &str, count: usize) {
    for number in 0..count {
        let payload = format!("{number:05}").repeat(2_000);
        publisher.send_message(topic, payload.as_bytes(), false).await;
    }
    publisher.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_long_is_cut_and_acknowledged_and_its_neighbours_are_whole() {
    let broker = Broker::start();
    let mut setup = Setup::new(broker.port, &["plant/#"]);
    setup.max_payload_bytes = 200_000;
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    let longest = vec![b'a'; 200_000];
    let too_long = vec![b'b'; 5_000_000];
    publisher.publish("plant/1", "before").await;
    publisher.publish("plant/1", &longest).await;
    publisher.publish("plant/1", &too_long).await;
    publisher.publish("plant/1", "after").await;
    store.wait_until("all are acknowledged", |state| state.connection.acknowledged == 4).await;
    running.stop().await;
    store.with(|state| {
        let lengths: Vec<usize> =
            state.stored.iter().map(|(_, payload, _)| payload.len()).collect();
        assert_eq!(lengths, [6, 200_000, TRUNCATED_BYTES, 5]);
        assert_eq!(state.truncated, [5_000_000]);
        assert!(state.causes.is_empty(), "{:?}", state.causes);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nothing_can_be_stored_the_gateway_holds_at_most_its_limit() {
    const LIMIT_BYTES: u64 = 512 << 10;
    let broker = Broker::start();
    let mut setup = Setup::new(broker.port, &["plant/#"]);
    setup.capacity = Capacity::new(LIMIT_BYTES, 1);
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    store.with(|state| state.is_closed = true);
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_large(&mut publisher, "plant/1", 200).await;
    let is_full =
        |state: &super::fixture::FakeState| state.connection.waiting_bytes > LIMIT_BYTES - 30_000;
    store.wait_until("the limit is reached", is_full).await;
    store.with(|state| {
        assert!(state.connection.waiting_bytes <= LIMIT_BYTES, "{:?}", state.connection);
        assert!(state.connection.received < 60, "{:?}", state.connection);
        state.is_closed = false;
    });
    store.wait_for(200).await;
    running.stop().await;
    assert_eq!(store.with(|state| (state.connection.received, state.causes.len())), (200, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_holds_at_most_the_receive_maximum_of_messages() {
    let broker = Broker::start();
    let mut setup = Setup::new(broker.port, &["plant/#"]);
    setup.source.receive_maximum = 20;
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    store.with(|state| state.is_closed = true);
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    for number in 0..300 {
        publisher.send_message("plant/1", format!("{number}").as_bytes(), false).await;
    }
    publisher.finish().await;
    store.wait_until("it is full", |state| state.connection.waiting_messages == 20).await;
    store.with(|state| {
        assert_eq!(state.connection.received, 20);
        state.is_closed = false;
    });
    store.wait_for(300).await;
    running.stop().await;
    store.with(|state| assert!(state.batches.iter().all(|batch| *batch <= 10)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_cannot_store_leaves_the_capacity_to_another_one() {
    let broker = Broker::start();
    let capacity = Capacity::new(256 << 10, 2);
    let setup = |client_id: &str, topic: &str| {
        let mut setup = Setup::new(broker.port, &[topic]);
        setup.client_id = client_id.to_owned();
        setup.capacity = capacity.clone();
        setup
    };
    let (stuck_store, store) = (Arc::new(FakeStore::default()), Arc::new(FakeStore::default()));
    let stuck = setup("stuck", "stuck/#").run_subscribed(&stuck_store).await;
    let running = setup("other", "other/#").run_subscribed(&store).await;
    stuck_store.with(|state| state.failure = Some(unavailable()));
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    for number in 0..100 {
        let payload = format!("{number:05}").repeat(2_000);
        publisher.send_message("stuck/1", payload.as_bytes(), false).await;
    }
    // Larger than the share of the session.
    let large = |number: usize| format!("{number:05}").repeat(20_000);
    for number in 0..20 {
        publisher.send_message("other/1", large(number).as_bytes(), false).await;
    }
    publisher.finish().await;
    store.wait_for(20).await;
    stuck_store.with(|state| state.failure = None);
    stuck_store.wait_for(100).await;
    running.stop().await;
    stuck.stop().await;
}

/// Starts two sessions that share this capacity and whose messages cannot be stored, each with this number of messages of
/// this many bytes.
async fn start_stuck(
    broker: &Broker,
    capacity: &Capacity,
    count: usize,
    bytes: usize,
) -> [(Arc<FakeStore>, Running); 2] {
    let disabled = NotStored { code: NotStoredCode::Disabled, message: "disabled".to_owned() };
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    let mut sessions = Vec::new();
    for topic in ["a", "b"] {
        let mut setup = Setup::new(broker.port, &[topic]);
        setup.client_id = topic.to_owned();
        setup.capacity = capacity.clone();
        let store = Arc::new(FakeStore::default());
        let running = setup.run_subscribed(&store).await;
        store.with(|state| state.failure = Some(disabled.clone()));
        for number in 0..count {
            let payload = format!("{number:05}").repeat(bytes / 5);
            publisher.send_message(topic, payload.as_bytes(), false).await;
        }
        publisher.finish().await;
        sessions.push((store, running));
    }
    sessions.try_into().ok().expect("there are two")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_that_cannot_store_do_not_take_the_capacity_from_each_other_again_and_again() {
    let broker = Broker::start();
    let capacity = Capacity::new(256 << 10, 2);
    let sessions = start_stuck(&broker, &capacity, 100, 10_000).await;
    for (store, _) in &sessions {
        store.wait_until("storing fails again and again", |state| state.failed > 100).await;
    }
    let losses = |store: &FakeStore| store.with(|state| state.causes.clone());
    let [first, second] = [0, 1].map(|at| losses(&sessions[at].0));
    assert!(first.len() <= 1 && second.len() <= 1, "{first:?} {second:?}");
    for (store, running) in sessions {
        store.with(|state| state.failure = None);
        store.wait_for(100).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_left_the_pool_uses_it_again_once_its_messages_can_be_stored() {
    let broker = Broker::start();
    let capacity = Capacity::new(256 << 10, 2);
    // Each is larger than the share of a session, and than half of the pool.
    let sessions = start_stuck(&broker, &capacity, 3, 120_000).await;
    let (first, _) = &sessions[0];
    first.wait_until("it gives its capacity back", |state| !state.causes.is_empty()).await;
    // The other one still cannot store.
    first.with(|state| state.failure = None);
    first.wait_for(3).await;
    // The payload and the topic.
    assert_eq!(first.with(|state| state.asked_bytes), 120_001);
    for (store, running) in sessions {
        store.with(|state| state.failure = None);
        store.wait_for(3).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_sent_once_while_no_other_session_waits_for_the_capacity() {
    const LIMIT_BYTES: u64 = 512 << 10;
    let broker = Broker::start();
    let mut setup = Setup::new(broker.port, &["plant/#"]);
    setup.capacity = Capacity::new(LIMIT_BYTES, 1);
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    store.with(|state| state.failure = Some(unavailable()));
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publish_large(&mut publisher, "plant/1", 100).await;
    let is_full =
        |state: &super::fixture::FakeState| state.connection.waiting_bytes > LIMIT_BYTES - 30_000;
    store.wait_until("the limit is reached", is_full).await;
    let failed = store.with(|state| state.failed);
    store.wait_until("storing fails again", |state| state.failed > failed + 2).await;
    store.with(|state| state.failure = None);
    store.wait_for(100).await;
    running.stop().await;
    assert_eq!(store.with(|state| (state.connection.received, state.causes.len())), (100, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_disk_is_full_no_session_gives_its_messages_back() {
    const LIMIT_BYTES: u64 = 256 << 10;
    let broker = Broker::start();
    let capacity = Capacity::new(LIMIT_BYTES, 2);
    let disk_full =
        NotStored { code: NotStoredCode::DiskFull, message: "the disk is full".to_owned() };
    let stores = [(); 2].map(|()| Arc::new(FakeStore::default()));
    let mut sessions = Vec::new();
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    for (topic, store) in ["a", "b"].into_iter().zip(&stores) {
        let mut setup = Setup::new(broker.port, &[topic]);
        setup.client_id = topic.to_owned();
        setup.capacity = capacity.clone();
        sessions.push(setup.run_subscribed(store).await);
        store.with(|state| state.failure = Some(disk_full.clone()));
        publish_large(&mut publisher, topic, 100).await;
    }
    let [first, second] = &stores;
    let waiting_bytes = || second.with(|state| state.connection.waiting_bytes);
    let is_full = |state: &super::fixture::FakeState| {
        state.connection.waiting_bytes + waiting_bytes() > LIMIT_BYTES - 30_000
    };
    first.wait_until("the limit is reached", is_full).await;
    for store in &stores {
        let failed = store.with(|state| state.failed);
        store.wait_until("storing fails again", |state| state.failed > failed + 2).await;
    }
    for store in &stores {
        store.with(|state| state.failure = None);
    }
    for (store, session) in stores.iter().zip(sessions) {
        store.wait_for(100).await;
        session.stop().await;
        let received = store.with(|state| (state.connection.received, state.causes.len()));
        assert_eq!(received, (100, 0));
    }
}
