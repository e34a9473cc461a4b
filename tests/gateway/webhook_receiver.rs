//! A receiver of webhooks: a small HTTP server that checks every signature and answers as the test wants.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The secret that the receiver expects, and its bytes.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request that the receiver got.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) event: Value,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// The status of the answer.
    pub(crate) status: u16,
}

/// The answer to a request: its status, and further header lines.
pub(crate) type Answer = (u16, &'static str);

/// A running receiver. Its thread ends with the process.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    received: Vec<Received>,
    answer: Answer,
    errors: Vec<String>,
}

impl Receiver {
    /// Starts a receiver on a free port that accepts every event.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { received: Vec::new(), answer: (204, ""), errors: Vec::new() };
        let receiver = Self { address, state: Arc::new(Mutex::new(state)) };
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        receiver
    }

    /// Returns the settings of a webhook for these events.
    pub(crate) fn settings(&self, name: &str, events: &str) -> Vec<String> {
        let prefix = format!("--service.webhooks.{name}");
        vec![
            format!("{prefix}.url=http://{}/hook-of-the-url?token=of-the-url", self.address),
            format!("{prefix}.secret={SECRET}"),
            format!("{prefix}.events={events}"),
        ]
    }

    /// Sets the answer to the next requests.
    pub(crate) fn answer(&self, answer: Answer) {
        self.lock().answer = answer;
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        let state = self.lock();
        assert_eq!(state.errors, Vec::<String>::new());
        state.received.clone()
    }

    /// Returns the events that were accepted, in order.
    pub(crate) fn accepted(&self) -> Vec<Received> {
        self.received().into_iter().filter(|one| (200..300).contains(&one.status)).collect()
    }

    /// Waits up to five minutes until the requests so far satisfy a condition, and returns them.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_met: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let begun = Instant::now();
        loop {
            let received = self.received();
            if is_met(&received) {
                return received;
            }
            assert!(begun.elapsed() < Duration::from_mins(5), "not {what}: {received:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((path, headers, body)) = read_request(&mut reader) {
            let mut state = self.lock();
            if let Err(error) = verify(&headers, &body) {
                state.errors.push(error);
            }
            let (status, more) = state.answer;
            state.received.push(Received {
                id: headers.get("webhook-id").cloned().unwrap_or_default(),
                event: serde_json::from_slice(&body).unwrap_or_default(),
                path,
                headers,
                status,
            });
            drop(state);
            let answer = format!("HTTP/1.1 {status} x\r\n{more}Content-Length: 0\r\n\r\n");
            if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn read_request(
    reader: &mut BufReader<TcpStream>,
) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.strip_prefix("POST ")?.split(' ').next()?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((path, headers, body))
}

/// Checks a signature as Standard Webhooks says: HMAC-SHA256 over id, timestamp and body, and a recent timestamp.
fn verify(headers: &BTreeMap<String, String>, body: &[u8]) -> Result<(), String> {
    let header = |name: &str| headers.get(name).ok_or_else(|| format!("{name} is missing"));
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let seconds: u64 = timestamp.parse().map_err(|_| format!("{timestamp} is no number"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    if now.abs_diff(seconds) > 300 {
        return Err(format!("the timestamp {seconds} is not of now"));
    }
    let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap()).unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let signed = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat();
    let signature = header("webhook-signature")?.strip_prefix("v1,").ok_or("no version")?;
    let signature = STANDARD.decode(signature).map_err(|error| error.to_string())?;
    ring::hmac::verify(&key, &signed, &signature).map_err(|_| format!("{id}: wrong signature"))
}
