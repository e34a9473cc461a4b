//! The answer to a request, or why there is none.
use reqwest::header::HeaderMap;
use std::time::Duration;

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body, up to a limit.
    pub(crate) body: String,
}

/// A request without an answer.
#[derive(Debug)]
pub(crate) struct LostRequest {
    pub(crate) why: RequestError,
    /// Whether the whole request was sent, as far as the gateway knows. Then the server may have processed it, or
    /// may still be processing it.
    pub(crate) fully_sent: bool,
}

/// The reason why there was no answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The request could not be created.
    NotCreated(String),
    /// The connection failed or broke.
    Http(reqwest::Error),
    /// There was no progress for this long.
    Stalled(Duration),
    /// The file to send could not be read.
    Source(String),
}

impl RequestError {
    /// Returns whether the server cannot have received the whole request.
    pub(super) fn is_certainly_incomplete(&self) -> bool {
        match self {
            Self::NotCreated(_) | Self::Source(_) => true,
            Self::Http(error) => error.is_connect(),
            Self::Stalled(_) => false,
        }
    }
}

impl From<RequestError> for LostRequest {
    fn from(why: RequestError) -> Self {
        Self { why, fully_sent: false }
    }
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
