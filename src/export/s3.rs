//! An S3-compatible bucket as a target.
//!
//! A file of up to 8 MiB is one PUT. A longer one is a multipart upload, which continues after an interruption. Both
//! are read from the disk while they are sent. The gateway always queries the bucket first, whatever the result of an
//! earlier attempt. An export that is already there is not sent again, and a foreign object is never overwritten. An
//! object with the id of the export and other bytes is damaged, and replaced. `If-None-Match: *` covers the time
//! between the query and the PUT. Swift refuses it (501) and gets the PUT without it; Garage, and Ceph with versioning,
//! ignore it. Afterwards the gateway checks that the bucket has the file. Write-only credentials are sufficient: if
//! they do not permit the queries, the gateway delivers without them, and after a 412 the object counts as delivered
//! only if an earlier attempt had an unclear end. Metadata that is an object of its own is stored in the same way
//! before the file, so that every file can be verified.

mod bucket;
mod explain;
pub(super) mod list;
mod multipart;
mod precondition;
mod probe;
mod request;
pub(super) mod small;

pub(super) use bucket::Bucket;

use super::cause::DeliveryFailure;
use super::delivery::{Delivery, MetadataObject, Replaces};
use super::key::ExportExt as _;
use bucket::{StoredObject, is_outcome_unknown};
use penstock_resources::export::{Cause, Export};
use precondition::Overwrite;
use request::{RequestBody, S3Request};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use small::Precondition;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Files longer than this are sent in parts.
const MULTIPART_THRESHOLD_BYTES: u64 = 8 << 20;
/// The description of an object that the gateway may not query.
const UNREADABLE_OBJECT: &str = "an object that these credentials may not read";
/// The description of an object that a delivery does not replace.
const OTHER_BYTES: &str = "an object of this gateway with other bytes";

impl Bucket {
    /// Stores the file in the bucket unless it is already there. Returns once the bucket has stored it.
    pub(super) async fn deliver(&self, mut delivery: Delivery<'_>) -> Result<(), DeliveryFailure> {
        let (entry, unclear) = (delivery.entry, delivery.may_be_stored);
        let (uploads, uplink) = (delivery.uploads, delivery.uplink);
        let (metadata, unclear_since) = (delivery.metadata.take(), delivery.unclear_since);
        let replaces = delivery.replaces;
        let before = self.query_until_settled(entry, unclear_since).await?;
        let content = match &before {
            StoredObject::SameExport => None,
            StoredObject::Foreign(whose) => return Err(self.conflict_failure(entry, whose)),
            StoredObject::Damaged if replaces == Replaces::Nothing => {
                return Err(self.conflict_failure(entry, OTHER_BYTES));
            }
            StoredObject::Damaged | StoredObject::Missing | StoredObject::Unreadable => {
                Some(delivery.prepare_content(self.compression).await?)
            }
        };
        // The metadata comes before the file, but not before the file is known to be usable.
        if let Some(metadata) = &metadata {
            // The file was not sent yet.
            let certain = |failure| DeliveryFailure { outcome_unknown: false, ..failure };
            self.deliver_metadata(metadata, unclear_since).await.map_err(certain)?;
        }
        let Some(content) = content else {
            let _ = self.clean_up_uploads(&entry.id, uploads).await;
            return Ok(());
        };
        let stored = if content.length > MULTIPART_THRESHOLD_BYTES {
            self.put_in_parts(&content, entry, (before, replaces), uploads, uplink).await?
        } else {
            let whole = 0..content.length;
            let body =
                || RequestBody::File(&content.file, whole.clone(), content.sha256.clone(), uplink);
            let overwrite = Overwrite::of(&before, replaces);
            self.put_object(entry, content.encoding, body, overwrite).await?
        };
        if self.confirm_stored(entry, stored).await? {
            let _ = self.clean_up_uploads(&entry.id, uploads).await;
        } else if stored {
            self.may_query.store(false, Ordering::Relaxed);
        } else if !unclear {
            // Only an earlier attempt with an unclear end can have stored the object that exists already.
            return Err(self.conflict_failure(entry, UNREADABLE_OBJECT));
        }
        Ok(())
    }

    /// Checks that the bucket has an object after it was sent. `stored` says whether the bucket accepted it. Returns false
    /// if the credentials may not query it.
    async fn confirm_stored(&self, entry: &Export, stored: bool) -> Result<bool, DeliveryFailure> {
        // The object may be stored even if this check gets no answer.
        let unconfirmed = |failure| DeliveryFailure { outcome_unknown: stored, ..failure };
        match self.query_object(entry).await.map_err(unconfirmed)? {
            StoredObject::SameExport => Ok(true),
            StoredObject::Unreadable => Ok(false),
            StoredObject::Foreign(whose) => Err(self.conflict_failure(entry, &whose)),
            StoredObject::Missing | StoredObject::Damaged => Err(self.not_stored_failure()),
        }
    }

