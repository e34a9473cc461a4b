//! Multipart uploads of long files. Parts are sent one after the other, and an interrupted upload continues.
//!
//! Invariant: an upload is aborted only if its key has no object, if another upload created the object, or if the
//! object is damaged and about to be replaced. Swift would remove the parts of the object with the upload.
use super::bucket::{Bucket, StoredObject, is_outcome_unknown};
use super::explain::{first_element, has_code, list_elements};
use super::precondition::Overwrite;
use super::request::{RequestBody, S3Request};
use crate::blocking::run_io;
use crate::cause::DeliveryFailure;
use crate::delivery::{ObjectContent, Replaces};
use crate::uplink::Uplink;
use crate::uploads::{UploadFolder, UploadRecord, UploadedPart};
use penstock_base::hex::encode_hex;
use penstock_resources::export::{Cause, Export};
use reqwest::Method;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

/// The minimum size of a part except the last one (S3). After a broken connection, at most one part is sent again.
const MIN_PART_BYTES: u64 = 5 << 20;
/// The maximum number of parts of one upload (S3 allows 10,000).
const MAX_PARTS: u64 = 9_000;
/// The extra timeout for the server to assemble the parts.
const ASSEMBLY_TIMEOUT: Duration = Duration::from_mins(5);

/// The result of completing an upload.
enum UploadResult {
    /// The object is stored as it was sent.
    Stored,
    /// Another object exists under its key.
    Taken,
    /// The server does not know the upload or one of its parts.
    Unknown,
}

/// A file that is sent in parts.
struct PartsDelivery<'a> {
    bucket: &'a Bucket,
    content: &'a ObjectContent,
    entry: &'a Export,
    /// What the file may replace.
    overwrite: Overwrite<'a>,
    uploads: &'a UploadFolder,
    uplink: &'a Arc<Uplink>,
}

