//! An S3-compatible bucket as a target.
//!
//! A file of up to 8 MiB is one PUT. A longer one is a multipart upload, which continues after an
//! interruption. Both are read from the disk while they are sent. The gateway queries the bucket first,
//! whatever an earlier attempt did. An export that is already there is not sent again, and a foreign object is
//! never overwritten. `If-None-Match: *` covers the time between the query and the PUT, if the server supports
//! it. Afterwards the gateway checks that the bucket has the file. Write-only credentials do not need
//! permission for that.

pub(super) mod list;
mod multipart;
mod probe;
mod progress;
mod request;
mod words;

use super::backoff::Pace;
use super::cause::{Class, Failure};
use super::entry::Entry;
use super::parcel::{Content, Parcel};
use penstock_config::{Compression, TargetKind};
use progress::Patience;
use request::{Answer, Ask, Lost, Requests, Sending};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Files longer than this are sent in parts.
const LONG: u64 = 8 << 20;
const JSON: &str = "application/json";

/// An S3 bucket.
pub(super) struct Bucket {
    requests: Requests,
    endpoint: String,
    /// The name of the bucket at the server.
    name: String,
    /// The bucketName.
    target: String,
    gateway_id: String,
    compression: Compression,
    /// How long the server may still be storing a file after an attempt without a clear result.
    settle: Duration,
    /// Whether the server accepts `If-None-Match`.
    conditional: AtomicBool,
    /// Whether the credentials may query objects (HEAD).
    may_look: AtomicBool,
}

/// Returns whether an answer leaves open if the object was stored: a proxy lost the result, or the server does
/// not know it.
fn unsaid(status: u16) -> bool {
    matches!(status, 500 | 502 | 504)
}

/// The object under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    /// No object.
    Nothing,
    /// This export.
    Same,
    /// An object with the id of this export, but other bytes.
    Harmed,
    /// Another object, with a description.
    Other(String),
    /// Unknown, because the credentials may not query it.
    Untold,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bucket({} at {})", self.name, self.endpoint)
    }
}

impl Bucket {
    /// Prepares the bucket of this target. Sends nothing.
    pub(super) fn open(
        target: &TargetKind,
        bucket_name: &str,
        gateway_id: &str,
        pace: &Pace,
    ) -> Result<Self, Failure> {
        let patience = Patience { connect: pace.connect, idle: pace.idle, probe: pace.probe };
        let requests = Requests::open(target, bucket_name, patience).map_err(Failure::gateway)?;
        let (endpoint, bucket, compression) = match target {
            TargetKind::S3 { endpoint, bucket, compression, .. } => {
                (endpoint.clone(), bucket.clone(), *compression)
            }
            TargetKind::Directory { .. } => (String::new(), None, Compression::None),
        };
        Ok(Self {
            requests,
            endpoint,
            name: bucket.unwrap_or_else(|| bucket_name.to_owned()),
            target: bucket_name.to_owned(),
            gateway_id: gateway_id.to_owned(),
            compression,
            settle: pace.settle,
            conditional: AtomicBool::new(true),
            may_look: AtomicBool::new(true),
        })
    }

    /// Returns whether the endpoint answers.
    pub(super) async fn is_answered(&self) -> bool {
        self.requests.is_answered().await
    }

    /// Stores the file in the bucket unless it is already there. Returns once the bucket has stored it.
    pub(super) async fn deliver(&self, parcel: Parcel<'_>) -> Result<(), Failure> {
        let (entry, unclear) = (parcel.entry, parcel.unclear);
        let (uploads, uplink) = (parcel.uploads, parcel.uplink);
        let before = self.look_after(entry, parcel.unanswered).await?;
        match &before {
            Held::Same => {
                let _ = self.tidy(&entry.id, uploads).await;
                return Ok(());
            }
            Held::Other(whose) => return Err(self.taken(entry, whose)),
            Held::Harmed | Held::Nothing | Held::Untold => {}
        }
        let content = parcel.content(self.compression).await?;
        let stored = if content.length > LONG {
            self.put_in_parts(&content, entry, &before, uploads, uplink).await?
        } else {
            self.put(&content, entry, before == Held::Harmed, uplink).await?
        };
        // The object may be stored even if this check gets no answer.
        let unheard = |failure| Failure { unanswered: stored, ..failure };
        match self.look(entry).await.map_err(unheard)? {
            Held::Same => {
                let _ = self.tidy(&entry.id, uploads).await;
                Ok(())
            }
            Held::Other(whose) => Err(self.taken(entry, &whose)),
            Held::Untold if stored => {
                self.may_look.store(false, Ordering::Relaxed);
                Ok(())
            }
            // An object exists already, and only the earlier attempt can have stored it.
            Held::Untold if unclear => Ok(()),
            Held::Untold => Err(self.taken(entry, "an object that these credentials may not read")),
            Held::Nothing | Held::Harmed => Err(Failure::new(
                Class::Broken,
                format!(
                    "the bucket `{}` accepted the file but does not have it as it was sent",
                    self.name
                ),
            )),
        }
    }

