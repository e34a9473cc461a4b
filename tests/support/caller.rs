//! Clients of a gateway. They open a connection for each request and read each answer to its end.
use crate::{Answer, JsonExt as _, TestApp};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::Request;
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use penstock_auth::sessions::Sessions;
use penstock_base::Role;
use serde_json::Value;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

type Body = BoxBody<Bytes, Infallible>;

/// The type of a body of JSON.
pub const JSON: (&str, &str) = ("Content-Type", "application/json");
/// The type of a body of lines of JSON.
pub const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");
/// The type of a body of RDF in Turtle.
pub const TURTLE: (&str, &str) = ("Content-Type", "text/turtle");
/// The type of the body of a form.
pub const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
/// What a browser accepts.
pub const HTML: (&str, &str) = ("Accept", "text/html");

/// Sends requests with the headers of one credential.
#[derive(Debug, Clone)]
pub struct Caller {
    pub address: SocketAddr,
    /// The headers of each request that has no other credential.
    pub headers: Vec<(&'static str, String)>,
}

impl Caller {
    /// Creates a caller with an API key or an access token.
    pub fn with_token(address: SocketAddr, token: &str) -> Self {
        Self { address, headers: vec![("Authorization", format!("Bearer {token}"))] }
    }

    /// Creates a caller with a session, whose requests come from a page of the gateway.
    pub fn with_session(address: SocketAddr, cookie: String) -> Self {
        let token = Sessions::csrf_token(cookie.split_once('=').unwrap().1);
        let origin = ("Sec-Fetch-Site", "same-origin".to_owned());
        Self { address, headers: vec![("Cookie", cookie), origin, ("X-CSRF-Token", token)] }
    }

    /// Sends a request with these headers too.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut headers = more.to_vec();
        if !has_credential(more) {
            headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_str())));
        }
        connect(self.address, method, path, &headers, body).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "").await
    }

    /// Returns the JSON at this path.
    pub async fn read(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "GET {path}: {:?}", answer.text());
        answer.json()
    }

    /// Returns the text at this path, such as a page.
    pub async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "GET {path}: {:?}", answer.text());
        answer.text()
    }

    /// Returns the items of the list at this path.
    pub async fn items(&self, path: &str) -> Vec<Value> {
        self.read(path).await["items"].list().to_vec()
    }

    /// Returns the items of all pages of a list, whose address has a query. Each page but the last has `size` items.
    pub async fn all(&self, path: &str, size: usize) -> Vec<Value> {
        let (mut found, mut next) = (Vec::new(), path.to_owned());
        loop {
            let page = self.read(&next).await;
            let items = page["items"].list();
            found.extend_from_slice(items);
            let Some(cursor) = page["next"].as_str() else { return found };
            assert_eq!(items.len(), size, "GET {next}");
            next = format!("{path}&cursor={}", escaped(cursor));
        }
    }

    /// Sends a form, as a page of the gateway does.
    pub async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send("POST", path, &[FORM, HTML], encode_form(fields)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[JSON], body.to_string()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[JSON], body.to_string()).await
    }

    /// Sends a `POST` without a body.
    pub async fn post_empty(&self, path: &str) -> Answer {
        self.send("POST", path, &[], "").await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").await
    }
}

/// A signed-in account that sends requests.
pub struct Person {
    pub id: String,
    caller: Caller,
}

impl Deref for Person {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Person {
    /// Creates an account with this role, and signs it in.
    pub async fn sign_in(app: &TestApp, role: Role) -> Self {
        let caller = app.session(role);
        let id = caller.read("/api/v1/users/me").await["id"].string();
        Self { id, caller }
    }

    /// Returns the account as a client of another start of its gateway.
    pub fn at(&self, app: &TestApp) -> Self {
        let caller = Caller { address: app.address, headers: self.headers.clone() };
        Self { id: self.id.clone(), caller }
    }

    /// Takes a step of a change under review.
    pub async fn step(&self, change: &str, action: &str, if_match: &str) -> Answer {
        let headers = [("If-Match", if_match)];
        let headers = if if_match.is_empty() { &headers[..0] } else { &headers[..] };
        self.send("POST", &format!("/api/v1/changes/{change}/{action}"), headers, "").await
    }
}

/// Sends requests as [`Caller`] does, and blocks. Cheap to copy into threads.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    pub address: SocketAddr,
    /// The API key for requests without another credential. The string is leaked, so that clients can be copied.
    key: Option<&'static str>,
}

