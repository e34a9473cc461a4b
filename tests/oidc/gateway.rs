//! The binary, with sign-in at a provider.
use crate::server::{Server, penstock};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use tempfile::TempDir;

/// A running gateway, killed on drop.
pub(crate) struct Gateway {
    server: Server,
    pub(crate) url: String,
    pub(crate) dir: TempDir,
}

impl Gateway {
    /// Starts a gateway with these settings, and waits until it is ready.
    pub(crate) async fn start(settings: &[String]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = penstock(dir.path());
        command.args(["serve", "--server.port=0", "--service.data-dir=data"]).args(settings);
        let server = tokio::task::spawn_blocking(move || Server::spawn(&mut command));
        let server = server.await.unwrap();
        Self { url: server.url.clone(), server, dir }
    }

    /// Starts a gateway with sign-in at this provider, and registers it there.
    pub(crate) async fn start_with_provider(provider: &super::Provider, more: &[&str]) -> Self {
        let mut settings = settings(&provider.issuer);
        settings.extend(more.iter().map(|setting| (*setting).to_owned()));
        let gateway = Self::start(&settings).await;
        provider.register_redirect_uri(&gateway.url, "kc").await;
        gateway
    }

    /// Returns the output of the gateway so far.
    pub(crate) fn log(&self) -> String {
        self.server.log()
    }

    /// Sends a `GET` as local administration.
    pub(crate) fn get_locally(&self, path: &str) -> Value {
        self.send_locally("GET", path, "")
    }

    /// Sends a request as local administration, over the control socket.
    pub(crate) fn send_locally(&self, method: &str, path: &str, body: &str) -> Value {
        let socket = self.dir.path().join("data/control.sock");
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{answer}");
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    /// Returns the account with this `email`.
    pub(crate) fn account(&self, email: &str) -> Value {
        let users = self.get_locally("/api/v1/users");
        let found: Vec<_> = users["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|user| user["email"] == email)
            .collect();
        assert_eq!(found.len(), 1, "{users}");
        found[0].clone()
    }

    /// Lists the details of every event of this kind in the audit trail.
    pub(crate) fn events(&self, what: &str) -> Vec<String> {
        let audit = self.get_locally("/api/v1/audit");
        let items = audit["items"].as_array().unwrap().iter().filter(|event| event["what"] == what);
        items.map(|event| event["detail"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns the settings of sign-in at this issuer, with the registration `kc`.
pub(crate) fn settings(issuer: &str) -> Vec<String> {
    let client = "--framework.security.oauth2.client";
    vec![
        "--security=oauth2".into(),
        "--profiles.active=oauth2".into(),
        "--service.security.registration=kc".into(),
        format!("{client}.registration.kc.client-id=penstock-web"),
        format!("{client}.registration.kc.client-secret=web-secret-0123456789abcdef0123456"),
        format!("{client}.provider.kc.issuer-uri={issuer}"),
    ]
}
