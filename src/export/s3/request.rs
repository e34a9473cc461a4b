//! One signed request (AWS Signature Version 4, in headers) and its answer. Only this file uses rust-s3.
//!
//! Every request has the SHA-256 of its body under the signature, so a server accepts exactly the intended
//! bytes or none. The body is read from its file while it is sent; no part is completely in memory.
use super::progress::{Progress, RequestTimeouts};
use crate::uplink::Uplink;
use bytes::Bytes;
use chrono::DateTime;
use futures_util::stream;
use penstock_base::clock;
use penstock_config::TargetKind;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Certificate, Client, Method, Response, Url, redirect};
use s3::region::Region;
use s3::signing;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use time::OffsetDateTime;

/// The SHA-256 of an empty body.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// The maximum bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The time after which idle connections are closed, before servers and proxies drop them silently.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);
/// The tolerated difference of the clocks in seconds. Servers refuse a signature if the clocks differ by 15 minutes.
const MAX_CLOCK_SKEW_SECONDS: i64 = 5 * 60;

/// Sends requests to one bucket.
pub(super) struct S3Client {
    client: Client,
    region: Region,
    key_id: String,
    secret: String,
    /// The URL of the bucket, without a trailing slash.
    bucket_url: Url,
    timeouts: RequestTimeouts,
    /// The seconds that the server's clock is ahead of ours, if requests are signed with the server's time.
    clock_offset_seconds: AtomicI64,
}

/// A request to send.
pub(super) struct S3Request<'a> {
    pub(super) method: Method,
    /// The key, or empty for the bucket itself.
    pub(super) key: &'a str,
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody<'a>,
    /// The extra time that the answer may take.
    pub(super) extra_timeout: Duration,
}

/// The body of a request.
pub(super) enum RequestBody<'a> {
    Empty,
    Text(String),
    /// A range of a file, and the SHA-256 of its bytes.
    File(&'a Arc<File>, Range<u64>, String, &'a Arc<Uplink>),
}

/// The answer to a request.
#[derive(Debug)]
pub(super) struct S3Response {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    /// The body, up to a limit.
    pub(super) body: String,
}

/// A request without an answer.
#[derive(Debug)]
pub(super) struct LostRequest {
    pub(super) why: RequestError,
    /// Whether the whole request was sent, as far as the gateway knows. Then the server may have processed it, or
    /// may still be processing it.
    pub(super) fully_sent: bool,
}

/// The reason why there was no answer.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The request could not be created.
    NotCreated(String),
    /// The connection failed or broke.
    Http(reqwest::Error),
    /// There was no progress for this long.
    Stalled(Duration),
    /// The file to send could not be read.
    Source(String),
}

impl<'a> S3Request<'a> {
    pub(super) fn new(method: Method, key: &'a str) -> Self {
        Self {
            method,
            key,
            query: &[],
            headers: HeaderMap::new(),
            body: RequestBody::Empty,
            extra_timeout: Duration::ZERO,
        }
    }
}

