//! Successful responses.
use super::problem::Problem;
use super::sending::EVENT_STREAM_MEDIA_TYPE;
use bytes::Bytes;
use salvo::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use salvo::http::{ResBody, StatusCode};
use salvo::{Response, Scribe};
use serde::Serialize;

/// The result of a handler.
pub type ReplyResult = Result<Reply, Problem>;

/// A successful response: status, media type, headers and body.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    media_type: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: ResBody,
}

impl Reply {
    /// Creates a 200 with a value as JSON.
    pub fn json(value: &impl Serialize) -> ReplyResult {
        match serde_json::to_vec(value) {
            Ok(bytes) => Ok(Self::bytes("application/json", bytes)),
            Err(error) => {
                tracing::error!(%error, "An answer could not be written as JSON.");
                Err(Problem::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the answer could not be written; the gateway's log says why",
                ))
            }
        }
    }

    /// Creates a 200 with these bytes.
    pub fn bytes(media_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self::stream(media_type, ResBody::Once(bytes.into()))
    }

    /// Creates a 200 with this body.
    pub fn stream(media_type: &'static str, body: ResBody) -> Self {
        Self { status: StatusCode::OK, media_type, headers: Vec::new(), body }
    }

    /// Creates a 204, without a body.
    pub fn no_content() -> Self {
        let status = StatusCode::NO_CONTENT;
        Self { status, media_type: "", headers: Vec::new(), body: ResBody::None }
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_media_type(mut self, media_type: &'static str) -> Self {
        self.media_type = media_type;
        self
    }

    /// Sets the status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header. A value that no header can contain is left out.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }
}

impl Scribe for Reply {
    fn render(self, res: &mut Response) {
        res.status_code(self.status);
        if !self.media_type.is_empty() {
            res.headers_mut().insert(CONTENT_TYPE, to_content_type(self.media_type));
        }
        for (name, value) in self.headers {
            res.headers_mut().insert(name, value);
        }
        res.replace_body(self.body);
    }
}

/// Returns the value of `Content-Type`. Without a charset, programs may read text as ISO 8859-1. Events are always UTF-8
/// (HTML, 9.2.5).
fn to_content_type(media_type: &'static str) -> HeaderValue {
    let has_charset = media_type.contains(';') || media_type == EVENT_STREAM_MEDIA_TYPE;
    if media_type.starts_with("text/") && !has_charset {
        let with_charset = HeaderValue::from_str(&format!("{media_type}; charset=utf-8"));
        return with_charset.unwrap_or(HeaderValue::from_static(media_type));
    }
    HeaderValue::from_static(media_type)
}
