//! Documents of identity providers: small ones, in good time, from nobody else.
use penstock_base::fault::{Fault, Kind};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Request, StatusCode};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// A provider that has not answered within this time is out of reach.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a document that are read.
const LONGEST: usize = 1 << 20;

/// Why a document is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Missing {
    /// The provider answered, and it has no such document.
    #[error("{url} answered {status}")]
    NotThere {
        /// What was asked for.
        url: String,
        /// What it answered.
        status: StatusCode,
    },
    /// It could not be reached, or broke off.
    #[error("{0}")]
    OutOfReach(String),
}

/// A client that trusts the certificates of `service.security.ca-file` besides those of the system, and
/// honours `HTTPS_PROXY` and `NO_PROXY`. It follows no redirects: the addresses are the operator's.
pub(super) fn client(ca_file: Option<&Path>) -> Result<Client, Fault> {
    let cannot = |why: &dyn std::fmt::Display| {
        let file = ca_file.map(Path::display);
        let detail = file.map_or_else(
            || format!("requests to identity providers cannot be made: {why}"),
            |file| {
                format!(
                    "service.security.ca-file: the certificates in {file} cannot be used: {why}"
                )
            },
        );
        Fault::new(Kind::Invalid, detail)
    };
    let mut client = Client::builder()
        .connect_timeout(TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(Policy::none())
        // They are asked some few times an hour.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("penstock/", env!("CARGO_PKG_VERSION")));
    if let Some(file) = ca_file {
        let pem = std::fs::read(file).map_err(|error| cannot(&error))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| cannot(&error))?;
        if certificates.is_empty() {
            return Err(cannot(&"it holds none in the PEM format"));
        }
        for certificate in certificates {
            client = client.add_root_certificate(certificate);
        }
    }
    client.build().map_err(|error| cannot(&error))
}

/// An answer that has come whole.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its status, which is no server's fault.
    pub(super) status: StatusCode,
    /// Its media type.
    pub(super) media_type: Option<HeaderValue>,
    /// Its body.
    pub(super) body: Vec<u8>,
}

/// The document at this address.
pub(super) async fn get(client: &Client, url: &str) -> Result<Vec<u8>, Missing> {
    let request = client.get(url).header(ACCEPT, "application/json").build();
    let answer = send(client, request.map_err(|error| out_of_reach(url, &error))?).await?;
    if answer.status == StatusCode::OK {
        return Ok(answer.body);
    }
    Err(Missing::NotThere { url: url.to_owned(), status: answer.status })
}

/// The answer to this request, whatever its status, unless that is a server's fault.
pub(super) async fn send(client: &Client, request: Request) -> Result<Answer, Missing> {
    let url = request.url().to_string();
    let sent = client.execute(request).await;
    let mut response = sent.map_err(|error| out_of_reach(&url, &error))?;
    let status = response.status();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(Missing::OutOfReach(format!("{url} answered {status}")));
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| out_of_reach(&url, &error))? {
        if body.len() + piece.len() > LONGEST {
            let words = format!("{url} answered more than {LONGEST} bytes");
            return Err(Missing::OutOfReach(words));
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer { status, media_type: response.headers().get(CONTENT_TYPE).cloned(), body })
}

fn out_of_reach(url: &str, error: &reqwest::Error) -> Missing {
    Missing::OutOfReach(format!("{url}: {}", words(error)))
}

/// The innermost cause: the others only say that something failed.
fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", TIMEOUT.as_secs());
    }
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
