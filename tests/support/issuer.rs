//! A test issuer: metadata and keys, which can be late, unreachable, or replaced.
use crate::forge::{self, Key};
use crate::stub::{StubRequest, answer_with, serve};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// An issuer that serves until the process ends.
pub struct Issuer {
    pub url: String,
    pub audience: String,
    state: Arc<Mutex<State>>,
}

/// The configuration of the issuer's answers.
#[derive(Default)]
pub struct State {
    /// The current keys.
    pub keys: Vec<Value>,
    /// Whether it closes every connection without an answer.
    pub down: bool,
    /// The delay of each answer.
    pub delay: Duration,
    /// The number of requests for the keys.
    pub asked: usize,
    /// The issuer that its metadata names instead of its URL.
    pub claims_to_be: Option<String>,
}

impl Issuer {
    /// Starts an issuer with these keys.
    pub fn start(keys: &[&Key]) -> Self {
        let keys = keys.iter().map(|key| key.public()).collect();
        let state = Arc::new(Mutex::new(State { keys, ..State::default() }));
        let shared = Arc::clone(&state);
        let url = format!("http://{}", serve(move |request| answer(&shared, &request)));
        Self { url, audience: "api://plant-gateway".to_owned(), state }
    }

    /// Starts an issuer with one RSA key.
    pub fn with_key() -> (Key, Self) {
        let key = Key::rsa("first");
        let issuer = Self::start(&[&key]);
        (key, issuer)
    }

    /// Locks the configuration of the issuer's answers.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Replaces the keys.
    pub fn rotate(&self, keys: &[&Key]) {
        self.state().keys = keys.iter().map(|key| key.public()).collect();
    }
}

/// Returns the settings that accept the access tokens of an issuer for this audience.
pub fn accept_tokens(issuer: &str, audience: &str) -> Vec<String> {
    let resource_server = "--framework.security.oauth2.resourceserver.jwt";
    vec![
        format!("{resource_server}.issuer-uri={issuer}"),
        format!("{resource_server}.audiences={audience}"),
    ]
}

/// Returns the settings of sign-in at an issuer with this client id, and the registration `kc`.
pub fn sign_in_settings(issuer: &str, client_id: &str) -> Vec<String> {
    let client = "--framework.security.oauth2.client";
    vec![
        "--security=oauth2".to_owned(),
        "--profiles.active=oauth2".to_owned(),
        "--service.security.registration=kc".to_owned(),
        format!("{client}.registration.kc.client-id={client_id}"),
        format!("{client}.registration.kc.client-secret=web-secret-0123456789abcdef0123456"),
        format!("{client}.provider.kc.issuer-uri={issuer}"),
    ]
}

/// Creates the claims of a valid token of a client application.
pub fn claims(issuer: &Issuer) -> Value {
    forge::claims(&issuer.url, &issuer.audience)
}

/// Returns the answer to a request, after the delay.
fn answer(state: &Mutex<State>, request: &StubRequest) -> Option<String> {
    let url = format!("http://{}", request.headers["host"]);
    let (body, delay) = {
        let mut state = state.lock().unwrap();
        if state.down {
            return None;
        }
        let body = match request.path.as_str() {
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
    std::thread::sleep(delay);
    let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
    let lines = "Content-Type: application/json\r\nConnection: close\r\n";
    Some(answer_with(status, lines, &body.unwrap_or_default().to_string()))
}
