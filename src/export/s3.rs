//! An S3-compatible bucket as a target.
//!
//! A file of up to [`LONG`] is one PUT, a longer one a multipart upload that goes on where it was. Both
//! are read from the disk as they are sent. Whatever an earlier attempt did, the bucket is asked first:
//! what is there already is not sent again, and what is there of somebody else is never written over.
//! `If-None-Match: *` guards the time between the question and the PUT, where the server knows it.
//! Afterwards the bucket is asked whether it has the file; credentials that may only write need not be
//! able to.

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

/// Files longer than this go in parts.
const LONG: u64 = 8 << 20;
const JSON: &str = "application/json";

/// A bucket.
pub(super) struct Bucket {
    requests: Requests,
    endpoint: String,
    /// The bucket's name there.
    name: String,
    /// The bucketName.
    target: String,
    gateway_id: String,
    compression: Compression,
    /// How long it may go on storing what it did not answer.
    settle: Duration,
    /// The server has no objection to `If-None-Match`.
    conditional: AtomicBool,
    /// The credentials may ask what an object is.
    may_look: AtomicBool,
}

/// Whether an answer does not say how storing the object ended: something on the way lost that, or the server
/// does not know it.
fn unsaid(status: u16) -> bool {
    matches!(status, 500 | 502 | 504)
}

/// What the bucket holds under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    /// Nothing.
    Nothing,
    /// The very export.
    Same,
    /// An object that says it is this export, and has other bytes.
    Harmed,
    /// Another object, in words.
    Other(String),
    /// These credentials may not ask.
    Untold,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bucket({} at {})", self.name, self.endpoint)
    }
}

impl Bucket {
    /// Prepares the bucket that this target names; nothing is sent.
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

    /// Whether anybody answers at the endpoint.
    pub(super) async fn is_answered(&self) -> bool {
        self.requests.is_answered().await
    }

    /// Puts the file into the bucket unless it is there, and returns once the bucket has it for good.
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
        // What was stored is there, whether or not this is told.
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
            // Something is there already, and nobody else can have put it there but the attempt before.
            Held::Untold if unclear => Ok(()),
            Held::Untold => {
                Err(self.taken(entry, "an object that these credentials may not look at"))
            }
            Held::Nothing | Held::Harmed => Err(Failure::new(
                Class::Broken,
                format!(
                    "the bucket `{}` took the file, and does not hold it as it was sent",
                    self.name
                ),
            )),
        }
    }

    /// Sends the file in one request; false when there is an object under its key.
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

    /// Lets the server refuse where an object is already; false when it does not know how.
    fn guard(&self, headers: &mut HeaderMap, over: bool) -> bool {
        let conditional = !over && self.conditional.load(Ordering::Relaxed);
        if conditional {
            headers.insert(HeaderName::from_static("if-none-match"), HeaderValue::from_static("*"));
        }
        conditional
    }

    /// The metadata of an object.
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
                    "`{value}` cannot stand in the metadata of an object ({name})"
                ))
            })?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// What the bucket says it holds under the entry's key.
    async fn look(&self, entry: &Entry) -> Result<Held, Failure> {
        if !self.may_look.load(Ordering::Relaxed) {
            return Ok(Held::Untold);
        }
        let answer = self.send(Ask::new(Method::HEAD, &entry.key)).await?;
        match answer.status {
            200..=299 => Ok(self.held(&answer, entry)),
            404 => Ok(Held::Nothing),
            429 | 500..=599 => Err(self.refused(&answer)),
            // The answer to a HEAD has no words; the PUT's will have them.
            _ => Ok(Held::Untold),
        }
    }

    /// The same, where an attempt before this one got no answer at that time. A server that is slow, or
    /// something on the way that holds the request, may be storing the file still; not every server knows
    /// `If-None-Match` (Ceph 16 does not in a bucket with versions), and one that does may let in two that
    /// are under way at once. So what is not there is missing only once it had the time to come.
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
        // The length of a compressed object is not that of the file; the SHA-256 is.
        let fits = encoding.is_some() || length.is_none_or(|length| length == entry.bytes);
        if fits && said("x-amz-meta-sha256") == Some(&entry.sha256) {
            Held::Same
        } else {
            Held::Harmed
        }
    }

    /// Sends a request; an answer of any status is one.
    async fn send(&self, ask: Ask<'_>) -> Result<Answer, Failure> {
        self.requests.send(ask).await.map_err(|lost| self.lost(&lost))
    }

    /// Sends a request that stores the object; a failure says whether that may have happened unheard.
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
                "the bucket `{}` holds {whose} under the key `{}`, and it is not written over; give each \
                 gateway a `prefix` of its own, or move that object away",
                self.name, entry.key
            ),
        )
    }
}
