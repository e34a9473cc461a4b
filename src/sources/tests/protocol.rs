//! MQTT 5, and MQTT 3.1.1 where a broker does not support it.
use super::broker::{Broker, find_program};
use super::fixture::{FakeStore, Setup};
use super::proxy::{OldBroker, Proxy};
use super::publisher::Publisher;
use std::process::Command;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn mqtt_5_is_used_where_the_broker_supports_it_and_3_1_1_elsewhere() {
    let broker = Broker::start();
    for (old, expected) in
        [(OldBroker::No, "5"), (OldBroker::Refuses, "3.1.1"), (OldBroker::Closes, "3.1.1")]
    {
        let proxy = Proxy::start(broker.port, old).await;
        let mut setup = Setup::new(proxy.port, &["plant/#"]);
        setup.client_id = format!("client-{old:?}");
        let store = Arc::new(FakeStore::default());
        let running = setup.run_subscribed(&store).await;
        let mut publisher = Publisher::connect(broker.port, "publisher").await;
        publisher.publish("plant/1", "one").await;
        store.wait_for(1).await;
        running.stop().await;
        // The session is kept with both.
        publisher.publish("plant/1", "two").await;
        let running = setup.run(&store);
        store.wait_for(2).await;
        running.stop().await;
        store.with(|state| assert_eq!(state.protocols, [expected, expected], "{old:?}"));
        assert_eq!(store.payloads(), ["one", "two"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_named_and_the_right_one_connects() {
    let broker = Broker::start_with(|folder| {
        let passwords = folder.join("passwords");
        let created = Command::new(find_program("mosquitto_passwd"))
            .args(["-c", "-b", passwords.to_str().unwrap(), "historian", "right"])
            .status()
            .unwrap();
        assert!(created.success());
        format!("allow_anonymous false\npassword_file {}\n", passwords.display())
    });
    let mut setup = Setup::new(broker.port, &["plant/#"]);
    setup.source.username = Some("historian".to_owned());
    setup.source.password = Some("wrong".to_owned());
    let store = Arc::new(FakeStore::default());
    let running = setup.run(&store);
    store.wait_until("it is refused twice", |state| state.causes.len() >= 2).await;
    running.stop().await;
    store.with(|state| {
        let expected = "the broker refused the connection: not authorized; check `username`";
        assert!(state.causes[0].starts_with(expected), "{:?}", state.causes);
        assert!(state.protocols.is_empty());
    });
    setup.source.password = Some("right".to_owned());
    setup.run_subscribed(&store).await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_not_there_is_named() {
    // None listens there.
    let opened = Setup::new(9, &["plant/#"]).endpoint().open(false).await;
    let why = opened.err().unwrap();
    assert!(why.starts_with("connecting to 127.0.0.1:9 failed: "), "{why}");
    assert!(why.contains("check that the broker runs"), "{why}");
}
