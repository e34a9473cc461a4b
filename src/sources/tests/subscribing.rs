//! What the settings name is subscribed to, and nothing else.
use super::broker::Broker;
use super::fixture::{FakeStore, Setup};
use super::proxy::{OldBroker, Proxy};
use super::publisher::Publisher;
use std::path::Path;
use std::sync::Arc;

/// Everyone may do everything, but subscribe only below `plant`.
const ACCESS_RULES: &str = r#"{
    "defaultACLAccess": {
        "publishClientSend": true, "publishClientReceive": true, "subscribe": false, "unsubscribe": true
    },
    "anonymousGroup": "all",
    "groups": [{"groupname": "all", "roles": [{"rolename": "plant"}]}],
    "roles": [{"rolename": "plant", "acls": [
        {"acltype": "subscribePattern", "topic": "plant/#", "allow": true}
    ]}],
    "clients": []
}"#;

/// Returns the path of mosquitto's plugin that refuses subscriptions.
fn find_access_plugin() -> String {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
    let mut paths = folders.iter().map(|folder| format!("{folder}/mosquitto_dynamic_security.so"));
    paths.find(|path| Path::new(path).exists()).expect("the package mosquitto has the plugin")
}

const BOTH_PROTOCOLS: [OldBroker; 2] = [OldBroker::No, OldBroker::Refuses];

#[tokio::test(flavor = "multi_thread")]
async fn a_retained_message_comes_once_for_each_new_subscription() {
    for old in BOTH_PROTOCOLS {
        let broker = Broker::start();
        let proxy = Proxy::start(broker.port, old).await;
        let mut publisher = Publisher::connect(broker.port, "publisher").await;
        publisher.send_message("plant/1", b"retained 1", true).await;
        publisher.send_message("hall/1", b"retained 2", true).await;
        publisher.finish().await;
        let store = Arc::new(FakeStore::default());
        let setup = Setup::new(proxy.port, &["plant/#"]);
        let running = setup.run_subscribed(&store).await;
        store.wait_for(1).await;
        running.stop().await;
        for round in 0..3 {
            let running = setup.run_subscribed(&store).await;
            proxy.cut();
            publisher.publish("plant/1", format!("marker {round}")).await;
            store.wait_for(2 + round).await;
            running.stop().await;
        }
        let setup = Setup::new(proxy.port, &["plant/#", "hall/#"]);
        let running = setup.run_subscribed(&store).await;
        store.wait_for(5).await;
        running.stop().await;
        let expected = ["retained 1", "marker 0", "marker 1", "marker 2", "retained 2"];
        let mut stored = store.payloads();
        // A cut may repeat a marker whose acknowledgement was lost.
        stored.dedup();
        assert_eq!(stored, expected, "{old:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_subscription_is_unsubscribed_and_its_queued_messages_are_dropped() {
    for old in BOTH_PROTOCOLS {
        let broker = Broker::start();
        let proxy = Proxy::start(broker.port, old).await;
        let store = Arc::new(FakeStore::default());
        let both = Setup::new(proxy.port, &["kept/#", "removed/#"]);
        both.run_subscribed(&store).await.stop().await;
        let mut publisher = Publisher::connect(broker.port, "publisher").await;
        publisher.publish("removed/1", "queued").await;
        publisher.publish("kept/1", "queued too").await;
        let one = Setup::new(proxy.port, &["kept/#"]);
        let running = one.run_subscribed(&store).await;
        let both_acknowledged =
            |state: &super::fixture::FakeState| state.connection.acknowledged == 2;
        store.wait_until("both are acknowledged", both_acknowledged).await;
        publisher.publish("removed/1", "not delivered").await;
        publisher.publish("kept/1", "marker").await;
        store.wait_for(2).await;
        running.stop().await;
        assert_eq!(store.payloads(), ["queued too", "marker"]);
        assert_eq!(store.with(|state| state.connection.received), 3, "{old:?}");
        assert_eq!(store.with(|state| state.connection.dropped), 1, "{old:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_was_not_confirmed_before_a_kill_is_sent_again() {
    for old in BOTH_PROTOCOLS {
        let broker = Broker::start();
        let proxy = Proxy::start(broker.port, old).await;
        let store = Arc::new(FakeStore::default());
        let setup = Setup::new(proxy.port, &["plant/#"]);
        // The broker has the session, and SUBSCRIBE was about to be sent.
        let opened = setup.endpoint().open(false).await.map_err(|why| panic!("{why}"));
        drop(opened);
        store.with(|state| state.session.pending.insert("plant/#".to_owned()));
        let running = setup.run_subscribed(&store).await;
        let mut publisher = Publisher::connect(broker.port, "publisher").await;
        publisher.publish("plant/1", "one").await;
        store.wait_for(1).await;
        running.kill().await;
        publisher.publish("plant/1", "two").await;
        let running = setup.run(&store);
        store.wait_for(2).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_two_subscriptions_match_belongs_to_the_first_one() {
    let broker = Broker::start();
    let store = Arc::new(FakeStore::default());
    let setup = Setup::new(broker.port, &["plant/+/flow", "plant/#"]);
    let running = setup.run_subscribed(&store).await;
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    publisher.publish("plant/P-101/flow", "flow").await;
    publisher.publish("plant/P-101/level", "level").await;
    store.wait_for(2).await;
    running.stop().await;
    // A broker may send it for each of them (MQTT 5, 3.3.4).
    store.with(|state| {
        for (topic, payload, subscription) in &state.stored {
            let expected = usize::from(!topic.ends_with("/flow"));
            assert_eq!(*subscription, expected, "{}", String::from_utf8_lossy(payload));
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_subscription_is_shown_and_the_others_work() {
    let broker = Broker::start_with(|folder| {
        let rules = folder.join("rules.json");
        std::fs::write(&rules, ACCESS_RULES).unwrap();
        format!(
            "allow_anonymous true\nplugin {}\nplugin_opt_config_file {}\n",
            find_access_plugin(),
            rules.display()
        )
    });
    let store = Arc::new(FakeStore::default());
    let setup = Setup::new(broker.port, &["plant/#", "secret/#"]);
    let running = setup.run(&store);
    let mut publisher = Publisher::connect(broker.port, "publisher").await;
    store
        .wait_until("the first is subscribed", |state| state.session.topics.contains("plant/#"))
        .await;
    publisher.publish("plant/1", "one").await;
    store.wait_for(1).await;
    store
        .wait_until("the refusal is shown", |state| {
            let error = state.connection.error.as_ref();
            error.is_some_and(|error| error.message.contains("\"secret/#\" failed: not authorized"))
        })
        .await;
    running.stop().await;
}
