//! An S3-compatible bucket as a target. This file alone knows rust-s3.
//!
//! rust-s3 sends a file below 8 MiB as one PUT, and a longer one as a multipart upload, one part of
//! 8 MiB at a time, so that memory stays constant. HEAD afterwards makes sure that the bucket has it.
use super::entry::{Entry, Kind};
use super::file;
use super::target::Failure;
use crate::config::TargetKind;
use s3::creds::Credentials;
use s3::error::S3Error;
use s3::region::Region;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::time::Duration;

/// A request may take this long, and longer by what its bytes take at [`SLOWEST`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes a second below which an uplink counts as broken.
const SLOWEST: u64 = 32 << 10;
/// Bytes of one request.
const PART: u64 = s3::bucket::CHUNK_SIZE as u64;

/// A bucket.
pub(super) struct Bucket {
    bucket: Box<s3::Bucket>,
    endpoint: String,
    gateway_id: String,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bucket({} at {})", self.bucket.name, self.endpoint)
    }
}

impl Bucket {
    /// Prepares the bucket that this target names; nothing is sent.
    pub(super) fn open(
        target: &TargetKind,
        bucket_name: &str,
        gateway_id: &str,
    ) -> Result<Self, Failure> {
        let TargetKind::S3 {
            endpoint,
            region,
            bucket,
            access_key_id,
            secret_access_key,
            path_style,
            ca_file: _,
        } = target
        else {
            return Err(Failure { reached: None, cause: "the target is no S3 bucket".to_owned() });
        };
        let wrong = |cause: String| Failure { reached: None, cause };
        let credentials =
            Credentials::new(Some(access_key_id), Some(secret_access_key), None, None, None)
                .map_err(|_| wrong("the credentials of the target cannot be used".to_owned()))?;
        let place = Region::Custom {
            region: region.clone(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
        };
        let name = bucket.as_deref().unwrap_or(bucket_name);
        let opened = s3::Bucket::new(name, place, credentials)
            .map_err(|error| wrong(format!("the target cannot be used: {}", chain(&error))))?;
        let bucket = if *path_style { opened.with_path_style() } else { opened };
        Ok(Self { bucket, endpoint: endpoint.clone(), gateway_id: gateway_id.to_owned() })
    }

    /// Puts the file into the bucket unless it is there, and returns once the bucket says that it has it.
    pub(super) async fn deliver(
        &self,
        source: File,
        entry: &Entry,
        again: bool,
    ) -> Result<(), Failure> {
        let source = intact(source, entry).await?;
        // An attempt whose answer got lost may have stored it; and a long upload had better find out
        // first whether the bucket can be reached.
        if (again || entry.bytes >= PART) && self.has(entry).await? == Some(true) {
            return Ok(());
        }
        let mut bucket = self.bucket.clone();
        let largest = entry.bytes.min(PART);
        bucket.set_request_timeout(Some(REQUEST_TIMEOUT + Duration::from_secs(largest / SLOWEST)));
        let kind = match entry.kind {
            Kind::Full => "full",
            Kind::Incremental => "incremental",
            Kind::Deleted => "deleted",
        };
        let sequence = entry.sequence.to_string();
        let metadata = [
            ("export-id", entry.id.as_str()),
            ("sequence", &sequence),
            ("kind", kind),
            ("gateway-id", &self.gateway_id),
            ("sha256", &entry.sha256),
        ];
        let mut request = bucket
            .put_object_stream_builder(&entry.key)
            .with_content_type("application/json")
            .with_max_concurrent_chunks(1);
        for (name, value) in metadata {
            request = request.with_metadata(name, value).map_err(|error| self.failure(&error))?;
        }
        let mut reader = tokio::fs::File::from_std(source);
        request.execute_stream(&mut reader).await.map_err(|error| self.failure(&error))?;
        match self.has(entry).await? {
            Some(true) | None => Ok(()),
            Some(false) => Err(Failure {
                reached: Some(true),
                cause: format!(
                    "the bucket `{}` took the file, and does not hold it as it was sent",
                    self.bucket.name
                ),
            }),
        }
    }

    /// Whether the bucket holds the file as it is; `None` when these credentials may not ask.
    async fn has(&self, entry: &Entry) -> Result<Option<bool>, Failure> {
        let mut bucket = self.bucket.clone();
        bucket.set_request_timeout(Some(REQUEST_TIMEOUT));
        match bucket.head_object(&entry.key).await {
            Ok((head, _)) => {
                let sha256 = head.metadata.as_ref().and_then(|metadata| metadata.get("sha256"));
                let length = head.content_length.and_then(|length| u64::try_from(length).ok());
                Ok(Some(
                    length.is_none_or(|length| length == entry.bytes)
                        && sha256.is_some_and(|sha256| *sha256 == entry.sha256),
                ))
            }
            Err(S3Error::HttpFailWithBody(404, _)) => Ok(Some(false)),
            Err(S3Error::HttpFailWithBody(401 | 403, _)) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// What went wrong, in words.
    fn failure(&self, error: &S3Error) -> Failure {
        let bucket = &self.bucket.name;
        let endpoint = &self.endpoint;
        match error {
            S3Error::HttpFailWithBody(status, body) => {
                Failure { reached: Some(true), cause: answer(*status, body, bucket, endpoint) }
            }
            S3Error::Reqwest(error) => {
                let why = chain(error);
                let cause = if error.is_timeout() {
                    format!("{endpoint} did not answer in time")
                } else if why.contains("certificate") {
                    format!("{endpoint} shows a TLS certificate that is not trusted: {why}")
                } else if error.is_connect() {
                    format!("{endpoint} cannot be reached: {why}")
                } else {
                    format!("the connection to {endpoint} broke: {why}")
                };
                Failure { reached: Some(false), cause }
            }
            S3Error::Io(error) => Failure {
                reached: None,
                cause: format!("the file in the spool cannot be read: {error}"),
            },
            error => Failure {
                reached: Some(true),
                cause: format!(
                    "{endpoint} gave an answer that S3 does not know: {}",
                    bounded(&chain(error))
                ),
            },
        }
    }
}

/// What an answer of S3 means.
fn answer(status: u16, body: &str, bucket: &str, endpoint: &str) -> String {
    let code = element(body, "Code").unwrap_or_default();
    match (status, code) {
        (_, "InvalidAccessKeyId") => {
            format!("{endpoint} does not know the `access-key-id` of the target")
        }
        (_, "SignatureDoesNotMatch") => {
            format!(
                "{endpoint} refuses the credentials: the `secret-access-key` of the target is wrong"
            )
        }
        (_, "RequestTimeTooSkewed") => {
            format!("the clock of the gateway and that of {endpoint} differ too much; set the time")
        }
        (_, "NoSuchBucket") => {
            format!("the bucket `{bucket}` does not exist at {endpoint}; create it")
        }
        (_, "QuotaExceeded") => format!("the quota of the bucket `{bucket}` is used up"),
        (401 | 403, _) => format!(
            "the credentials of the target may not write to the bucket `{bucket}` at {endpoint} ({}); mend its policy",
            if code.is_empty() { "403" } else { code }
        ),
        (404, "") => format!("there is no bucket `{bucket}` at {endpoint}"),
        (300..=399, _) => {
            format!("the bucket `{bucket}` is elsewhere; mend the target's `endpoint` and `region`")
        }
        _ => {
            let message = element(body, "Message").unwrap_or_default();
            format!("{endpoint} answered {status} {} {}", bounded(code), bounded(message))
                .trim_end()
                .to_owned()
        }
    }
}

/// The text of the first XML element of this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}

/// The causes of an error, one after the other, without the URL, which says no more than the endpoint.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        let this = error.to_string();
        let this = this.split(" for url (").next().unwrap_or_default();
        if !text.contains(this) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(this);
        }
    }
    bounded(&text).to_owned()
}

