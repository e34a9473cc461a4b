//! Errors on the wire: `application/problem+json` (RFC 9457).

use super::accept::accepts_html;
use super::origin::{Origin, add_prefix};
use penstock_auth::AuthError;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::telemetry::trace::Trace;
use penstock_resources::problem;
use salvo::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use salvo::http::{ResBody, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use std::fmt::Write as _;

/// An error response.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    errors: Vec<Finding>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// Creates a problem with its cause in words.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), errors: Vec::new(), headers: Vec::new() }
    }

    /// 400: a parameter or header cannot be read.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 404: there is no such resource.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 503, with `Retry-After` in seconds.
    pub fn unavailable(seconds: u64, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            .with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds the challenge: which credentials are accepted, and what was wrong with those in the request (RFC 6750,
    /// 3). `error` is `None` for a request without credentials.
    #[must_use]
    pub(super) fn with_challenge(self, error: Option<BearerError>) -> Self {
        let mut challenge = r#"Bearer realm="penstock""#.to_owned();
        if let Some(error) = error {
            let code = match error {
                BearerError::InvalidRequest => "invalid_request",
                BearerError::InvalidToken => "invalid_token",
                BearerError::InsufficientScope => "insufficient_scope",
            };
            // A description may have only these characters, no quotes and no backslashes.
            let description: String = self
                .detail
                .chars()
                .map(|c| match c {
                    '"' => '\'',
                    ' '..='[' | ']'..='~' => c,
                    _ => '?',
                })
                .collect();
            // Writing into a string cannot fail.
            let _ = write!(challenge, r#", error="{code}", error_description="{description}""#);
        }
        match HeaderValue::try_from(challenge) {
            Ok(challenge) => self.with_header(WWW_AUTHENTICATE, challenge),
            Err(_) => self,
        }
    }

    /// Puts these words before the detail, unless it starts with them.
    #[must_use]
    pub fn with_prefix(mut self, words: &str) -> Self {
        if !self.detail.starts_with(words) {
            self.detail.insert_str(0, words);
        }
        self
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the cause in words.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns every finding.
    pub fn errors(&self) -> &[Finding] {
        &self.errors
    }

    /// Returns the headers that the problem adds to its response.
    pub fn into_headers(self) -> Vec<(HeaderName, HeaderValue)> {
        self.headers
    }

    /// Writes the problem as the response: as a page if a browser asked for one, otherwise as the problem document.
    pub(super) fn write_response(self, req: &Request, depot: &Depot, res: &mut Response) {
        match depot.get_typed::<ErrorPage>() {
            Ok(ErrorPage(show)) if asks_for_page(req, depot) => show(self, req, depot, res),
            _ => self.write_document(requested_path(req, depot), res),
        }
    }

    fn write_document(mut self, path: String, res: &mut Response) {
        let trace = res.extensions.get::<Trace>().copied();
        let trace = trace.unwrap_or_else(|| Trace::from_header(None));
        res.status_code(self.status);
        for (name, value) in self.headers.drain(..) {
            res.headers_mut().insert(name, value);
        }
        let mut document = problem::Problem::from(self);
        document.instance = Some(path);
        document.trace_id = Some(trace.id());
        // A document is plain data, which always has a JSON form.
        let json = serde_json::to_vec(&document).unwrap_or_default();
        res.headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        res.replace_body(ResBody::Once(json.into()));
    }
}

impl From<Problem> for problem::Problem {
    /// Converts everything but the path and the trace of the request.
    fn from(problem: Problem) -> Self {
        Self {
            r#type: "about:blank",
            title: reason_phrase(problem.status),
            status: problem.status.as_u16(),
            detail: problem.detail,
            errors: problem.errors.into_iter().map(Into::into).collect(),
            instance: None,
            trace_id: None,
        }
    }
}

/// Returns the reason phrase, which RFC 9457 requires as the title of `about:blank`.
pub(super) fn reason_phrase(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}

/// Responds with a problem as a page.
#[derive(Debug, Clone, Copy)]
pub struct ErrorPage(pub fn(Problem, &Request, &Depot, &mut Response));

/// Returns the path of the request as the client sent it, with the prefix that a proxy may have stripped.
fn requested_path(req: &Request, depot: &Depot) -> String {
    let path = req.uri().path();
    // Without an origin, the request failed before its prefix was determined.
    depot
        .get_typed::<Origin>()
        .map_or_else(|_| path.to_owned(), |origin| add_prefix(&origin.prefix, path))
}

/// Whether a browser asks for a page of the administration interface, as opposed to a program.
fn asks_for_page(req: &Request, depot: &Depot) -> bool {
    // If the request failed before its origin was determined, the error is a problem document.
    let Ok(origin) = depot.get_typed::<Origin>() else { return false };
    let path = req.uri().path();
    let path = path.strip_prefix(origin.prefix.as_str()).unwrap_or(path);
    (path == "/admin" || path.starts_with("/admin/")) && accepts_html(req.headers())
}

impl From<GatewayError> for Problem {
    fn from(error: GatewayError) -> Self {
        let status = StatusCode::from_u16(error.class.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut problem = Self::new(status, error.detail);
        problem.errors = error.findings;
        match error.class {
            ErrorClass::Unavailable(after) | ErrorClass::TooManyRequests(after) => {
                problem.with_header(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)))
            }
            ErrorClass::Unauthorized => problem.with_challenge(None),
            _ => problem,
        }
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        GatewayError::from(error).into()
    }
}

/// The error code of a credential in a header (RFC 6750, 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BearerError {
    /// The request is malformed: 400.
    InvalidRequest,
    /// The credential is malformed, unknown, expired or revoked: 401.
    InvalidToken,
    /// The credential is valid and its role is not sufficient: 403.
    InsufficientScope,
}

impl From<penstock_store::Error> for Problem {
    fn from(error: penstock_store::Error) -> Self {
        GatewayError::from(error).into()
    }
}

#[async_trait]
impl Writer for Problem {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        self.write_response(req, depot, res);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn problems_keep_findings_and_their_places() {
        let error = GatewayError::with_findings(
            ErrorClass::Invalid,
            "Ingestion failed: two findings",
            vec![
                Finding::at_pointer("/data/0/x", "no such field"),
                Finding::at_line(2, 3, "no such type"),
            ],
        );
        let problem = Problem::from(error);
        assert_eq!(
            serde_json::to_value(problem::Problem::from(problem)).unwrap(),
            json!({
                "type": "about:blank",
                "title": "Unprocessable Entity",
                "status": 422,
                "detail": "Ingestion failed: two findings",
                "errors": [
                    {"pointer": "/data/0/x", "message": "no such field"},
                    {"line": 2, "column": 3, "message": "no such type"},
                ],
            })
        );
    }

    #[test]
    fn challenges_contain_the_cause_in_allowed_characters() {
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "the key \"a\\b\" isn't ours: é\n");
        let problem = problem.with_challenge(Some(BearerError::InvalidToken));
        let (name, value) = problem.headers.first().unwrap();
        assert_eq!(*name, WWW_AUTHENTICATE);
        assert_eq!(
            value.to_str().unwrap(),
            "Bearer realm=\"penstock\", error=\"invalid_token\", \
             error_description=\"the key 'a?b' isn't ours: ??\""
        );
        let problem = Problem::from(GatewayError::new(ErrorClass::Unauthorized, "sign in"));
        assert_eq!(
            problem.headers,
            [(WWW_AUTHENTICATE, "Bearer realm=\"penstock\"".parse().unwrap())]
        );
    }

    #[test]
    fn unavailable_problems_have_a_retry_after() {
        let after = ErrorClass::Unavailable(std::time::Duration::from_millis(10));
        let problem = Problem::from(GatewayError::new(after, "not now"));
        assert_eq!(problem.headers, [(RETRY_AFTER, HeaderValue::from(1_u64))]);
    }
}
