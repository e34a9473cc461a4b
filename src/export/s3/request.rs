//! One signed request (AWS Signature Version 4, in headers) and its answer. Only this file uses rust-s3.
//!
//! Every request has the SHA-256 of its body under the signature, so a server accepts exactly the intended
//! bytes or none. The body is read from its file while it is sent; no part is completely in memory.
use crate::backoff::DeliveryTimings;
use crate::transport::{self, HttpAnswer, LostRequest, Progress, RequestError, file_body};
use crate::uplink::Uplink;
use chrono::DateTime;
use penstock_base::clock;
use penstock_base::hex::encode_hex;
use penstock_config::TargetKind;
use reqwest::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use s3::region::Region;
use s3::signing;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use time::OffsetDateTime;

/// The maximum bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The SHA-256 of an empty body.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
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
    timings: DeliveryTimings,
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

impl RequestBody<'_> {
    fn length(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Text(text) => text.len() as u64,
            Self::File(_, range, ..) => range.end - range.start,
        }
    }
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

impl S3Client {
    /// Prepares requests to the bucket. Sends nothing.
    ///
    /// # Errors
    /// The setting that is not usable.
    pub(super) fn open(
        target: &TargetKind,
        bucket_name: &str,
        timings: &DeliveryTimings,
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
        let client = transport::build_client(ca_file.as_deref(), timings)?;
        Ok(Self {
            client,
            region: Region::Custom { region: region.clone(), endpoint: endpoint.to_owned() },
            key_id: access_key_id.clone(),
            secret: secret_access_key.clone(),
            bucket_url,
            timings: *timings,
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
        transport::is_reachable(&self.client, root, &self.timings).await
    }

    /// Sends a request and reads the answer, whatever its status.
    ///
    /// A server refuses signatures with a wrong time. If the gateway's clock is not synchronized, the gateway then
    /// signs with the server's time, so that deliveries do not have to wait for the synchronization. A request
    /// without a body that was refused for this reason is sent once more.
    pub(super) async fn send(&self, request: S3Request<'_>) -> Result<HttpAnswer, LostRequest> {
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
    fn adopt_server_time(&self, answer: &HttpAnswer) -> bool {
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

    async fn send_once(&self, request: S3Request<'_>) -> Result<HttpAnswer, LostRequest> {
        let (length, extra_timeout) = (request.body.length(), request.extra_timeout);
        let progress = Arc::new(Progress::begin(&self.timings, length, extra_timeout));
        let request = self.build_request(request, &progress)?;
        transport::send(request, &progress, MAX_ANSWER_BYTES).await
    }

    /// Requests an object. The caller reads the body.
    pub(super) async fn get(&self, key: &str) -> Result<Response, LostRequest> {
        let progress = Arc::new(Progress::begin(&self.timings, 0, Duration::ZERO));
        let request = self.build_request(S3Request::new(Method::GET, key), &progress)?;
        tokio::select! {
            response = request.send() => response.map_err(|error| RequestError::Http(error).into()),
            silent = progress.wait_for_stall() => Err(RequestError::Stalled(silent).into()),
        }
    }

    fn build_request(
        &self,
        s3_request: S3Request<'_>,
        progress: &Arc<Progress>,
    ) -> Result<reqwest::RequestBuilder, LostRequest> {
        let url = self.build_url(s3_request.key, s3_request.query)?;
        let length = s3_request.body.length();
        let sha256 = match &s3_request.body {
            RequestBody::Empty => EMPTY_SHA256.to_owned(),
            RequestBody::Text(text) => sha256_hex(text.as_bytes()),
            RequestBody::File(_, _, sha256, _) => sha256.clone(),
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
        let signature = encode_hex(ring::hmac::sign(&key, text.as_bytes()).as_ref());
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
    encode_hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

fn header_value(text: &str) -> Result<HeaderValue, LostRequest> {
    HeaderValue::from_str(text).map_err(|_| {
        let why = "a setting of the target has a character that is not allowed in a request header";
        RequestError::NotCreated(why.to_owned()).into()
    })
}