fn bounded(text: &str) -> &str {
    let end = (0..=300).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

/// The file, read through once: what is sent must be what was written.
async fn intact(mut source: File, entry: &Entry) -> Result<File, Failure> {
    let sha256 = entry.sha256.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (_, found) = file::digest(&mut source)?;
        source.seek(SeekFrom::Start(0))?;
        Ok::<_, std::io::Error>((found == sha256, source))
    });
    let failure = |cause| Failure { reached: None, cause };
    match read.await {
        Ok(Ok((true, source))) => Ok(source),
        Ok(Ok((false, _))) => Err(failure(
            "the file in the spool is damaged: its SHA-256 is not what it was when it was written"
                .to_owned(),
        )),
        Ok(Err(error)) => Err(failure(format!("the file in the spool cannot be read: {error}"))),
        Err(error) => Err(failure(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_in_words() {
        let body = |code: &str| {
            format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>")
        };
        let told = |status, code| answer(status, &body(code), "plant", "https://s3.example");
        assert!(told(403, "SignatureDoesNotMatch").contains("`secret-access-key`"));
        assert!(told(403, "AccessDenied").contains("may not write"));
        assert!(told(404, "NoSuchBucket").contains("`plant` does not exist"));
        assert_eq!(told(500, "InternalError"), "https://s3.example answered 500 InternalError m");
        assert!(answer(403, "", "plant", "e").contains("403"));
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(bounded(&"ü".repeat(400)).len(), 300);
        assert_eq!(bounded("x"), "x");
    }
}
