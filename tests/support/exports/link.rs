//! A failing link: a relay to a server that applies a chosen fault to each request.
#![expect(
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a failing test ends immediately"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// The fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Pass,
    /// The connection is reset, and new ones are refused for this many milliseconds.
    Refuse(u64),
    Reset,
    /// The request is read and never answered.
    Blackhole,
    /// Each chunk is delayed by this many milliseconds in both directions.
    Latency(u64),
    /// The request is forwarded this many milliseconds later, even if the client has given up.
    Late(u64),
    /// The request is forwarded at this many bytes per second.
    Rate(u64),
    /// The connection is reset after this many bytes of the request.
    CutUp(usize),
    /// The connection is reset after this many bytes of the answer.
    CutDown(usize),
    /// The server processes the request, but its answer is dropped.
    DropAnswer,
    /// The relay answers 503 `SlowDown`. The server does not get the request.
    SlowDown,
    /// The relay answers 403 `AccessDenied`. A policy of the bucket cannot cause that for the owner of an object,
    /// because servers let owners read their own objects.
    Deny,
}

type Choose = Box<dyn FnMut() -> Fault + Send>;

/// A relay to a server.
pub struct Link {
    pub endpoint: String,
    choose: Arc<Mutex<Choose>>,
    listen: Arc<Notify>,
    sent: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// Starts a relay to `endpoint` that calls `choose` at the start of each request.
    pub async fn to(endpoint: &str, choose: impl FnMut() -> Fault + Send + 'static) -> Self {
        let upstream = endpoint.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let choose: Arc<Mutex<Choose>> = Arc::new(Mutex::new(Box::new(choose)));
        let chosen = Arc::clone(&choose);
        let listen = Arc::new(Notify::new());
        let wanted = Arc::clone(&listen);
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let task = tokio::spawn(async move {
            let (refuse, mut refusals) = mpsc::unbounded_channel();
            let mut listener = Some(listener);
            loop {
                let Some(open) = &listener else {
                    let socket = TcpSocket::new_v4().unwrap();
                    socket.set_reuseaddr(true).unwrap();
                    socket.bind(address).unwrap();
                    listener = Some(socket.listen(128).unwrap());
                    continue;
                };
                tokio::select! {
                    Ok((client, _)) = open.accept() => {
                        let (upstream, chosen, refuse) = (upstream.clone(), Arc::clone(&chosen), refuse.clone());
                        let counted = Arc::clone(&counted);
                        tokio::spawn(async move { relay(client, &upstream, chosen, refuse, counted).await });
                    }
                    Some(millis) = refusals.recv() => {
                        listener = None;
                        tokio::select! {
                            () = sleep(Duration::from_millis(millis)) => {}
                            () = wanted.notified() => {}
                        }
                    }
                }
            }
        });
        Self { endpoint: format!("http://{address}"), choose, listen, sent, task }
    }

    /// Ends [`Fault::Refuse`]: accepts connections again.
    pub async fn listen(&self) {
        self.listen.notify_waiters();
        let address = self.endpoint.strip_prefix("http://").unwrap();
        while TcpStream::connect(address).await.is_err() {
            sleep(Duration::from_millis(10)).await;
            self.listen.notify_waiters();
        }
    }

    /// Returns the bytes received from the client.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Applies this fault to all requests from now on.
    pub fn set(&self, fault: Fault) {
        self.set_after(0, fault);
    }

    /// Applies this fault to all requests that start once the client has sent this many bytes.
    pub fn set_after(&self, bytes: u64, fault: Fault) {
        let sent = Arc::clone(&self.sent);
        let choose = move || if sent.load(Ordering::Relaxed) < bytes { Fault::Pass } else { fault };
        *self.choose.lock().unwrap() = Box::new(choose);
    }
}

/// The current request of a connection.
struct Request {
    fault: Fault,
    /// Whether its answer has started. Then further bytes from the client belong to the next request.
    answered: bool,
    up: usize,
    down: usize,
}