impl Bucket {
    /// Sends the file in parts. Returns false if the key already has an object.
    pub(super) async fn put_in_parts(
        &self,
        content: &ObjectContent,
        entry: &Export,
        (before, replaces): (StoredObject, Replaces<'_>),
        uploads: &UploadFolder,
        uplink: &Arc<Uplink>,
    ) -> Result<bool, DeliveryFailure> {
        let mut stored = before;
        let overwrite = Overwrite::of(&stored, replaces);
        let mut sending =
            PartsDelivery { bucket: self, content, entry, overwrite, uploads, uplink };
        let (folder, id) = (uploads.clone(), entry.id.clone());
        let recorded = run_on_disk(move || Ok(folder.read_upload(&id))).await?;
        let part_size = MIN_PART_BYTES.max(content.length.div_ceil(MAX_PARTS));
        let fits = |record: &UploadRecord| {
            record.place == self.client.bucket_url()
                && record.key == entry.key
                && (record.length, record.part_size) == (content.length, part_size)
                && record.sha256 == content.sha256
        };
        if let Some((record, parts)) = recorded.filter(|(record, _)| fits(record)) {
            match sending.continue_upload(&record, parts).await? {
                UploadResult::Stored => return Ok(true),
                UploadResult::Taken => return Ok(false),
                // An earlier attempt may have completed the upload, and its answer was lost.
                UploadResult::Unknown => {
                    uploads.remove_record(&entry.id);
                    stored = self.query_object(entry).await?;
                    match stored {
                        StoredObject::SameExport => return Ok(true),
                        StoredObject::Foreign(_) => return Ok(false),
                        _ => sending.overwrite = Overwrite::of(&stored, replaces),
                    }
                }
            }
        }
        // A damaged object is replaced, so it no longer needs the parts that Swift would remove.
        if matches!(stored, StoredObject::Missing | StoredObject::Damaged) {
            // Uploads that cannot be aborted now are aborted once the file is stored.
            let _ = self.abort_open_uploads(&entry.key).await;
        }
        let record = self.create_upload(content, entry, part_size, uploads).await?;
        match sending.continue_upload(&record, Vec::new()).await? {
            UploadResult::Stored => Ok(true),
            UploadResult::Taken => Ok(false),
            UploadResult::Unknown => {
                uploads.remove_record(&entry.id);
                Err(DeliveryFailure::new(
                    Cause::Broken,
                    format!(
                        "the bucket `{}` no longer has the uploaded parts of a long file",
                        self.name
                    ),
                ))
            }
        }
    }

    /// Creates an upload and records it.
    async fn create_upload(
        &self,
        content: &ObjectContent,
        entry: &Export,
        part_size: u64,
        uploads: &UploadFolder,
    ) -> Result<UploadRecord, DeliveryFailure> {
        let mut request = S3Request::new(Method::POST, &entry.key);
        request.query = &[("uploads", "")];
        request.headers = self.build_headers(entry, content.encoding)?;
        let answer = self.send(request).await?;
        let upload = first_element(&answer.body, "UploadId");
        let (200..=299, Some(upload)) = (answer.status, upload) else {
            return Err(self.refused_failure(&answer));
        };
        let record = UploadRecord {
            target: self.target.clone(),
            place: self.client.bucket_url().to_owned(),
            key: entry.key.clone(),
            upload,
            part_size,
            length: content.length,
            sha256: content.sha256.clone(),
        };
        let (uploads, id, copy) = (uploads.clone(), entry.id.clone(), record.clone());
        run_on_disk(move || uploads.record_upload(&id, &copy)).await?;
        Ok(record)
    }

    async fn complete_upload(
        &self,
        record: &UploadRecord,
        parts: &[UploadedPart],
        overwrite: Overwrite<'_>,
    ) -> Result<UploadResult, DeliveryFailure> {
        let mut list = "<CompleteMultipartUpload>".to_owned();
        for UploadedPart { number, etag } in parts {
            let etag = etag.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            let _ =
                write!(list, "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        list.push_str("</CompleteMultipartUpload>");
        let mut condition = self.build_condition(overwrite);
        loop {
            let query = [("uploadId", record.upload.as_str())];
            let mut request = S3Request::new(Method::POST, &record.key);
            request.query = &query;
            let conditional = self.add_precondition(&mut request.headers, &condition)?;
            request.body = RequestBody::Text(list.clone());
            request.extra_timeout = ASSEMBLY_TIMEOUT;
            let answer = self.send_storing_request(request).await?;
            // A server may start its answer (200) before it has assembled the parts, and report an error in the body.
            let failed = first_element(&answer.body, "Code");
            return match (answer.status, failed.as_deref()) {
                (200..=299, None) => {
                    self.remember_tag_form(&condition);
                    Ok(UploadResult::Stored)
                }
                (412, _) | (_, Some("PreconditionFailed"))
                    if conditional && self.has_tag_of(&condition, &record.key).await? =>
                {
                    condition.change_after_refusal();
                    continue;
                }
                (412, _) | (_, Some("PreconditionFailed")) if conditional => {
                    let _ = self.abort_upload(&record.key, &record.upload).await;
                    Ok(UploadResult::Taken)
                }
                (501, _) if conditional => {
                    self.supports_conditional_put
                        .store(false, std::sync::atomic::Ordering::Relaxed);
                    continue;
                }
                (_, Some("NoSuchUpload" | "InvalidPart" | "InvalidPartOrder")) => {
                    Ok(UploadResult::Unknown)
                }
                (status, code) => {
                    let outcome_unknown =
                        is_outcome_unknown(status) || code == Some("InternalError");
                    Err(DeliveryFailure { outcome_unknown, ..self.refused_failure(&answer) })
                }
            };
        }
    }

    /// Aborts an upload, so that its parts use no space in the bucket.
    pub(super) async fn abort_upload(
        &self,
        key: &str,
        upload: &str,
    ) -> Result<(), DeliveryFailure> {
        let query = [("uploadId", upload)];
        let mut request = S3Request::new(Method::DELETE, key);
        request.query = &query;
        let answer = self.send(request).await?;
        match answer.status {
            200..=299 | 404 => Ok(()),
            _ => Err(self.refused_failure(&answer)),
        }
    }

    /// Cleans up the uploads of a stored export. If that fails, the record of the upload stays, and the periodic
    /// cleanup tries again.
    pub(crate) async fn clean_up_uploads(
        &self,
        id: &str,
        uploads: &UploadFolder,
    ) -> Result<(), DeliveryFailure> {
        let (folder, export_id) = (uploads.clone(), id.to_owned());
        let Some((record, parts)) = run_on_disk(move || Ok(folder.read_upload(&export_id))).await?
        else {
            return Ok(());
        };
        if record.place == self.client.bucket_url() {
            for upload in self.list_open_uploads(&record.key).await? {
                if upload != record.upload {
                    self.abort_upload(&record.key, &upload).await?;
                } else if parts.len() as u64 == record.part_count() {
                    // Swift keeps the upload if the connection breaks while the parts are assembled. Aborting it
                    // would remove the parts of the stored object, so it is completed again. Completing it with
                    // only some of the parts would remove the others, so without all records it is not touched.
                    self.complete_upload(&record, &parts, Overwrite::Anything).await?;
                }
            }
        }
        uploads.remove_if_current(id, &record);
        Ok(())
    }

    /// Aborts the uploads of an export that is not in the queue, if its key has no object.
    pub(crate) async fn abandon_upload(
        &self,
        record: &UploadRecord,
    ) -> Result<(), DeliveryFailure> {
        if record.place == self.client.bucket_url()
            && self.send(S3Request::new(Method::HEAD, &record.key)).await?.status == 404
        {
            self.abort_open_uploads(&record.key).await?;
            self.abort_upload(&record.key, &record.upload).await?;
        }
        Ok(())
    }

    /// Aborts all open uploads of this key. The gateway may have no record of them, because the answer to their
    /// creation was lost. The key must have no object that is still needed: Swift would remove its parts.
    async fn abort_open_uploads(&self, key: &str) -> Result<(), DeliveryFailure> {
        for id in self.list_open_uploads(key).await? {
            self.abort_upload(key, &id).await?;
        }
        Ok(())
    }

    /// Returns the ids of the open uploads of this key. There are none if the account may not list them.
    async fn list_open_uploads(&self, key: &str) -> Result<Vec<String>, DeliveryFailure> {
        let query = [("prefix", key), ("uploads", "")];
        let mut request = S3Request::new(Method::GET, "");
        request.query = &query;
        let answer = self.send(request).await?;
        if matches!(answer.status, 429 | 500 | 502..=599) {
            return Err(self.refused_failure(&answer));
        }
        let uploads = list_elements(&answer.body, "Upload");
        let of_key = uploads.filter(|upload| first_element(upload, "Key").as_deref() == Some(key));
        Ok(of_key.filter_map(|upload| first_element(upload, "UploadId")).collect())
    }
}

impl PartsDelivery<'_> {
    /// Sends the missing parts and completes the upload.
    async fn continue_upload(
        &self,
        record: &UploadRecord,
        mut parts: Vec<UploadedPart>,
    ) -> Result<UploadResult, DeliveryFailure> {
        for number in 1..=record.part_count() {
            if parts.iter().any(|part| part.number == number) {
                continue;
            }
            if !self.uplink.is_open() {
                return Err(DeliveryFailure::interrupt("the delivery window closed"));
            }
            let Some(part) = self.send_part(record, number).await? else {
                return Ok(UploadResult::Unknown);
            };
            let (folder, id, copy) = (self.uploads.clone(), self.entry.id.clone(), part.clone());
            run_on_disk(move || folder.record_part(&id, &copy)).await?;
            parts.push(part);
        }
        parts.sort_by_key(|part| part.number);
        let (folder, id) = (self.uploads.clone(), self.entry.id.clone());
        run_on_disk(move || folder.sync_record(&id)).await?;
        self.bucket.complete_upload(record, &parts, self.overwrite).await
    }

    /// Sends one part. Returns `None` if the server does not know the upload.
    async fn send_part(
        &self,
        record: &UploadRecord,
        number: u64,
    ) -> Result<Option<UploadedPart>, DeliveryFailure> {
        let from = (number - 1) * record.part_size;
        let range = from..(from + record.part_size).min(self.content.length);
        let sha256 = digest_range(&self.content.file, range.clone()).await?;
        let number_text = number.to_string();
        let query = [("partNumber", number_text.as_str()), ("uploadId", &record.upload)];
        let mut request = S3Request::new(Method::PUT, &self.entry.key);
        request.query = &query;
        request.body = RequestBody::File(&self.content.file, range, sha256, self.uplink);
        let answer = self.bucket.send(request).await?;
        match (answer.status, answer.header("etag")) {
            (200..=299, Some(etag)) => Ok(Some(UploadedPart { number, etag: etag.to_owned() })),
            (404, _) if has_code(&answer.body, "NoSuchUpload") => Ok(None),
            _ => Err(self.bucket.refused_failure(&answer)),
        }
    }
}

/// Computes the SHA-256 of a range of a file with a small buffer.
async fn digest_range(
    file: &Arc<File>,
    range: std::ops::Range<u64>,
) -> Result<String, DeliveryFailure> {
    const BUFFER: usize = 256 << 10;
    let file = Arc::clone(file);
    run_on_disk(move || {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        let mut buffer = vec![0; BUFFER];
        let mut at = range.start;
        while at < range.end {
            let left = usize::try_from(range.end - at).unwrap_or(BUFFER).min(BUFFER);
            let chunk = buffer.get_mut(..left).unwrap_or_default();
            file.read_exact_at(chunk, at)?;
            context.update(chunk);
            at += left as u64;
        }
        Ok(encode_hex(context.finish().as_ref()))
    })
    .await
}

async fn run_on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, DeliveryFailure> {
    run_io(work).await.map_err(|error: io::Error| {
        DeliveryFailure::of_gateway(format!(
            "reading or writing the gateway's disk failed: {error}"
        ))
    })
}
