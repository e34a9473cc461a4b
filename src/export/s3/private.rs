//! Requests to a server whose certificate the target's `ca-file` vouches for.
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{Certificate, Client, Error, Response};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of an answer that are read; what goes wrong is told at its beginning.
const LONGEST_ANSWER: usize = 64 << 10;

/// An HTTP client that trusts the certificates of a file besides those of the system.
#[derive(Debug)]
pub(super) struct PrivateClient(Client);

/// What came back.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) status: u16,
    /// What an answer that is none of success says.
    pub(super) body: String,
    /// The length of the object.
    pub(super) length: Option<u64>,
    /// `x-amz-meta-sha256`
    pub(super) sha256: Option<String>,
}

impl PrivateClient {
    /// Reads the certificates.
    pub(super) fn open(ca_file: &Path) -> Result<Self, String> {
        let cannot = |why: &dyn std::fmt::Display| {
            format!("the certificates in the target's `ca-file` cannot be used: {why}")
        };
        let pem = std::fs::read(ca_file).map_err(|error| cannot(&error))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| cannot(&error))?;
        if certificates.is_empty() {
            return Err(cannot(&"it holds none in the PEM format"));
        }
        let mut client = Client::builder().connect_timeout(CONNECT_TIMEOUT);
        for certificate in certificates {
            client = client.add_root_certificate(certificate);
        }
        client.build().map(Self).map_err(|error| cannot(&error))
    }

    /// Sends a file as it is read, to a signed URL.
    pub(super) async fn put(
        &self,
        url: &str,
        headers: HeaderMap,
        file: File,
        bytes: u64,
        timeout: Duration,
    ) -> Result<Sent, Error> {
        let request =
            self.0.put(url).headers(headers).header(CONTENT_LENGTH, bytes).timeout(timeout);
        let response = request.body(tokio::fs::File::from_std(file)).send().await?;
        Sent::read(response).await
    }

    /// Asks for an object's length and metadata, at a URL that is signed for GET: its first byte.
    pub(super) async fn ask(&self, url: &str, timeout: Duration) -> Result<Sent, Error> {
        Sent::read(self.0.get(url).header(RANGE, "bytes=0-0").timeout(timeout).send().await?).await
    }
}

impl Sent {
    async fn read(mut response: Response) -> Result<Self, Error> {
        let status = response.status();
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let range = header(CONTENT_RANGE.as_str());
        let length = range.and_then(|range| range.rsplit_once('/')?.1.parse().ok());
        let sha256 = header("x-amz-meta-sha256");
        let mut body = Vec::new();
        while !status.is_success() && body.len() < LONGEST_ANSWER {
            let Some(chunk) = response.chunk().await? else { break };
            body.extend_from_slice(&chunk);
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Self { status: status.as_u16(), body, length, sha256 })
    }
}
