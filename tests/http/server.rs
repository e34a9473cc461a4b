//! A gateway that serves on a free port of the loopback address, and a client of its own.
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use penstock::app;
use penstock::config::{Sources, load};
use penstock::fault::Fault;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A gateway that serves.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) dir: Option<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), Fault>>,
}

/// What came back.
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

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The lines of NDJSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that it is a problem of this status and gives it.
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

    /// Asserts that it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?}", String::from_utf8_lossy(&self.body));
        self
    }
}

impl Server {
    /// With a data directory of its own.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self::start_in(dir.path(), arguments).await.unwrap();
        server.dir = Some(dir);
        server
    }

    /// In a data directory that is there.
    pub(crate) async fn start_in(dir: &Path, arguments: &[&str]) -> Result<Self, Fault> {
        let mut all = vec![
            format!("--service.data-dir={}", dir.join("data").display()),
            "--server.port=0".to_owned(),
        ];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let loaded = load(&Sources { arguments: all, ..Sources::default() }).unwrap();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app::serve_until(
            Arc::new(loaded.settings),
            Box::new(|| None),
            move |address, _| ready.send(address).unwrap(),
            async {
                let _ = stopped.await;
            },
        ));
        match is_ready.await {
            Ok(address) => Ok(Self { address, dir: None, stop: Some(stop), running }),
            Err(_) => Err(running.await.unwrap().unwrap_err()),
        }
    }

    /// Stops it in good order and gives back its directory.
    pub(crate) async fn stop(mut self) -> Option<TempDir> {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.running).await.unwrap().unwrap();
        self.dir.take()
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        connect(self.address, method, path, headers, body).await
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

/// Sends one request over a connection of its own.
pub(crate) async fn connect(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("Host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = request.body(Full::new(body.into())).unwrap();
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    connection.abort();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// A pump with parts.
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

/// Percent-encodes all that could mean something in a path or query.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }
        })
        .collect()
}