    /// Stores the metadata of an export unless it is already there.
    async fn deliver_metadata(
        &self,
        MetadataObject { entry, text }: &MetadataObject,
        unclear_since: Option<Instant>,
    ) -> Result<(), DeliveryFailure> {
        let before = self.query_until_settled(entry, unclear_since).await?;
        let overwrite = match &before {
            StoredObject::SameExport => return Ok(()),
            StoredObject::Foreign(whose) => return Err(self.conflict_failure(entry, whose)),
            StoredObject::Damaged => Overwrite::Anything,
            StoredObject::Missing | StoredObject::Unreadable => Overwrite::Nothing,
        };
        let body = || RequestBody::Text(text.clone());
        let stored = self.put_object(entry, None, body, overwrite).await?;
        // This attempt has stored it, or an earlier one. Another gateway's file under the same key would be found.
        if self.confirm_stored(entry, stored).await? || stored || entry.attempts > 0 {
            return Ok(());
        }
        Err(self.conflict_failure(entry, UNREADABLE_OBJECT))
    }

    /// Replaces an object that is not an export by this JSON text.
    pub(super) async fn put_json(&self, key: &str, text: &str) -> Result<(), DeliveryFailure> {
        self.put_small(key, text, &Precondition::Always).await.map(drop)
    }

    /// Sends an object in one request. Returns false if the key already has an object.
    async fn put_object<'a>(
        &self,
        entry: &Export,
        encoding: Option<&'static str>,
        body: impl Fn() -> RequestBody<'a>,
        overwrite: Overwrite<'_>,
    ) -> Result<bool, DeliveryFailure> {
        let mut condition = self.build_condition(overwrite);
        loop {
            let mut request = S3Request::new(Method::PUT, &entry.key);
            request.headers = self.build_headers(entry, encoding)?;
            let conditional = self.add_precondition(&mut request.headers, &condition)?;
            request.body = body();
            let answer = self.send_storing_request(request).await?;
            match answer.status {
                200..=299 => {
                    self.remember_tag_form(&condition);
                    return Ok(true);
                }
                412 if conditional && self.has_tag_of(&condition, &entry.key).await? => {
                    condition.change_after_refusal();
                }
                412 if conditional => return Ok(false),
                501 if conditional => self.supports_conditional_put.store(false, Ordering::Relaxed),
                status => {
                    return Err(DeliveryFailure {
                        outcome_unknown: is_outcome_unknown(status),
                        ..self.refused_failure(&answer)
                    });
                }
            }
        }
    }

    /// Returns the metadata headers of an object.
    fn build_headers(
        &self,
        entry: &Export,
        encoding: Option<&'static str>,
    ) -> Result<HeaderMap, DeliveryFailure> {
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
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(entry.media_type()));
        if let Some(doubt) = entry.clock {
            let doubt = HeaderValue::from_static(doubt.name());
            headers.insert(HeaderName::from_static("x-amz-meta-clock"), doubt);
        }
        if let Some(encoding) = encoding {
            headers.insert(
                HeaderName::from_static("content-encoding"),
                HeaderValue::from_static(encoding),
            );
        }
        for (name, value) in metadata {
            let value = HeaderValue::from_str(value).map_err(|_| {
                DeliveryFailure::of_gateway(format!(
                    "`{value}` is not allowed in the metadata of an object ({name})"
                ))
            })?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// Queries the object after an earlier attempt ended at `unanswered` without a clear result. A slow server
    /// or proxy may still be storing the file. Not every server supports `If-None-Match` (Ceph 16 does not in a
    /// versioned bucket), and one that does may accept two concurrent requests. So an object counts as missing
    /// only once it has had time to appear.
    async fn query_until_settled(
        &self,
        entry: &Export,
        unanswered: Option<Instant>,
    ) -> Result<StoredObject, DeliveryFailure> {
        loop {
            let stored_object = self.query_object(entry).await?;
            let left = unanswered.map(|at| self.settle_time.saturating_sub(at.elapsed()));
            match left.filter(|left| stored_object == StoredObject::Missing && !left.is_zero()) {
                None => return Ok(stored_object),
                Some(left) => tokio::time::sleep(left.min(self.settle_time / 10)).await,
            }
        }
    }

    fn not_stored_failure(&self) -> DeliveryFailure {
        DeliveryFailure::new(
            Cause::Broken,
            format!(
                "the bucket `{}` accepted the file but does not have it as it was sent",
                self.name
            ),
        )
    }

    fn conflict_failure(&self, entry: &Export, whose: &str) -> DeliveryFailure {
        DeliveryFailure::new(
            Cause::Conflict,
            format!(
                "the bucket `{}` has {whose} under the key `{}`, which is not overwritten; give each \
                 gateway a `prefix` of its own, or move that object away",
                self.name, entry.key
            ),
        )
    }
}
