//! A receiver of webhooks: a small HTTP server that checks every signature and answers as the test wants.
use crate::stub::{StubRequest, answer_with, serve};
use crate::wait_for;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The secret that the receiver expects, and its bytes.
pub const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A request that the receiver got.
#[derive(Debug, Clone)]
pub struct Received {
    pub id: String,
    pub event: Value,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    /// The status of the answer.
    pub status: u16,
}

/// The answer to a request: its status, and further header lines.
pub type Answer = (u16, &'static str);

/// A running receiver. Its thread ends with the process.
#[derive(Clone)]
pub struct Receiver {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    received: Vec<Received>,
    answer: Answer,
    errors: Vec<String>,
}

impl Receiver {
    /// Starts a receiver on a free port that accepts every event.
    pub fn start() -> Self {
        let state = State { received: Vec::new(), answer: (204, ""), errors: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let serving = Arc::clone(&state);
        Self { address: serve(move |request| Some(take(&serving, request))), state }
    }

    /// Returns the settings of a webhook for these events.
    pub fn settings(&self, name: &str, events: &str) -> Vec<String> {
        let prefix = format!("--service.webhooks.{name}");
        vec![
            format!("{prefix}.url=http://{}/hook-of-the-url?token=of-the-url", self.address),
            format!("{prefix}.secret={SECRET}"),
            format!("{prefix}.events={events}"),
        ]
    }

    /// Sets the answer to the next requests.
    pub fn answer(&self, answer: Answer) {
        self.lock().answer = answer;
    }

    /// Returns the requests so far.
    pub fn received(&self) -> Vec<Received> {
        let state = self.lock();
        assert_eq!(state.errors, Vec::<String>::new());
        state.received.clone()
    }

    /// Returns the events that were accepted, in order.
    pub fn accepted(&self) -> Vec<Received> {
        self.received().into_iter().filter(|one| (200..300).contains(&one.status)).collect()
    }

    /// Waits until the requests so far satisfy a condition, and returns them.
    #[track_caller]
    pub fn until(&self, what: &str, is_met: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let mut received = Vec::new();
        wait_for(what, || {
            received = self.received();
            is_met(&received)
        });
        received
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records a request, and returns the answer to it.
fn take(state: &Mutex<State>, request: StubRequest) -> String {
    let StubRequest { path, headers, body, .. } = request;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
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
    answer_with(&format!("{status} x"), more, "")
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
