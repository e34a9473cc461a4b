//! The answer to a request.
use crate::JsonExt as _;
use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::Value;

/// The whole answer to a request. Trailers count as headers.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{} is no JSON: {error}: {:?}", self.status, self.text())
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns a header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the lines of NDJSON.
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that the answer has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?}", self.text());
        self
    }

    /// Asserts that the answer is a problem with this status, and returns it.
    #[track_caller]
    pub fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["title"].is_string(), "{problem}");
        assert!(!problem["detail"].text().is_empty());
        problem
    }

    /// Asserts that the answer is a problem with this status and these words in its detail, and returns it.
    #[track_caller]
    pub fn refused(&self, status: u16, words: &str) -> Value {
        let problem = self.problem(status);
        assert!(problem["detail"].has(words), "no {words:?}: {problem}");
        problem
    }

    /// Asserts that the answer is a problem 422 with an error at this place that has these words.
    #[track_caller]
    pub fn refused_at(&self, pointer: &str, words: &str) {
        let problem = self.problem(422);
        let found = problem["errors"].list().iter().find(|error| error["pointer"] == pointer);
        assert!(found.is_some_and(|error| error["message"].has(words)), "{problem}");
    }
}