impl Client {
    /// Creates a client without credentials.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, key: None }
    }

    /// Returns this client with an API key.
    #[must_use]
    pub fn with_key(self, key: String) -> Self {
        Self { key: Some(key.leak()), ..self }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").unwrap_or_else(|e| panic!("GET {path}: {e}"))
    }

    /// Returns the JSON at this path.
    #[track_caller]
    pub fn read(&self, path: &str) -> Value {
        self.get(path).expect(200).json()
    }

    /// Returns the items of all pages of a list, whose address has a query.
    #[track_caller]
    pub fn all(&self, path: &str) -> Vec<Value> {
        let (mut found, mut next) = (Vec::new(), path.to_owned());
        loop {
            let page = self.read(&next);
            found.extend_from_slice(page["items"].list());
            let Some(cursor) = page["next"].as_str() else { return found };
            next = format!("{path}&cursor={}", escaped(cursor));
        }
    }

    /// Sends a `DELETE`.
    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], "").unwrap_or_else(|e| panic!("DELETE {path}: {e}"))
    }

    pub fn put(&self, path: &str, body: &Value) -> Answer {
        self.send("PUT", path, &[JSON], body.to_string())
            .unwrap_or_else(|e| panic!("PUT {path}: {e}"))
    }

    pub fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.try_post(path, body).unwrap_or_else(|e| panic!("POST {path}: {e}"))
    }

    /// Posts as `post` does, but returns an error if the server stops.
    pub fn try_post(&self, path: &str, body: impl Into<Bytes>) -> Result<Answer, String> {
        self.send("POST", path, &[JSON], body)
    }

    /// Posts a body as a stream, without a `Content-Length`.
    pub fn send_chunks(
        &self,
        path: &str,
        content_type: &str,
        chunks: impl Iterator<Item = Bytes> + Send + Sync + 'static,
    ) -> Answer {
        let frames = stream::iter(chunks.map(|chunk| Ok(Frame::data(chunk))));
        self.exchange(
            "POST",
            path,
            &[("Content-Type", content_type)],
            StreamBody::new(frames).boxed(),
        )
        .unwrap_or_else(|e| panic!("POST {path}: {e}"))
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        self.exchange(method, path, headers, Full::new(body.into()).boxed())
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Result<Answer, String> {
        let bearer = self.key.map(|key| format!("Bearer {key}"));
        let mut headers = headers.to_vec();
        if !has_credential(&headers) {
            headers.extend(bearer.iter().map(|bearer| ("Authorization", bearer.as_str())));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let stream = TcpStream::connect(self.address).await;
            let stream = stream.map_err(|e| format!("connecting: {e}"))?;
            let request = request(&self.address.to_string(), method, path, &headers, body)?;
            exchange(stream, request).await
        })
    }
}

fn has_credential(headers: &[(&str, &str)]) -> bool {
    let credentials = ["authorization", "apikey", "cookie"];
    headers.iter().any(|(name, _)| credentials.contains(&name.to_ascii_lowercase().as_str()))
}

/// Sends one request over a new connection, without adding a credential.
pub async fn connect(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let stream = TcpStream::connect(address).await.unwrap();
    let body = Full::new(body.into()).boxed();
    let request = request(&address.to_string(), method, path, headers, body).unwrap();
    exchange(stream, request).await.unwrap()
}

/// Sends a request through a control socket.
pub async fn control(
    socket: &Path,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let stream = UnixStream::connect(socket).await.unwrap();
    let body = Full::new(body.into()).boxed();
    exchange(stream, request("penstock", method, path, headers, body).unwrap()).await.unwrap()
}

/// Builds a request for this host, unless another is among the headers.
fn request(
    host: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Body,
) -> Result<Request<Body>, String> {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request = request.header("Host", host);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).map_err(|e| e.to_string())
}

/// Sends a request over this connection. Reads the answer to its end, except for a stream of events, which has none.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<Answer, String> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| format!("handshake: {e}"))?;
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|e| format!("sending: {e}"))?;
    let (mut parts, body) = answer.into_parts();
    let is_stream =
        parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let body = if is_stream {
        Bytes::new()
    } else {
        let whole = body.collect().await.map_err(|e| format!("reading: {e}"))?;
        parts.headers.extend(whole.trailers().cloned().unwrap_or_default());
        whole.to_bytes()
    };
    connection.abort();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
}

/// Encodes the fields of a form.
pub fn encode_form(fields: &[(&str, &str)]) -> String {
    let pairs = fields.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Percent-encodes every character that could have a meaning in a path or query.
pub fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
