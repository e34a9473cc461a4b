//! An S3-compatible bucket as a target. This file alone knows rust-s3.
//!
//! A file up to 5 MiB is one PUT, a longer one a multipart upload, one part at a time, so that memory
//! stays constant. rust-s3 makes its own HTTP client, which takes no certificates: with `ca-file` it
//! signs the requests, and [`PrivateClient`] sends them, the file as one PUT, streamed. In either case
//! the bucket is asked afterwards whether it has the file.

mod private;
mod words;

use super::entry::{Entry, Kind};
use super::file;
use super::target::Failure;
use crate::config::TargetKind;
use private::{PrivateClient, Sent};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use s3::creds::Credentials;
use s3::error::S3Error;
use s3::region::Region;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use words::{answer, bounded, chain};

/// A request may take this long, and longer by what its bytes take at [`SLOWEST`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes a second below which an uplink counts as broken.
const SLOWEST: u64 = 32 << 10;
/// Seconds within which a signed request must begin.
const SIGNED_FOR: u32 = 300;
/// Bytes of one request: the least that S3 takes as a part. Two copies of it are in memory.
const PART: u64 = 5 << 20;
/// Parts of one upload (S3 takes 10,000).
const MOST_PARTS: u64 = 9_000;
const JSON: &str = "application/json";
/// Longer requests wait for their turn, over all targets, because of their memory. Each part waits anew,
/// and a target that failed or is slow has a lane apart, so that it holds up no sound one for longer than
/// its first part takes to go or to fail.
const LONG: u64 = 1 << 20;
/// A target that takes longer for a part is slow.
const SLOW: Duration = Duration::from_secs(10);
static TURNS: Semaphore = Semaphore::const_new(2);
static TURNS_OF_SLOW: Semaphore = Semaphore::const_new(1);

/// A bucket.
pub(super) struct Bucket {
    client: Box<s3::Bucket>,
    private: Option<PrivateClient>,
    endpoint: String,
    gateway_id: String,
}

