//! A gateway on a free port of the loopback address, and a client for it.
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use penstock_auth::accounts;
use penstock_auth::keys::NewApiKey;
use penstock_auth::password::Hash;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_cli::app;
use penstock_config::{Sources, load};
use penstock_service::gateway::Gateway;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running gateway.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The path of the control socket.
    pub(crate) control: PathBuf,
    /// The opened gateway; `None` after the stop.
    pub(crate) gateway: Option<Gateway>,
    /// An Admin's API key, which is sent with every request that has no credential.
    pub(crate) key: String,
    pub(crate) dir: Option<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), GatewayError>>,
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
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self::start_in(dir.path(), arguments).await.unwrap();
        server.dir = Some(dir);
        server
    }

    /// Starts a gateway in an existing data directory.
    pub(crate) async fn start_in(dir: &Path, arguments: &[&str]) -> Result<Self, GatewayError> {
        let data = dir.join("data");
        let mut all =
            vec![format!("--service.data-dir={}", data.display()), "--server.port=0".to_owned()];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let loaded = load(&Sources { arguments: all, ..Sources::default() }).unwrap();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app::serve_until(
            Arc::new(loaded.settings),
            Box::new(|| None),
            move |address, gateway| ready.send((address, gateway)).ok().unwrap(),
            async {
                let _ = stopped.await;
            },
        ));
        let Ok((address, gateway)) = is_ready.await else {
            return Err(running.await.unwrap().unwrap_err());
        };
        let control = data.join("control.sock");
        let mut server = Self {
            address,
            control,
            gateway: Some(gateway),
            key: String::new(),
            dir: None,
            stop: Some(stop),
            running,
        };
        server.key = server.make_key(Role::Admin, None);
        Ok(server)
    }

    /// Creates an API key, as local administration does.
    pub(crate) fn make_key(&self, role: Role, business_object: Option<&str>) -> String {
        let gateway = self.gateway.as_ref().unwrap();
        let business_object =
            business_object.map(|name| gateway.catalogue.get(name).unwrap().object.id.clone());
        let new = NewApiKey { name: "tests".to_owned(), role, expires_at: None, business_object };
        gateway.auth.keys.create_key(&Authorized::local(), new).unwrap().1
    }

    /// Creates an account with this role and a session of it, and returns the cookie.
    pub(crate) fn sign_in(&self, role: Role) -> String {
        let accounts = &self.gateway.as_ref().unwrap().auth.accounts;
        let sessions = &self.gateway.as_ref().unwrap().auth.sessions;
        let new = accounts::NewAccount {
            given_name: None,
            family_name: None,
            email: format!("{}@plant.example", uuid::Uuid::now_v7()),
            organization: None,
            role,
            enabled: true,
            password: String::new(),
        };
        let account = accounts
            .create(&Authorized::local(), new, Hash::from_password("of no account").unwrap())
            .unwrap();
        format!("penstock_session={}", sessions.start_session(&account, None, None).unwrap().id)
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
    pub(crate) async fn stop(mut self) -> Option<TempDir> {
        self.gateway = None;
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.running).await.unwrap().unwrap();
        // The tasks of closed connections may keep the store open for a moment.
        let lock = std::fs::File::open(self.control.with_file_name("store").join("lock")).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while lock.try_lock().is_err() {
            assert!(std::time::Instant::now() < deadline, "the store is still open");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        lock.unlock().unwrap();
        self.dir.take()
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

impl Drop for Server {
    fn drop(&mut self) {
        self.running.abort();
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
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    // A stream of events has no end.
    let streams = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let body = if streams { Bytes::new() } else { body.collect().await.unwrap().to_bytes() };
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
