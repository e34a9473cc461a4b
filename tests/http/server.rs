//! A gateway and a client for it.
use crate::in_process::InProcess;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use penstock_auth::accounts;
use penstock_auth::keys::NewApiKey;
use penstock_auth::password::Hash;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_service::gateway::Gateway;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A running gateway.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The path of the control socket.
    pub(crate) control: PathBuf,
    /// An Admin's API key, which is sent with every request that has no credential.
    pub(crate) key: String,
    running: InProcess,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the lines of NDJSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that the answer is a problem with this status, and returns it.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["title"].is_string(), "{problem}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        problem
    }

    /// Asserts that the answer has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?}", String::from_utf8_lossy(&self.body));
        self
    }
}

impl Server {
    /// Starts a gateway with its own data directory.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        Self::with_key(InProcess::start(arguments).await)
    }

    /// Starts a gateway in an existing data directory.
    pub(crate) async fn start_in(dir: &Path, arguments: &[&str]) -> Result<Self, GatewayError> {
        Ok(Self::with_key(InProcess::start_in(dir, arguments).await?))
    }

    fn with_key(running: InProcess) -> Self {
        let control = running.gateway().settings.data_dir.join("control.sock");
        let mut server = Self { address: running.address, control, key: String::new(), running };
        server.key = server.make_key(Role::Admin, None);
        server
    }

    /// Returns the opened gateway.
    pub(crate) fn gateway(&self) -> &Gateway {
        self.running.gateway()
    }

    /// Returns the folder of a gateway that was started in its own.
    pub(crate) fn dir(&self) -> &Path {
        self.running.dir()
    }

    /// Creates an API key, as local administration does.
    pub(crate) fn make_key(&self, role: Role, business_object: Option<&str>) -> String {
        let gateway = self.gateway();
        let business_object =
            business_object.map(|name| gateway.catalogue.get(name).unwrap().object.id.clone());
        let new = NewApiKey {
            name: "tests".to_owned(),
            role,
            expires_at: None,
            business_object,
            business_objects: Vec::new(),
        };
        gateway.auth.keys.create_key(&Authorized::local(), new).unwrap().1
    }

    /// Creates an account with this role and a session of it, and returns the cookie.
    pub(crate) fn sign_in(&self, role: Role) -> String {
        let auth = &self.gateway().auth;
        let new = accounts::NewAccount {
            given_name: None,
            family_name: None,
            email: format!("{}@plant.example", uuid::Uuid::now_v7()),
            organization: None,
            role,
            enabled: true,
            password: String::new(),
        };
        let account = auth
            .accounts
            .create(&Authorized::local(), new, Hash::from_password("of no account").unwrap())
            .unwrap();
        format!(
            "penstock_session={}",
            auth.sessions.start_session(&account, None, None).unwrap().id
        )
    }

    /// Sends a request through the control socket.
    pub(crate) async fn control(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let stream = UnixStream::connect(&self.control).await.unwrap();
        exchange(stream, "penstock", method, path, headers, body).await
    }

    /// Returns the header line that authenticates a request with the Admin's key.
    pub(crate) fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.key)
    }

    /// Stops the gateway gracefully and returns its directory.
    pub(crate) async fn stop(self) -> Option<TempDir> {
        self.running.stop().await
    }

    /// Sends a request, with the Admin's key unless another credential is among the headers.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let credentials = ["authorization", "apikey", "cookie"];
        let key = format!("Bearer {}", self.key);
        let mut headers = headers.to_vec();
        if !headers
            .iter()
            .any(|(name, _)| credentials.contains(&name.to_ascii_lowercase().as_str()))
        {
            headers.push(("Authorization", &key));
        }
        connect(self.address, method, path, &headers, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[("Content-Type", "application/json")], body.to_string()).await
    }

    /// Defines the Business Object `Pump`.
    pub(crate) async fn define(&self) -> Value {
        self.json("PUT", "/api/v1/business-objects", &definition()).await.expect(201).json()
    }

    /// Defines `Pump` with these members replaced.
    pub(crate) async fn define_with(&self, others: &Value) {
        let mut definition = definition();
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        let put = self.json("PUT", "/api/v1/business-objects", &definition).await;
        assert!(matches!(put.status, 200 | 201), "{put:?}");
    }

    /// Ingests these objects into `Pump`.
    pub(crate) async fn ingest(&self, mode: &str, objects: &Value) -> Answer {
        let path = format!("/api/v1/business-objects/Pump?mode={mode}");
        self.json("POST", &path, &json!({"data": objects})).await
    }
}

/// Sends one request over a new connection, without adding a credential.
pub(crate) async fn connect(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    exchange(stream, &address.to_string(), method, path, headers, body).await
}

pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("Host", host);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = request.body(Full::new(body.into())).unwrap();
    let (mut parts, body) = sender.send_request(request).await.unwrap().into_parts();
    // A stream of events has no end.
    let streams = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let body = if streams {
        Bytes::new()
    } else {
        let whole = body.collect().await.unwrap();
        // Trailers count as headers.
        parts.headers.extend(whole.trailers().cloned().unwrap_or_default());
        whole.to_bytes()
    };
    connection.abort();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// Returns the definition of a pump with parts.
pub(crate) fn definition() -> Value {
    json!({
        "name": "Pump",
        "description": "Pumps of the plant",
        "enabled": true,
        "config": concat!(
            "type: object\n",
            "path: Pump:.\n",
            "fields:\n",
            "  name:\n",
            "    type: string\n",
            "    path: <https://plant.example/name>\n",
            "  flow:\n",
            "    type: number\n",
            "    path: <https://plant.example/flow>\n",
            "  parts:\n",
            "    type: array\n",
            "    path: <https://plant.example/part>\n",
            "    elements:\n",
            "      type: object\n",
            "      path: Part:.\n",
            "      fields:\n",
            "        label:\n",
            "          type: string\n",
            "          path: <https://plant.example/label>\n",
        ),
        "conditions": [],
        "pushTargets": [{"bucketName": "plant-exports"}],
    })
}

/// Percent-encodes every character that could have a meaning in a path or query.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }
        })
        .collect()
}
