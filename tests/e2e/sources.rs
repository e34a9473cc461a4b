//! MQTT sources with a real broker (mosquitto) and the shipped binary: every message that was acknowledged is
//! stored once, although processes are killed.
use crate::full_disk::{DISK, fill, on_a_small_disk};
use penstock_test_support::prelude::*;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;

pub(crate) const READINGS: &str = "\
type: object
path: 'Readings:.'
key: tag
fields:
  tag: {type: string, path: <https://plant.example/tag>, required: true}
  value: {type: number, path: <https://plant.example/value>}
";
/// The quads of one reading.
const QUADS_PER_READING: u64 = 2;

/// A mosquitto, which is killed when dropped.
pub(crate) struct Broker {
    child: Child,
    pub(crate) port: u16,
}

impl Broker {
    pub(crate) fn start(dir: &Path, port: Option<u16>) -> Self {
        let folder = dir.display();
        let settings =
            format!("persistence true\npersistence_location {folder}/\nmax_queued_messages 0");
        Self::start_with(dir, port, &settings)
    }

    /// Starts it with these settings, and with a listener for the tests.
    fn start_with(dir: &Path, port: Option<u16>, settings: &str) -> Self {
        let port = port.unwrap_or_else(free_port);
        let file = dir.join("mosquitto.conf");
        let text =
            format!("listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n{settings}\n");
        std::fs::write(&file, text).unwrap();
        let child = Command::new("mosquitto")
            .arg("-c")
            .arg(&file)
            .env("PATH", "/usr/sbin:/usr/bin:/bin")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("mosquitto is installed (apt-get install mosquitto mosquitto-clients)");
        wait_for("the broker listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port }
    }

    /// Stops it, so that it stores its sessions.
    fn stop(mut self) {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
    }

    /// Publishes these lines with `QoS` 1 and returns when the broker has acknowledged all of them.
    pub(crate) fn publish(&self, topic: &str, lines: impl Iterator<Item = String>) {
        let mut publisher = self.start_publisher(topic);
        let mut input = publisher.stdin.take().unwrap();
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
        drop(input);
        assert!(publisher.wait().unwrap().success());
    }

    fn start_publisher(&self, topic: &str) -> Child {
        let port = self.port.to_string();
        Command::new("mosquitto_pub")
            .args(["-h", "127.0.0.1", "-p", &port, "-q", "1", "-l", "-t", topic])
            .stdin(Stdio::piped())
            .spawn()
            .expect("mosquitto_pub is installed (apt-get install mosquitto-clients)")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_gateway(dir: &Path, broker: u16) -> TestProcess {
    let url = format!("--service.sources.plant.url=mqtt://127.0.0.1:{broker}");
    let settings = [
        "--service.data-dir=data",
        "--service.sources.plant.type=mqtt",
        &url,
        "--service.sources.plant.subscriptions[0].topic=readings/#",
        "--service.sources.plant.subscriptions[0].business-object=Readings",
    ];
    TestProcess::start(dir, &settings)
}

fn define(client: Client) {
    let definition = json!({"name": "Readings", "config": READINGS});
    client.put("/api/v1/business-objects", &definition).expect(201);
}

pub(crate) fn connection(client: Client) -> Value {
    client.read("/api/v1/sources/plant")["connections"][0].clone()
}

fn wait_until_connected(client: Client) {
    wait_for("the source is connected", || connection(client)["state"] == "connected");
}

fn quads(client: Client) -> u64 {
    client.read("/api/v1/status")["store"]["quads"].as_u64().unwrap()
}

fn readings(from: u64, to: u64) -> impl Iterator<Item = String> {
    (from..to).map(|n| json!({"tag": format!("T-{n}"), "value": n}).to_string())
}

#[test]
fn a_gateway_that_is_killed_loses_no_message_and_stores_none_twice() {
    const MESSAGES: u64 = 6000;
    let [dir, broker_dir] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let broker = Broker::start(broker_dir.path(), None);
    let mut server = start_gateway(dir.path(), broker.port);
    define(server.client);
    wait_until_connected(server.client);
    let server = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| broker.publish("readings/a", readings(0, MESSAGES)));
        for part in [1, 2, 3] {
            // Some messages of the part are stored, and others are in flight.
            wait_for("messages arrive", || {
                quads(server.client) >= part * MESSAGES * QUADS_PER_READING / 5
            });
            server.kill();
            server = start_gateway(dir.path(), broker.port);
        }
        publisher.join().unwrap();
        server
    });
    wait_for("every message is stored", || quads(server.client) >= MESSAGES * QUADS_PER_READING);
    wait_for("every message is acknowledged", || {
        let connection = connection(server.client);
        connection["waitingMessages"] == 0 && connection["received"] == connection["acknowledged"]
    });
    assert_eq!(quads(server.client), MESSAGES * QUADS_PER_READING);
    server.stop();
}

#[test]
fn messages_wait_until_their_business_object_is_defined() {
    let [dir, broker_dir] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let broker = Broker::start(broker_dir.path(), None);
    let server = start_gateway(dir.path(), broker.port);
    wait_until_connected(server.client);
    broker.publish("readings/a", readings(0, 1500));
    wait_for("the source reports why messages wait", || {
        connection(server.client)["error"].as_str().is_some_and(|why| why.contains("not defined"))
    });
    assert_eq!(connection(server.client)["acknowledged"], 0);
    define(server.client);
    wait_for("every message is stored", || quads(server.client) == 1500 * QUADS_PER_READING);
    wait_for("the error ends", || connection(server.client)["error"].is_null());
    server.stop();
}

#[test]
fn a_broker_that_is_stopped_is_connected_again() {
    let [dir, broker_dir] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let broker = Broker::start(broker_dir.path(), None);
    let server = start_gateway(dir.path(), broker.port);
    define(server.client);
    wait_until_connected(server.client);
    broker.publish("readings/a", readings(0, 100));
    let port = broker.port;
    broker.stop();
    wait_for("the source is disconnected", || connection(server.client)["state"] == "disconnected");
    let metrics = server.client.get("/metrics").expect(200).text();
    metrics
        .has_all(&["penstock_source_connected{source=\"plant\",business_object=\"Readings\"} 0"]);
    let broker = Broker::start(broker_dir.path(), Some(port));
    // The session of the gateway is at the broker, so it gets what comes before it connects again.
    broker.publish("readings/b", readings(100, 200));
    wait_for("every message is stored", || quads(server.client) == 200 * QUADS_PER_READING);
    let test = server.client.post("/api/v1/sources/plant/test", "").expect(200).json();
    assert_eq!((&test["ok"], &test["protocol"]), (&json!(true), &json!("5")), "{test}");
    server.stop();
}

#[test]
fn with_the_settings_of_the_guide_a_broker_keeps_what_a_stopped_gateway_misses() {
    const MESSAGES: u64 = 2500;
    let (_, block) = include_str!("../../docs/ingest.md").split_once("```text\n").unwrap();
    let settings = block.split_once("```").unwrap().0;
    let (dir, broker_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let location = format!("persistence_location {}/", broker_dir.path().display());
    assert!(settings.contains("persistence_location /var/lib/mosquitto/\n"), "{settings}");
    let settings = settings.replace("persistence_location /var/lib/mosquitto/", &location);
    let broker = Broker::start_with(broker_dir.path(), None, &settings);
    let server = start_gateway(dir.path(), broker.port);
    define(server.client);
    wait_until_connected(server.client);
    broker.publish("readings/a", readings(0, 1));
    wait_for("it is subscribed", || quads(server.client) == QUADS_PER_READING);
    server.stop();
    broker.publish("readings/a", readings(1, MESSAGES));
    let port = broker.port;
    broker.stop();
    let broker = Broker::start_with(broker_dir.path(), Some(port), &settings);
    let server = start_gateway(dir.path(), broker.port);
    wait_for("every message is stored", || quads(server.client) == MESSAGES * QUADS_PER_READING);
    let shown = server.client.read("/api/v1/sources/plant");
    assert_eq!(shown["warnings"], json!([]), "{shown}");
    server.stop();
}

/// Returns whether the broker has a session for this client id. Connects with MQTT 3.1.1 for it.
fn has_session(port: u16, client_id: &str) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut connect = b"\0\x04MQTT\x04\0\0\x3C\0".to_vec();
    connect.push(u8::try_from(client_id.len()).unwrap());
    connect.extend(client_id.as_bytes());
    let mut packet = vec![0x10, u8::try_from(connect.len()).unwrap()];
    packet.extend(connect);
    stream.write_all(&packet).unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!((answer[0], answer[1], answer[3]), (0x20, 2, 0), "it is accepted");
    answer[2] == 1
}

#[test]
fn the_session_of_a_removed_business_object_is_ended_at_the_broker() {
    let [dir, broker_dir] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let broker = Broker::start(broker_dir.path(), None);
    let start = |client_id: &str, business_objects: &[&str]| {
        let source = "--service.sources.plant";
        let mut arguments = vec![
            "--service.data-dir=data".to_owned(),
            format!("{source}.type=mqtt"),
            format!("{source}.url=mqtt://127.0.0.1:{}", broker.port),
            format!("{source}.client-id={client_id}"),
        ];
        for (index, name) in business_objects.iter().enumerate() {
            arguments.push(format!("{source}.subscriptions[{index}].topic={name}/#"));
            arguments.push(format!("{source}.subscriptions[{index}].business-object={name}"));
        }
        TestProcess::start(dir.path(), &lent(&arguments))
    };
    let wait_for_sessions = |client: Client, count: usize| {
        wait_for("all sessions are subscribed", || {
            let source = client.read("/api/v1/sources/plant");
            let connections = source["connections"].list().to_vec();
            connections.len() == count && connections.iter().all(|one| one["state"] == "connected")
        });
    };
    // With this client id they are those of another gateway, whose data directory was copied.
    let server = start("another", &["Readings"]);
    wait_for_sessions(server.client, 1);
    server.stop();
    let server = start("gateway", &["Readings", "Removed"]);
    wait_for_sessions(server.client, 2);
    server.stop();
    broker.publish("Removed/1", readings(0, 10));
    let server = start("gateway", &["Readings"]);
    wait_until_connected(server.client);
    // A connection with the client id would keep the session from being ended, so this asks only afterwards.
    wait_for("the removed session is ended", || server.log().contains("was ended"));
    assert!(!has_session(broker.port, "gateway-Removed"));
    // Its turn came before.
    assert!(has_session(broker.port, "another-Readings"));
    server.stop();
}

#[test]
fn messages_wait_while_the_disk_is_full() {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else {
        return on_a_small_disk("sources::messages_wait_while_the_disk_is_full");
    };
    let broker_dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(broker_dir.path(), None);
    let server = start_gateway(&disk, broker.port);
    define(server.client);
    wait_until_connected(server.client);
    broker.publish("readings/a", readings(0, 200));
    wait_for("the first messages are stored", || connection(server.client)["acknowledged"] == 200);
    // The reserve is 64 MiB.
    let filler = fill(&disk, 32 << 20);
    broker.publish("readings/a", readings(200, 700));
    wait_for("the source reports why messages wait", || {
        connection(server.client)["error"].as_str().is_some_and(|why| why.contains("disk"))
    });
    assert_eq!(connection(server.client)["acknowledged"], 200);
    std::fs::remove_file(filler).unwrap();
    wait_for("every message is stored", || quads(server.client) == 700 * QUADS_PER_READING);
    wait_for("every message is acknowledged", || {
        connection(server.client)["acknowledged"].as_u64() >= Some(700)
    });
    let letters = server.client.get("/api/v1/sources/plant/rejected").expect(200);
    assert!(letters.text().is_empty(), "{}", letters.text());
    server.stop();
}