async fn relay(
    client: TcpStream,
    upstream: &str,
    choose: Arc<Mutex<Choose>>,
    refuse: mpsc::UnboundedSender<u64>,
    counted: Arc<AtomicU64>,
) {
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let request = Mutex::new(Request { fault: Fault::Pass, answered: true, up: 0, down: 0 });
    let (client, server) = (Arc::new(client), Arc::new(server));
    let end = {
        let (request, client, server) = (&request, &client, &server);
        let up = async {
            let mut buffer = vec![0; 16 << 10];
            loop {
                let Ok(length @ 1..) = read(client, &mut buffer).await else {
                    let fault = request.lock().unwrap().fault;
                    if let Fault::Late(_) = fault {
                        // The server answers although the client is gone.
                        sleep(Duration::from_secs(5)).await;
                    }
                    return true;
                };
                counted.fetch_add(length as u64, Ordering::Relaxed);
                let (fault, before) = {
                    let mut now = request.lock().unwrap();
                    if now.answered {
                        let fault = (choose.lock().unwrap())();
                        *now = Request { fault, answered: false, up: 0, down: 0 };
                    }
                    now.up += length;
                    (now.fault, now.up - length)
                };
                let mut bytes = &buffer[..length];
                match fault {
                    Fault::Reset => return false,
                    Fault::Refuse(millis) => {
                        let _ = refuse.send(millis);
                        return false;
                    }
                    Fault::Blackhole => continue,
                    Fault::SlowDown => {
                        return answer(client, bytes, "503 Slow Down", "SlowDown").await;
                    }
                    Fault::Deny => {
                        return answer(client, bytes, "403 Forbidden", "AccessDenied").await;
                    }
                    Fault::Latency(millis) => sleep(Duration::from_millis(millis)).await,
                    Fault::Late(millis) if before == 0 => {
                        sleep(Duration::from_millis(millis)).await;
                    }
                    Fault::Rate(rate) => {
                        sleep(Duration::from_secs_f64(length as f64 / rate as f64)).await;
                    }
                    Fault::CutUp(limit) if before + length >= limit => {
                        bytes = &bytes[..limit.saturating_sub(before).min(length)];
                    }
                    _ => {}
                }
                if write(server, bytes).await.is_err() {
                    return true;
                }
                if bytes.len() < length {
                    sleep(Duration::from_millis(5)).await;
                    return false;
                }
            }
        };
        let down = async {
            let mut buffer = vec![0; 16 << 10];
            loop {
                let Ok(length @ 1..) = read(server, &mut buffer).await else { return true };
                let (fault, before) = {
                    let mut now = request.lock().unwrap();
                    now.answered = true;
                    now.down += length;
                    (now.fault, now.down - length)
                };
                let mut bytes = &buffer[..length];
                match fault {
                    Fault::DropAnswer => return false,
                    Fault::Latency(millis) => sleep(Duration::from_millis(millis)).await,
                    Fault::CutDown(limit) if before + length >= limit => {
                        bytes = &bytes[..limit.saturating_sub(before).min(length)];
                    }
                    _ => {}
                }
                if write(client, bytes).await.is_err() {
                    return true;
                }
                if bytes.len() < length {
                    sleep(Duration::from_millis(5)).await;
                    return false;
                }
            }
        };
        tokio::select! { end = up => end, end = down => end }
    };
    if !end {
        for stream in [&client, &server] {
            let _ = stream.set_zero_linger();
        }
    }
}

/// Reads the whole request and answers it with an error.
async fn answer(client: &TcpStream, first: &[u8], status: &str, code: &str) -> bool {
    let mut request = first.to_vec();
    let mut buffer = vec![0; 16 << 10];
    let body = loop {
        if let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            break end + 4 + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
        }
        let Ok(length @ 1..) = read(client, &mut buffer).await else { return true };
        request.extend_from_slice(&buffer[..length]);
    };
    let mut taken = request.len();
    while taken < body {
        let Ok(length @ 1..) = read(client, &mut buffer).await else { return true };
        taken += length;
    }
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Injected by the test.</Message></Error>"
    );
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let is_head = request.starts_with(b"HEAD ");
    let _ = write(client, head.as_bytes()).await;
    let _ = write(client, if is_head { b"" } else { body.as_bytes() }).await;
    true
}

async fn read(stream: &TcpStream, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(length) => bytes = &bytes[length..],
        }
    }
    Ok(())
}
