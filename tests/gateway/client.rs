//! A client of one server. It opens a connection for each request and reads each answer to its end.
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::convert::Infallible;
use std::net::SocketAddr;

/// Sends requests to the server at one address. Cheap to copy into threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// The API key for requests without another credential. The string is leaked, so that clients can be copied.
    key: Option<&'static str>,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    /// Creates a client without credentials.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, key: None }
    }

    /// Returns this client with an API key.
    pub(crate) fn with_key(self, key: String) -> Self {
        Self { key: Some(key.leak()), ..self }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Bytes::new())
            .unwrap_or_else(|e| panic!("GET {path}: {e}"))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        let json = [(CONTENT_TYPE.as_str(), "application/json")];
        self.send(Method::PUT, path, &json, body.to_string())
            .unwrap_or_else(|e| panic!("PUT {path}: {e}"))
    }

    pub(crate) fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.try_post(path, body).unwrap_or_else(|e| panic!("POST {path}: {e}"))
    }

    /// Posts as `post` does, but returns an error if the server stops.
    pub(crate) fn try_post(&self, path: &str, body: impl Into<Bytes>) -> Result<Answer, String> {
        self.send(Method::POST, path, &[(CONTENT_TYPE.as_str(), "application/json")], body)
    }

    /// Posts a body as a stream, without a `Content-Length`.
    pub(crate) fn send_chunks(
        &self,
        path: &str,
        content_type: &str,
        chunks: impl Iterator<Item = Bytes> + Send + Sync + 'static,
    ) -> Answer {
        let frames = stream::iter(chunks.map(|chunk| Ok(Frame::data(chunk))));
        let headers = [(CONTENT_TYPE.as_str(), content_type)];
        self.exchange(Method::POST, path, &headers, StreamBody::new(frames).boxed())
            .unwrap_or_else(|e| panic!("POST {path}: {e}"))
    }

    pub(crate) fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        self.exchange(method, path, headers, Full::new(body.into()).boxed())
    }

    fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: BoxBody<Bytes, Infallible>,
    ) -> Result<Answer, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .body(body)
            .map_err(|e| e.to_string())?;
        let shown = ["authorization", "apikey", "cookie"];
        if let Some(key) = self.key
            && !headers.iter().any(|(name, _)| shown.contains(name))
        {
            let value = format!("Bearer {key}").parse().map_err(|_| "a bad key")?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        for (name, value) in headers {
            let name: hyper::header::HeaderName = name.parse().map_err(|_| "a bad header name")?;
            request.headers_mut().insert(name, value.parse().map_err(|_| "a bad header value")?);
        }
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be created")
            .block_on(async {
                let stream = tokio::net::TcpStream::connect(self.address)
                    .await
                    .map_err(|e| format!("connecting: {e}"))?;
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(stream))
                        .await
                        .map_err(|e| format!("handshake: {e}"))?;
                let connection = tokio::spawn(connection);
                let response =
                    sender.send_request(request).await.map_err(|e| format!("sending: {e}"))?;
                let (head, body) = response.into_parts();
                let body = body.collect().await.map_err(|e| format!("reading: {e}"))?.to_bytes();
                connection.abort();
                Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
            })
    }
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("answers are UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{} is not JSON: {e}\n{}", self.status, self.text()))
    }

    /// Returns the answer, which must have this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
