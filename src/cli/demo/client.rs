//! The demo's HTTP client, with one connection for each request. It uses the API as any client would.
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderMap, IF_MATCH, SET_COOKIE,
};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Why a step failed.
pub(super) type DemoError = Box<dyn std::error::Error>;

/// A client of the gateway at one address.
pub(super) struct Client {
    /// The address of the gateway.
    pub(super) address: SocketAddr,
    /// What goes with every request.
    pub(super) credential: Credential,
}

/// The credential of a client.
pub(super) enum Credential {
    /// An API key.
    ApiKey(String),
    /// The cookie of a session.
    Session(String),
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

    /// Signs in with a password, and returns a client with the session.
    pub(super) async fn sign_in(&self, email: &str, password: &str) -> Result<Self, DemoError> {
        let body = Body::Json(json!({ "email": email, "password": password }).to_string());
        let (status, headers, text) = self.exchange(Method::POST, "/login", body, None).await?;
        let cookie = headers.get(SET_COOKIE).and_then(|value| value.to_str().ok());
        let Some(cookie) = cookie.filter(|_| status.is_success()) else {
            return Err(format!("signing in as {email} failed with {status}: {text}").into());
        };
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { address: self.address, credential: Credential::Session(cookie) })
    }

    /// Sends a POST without a body that requires this `ETag`, and returns the status and the text of the response.
    pub(super) async fn send_with_match(
        &self,
        path: &str,
        etag: &str,
    ) -> Result<(StatusCode, String), DemoError> {
        let (status, _, text) = self.exchange(Method::POST, path, Body::Empty, Some(etag)).await?;
        Ok((status, text))
    }

    /// Sends a request, and returns the status and the text of the response.
    pub(super) async fn send_request(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<(StatusCode, String), DemoError> {
        let (status, _, text) = self.exchange(method, path, body, None).await?;
        Ok((status, text))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Body,
        if_match: Option<&str>,
    ) -> Result<(StatusCode, HeaderMap, String), DemoError> {
        let request = Request::builder().method(method).uri(path);
        let request = match &self.credential {
            Credential::ApiKey(key) => request.header(AUTHORIZATION, format!("Bearer {key}")),
            // A session needs a sign that the request comes from the gateway's own pages.
            Credential::Session(cookie) => {
                request.header(COOKIE, cookie).header("Sec-Fetch-Site", "same-origin")
            }
        };
        let request = match if_match {
            Some(etag) => request.header(IF_MATCH, etag),
            None => request,
        };
        let request = request
            .header(HOST, self.address.to_string())
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
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.into_body().collect().await?.to_bytes();
        connection.abort();
        Ok((status, headers, String::from_utf8(body.into())?))
    }
}
