//! HTTP requests to targets: the client, bodies that respect the bandwidth of the uplink, and what happens without an
//! answer.
mod answer;
mod explain;
mod progress;

pub(super) use answer::{HttpAnswer, LostRequest, RequestError};
pub(super) use explain::{explain_lost, parse_date, quote_answer, retry_after, truncate_text};
pub(super) use progress::{Progress, max_total_time};

use super::backoff::DeliveryTimings;
use super::blocking::run_io;
use super::uplink::Uplink;
use bytes::Bytes;
use futures_util::stream;
use reqwest::{Body, Certificate, Client, RequestBuilder, Response, Url, redirect};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of the body of an answer that does not matter.
const UNIMPORTANT_BODY_TIMEOUT: Duration = Duration::from_secs(1);
/// The time after which idle connections are closed, before servers and proxies drop them silently.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// Creates the client for a target. `ca_file` has further certificates to trust.
///
/// # Errors
/// The setting that is not usable.
pub(crate) fn build_client(
    ca_file: Option<&Path>,
    timings: &DeliveryTimings,
) -> Result<Client, String> {
    // The kernel uses whole seconds.
    let probes = (timings.idle_timeout / 3).max(Duration::from_secs(1));
    let mut client = Client::builder()
        .http1_only()
        .redirect(redirect::Policy::none())
        .connect_timeout(timings.connect_timeout)
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .tcp_nodelay(true)
        // Detects a dead connection both while bytes are sent and while an answer is awaited.
        .tcp_user_timeout(timings.idle_timeout)
        .tcp_keepalive(probes)
        .tcp_keepalive_interval(probes)
        .tcp_keepalive_retries(2);
    for certificate in ca_file.map(read_certificates).transpose()?.unwrap_or_default() {
        client = client.add_root_certificate(certificate);
    }
    client.build().map_err(|error| format!("the HTTP client cannot be created: {error}"))
}

/// Returns whether the server answers with any status.
pub(crate) async fn is_reachable(client: &Client, url: Url, timings: &DeliveryTimings) -> bool {
    client.head(url).timeout(timings.probe_interval).send().await.is_ok()
}

/// Sends a request, and reads the answer up to a limit, whatever its status.
pub(crate) async fn send(
    request: RequestBuilder,
    progress: &Progress,
    max_answer_bytes: usize,
) -> Result<HttpAnswer, LostRequest> {
    let response = send_head(request, progress).await?;
    let reading = async {
        read_answer(response, progress, max_answer_bytes).await.map_err(RequestError::Http)
    };
    limit_silence(reading, progress).await
}

/// Sends a request as [`send`], to a server whose status and headers say enough. Of the body, which can end early or
/// never, it returns what was read: at most this many bytes, and the rest of a chunk.
pub(crate) async fn send_for_status(
    request: RequestBuilder,
    progress: &Progress,
    max_body_bytes: usize,
) -> Result<HttpAnswer, LostRequest> {
    Ok(read_beginning(send_head(request, progress).await?, max_body_bytes).await)
}

/// Reads an answer whose status and headers say enough, with as much of its body as [`send_for_status`].
pub(crate) async fn read_beginning(mut response: Response, max_body_bytes: usize) -> HttpAnswer {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    let reading = async {
        // A body that was read to its end leaves the connection usable for the next request.
        while body.len() < max_body_bytes
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    // Without the rest of the body, the answer is as good.
    let _ = tokio::time::timeout(UNIMPORTANT_BODY_TIMEOUT, reading).await;
    HttpAnswer { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
}

/// Sends a request, and returns once the head of the answer is there.
async fn send_head(request: RequestBuilder, progress: &Progress) -> Result<Response, LostRequest> {
    let sending = async {
        let response = request.send().await.map_err(|error| progress.classify_error(error))?;
        progress.record_bytes(0);
        Ok::<_, RequestError>(response)
    };
    limit_silence(sending, progress).await
}

/// Ends a part of a request that makes no progress for too long.
async fn limit_silence<T>(
    part: impl Future<Output = Result<T, RequestError>>,
    progress: &Progress,
) -> Result<T, LostRequest> {
    let result = tokio::select! {
        result = part => result,
        silent = progress.wait_for_stall() => Err(RequestError::Stalled(silent)),
    };
    result.map_err(|why| LostRequest {
        fully_sent: !why.is_certainly_incomplete() && progress.is_sent(),
        why,
    })
}

fn read_certificates(ca_file: &Path) -> Result<Vec<Certificate>, String> {
    let cannot = |why: &dyn std::fmt::Display| {
        format!("the certificates in the `ca-file` cannot be used: {why}")
    };
    let pem = std::fs::read(ca_file).map_err(|error| cannot(&error))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| cannot(&error))?;
    if certificates.is_empty() {
        return Err(cannot(&"it has none in the PEM format"));
    }
    Ok(certificates)
}

/// Creates a body that reads the range while it is sent, limited to the bandwidth of the uplink.
pub(crate) fn file_body(
    file: Arc<File>,
    range: Range<u64>,
    uplink: Arc<Uplink>,
    progress: Arc<Progress>,
) -> Body {
    paced_body(BodySource::File(file), range, uplink, progress)
}

/// Creates a body of these bytes, limited to the bandwidth of the uplink.
pub(crate) fn bytes_body(bytes: Bytes, uplink: Arc<Uplink>, progress: Arc<Progress>) -> Body {
    let length = bytes.len() as u64;
    paced_body(BodySource::Bytes(bytes), 0..length, uplink, progress)
}

/// Where the bytes of a body come from. Cheap to clone.
#[derive(Clone)]
enum BodySource {
    File(Arc<File>),
    Bytes(Bytes),
}

impl BodySource {
    async fn read(self, at: u64, length: usize) -> io::Result<Bytes> {
        match self {
            Self::File(file) => read_at(file, at, length).await,
            Self::Bytes(bytes) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.slice(start..(start + length).min(bytes.len())))
            }
        }
    }
}

fn paced_body(
    source: BodySource,
    range: Range<u64>,
    uplink: Arc<Uplink>,
    progress: Arc<Progress>,
) -> Body {
    let end = range.end;
    Body::wrap_stream(stream::try_unfold(range.start, move |at| {
        let (source, uplink, progress) =
            (source.clone(), Arc::clone(&uplink), Arc::clone(&progress));
        async move {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX).min(uplink.chunk_bytes());
            if left == 0 {
                return Ok(None);
            }
            if uplink.is_limited() {
                let _held = progress.pause_for_bandwidth();
                uplink.wait_for_bandwidth(left).await;
            }
            match source.read(at, left).await {
                Ok(bytes) => {
                    progress.record_bytes(bytes.len() as u64);
                    Ok(Some((bytes, at + left as u64)))
                }
                Err(error) => {
                    progress.record_read_error(&error);
                    Err(error)
                }
            }
        }
    }))
}

/// Reads `length` bytes of a file at the offset `at`.
async fn read_at(file: Arc<File>, at: u64, length: usize) -> io::Result<Bytes> {
    run_io(move || {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).map(|()| Bytes::from(bytes))
    })
    .await
}

async fn read_answer(
    mut response: Response,
    progress: &Progress,
    max_bytes: usize,
) -> Result<HttpAnswer, reqwest::Error> {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    while body.len() < max_bytes
        && let Some(chunk) = response.chunk().await?
    {
        progress.record_bytes(0);
        body.extend_from_slice(&chunk);
    }
    Ok(HttpAnswer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
