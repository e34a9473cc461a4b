//! The endpoints that `SERVICE` may ask: those of `service.sparql.services`.
use oxrdf::NamedNode;
use penstock_auth::fetch::build_client;
use penstock_base::error::GatewayError;
use penstock_config::Settings;
use penstock_sparql::ServiceClient;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode};
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout_at;

/// The media type that endpoints are asked for.
const RESULTS_JSON: &str = "application/sparql-results+json";

/// The client of the configured endpoints. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct RemoteEndpoints {
    /// The IRIs of the endpoints, as the setting has them.
    allowed: Arc<[String]>,
    /// `None` without endpoints.
    client: Option<Client>,
    /// `service.limits.sparql.memory`: the maximum bytes of an answer.
    max_bytes: u64,
}

impl RemoteEndpoints {
    pub(super) fn new(settings: &Settings) -> Result<Self, GatewayError> {
        let services = &settings.sparql.services;
        let ca_file = settings.security.ca_file.as_deref();
        let client = (!services.is_empty()).then(|| build_client(ca_file)).transpose()?;
        let max_bytes = settings.limits.sparql.memory;
        Ok(Self { allowed: services.clone().into(), client, max_bytes })
    }
}

impl ServiceClient for RemoteEndpoints {
    fn query(
        &self,
        endpoint: &NamedNode,
        query: &str,
        deadline: Instant,
    ) -> Result<Box<dyn Read>, String> {
        let is_allowed = self.allowed.iter().any(|allowed| allowed == endpoint.as_str());
        let Some(client) = self.client.as_ref().filter(|_| is_allowed) else {
            return Err(format!(
                "SERVICE may not ask {endpoint}, because it is not one of service.sparql.services"
            ));
        };
        let failed = |why: &dyn std::fmt::Display| format!("the endpoint {endpoint} failed: {why}");
        // The thread of a query has no runtime. One of its own works without the gateway's, for commands too.
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
        let request = client
            .post(endpoint.as_str())
            .header(CONTENT_TYPE, "application/sparql-query")
            .header(ACCEPT, RESULTS_JSON)
            .timeout(deadline.saturating_duration_since(Instant::now()))
            .body(query.to_owned());
        // A request begins to measure its time when it is sent, which needs the runtime.
        let response = runtime.block_on(async { request.send().await });
        let response = response.map_err(|error| failed(&describe_cause(&error)))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(failed(&format!("it answered {status}")));
        }
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        if media_type.split(';').next().unwrap_or_default().trim() != RESULTS_JSON {
            return Err(failed(&format!("it answered {media_type:?} and not {RESULTS_JSON}")));
        }
        let left = self.max_bytes;
        Ok(Box::new(AnswerBody { runtime, response, piece: io::Cursor::default(), left, deadline }))
    }
}

/// Describes the innermost cause, because the outer ones only say that something failed.
fn describe_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() }
}

/// The body of an answer, read as it arrives.
struct AnswerBody {
    runtime: Runtime,
    response: Response,
    piece: io::Cursor<Vec<u8>>,
    /// The bytes that it may still have.
    left: u64,
    deadline: Instant,
}

impl Read for AnswerBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let deadline = self.deadline.into();
            let response = &mut self.response;
            let piece =
                self.runtime.block_on(async { timeout_at(deadline, response.chunk()).await });
            let piece = piece.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
            let Some(piece) = piece else { return Ok(0) };
            self.left = self.left.checked_sub(piece.len() as u64).ok_or_else(|| {
                io::Error::other("the answer is longer than service.limits.sparql.memory")
            })?;
            self.piece = io::Cursor::new(piece.to_vec());
        }
    }
}
