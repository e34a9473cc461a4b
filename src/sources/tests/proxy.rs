//! A TCP proxy before the broker, which cuts connections and records what passes.
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The byte of CONNECT that has the version of the protocol, if the whole packet is shorter than 128 bytes.
const PROTOCOL_LEVEL_AT: usize = 8;
const MQTT_5: u8 = 5;

/// What the proxy does with the next connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Plan {
    #[default]
    Pass,
    /// Cuts it after this number of bytes of the broker.
    CutAfterBroker(usize),
    /// Cuts it after this number of bytes of the client.
    CutAfterClient(usize),
}

/// How the proxy treats MQTT 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OldBroker {
    /// As the broker does.
    No,
    /// It refuses it, as MQTT 3.1.1 says.
    Refuses,
    /// It closes the connection.
    Closes,
}

/// What passed through a connection.
#[derive(Debug, Default, Clone)]
pub(super) struct Recorded {
    pub(super) from_client: Vec<u8>,
    pub(super) from_broker: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    next: Mutex<Plan>,
    recorded: Mutex<Vec<Recorded>>,
}

/// A running proxy.
pub(super) struct Proxy {
    pub(super) port: u16,
    shared: Arc<Shared>,
    cut: watch::Sender<u64>,
    running: JoinHandle<()>,
}

impl Proxy {
    pub(super) async fn start(broker: u16, old: OldBroker) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let (cut, cuts) = watch::channel(0);
        let own = shared.clone();
        let running = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let plan = std::mem::take(&mut *own.next.lock());
                let index = {
                    let mut recorded = own.recorded.lock();
                    recorded.push(Recorded::default());
                    recorded.len() - 1
                };
                let (shared, mut cuts) = (own.clone(), cuts.clone());
                cuts.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        () = forward(client, broker, (plan, old), &shared, index) => {}
                        _ = cuts.changed() => {}
                    }
                });
            }
        });
        Self { port, shared, cut, running }
    }

    /// Sets what becomes of the next connection.
    pub(super) fn plan(&self, plan: Plan) {
        *self.shared.next.lock() = plan;
    }

    /// Cuts all connections.
    pub(super) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Returns what has passed through each connection.
    pub(super) fn recorded(&self) -> Vec<Recorded> {
        self.shared.recorded.lock().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Forwards one connection until it ends or is cut.
async fn forward(
    mut client: TcpStream,
    broker: u16,
    (plan, old): (Plan, OldBroker),
    shared: &Shared,
    index: usize,
) {
    let mut first = vec![0; 64 << 10];
    let Ok(got) = client.read(&mut first).await else { return };
    first.truncate(got);
    if old != OldBroker::No && first.get(PROTOCOL_LEVEL_AT) == Some(&MQTT_5) {
        if old == OldBroker::Refuses {
            client.write_all(&[0x20, 2, 0, 1]).await.unwrap();
        }
        return;
    }
    let Ok(mut upstream) = TcpStream::connect(("127.0.0.1", broker)).await else { return };
    let (mut client_left, mut broker_left) = (usize::MAX, usize::MAX);
    match plan {
        Plan::Pass => {}
        Plan::CutAfterBroker(bytes) => broker_left = bytes,
        Plan::CutAfterClient(bytes) => client_left = bytes,
    }
    let mut answer = vec![0; 64 << 10];
    let mut pending = first.as_slice();
    let mut from_client = vec![0; 64 << 10];
    loop {
        if !pending.is_empty() {
            let passed = pending.len().min(client_left);
            client_left -= passed;
            shared.recorded.lock()[index].from_client.extend_from_slice(&pending[..passed]);
            if upstream.write_all(&pending[..passed]).await.is_err() || client_left == 0 {
                return;
            }
        }
        pending = &[];
        tokio::select! {
            read = client.read(&mut from_client) => match read {
                Ok(bytes) if bytes > 0 => pending = &from_client[..bytes],
                _ => return,
            },
            read = upstream.read(&mut answer) => match read {
                Ok(bytes) if bytes > 0 => {
                    let passed = bytes.min(broker_left);
                    broker_left -= passed;
                    shared.recorded.lock()[index]
                        .from_broker
                        .extend_from_slice(&answer[..passed]);
                    if client.write_all(&answer[..passed]).await.is_err() || broker_left == 0 {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

/// Splits bytes into packets: the first byte and the rest of each.
pub(super) fn split_packets(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut packets = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        let (mut length, mut shift, mut used) = (0, 0, 0);
        for byte in rest.iter().take(4) {
            length |= usize::from(byte & 0x7F) << shift;
            (shift, used) = (shift + 7, used + 1);
            if byte & 0x80 == 0 {
                break;
            }
        }
        let Some(body) = rest.get(used..used + length) else { break };
        packets.push((*first, body.to_vec()));
        bytes = &rest[used + length..];
    }
    packets
}
