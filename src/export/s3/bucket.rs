//! A bucket: the requests to it, the object under a key, and what an answer means.
use super::explain::{self, Access};
use super::request::{S3Client, S3Request};
use crate::backoff::DeliveryTimings;
use crate::cause::DeliveryFailure;
use crate::transport::{self, HttpAnswer, LostRequest};
use penstock_config::{Compression, TargetKind};
use penstock_resources::export::Export;
use reqwest::Method;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An S3 bucket.
pub(crate) struct Bucket {
    pub(super) client: S3Client,
    pub(super) endpoint: String,
    /// The name of the bucket at the server.
    pub(super) name: String,
    /// The bucketName.
    pub(super) target: String,
    pub(super) gateway_id: String,
    pub(super) compression: Compression,
    /// How long the server may still be storing a file after an attempt without a clear result.
    pub(super) settle_time: Duration,
    /// Whether the server accepts `If-None-Match`.
    pub(super) supports_conditional_put: AtomicBool,
    /// Whether the server compares `If-Match` with its entity tag without quotes.
    pub(super) compares_bare_tags: AtomicBool,
    /// Whether the credentials may query objects (HEAD).
    pub(super) may_query: AtomicBool,
}

/// Returns whether an answer with this status does not show if the object was stored: a proxy may have lost the
/// result, or the server may not know it.
pub(super) fn is_outcome_unknown(status: u16) -> bool {
    matches!(status, 500 | 502 | 504)
}

/// The object under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredObject {
    /// No object.
    Missing,
    /// This export.
    SameExport,
    /// An object with the id of this export, but other bytes.
    Damaged,
    /// Another object, with a description.
    Foreign(String),
    /// Unknown, because the credentials may not query it.
    Unreadable,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bucket({} at {})", self.name, self.endpoint)
    }
}

impl Bucket {
    /// Prepares the bucket of this target. Sends nothing.
    pub(crate) fn open(
        target: &TargetKind,
        bucket_name: &str,
        gateway_id: &str,
        timings: &DeliveryTimings,
    ) -> Result<Self, DeliveryFailure> {
        let client =
            S3Client::open(target, bucket_name, timings).map_err(DeliveryFailure::of_gateway)?;
        let (endpoint, bucket, compression) = match target {
            TargetKind::S3 { endpoint, bucket, compression, .. } => {
                (endpoint.clone(), bucket.clone(), *compression)
            }
            TargetKind::Directory { .. } | TargetKind::Sparql(_) => {
                (String::new(), None, Compression::None)
            }
        };
        Ok(Self {
            client,
            endpoint,
            name: bucket.unwrap_or_else(|| bucket_name.to_owned()),
            target: bucket_name.to_owned(),
            gateway_id: gateway_id.to_owned(),
            compression,
            settle_time: timings.settle_time,
            supports_conditional_put: AtomicBool::new(true),
            compares_bare_tags: AtomicBool::new(false),
            may_query: AtomicBool::new(true),
        })
    }

    /// Returns whether the endpoint answers.
    pub(crate) async fn is_reachable(&self) -> bool {
        self.client.is_reachable().await
    }

    /// Queries the object under the entry's key.
    pub(super) async fn query_object(
        &self,
        entry: &Export,
    ) -> Result<StoredObject, DeliveryFailure> {
        if !self.may_query.load(Ordering::Relaxed) {
            return Ok(StoredObject::Unreadable);
        }
        let answer = self.send(S3Request::new(Method::HEAD, &entry.key)).await?;
        match answer.status {
            200..=299 => Ok(self.classify_object(&answer, entry)),
            404 => Ok(StoredObject::Missing),
            429 | 500..=599 => Err(self.refused_failure(&answer)),
            // The answer to a HEAD has no body with a cause. The answer to the PUT will have one.
            _ => Ok(StoredObject::Unreadable),
        }
    }

    pub(super) fn classify_object(&self, answer: &HttpAnswer, entry: &Export) -> StoredObject {
        let header = |name: &str| answer.header(name);
        let Some(id) = header("x-amz-meta-export-id") else {
            return StoredObject::Foreign("an object that no gateway put there".to_owned());
        };
        if id != entry.id {
            let gateway = header("x-amz-meta-gateway-id").unwrap_or_default();
            return StoredObject::Foreign(if gateway == self.gateway_id {
                format!("another export ({id}) of this gateway")
            } else {
                format!("an export of the gateway `{gateway}`")
            });
        }
        let encoding = header("content-encoding").filter(|encoding| !encoding.is_empty());
        let length = header("content-length").and_then(|length| length.parse::<u64>().ok());
        // A compressed object has another length than the file, but the same SHA-256.
        let fits = encoding.is_some() || length.is_none_or(|length| length == entry.bytes);
        if fits && header("x-amz-meta-sha256") == Some(&entry.sha256) {
            StoredObject::SameExport
        } else {
            StoredObject::Damaged
        }
    }

    /// Sends a request. An answer with any status is a success.
    pub(super) async fn send(&self, request: S3Request<'_>) -> Result<HttpAnswer, DeliveryFailure> {
        self.client.send(request).await.map_err(|lost| self.lost_failure(&lost))
    }

    /// Sends a request that stores the object. A failure says whether the object may have been stored anyway.
    pub(super) async fn send_storing_request(
        &self,
        request: S3Request<'_>,
    ) -> Result<HttpAnswer, DeliveryFailure> {
        let lost = |lost: LostRequest| DeliveryFailure {
            outcome_unknown: lost.fully_sent,
            ..self.lost_failure(&lost)
        };
        self.client.send(request).await.map_err(lost)
    }

    pub(super) fn lost_failure(&self, lost: &LostRequest) -> DeliveryFailure {
        transport::explain_lost(lost, &self.endpoint)
    }

    /// Explains the refusal of a request that writes.
    pub(super) fn refused_failure(&self, answer: &HttpAnswer) -> DeliveryFailure {
        self.denied_failure(answer, Access::Write)
    }

    /// Explains the refusal of a request that needs this permission.
    pub(super) fn denied_failure(&self, answer: &HttpAnswer, access: Access) -> DeliveryFailure {
        explain::explain_answer(answer, access, &self.name, &self.endpoint)
    }
}