/// What the bucket holds under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// Nothing, or another file.
    Not,
    /// A file of the same length; the server tells no checksum.
    SameLength,
    /// The very file.
    Same,
    /// These credentials may not ask.
    Untold,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bucket({} at {})", self.client.name, self.endpoint)
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
            ca_file,
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
        let private = match ca_file {
            Some(ca_file) => Some(PrivateClient::open(ca_file).map_err(wrong)?),
            None => None,
        };
        let name = bucket.as_deref().unwrap_or(bucket_name);
        let opened = s3::Bucket::new(name, place, credentials)
            .map_err(|error| wrong(format!("the target cannot be used: {}", chain(&error))))?;
        let client = if *path_style { opened.with_path_style() } else { opened };
        Ok(Self { client, private, endpoint: endpoint.clone(), gateway_id: gateway_id.to_owned() })
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
        if (again || entry.bytes >= PART) && self.held(entry).await? == Held::Same {
            return Ok(());
        }
        let headers = self.headers(entry)?;
        match &self.private {
            Some(client) => self.put_signed(client, source, entry, headers).await,
            None => self.put(source, entry, headers, again).await,
        }
        .map_err(|error| self.failure(&error))?;
        if self.held(entry).await? == Held::Not {
            let cause = format!(
                "the bucket `{}` took the file, and does not hold it as it was sent",
                self.client.name
            );
            return Err(Failure { reached: Some(true), cause });
        }
        Ok(())
    }

    /// Sends the file, in parts when it is long.
    async fn put(
        &self,
        source: File,
        entry: &Entry,
        headers: HeaderMap,
        again: bool,
    ) -> Result<(), S3Error> {
        let mut source = tokio::fs::File::from_std(source);
        let part = PART.max(entry.bytes.div_ceil(MOST_PARTS));
        let mut bucket = self.client.clone();
        bucket.set_request_timeout(Some(timeout(entry.bytes.min(part))));
        if entry.bytes <= part {
            let _turn = turn(entry.bytes, again).await;
            let content = next_part(&mut source, entry.bytes).await?;
            let request = bucket.put_object_builder(&entry.key, &content);
            request.with_content_type(JSON).with_headers(headers).execute().await?;
            return Ok(());
        }
        self.clear(&entry.key).await;
        let begun = bucket.with_extra_headers(headers)?;
        let upload = begun.initiate_multipart_upload(&entry.key, JSON).await?.upload_id;
        let sent = async {
            let mut parts = Vec::new();
            let mut rest = entry.bytes;
            let mut slow = again;
            for number in 1.. {
                let _turn = turn(part, slow).await;
                let begun = Instant::now();
                let content = next_part(&mut source, part.min(rest)).await?;
                rest -= content.len() as u64;
                parts.push(
                    bucket.put_multipart_chunk(content, &entry.key, number, &upload, JSON).await?,
                );
                slow |= begun.elapsed() > SLOW;
                if rest == 0 {
                    break;
                }
            }
            bucket.complete_multipart_upload(&entry.key, &upload, parts).await
        };
        if let Err(error) = sent.await {
            // What is left of it is cleared before the next attempt at the latest.
            let _ = bucket.abort_upload(&entry.key, &upload).await;
            return Err(error);
        }
        Ok(())
    }

    /// Sends the file in one signed request.
    async fn put_signed(
        &self,
        client: &PrivateClient,
        source: File,
        entry: &Entry,
        mut headers: HeaderMap,
    ) -> Result<(), S3Error> {
        let signed = Some(headers.clone());
        let url = self.client.presign_put(&entry.key, SIGNED_FOR, signed, None).await?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        answered(client.put(&url, headers, source, entry.bytes, timeout(entry.bytes)).await?)?;
        Ok(())
    }

    /// The object metadata of an entry.
    fn headers(&self, entry: &Entry) -> Result<HeaderMap, Failure> {
        let kind = match entry.kind {
            Kind::Full => "full",
            Kind::Incremental => "incremental",
            Kind::Deleted => "deleted",
        };
        let sequence = entry.sequence.to_string();
        let metadata = [
            ("x-amz-meta-export-id", entry.id.as_str()),
            ("x-amz-meta-sequence", &sequence),
            ("x-amz-meta-kind", kind),
            ("x-amz-meta-gateway-id", &self.gateway_id),
            ("x-amz-meta-sha256", &entry.sha256),
        ];
        let header = |(name, value): (&'static str, &str)| {
            HeaderValue::from_str(value)
                .map(|value| (HeaderName::from_static(name), value))
                .map_err(|_| {
                    let cause =
                        format!("`{value}` cannot stand in the metadata of an object ({name})");
                    Failure { reached: None, cause }
                })
        };
        metadata.into_iter().map(header).collect()
    }

    /// Ends multipart uploads of this key that a crash or a broken connection left behind: their parts
    /// take room in the bucket. Not every account may ask for them, so that a failure is none.
    async fn clear(&self, key: &str) {
        let mut bucket = self.client.clone();
        bucket.set_request_timeout(Some(REQUEST_TIMEOUT));
        let pages = bucket.list_multiparts_uploads(Some(key), None).await.unwrap_or_default();
        for upload in pages.iter().flat_map(|page| &page.uploads).filter(|upload| upload.key == key)
        {
            if let Err(error) = bucket.abort_upload(key, &upload.id).await {
                tracing::debug!(key, %error, "An upload that was left behind could not be ended.");
            }
        }
    }

    /// What the bucket says it holds under the entry's key.
    async fn held(&self, entry: &Entry) -> Result<Held, Failure> {
        let (length, sha256) = match self.ask(&entry.key).await {
            Ok(told) => told,
            Err(S3Error::HttpFailWithBody(404, _)) => return Ok(Held::Not),
            Err(S3Error::HttpFailWithBody(401 | 403, _)) => return Ok(Held::Untold),
            Err(error) => return Err(self.failure(&error)),
        };
        Ok(match sha256 {
            _ if length.is_some_and(|length| length != entry.bytes) => Held::Not,
            None => Held::SameLength,
            Some(sha256) if sha256 == entry.sha256 => Held::Same,
            Some(_) => Held::Not,
        })
    }

    /// The length of an object, and the SHA-256 in its metadata.
    async fn ask(&self, key: &str) -> Result<(Option<u64>, Option<String>), S3Error> {
        if let Some(client) = &self.private {
            let url = self.client.presign_get(key, SIGNED_FOR, None).await?;
            let sent = answered(client.ask(&url, REQUEST_TIMEOUT).await?)?;
            return Ok((sent.length, sent.sha256));
        }
        let mut bucket = self.client.clone();
        bucket.set_request_timeout(Some(REQUEST_TIMEOUT));
        let (head, _) = bucket.head_object(key).await?;
        let length = head.content_length.and_then(|length| u64::try_from(length).ok());
        Ok((length, head.metadata.and_then(|mut metadata| metadata.remove("sha256"))))
    }

    /// What went wrong, in words.
    fn failure(&self, error: &S3Error) -> Failure {
        let bucket = &self.client.name;
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

/// Waits until a request of so many bytes may be held in memory.
async fn turn(bytes: u64, slow: bool) -> Option<SemaphorePermit<'static>> {
    let turns = if slow { &TURNS_OF_SLOW } else { &TURNS };
    // They are never closed.
    if bytes > LONG { turns.acquire().await.ok() } else { None }
}

/// The next bytes of a file, which must have so many.
async fn next_part(source: &mut tokio::fs::File, bytes: u64) -> Result<Vec<u8>, S3Error> {
    let mut part = vec![0; usize::try_from(bytes).map_err(std::io::Error::other)?];
    source.read_exact(&mut part).await?;
    Ok(part)
}

/// How long a request of so many bytes may take.
fn timeout(bytes: u64) -> Duration {
    REQUEST_TIMEOUT + Duration::from_secs(bytes / SLOWEST)
}

/// An answer that is none of success is an error, as it is with rust-s3.
fn answered(sent: Sent) -> Result<Sent, S3Error> {
    match sent.status {
        200..=299 => Ok(sent),
        status => Err(S3Error::HttpFailWithBody(status, sent.body)),
    }
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
