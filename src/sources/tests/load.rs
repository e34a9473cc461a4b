//! Many messages from many publishers.
use super::broker::Broker;
use super::fixture::{FakeStore, Setup};
use super::proxy::{OldBroker, Proxy};
use super::publisher::Publisher;
use std::collections::BTreeSet;
use std::sync::Arc;

const PUBLISHERS: usize = 10;
const MESSAGES_EACH: usize = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn of_100_000_messages_none_is_lost_while_the_connection_breaks_again_and_again() {
    let broker = Broker::start();
    let proxy = Proxy::start(broker.port, OldBroker::No).await;
    let store = Arc::new(FakeStore::default());
    let running = Setup::new(proxy.port, &["plant/#"]).run_subscribed(&store).await;
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let port = broker.port;
            tokio::spawn(async move {
                let mut client = Publisher::connect(port, &format!("publisher-{publisher}")).await;
                let topic = format!("plant/{publisher}");
                for number in 0..MESSAGES_EACH {
                    let payload = format!("{publisher} {number}");
                    client.send_message(&topic, payload.as_bytes(), false).await;
                }
                client.finish().await;
            })
        })
        .collect();
    for cut in 1..=8 {
        let stored = cut * PUBLISHERS * MESSAGES_EACH / 10;
        store
            .wait_until("more is stored", |state| state.connection.acknowledged >= stored as u64)
            .await;
        proxy.cut();
    }
    for publisher in publishers {
        publisher.await.unwrap();
    }
    let all = PUBLISHERS * MESSAGES_EACH;
    store.wait_until("all may be stored", |state| state.stored.len() >= all).await;
    store.wait_for(all).await;
    running.stop().await;
    store.with(|state| {
        let different: BTreeSet<&[u8]> =
            state.stored.iter().map(|(_, payload, _)| payload.as_slice()).collect();
        assert_eq!(different.len(), all);
        assert!(state.causes.len() >= 8, "{:?}", state.causes);
        // Each cut repeats at most what was not acknowledged.
    });
}
