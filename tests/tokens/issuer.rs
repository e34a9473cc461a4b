//! A test issuer: metadata and keys, which can be late, unreachable, or replaced.
use crate::forge::{self, Key};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// An issuer that serves until it is dropped.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) audience: String,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

/// The configuration of the issuer's answers.
#[derive(Default)]
pub(crate) struct State {
    /// The current keys.
    pub(crate) keys: Vec<Value>,
    /// Whether it closes every connection without an answer.
    pub(crate) down: bool,
    /// The delay of each answer.
    pub(crate) delay: Duration,
    /// The number of requests for the keys.
    pub(crate) asked: usize,
    /// The issuer that its metadata names instead of its URL.
    pub(crate) claims_to_be: Option<String>,
}

impl Issuer {
    /// Starts an issuer with these keys.
    pub(crate) async fn start(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = keys.iter().map(|key| key.public()).collect();
        let state = Arc::new(Mutex::new(State { keys, ..State::default() }));
        let (shared_state, own_url) = (state.clone(), url.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, shared_state.clone(), own_url.clone()));
            }
        });
        Self { url, audience: "api://plant-gateway".to_owned(), state, serving }
    }

    /// Locks the configuration of the issuer's answers.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Replaces the keys.
    pub(crate) fn rotate(&self, keys: &[&Key]) {
        self.state().keys = keys.iter().map(|key| key.public()).collect();
    }
}

/// Creates the claims of a valid token of a client application.
pub(crate) fn claims(issuer: &Issuer) -> Value {
    forge::claims(&issuer.url, &issuer.audience)
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(mut stream: TcpStream, state: Arc<Mutex<State>>, url: String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap().to_owned();
    let (body, delay) = {
        let mut state = state.lock().unwrap();
        if state.down {
            return;
        }
        let body = match path.as_str() {
            "/.well-known/openid-configuration" => Some(json!({
                "issuer": state.claims_to_be.as_ref().unwrap_or(&url),
                "jwks_uri": format!("{url}/jwks"),
            })),
            "/jwks" => {
                state.asked += 1;
                Some(json!({"keys": state.keys}))
            }
            _ => None,
        };
        (body, state.delay)
    };
    tokio::time::sleep(delay).await;
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let body = body.unwrap_or_default().to_string();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}