    /// Sends the file in one request. Returns false if there is an object under its key.
    async fn put(
        &self,
        content: &Content,
        entry: &Entry,
        over: bool,
        uplink: &Arc<super::uplink::Uplink>,
    ) -> Result<bool, Failure> {
        loop {
            let mut ask = Ask::new(Method::PUT, &entry.key);
            ask.headers = self.headers(entry, content)?;
            let conditional = self.guard(&mut ask.headers, over);
            let whole = 0..content.length;
            ask.body = Sending::File(&content.file, whole, content.sha256.clone(), uplink);
            let answer = self.send_whole(ask).await?;
            match answer.status {
                200..=299 => return Ok(true),
                412 if conditional => return Ok(false),
                501 if conditional => self.conditional.store(false, Ordering::Relaxed),
                status => {
                    return Err(Failure { unanswered: unsaid(status), ..self.refused(&answer) });
                }
            }
        }
    }

    /// Asks the server to refuse if an object exists. Returns false if the server does not support that or
    /// `over` allows overwriting.
    fn guard(&self, headers: &mut HeaderMap, over: bool) -> bool {
        let conditional = !over && self.conditional.load(Ordering::Relaxed);
        if conditional {
            headers.insert(HeaderName::from_static("if-none-match"), HeaderValue::from_static("*"));
        }
        conditional
    }

    /// Returns the metadata headers of an object.
    fn headers(&self, entry: &Entry, content: &Content) -> Result<HeaderMap, Failure> {
        let kind = entry.kind.name();
        let sequence = entry.sequence.to_string();
        let metadata = [
            ("x-amz-meta-export-id", entry.id.as_str()),
            ("x-amz-meta-sequence", &sequence),
            ("x-amz-meta-kind", kind),
            ("x-amz-meta-gateway-id", &self.gateway_id),
            ("x-amz-meta-sha256", &entry.sha256),
        ];
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        if let Some(doubt) = entry.clock {
            let doubt = HeaderValue::from_static(doubt.name());
            headers.insert(HeaderName::from_static("x-amz-meta-clock"), doubt);
        }
        if let Some(encoding) = content.encoding {
            headers.insert(
                HeaderName::from_static("content-encoding"),
                HeaderValue::from_static(encoding),
            );
        }
        for (name, value) in metadata {
            let value = HeaderValue::from_str(value).map_err(|_| {
                Failure::gateway(format!(
                    "`{value}` is not allowed in the metadata of an object ({name})"
                ))
            })?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// Queries the object under the entry's key.
    async fn look(&self, entry: &Entry) -> Result<Held, Failure> {
        if !self.may_look.load(Ordering::Relaxed) {
            return Ok(Held::Untold);
        }
        let answer = self.send(Ask::new(Method::HEAD, &entry.key)).await?;
        match answer.status {
            200..=299 => Ok(self.held(&answer, entry)),
            404 => Ok(Held::Nothing),
            429 | 500..=599 => Err(self.refused(&answer)),
            // The answer to a HEAD has no body. The answer to the PUT will have the error.
            _ => Ok(Held::Untold),
        }
    }

    /// Queries the object after an earlier attempt ended at `unanswered` without a clear result. A slow server
    /// or proxy may still be storing the file. Not every server supports `If-None-Match` (Ceph 16 does not in a
    /// versioned bucket), and one that does may accept two concurrent requests. So an object counts as missing
    /// only once it has had time to appear.
    async fn look_after(
        &self,
        entry: &Entry,
        unanswered: Option<Instant>,
    ) -> Result<Held, Failure> {
        loop {
            let held = self.look(entry).await?;
            let left = unanswered.map(|at| self.settle.saturating_sub(at.elapsed()));
            match left.filter(|left| held == Held::Nothing && !left.is_zero()) {
                None => return Ok(held),
                Some(left) => tokio::time::sleep(left.min(self.settle / 10)).await,
            }
        }
    }

    fn held(&self, answer: &Answer, entry: &Entry) -> Held {
        let said = |name: &str| answer.header(name);
        let Some(id) = said("x-amz-meta-export-id") else {
            return Held::Other("an object that no gateway put there".to_owned());
        };
        if id != entry.id {
            let gateway = said("x-amz-meta-gateway-id").unwrap_or_default();
            return Held::Other(if gateway == self.gateway_id {
                format!("another export ({id}) of this gateway")
            } else {
                format!("an export of the gateway `{gateway}`")
            });
        }
        let encoding = said("content-encoding").filter(|encoding| !encoding.is_empty());
        let length = said("content-length").and_then(|length| length.parse::<u64>().ok());
        // A compressed object has another length than the file, but the same SHA-256.
        let fits = encoding.is_some() || length.is_none_or(|length| length == entry.bytes);
        if fits && said("x-amz-meta-sha256") == Some(&entry.sha256) {
            Held::Same
        } else {
            Held::Harmed
        }
    }

    /// Sends a request. An answer with any status is a success.
    async fn send(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        self.requests.send(ask).await.map_err(|lost| self.lost(&lost))
    }

    /// Sends a request that stores the object. A failure records whether the object may have been stored
    /// anyway.
    async fn send_whole(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        let lost = |lost: Lost| Failure { unanswered: lost.whole, ..self.lost(&lost) };
        self.requests.send(ask).await.map_err(lost)
    }

    fn lost(&self, lost: &Lost) -> Failure {
        words::lost(lost, &self.endpoint)
    }

    fn refused(&self, answer: &Answer) -> Failure {
        words::refused(answer, &self.name, &self.endpoint)
    }

    fn taken(&self, entry: &Entry, whose: &str) -> Failure {
        Failure::new(
            Class::Conflict,
            format!(
                "the bucket `{}` has {whose} under the key `{}`, which is not overwritten; give each \
                 gateway a `prefix` of its own, or move that object away",
                self.name, entry.key
            ),
        )
    }
}