impl RequestError {
    /// Returns whether the server cannot have received the whole request.
    fn is_certainly_incomplete(&self) -> bool {
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

impl S3Response {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl S3Client {
    /// Prepares requests to the bucket. Sends nothing.
    ///
    /// # Errors
    /// The setting that is not usable.
    pub(super) fn open(
        target: &TargetKind,
        bucket_name: &str,
        patience: RequestTimeouts,
    ) -> Result<Self, String> {
        let TargetKind::S3 {
            endpoint,
            region,
            bucket,
            access_key_id,
            secret_access_key,
            path_style,
            ca_file,
            ..
        } = target
        else {
            return Err("the target is not an S3 bucket".to_owned());
        };
        let bucket = bucket.as_deref().unwrap_or(bucket_name);
        let endpoint = endpoint.trim_end_matches('/');
        let unusable =
            |why: &dyn std::fmt::Display| format!("the target's `endpoint` cannot be used: {why}");
        let mut bucket_url = Url::parse(endpoint).map_err(|error| unusable(&error))?;
        if *path_style {
            let path = format!("{}/{bucket}", bucket_url.path().trim_end_matches('/'));
            bucket_url.set_path(&path);
        } else {
            let host = format!("{bucket}.{}", bucket_url.host_str().unwrap_or_default());
            bucket_url.set_host(Some(&host)).map_err(|error| unusable(&error))?;
        }
        // The kernel uses whole seconds.
        let probes = (patience.idle / 3).max(Duration::from_secs(1));
        let mut client = Client::builder()
            .http1_only()
            .redirect(redirect::Policy::none())
            .connect_timeout(patience.connect)
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .tcp_nodelay(true)
            // Detects a dead connection both while bytes are sent and while an answer is awaited.
            .tcp_user_timeout(patience.idle)
            .tcp_keepalive(probes)
            .tcp_keepalive_interval(probes)
            .tcp_keepalive_retries(2);
        for certificate in
            ca_file.as_deref().map(read_certificates).transpose()?.unwrap_or_default()
        {
            client = client.add_root_certificate(certificate);
        }
        let client =
            client.build().map_err(|error| format!("the target cannot be used: {error}"))?;
        Ok(Self {
            client,
            region: Region::Custom { region: region.clone(), endpoint: endpoint.to_owned() },
            key_id: access_key_id.clone(),
            secret: secret_access_key.clone(),
            bucket_url,
            timeouts: patience,
            clock_offset_seconds: AtomicI64::new(0),
        })
    }

    /// Returns the URL of the bucket.
    pub(super) fn bucket_url(&self) -> &str {
        self.bucket_url.as_str()
    }

    /// Returns whether the server answers with any status.
    pub(super) async fn is_reachable(&self) -> bool {
        let mut root = self.bucket_url.clone();
        root.set_path("/");
        self.client.head(root).timeout(self.timeouts.probe).send().await.is_ok()
    }

    /// Sends a request and reads the answer, whatever its status.
    ///
    /// A server refuses signatures with a wrong time. If the gateway's clock is not synchronized, the gateway then
    /// signs with the server's time, so that deliveries do not have to wait for the synchronization. A request
    /// without a body that was refused for this reason is sent once more.
    pub(super) async fn send(&self, request: S3Request<'_>) -> Result<S3Response, LostRequest> {
        let retry = match request.body {
            RequestBody::Empty => Some(S3Request {
                method: request.method.clone(),
                headers: request.headers.clone(),
                body: RequestBody::Empty,
                ..request
            }),
            _ => None,
        };
        let answer = self.send_once(request).await?;
        match retry {
            _ if !self.adopt_server_time(&answer) => Ok(answer),
            Some(request) => self.send_once(request).await,
            None => Ok(answer),
        }
    }

    /// Uses the time of a server that refused a request, if it differs much from ours and our clock is not
    /// synchronized. Returns whether the offset changed.
    fn adopt_server_time(&self, answer: &S3Response) -> bool {
        if answer.status != 403 || clock::is_synchronised() == Some(true) {
            return false;
        }
        let server_time =
            answer.header("date").and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        let Some(server_time) = server_time else { return false };
        let ahead = server_time.timestamp() - OffsetDateTime::now_utc().unix_timestamp();
        if (ahead - self.clock_offset_seconds.load(Ordering::Relaxed)).abs()
            < MAX_CLOCK_SKEW_SECONDS
        {
            return false;
        }
        self.clock_offset_seconds.store(ahead, Ordering::Relaxed);
        tracing::warn!(
            ahead_seconds = ahead,
            server = self.bucket_url.host_str(),
            "The clock is not synchronized and differs from the server's; requests are signed with the server's time."
        );
        true
    }

    async fn send_once(&self, request: S3Request<'_>) -> Result<S3Response, LostRequest> {
        let progress = Arc::new(Progress::begin());
        let bytes = match &request.body {
            RequestBody::Empty => 0,
            RequestBody::Text(text) => text.len() as u64,
            RequestBody::File(_, range, ..) => range.end - range.start,
        };
        let extra_timeout = request.extra_timeout;
        let request = self.build_request(request, &progress)?;
        let exchange = async {
            let response = request.send().await.map_err(|error| progress.classify_error(error))?;
            progress.record_bytes(0);
            read_answer(response, &progress).await.map_err(RequestError::Http)
        };
        let result = tokio::select! {
            result = exchange => result,
            silent = progress.wait_for_stall(&self.timeouts, bytes, extra_timeout) => Err(RequestError::Stalled(silent)),
        };
        result.map_err(|why| LostRequest {
            fully_sent: !why.is_certainly_incomplete() && progress.sent_bytes() >= bytes,
            why,
        })
    }

    /// Requests an object. The caller reads the body.
    pub(super) async fn get(&self, key: &str) -> Result<Response, LostRequest> {
        let progress = Arc::new(Progress::begin());
        let request = self.build_request(S3Request::new(Method::GET, key), &progress)?;
        tokio::select! {
            response = request.send() => response.map_err(|error| RequestError::Http(error).into()),
            silent = progress.wait_for_stall(&self.timeouts, 0, Duration::ZERO) => Err(RequestError::Stalled(silent).into()),
        }
    }

    fn build_request(
        &self,
        s3_request: S3Request<'_>,
        progress: &Arc<Progress>,
    ) -> Result<reqwest::RequestBuilder, LostRequest> {
        let url = self.build_url(s3_request.key, s3_request.query)?;
        let (length, sha256) = match &s3_request.body {
            RequestBody::Empty => (0, EMPTY_SHA256.to_owned()),
            RequestBody::Text(text) => (text.len() as u64, sha256_hex(text.as_bytes())),
            RequestBody::File(_, range, sha256, _) => (range.end - range.start, sha256.clone()),
        };
        let headers = self.sign_headers(&s3_request.method, &url, s3_request.headers, &sha256)?;
        let request = self.client.request(s3_request.method.clone(), url).headers(headers);
        let has_body = s3_request.method == Method::PUT || s3_request.method == Method::POST;
        let request = if has_body { request.header(CONTENT_LENGTH, length) } else { request };
        Ok(match s3_request.body {
            RequestBody::Empty => request,
            RequestBody::Text(text) => {
                progress.record_bytes(text.len() as u64);
                request.body(text)
            }
            RequestBody::File(file, range, _, uplink) => request.body(file_body(
                Arc::clone(file),
                range,
                Arc::clone(uplink),
                Arc::clone(progress),
            )),
        })
    }

    fn build_url(&self, key: &str, query: &[(&str, &str)]) -> Result<Url, LostRequest> {
        let mut text = self.bucket_url.as_str().trim_end_matches('/').to_owned();
        if !key.is_empty() {
            text.push('/');
            text.push_str(&signing::uri_encode(key, false));
        }
        for (i, (name, value)) in query.iter().enumerate() {
            text.push(if i == 0 { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.push_str(&signing::uri_encode(value, true));
        }
        Url::parse(&text).map_err(|error| RequestError::NotCreated(error.to_string()).into())
    }

    /// Returns the headers with the signature.
    fn sign_headers(
        &self,
        method: &Method,
        url: &Url,
        mut headers: HeaderMap,
        sha256: &str,
    ) -> Result<HeaderMap, LostRequest> {
        let ahead = time::Duration::seconds(self.clock_offset_seconds.load(Ordering::Relaxed));
        let now = OffsetDateTime::now_utc().saturating_add(ahead);
        let mut host = url.host_str().unwrap_or_default().to_owned();
        if let Some(port) = url.port() {
            host = format!("{host}:{port}");
        }
        let date = format!(
            "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
            now.year(),
            u8::from(now.month()),
            now.day(),
            now.hour(),
            now.minute(),
            now.second()
        );
        headers.insert(HOST, header_value(&host)?);
        headers.insert(HeaderName::from_static("x-amz-date"), header_value(&date)?);
        headers.insert(HeaderName::from_static("x-amz-content-sha256"), header_value(sha256)?);
        let not_created = |error: s3::error::S3Error| RequestError::NotCreated(error.to_string());
        let canonical = signing::canonical_request(method.as_str(), url, &headers, sha256)
            .map_err(not_created)?;
        let text = signing::string_to_sign(&now, &self.region, &canonical).map_err(not_created)?;
        let key =
            signing::signing_key(&now, &self.secret, &self.region, "s3").map_err(not_created)?;
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
        let signature = crate::file::to_hex(ring::hmac::sign(&key, text.as_bytes()).as_ref());
        let names = signing::signed_header_string(&headers);
        let authorization =
            signing::authorization_header(&self.key_id, &now, &self.region, &names, &signature)
                .map_err(not_created)?;
        let mut authorization = header_value(&authorization)?;
        authorization.set_sensitive(true);
        headers.insert(AUTHORIZATION, authorization);
        Ok(headers)
    }
}

/// Computes a SHA-256 in lowercase hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    crate::file::to_hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

fn header_value(text: &str) -> Result<HeaderValue, LostRequest> {
    HeaderValue::from_str(text).map_err(|_| {
        let why = "a setting of the target has a character that is not allowed in a request header";
        RequestError::NotCreated(why.to_owned()).into()
    })
}

fn read_certificates(ca_file: &std::path::Path) -> Result<Vec<Certificate>, String> {
    let cannot = |why: &dyn std::fmt::Display| {
        format!("the certificates in the target's `ca-file` cannot be used: {why}")
    };
    let pem = std::fs::read(ca_file).map_err(|error| cannot(&error))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| cannot(&error))?;
    if certificates.is_empty() {
        return Err(cannot(&"it has none in the PEM format"));
    }
    Ok(certificates)
}

/// Creates a body that reads the range while it is sent, limited to the bandwidth of the uplink.
fn file_body(
    file: Arc<File>,
    range: Range<u64>,
    uplink: Arc<Uplink>,
    progress: Arc<Progress>,
) -> Body {
    let end = range.end;
    Body::wrap_stream(stream::try_unfold(range.start, move |at| {
        let (file, uplink, progress) =
            (Arc::clone(&file), Arc::clone(&uplink), Arc::clone(&progress));
        async move {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX).min(uplink.chunk_bytes());
            if left == 0 {
                return Ok(None);
            }
            let wait = uplink.reserve_bytes(left);
            if !wait.is_zero() {
                let _held = progress.pause_for_bandwidth();
                tokio::time::sleep(wait).await;
            }
            match read_at(file, at, left).await {
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
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).map(|()| Bytes::from(bytes))
    });
    read.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

async fn read_answer(
    mut response: Response,
    progress: &Progress,
) -> Result<S3Response, reqwest::Error> {
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let mut body = Vec::new();
    while body.len() < MAX_ANSWER_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        progress.record_bytes(0);
        body.extend_from_slice(&chunk);
    }
    Ok(S3Response { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
}
