//! Fetches documents of identity providers, with limits on size and time, from the configured addresses only.
use penstock_base::error::{ErrorClass, GatewayError};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Request, StatusCode};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// The timeout of a request. A provider that does not answer within it counts as unreachable.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a document in bytes.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// The error of fetching a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FetchError {
    /// The provider answered with a status other than 200, but neither with a server error nor with 429.
    #[error("{url} answered {status}")]
    NotFound {
        /// The requested address.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
    /// The provider could not be reached, the connection broke, or the provider answered with a server error, 429, or
    /// more than 1 MiB.
    #[error("{0}")]
    Unreachable(String),
}

/// Creates an HTTP client for identity providers and endpoints of `service.sparql.services`. It also trusts the certificates of
/// `service.security.ca-file`, and honours `HTTPS_PROXY` and `NO_PROXY`. It follows no redirects, because the addresses come
/// from the operator.
pub fn build_client(ca_file: Option<&Path>) -> Result<Client, GatewayError> {
    let cannot = |why: &dyn std::fmt::Display| {
        let file = ca_file.map(Path::display);
        let detail = file.map_or_else(
            || format!("creating the HTTP client failed: {why}"),
            |file| {
                format!(
                    "service.security.ca-file: the certificates in {file} cannot be used: {why}"
                )
            },
        );
        GatewayError::new(ErrorClass::Invalid, detail)
    };
    let mut client = Client::builder()
        .connect_timeout(TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(Policy::none())
        // Providers are asked only a few times an hour.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("penstock/", env!("CARGO_PKG_VERSION")));
    if let Some(file) = ca_file {
        let pem = std::fs::read(file).map_err(|error| cannot(&error))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| cannot(&error))?;
        if certificates.is_empty() {
            return Err(cannot(&"it contains no certificate in PEM format"));
        }
        for certificate in certificates {
            client = client.add_root_certificate(certificate);
        }
    }
    client.build().map_err(|error| cannot(&error))
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct FetchResponse {
    /// The status, never a server error or 429.
    pub(super) status: StatusCode,
    /// The media type.
    pub(super) media_type: Option<HeaderValue>,
    /// The body.
    pub(super) body: Vec<u8>,
}

/// Fetches the document at this address.
pub(super) async fn fetch_document(client: &Client, url: &str) -> Result<Vec<u8>, FetchError> {
    let request = client.get(url).header(ACCEPT, "application/json").build();
    let answer =
        send_request(client, request.map_err(|error| unreachable_error(url, &error))?).await?;
    if answer.status == StatusCode::OK {
        return Ok(answer.body);
    }
    Err(FetchError::NotFound { url: url.to_owned(), status: answer.status })
}

/// Sends this request and returns the answer. Server errors and 429 are errors.
pub(super) async fn send_request(
    client: &Client,
    request: Request,
) -> Result<FetchResponse, FetchError> {
    let url = request.url().to_string();
    let sent = client.execute(request).await;
    let mut response = sent.map_err(|error| unreachable_error(&url, &error))?;
    let status = response.status();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(FetchError::Unreachable(format!("{url} answered {status}")));
    }
    let mut body = Vec::new();
    while let Some(piece) =
        response.chunk().await.map_err(|error| unreachable_error(&url, &error))?
    {
        if body.len() + piece.len() > MAX_DOCUMENT_BYTES {
            let detail = format!("{url} answered more than {MAX_DOCUMENT_BYTES} bytes");
            return Err(FetchError::Unreachable(detail));
        }
        body.extend_from_slice(&piece);
    }
    Ok(FetchResponse { status, media_type: response.headers().get(CONTENT_TYPE).cloned(), body })
}

fn unreachable_error(url: &str, error: &reqwest::Error) -> FetchError {
    FetchError::Unreachable(format!("{url}: {}", describe_error(error)))
}

/// Describes the innermost cause, because the outer ones only say that something failed.
fn describe_error(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", TIMEOUT.as_secs());
    }
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
