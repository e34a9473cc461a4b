//! The demo's HTTP client, with one connection for each request. It uses the API as any client would.
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Why a step failed.
pub(super) type DemoError = Box<dyn std::error::Error>;

/// A client of the gateway at one address.
pub(super) struct Client {
    /// The address of the gateway.
    pub(super) address: SocketAddr,
    /// The API key that goes with every request.
    pub(super) key: String,
}

/// A body and its media type.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// No body.
    Empty,
    /// `application/json`
    Json(String),
    /// `application/x-ndjson`
    Lines(String),
    /// `text/turtle`
    Turtle(String),
}

impl Client {
    /// Sends a GET, and returns the JSON of the response.
    pub(super) async fn get_json(&self, path: &str) -> Result<Value, DemoError> {
        self.send_for_json(Method::GET, path, Body::Empty).await
    }

    /// Sends a request that must succeed, and returns the JSON of the response.
    pub(super) async fn send_for_json(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Value, DemoError> {
        Ok(serde_json::from_str(&self.send_for_text(method, path, body).await?)?)
    }

    /// Sends a request that must succeed, and returns the text of the response.
    pub(super) async fn send_for_text(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<String, DemoError> {
        let (status, text) = self.send_request(method.clone(), path, body).await?;
        if status.is_success() {
            return Ok(text);
        }
        Err(format!("{method} {path} failed with {status}: {text}").into())
    }

    /// Sends a request, and returns the status and the text of the response.
    pub(super) async fn send_request(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<(StatusCode, String), DemoError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.key))
            .header(ACCEPT, "application/json, application/x-ndjson, */*;q=0.1");
        let (media_type, text) = match body {
            Body::Empty => (None, String::new()),
            Body::Json(text) => (Some("application/json"), text),
            Body::Lines(text) => (Some("application/x-ndjson"), text),
            Body::Turtle(text) => (Some("text/turtle"), text),
        };
        let request = match media_type {
            Some(media_type) => request.header(CONTENT_TYPE, media_type),
            None => request,
        };
        let request = request.body(Full::new(Bytes::from(text)))?;
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        connection.abort();
        Ok((status, String::from_utf8(body.into())?))
    }
}
