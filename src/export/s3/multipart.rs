//! Multipart uploads of long files. Parts are sent one after the other, and an interrupted upload continues.
use super::request::{Ask, Sending};
use super::words::{element, elements};
use super::{Bucket, Held, unsaid};
use crate::cause::{Class, Failure};
use crate::entry::Entry;
use crate::parcel::Content;
use crate::uplink::Uplink;
use crate::uploads::{Begun, Part, Uploads};
use reqwest::Method;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

/// The minimum size of a part except the last one (S3). A broken connection costs at most one part.
const PART: u64 = 5 << 20;
/// The maximum number of parts of one upload (S3 allows 10,000).
const MOST_PARTS: u64 = 9_000;
/// The extra timeout for the server to assemble the parts.
const JOINING: Duration = Duration::from_mins(5);

/// The result of completing an upload.
enum End {
    /// The object is stored as it was sent.
    Stored,
    /// Another object exists under its key.
    Taken,
    /// The server does not know the upload or one of its parts.
    Unknown,
}

impl Bucket {
    /// Sends the file in parts. Returns false if there is an object under its key.
    pub(super) async fn put_in_parts(
        &self,
        content: &Content,
        entry: &Entry,
        before: &Held,
        uploads: &Uploads,
        uplink: &Arc<Uplink>,
    ) -> Result<bool, Failure> {
        let over = *before == Held::Harmed;
        let (known, id) = (uploads.clone(), entry.id.clone());
        let noted = on_disk(move || Ok(known.find(&id))).await?;
        let part_size = PART.max(content.length.div_ceil(MOST_PARTS));
        let fits = |begun: &Begun| {
            begun.place == self.requests.place()
                && begun.key == entry.key
                && (begun.length, begun.part_size) == (content.length, part_size)
                && begun.sha256 == content.sha256
        };
        if let Some((begun, parts)) = noted.filter(|(begun, _)| fits(begun)) {
            match self.go_on(&begun, parts, content, entry, over, uploads, uplink).await? {
                End::Stored => return Ok(true),
                End::Taken => return Ok(false),
                // It may have been completed although the answer was lost.
                End::Unknown => {
                    uploads.end(&entry.id);
                    if self.look(entry).await? == Held::Same {
                        return Ok(true);
                    }
                }
            }
        }
        if *before != Held::Untold {
            // Uploads that cannot be aborted now are aborted once the file is stored.
            let _ = self.clear(&entry.key).await;
        }
        let begun = self.begin(content, entry, part_size, uploads).await?;
        match self.go_on(&begun, Vec::new(), content, entry, over, uploads, uplink).await? {
            End::Stored => Ok(true),
            End::Taken => Ok(false),
            End::Unknown => {
                uploads.end(&entry.id);
                Err(Failure::new(
                    Class::Broken,
                    format!(
                        "the bucket `{}` no longer has the uploaded parts of a long file",
                        self.name
                    ),
                ))
            }
        }
    }

    /// Creates an upload and records it.
    async fn begin(
        &self,
        content: &Content,
        entry: &Entry,
        part_size: u64,
        uploads: &Uploads,
    ) -> Result<Begun, Failure> {
        let mut ask = Ask::new(Method::POST, &entry.key);
        ask.query = &[("uploads", "")];
        ask.headers = self.headers(entry, content)?;
        let answer = self.send(ask).await?;
        let upload = element(&answer.body, "UploadId");
        let (200..=299, Some(upload)) = (answer.status, upload) else {
            return Err(self.refused(&answer));
        };
        let begun = Begun {
            target: self.target.clone(),
            place: self.requests.place().to_owned(),
            key: entry.key.clone(),
            upload,
            part_size,
            length: content.length,
            sha256: content.sha256.clone(),
        };
        let (uploads, id, note) = (uploads.clone(), entry.id.clone(), begun.clone());
        on_disk(move || uploads.begin(&id, &note)).await?;
        Ok(begun)
    }

    /// Sends the missing parts and completes the upload.
    #[expect(clippy::too_many_arguments, reason = "one upload needs all of them")]
    async fn go_on(
        &self,
        begun: &Begun,
        mut parts: Vec<Part>,
        content: &Content,
        entry: &Entry,
        over: bool,
        uploads: &Uploads,
        uplink: &Arc<Uplink>,
    ) -> Result<End, Failure> {
        for number in 1..=begun.parts() {
            if parts.iter().any(|part| part.number == number) {
                continue;
            }
            if !uplink.is_open() {
                return Err(Failure::new(Class::Closed, "the delivery window closed"));
            }
            let from = (number - 1) * begun.part_size;
            let range = from..(from + begun.part_size).min(content.length);
            let sha256 = digest(&content.file, range.clone()).await?;
            let number_text = number.to_string();
            let query = [("partNumber", number_text.as_str()), ("uploadId", &begun.upload)];
            let mut ask = Ask::new(Method::PUT, &entry.key);
            ask.query = &query;
            ask.body = Sending::File(&content.file, range, sha256, uplink);
            let answer = self.send(ask).await?;
            let etag = match answer.status {
                200..=299 => answer.header("etag").map(str::to_owned),
                404 if is(&answer.body, "NoSuchUpload") => return Ok(End::Unknown),
                _ => return Err(self.refused(&answer)),
            };
            let etag = etag.ok_or_else(|| self.refused(&answer))?;
            let part = Part { number, etag };
            let (notes, id, note) = (uploads.clone(), entry.id.clone(), part.clone());
            on_disk(move || notes.add(&id, &note)).await?;
            parts.push(part);
        }
        parts.sort_by_key(|part| part.number);
        let (notes, id) = (uploads.clone(), entry.id.clone());
        on_disk(move || notes.sync(&id)).await?;
        self.complete(begun, &parts, over).await
    }

    async fn complete(&self, begun: &Begun, parts: &[Part], over: bool) -> Result<End, Failure> {
        let mut list = "<CompleteMultipartUpload>".to_owned();
        for Part { number, etag } in parts {
            let etag = etag.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            let _ =
                write!(list, "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        list.push_str("</CompleteMultipartUpload>");
        loop {
            let query = [("uploadId", begun.upload.as_str())];
            let mut ask = Ask::new(Method::POST, &begun.key);
            ask.query = &query;
            let conditional = self.guard(&mut ask.headers, over);
            ask.body = Sending::Text(list.clone());
            ask.work = JOINING;
            let answer = self.send_whole(ask).await?;
            // A server that starts its answer before it is done reports an error in the body.
            let failed = element(&answer.body, "Code");
            return match (answer.status, failed.as_deref()) {
                (200..=299, None) => Ok(End::Stored),
                (412, _) | (_, Some("PreconditionFailed")) if conditional => {
                    let _ = self.abort(&begun.key, &begun.upload).await;
                    Ok(End::Taken)
                }
                (501, _) if conditional => {
                    self.conditional.store(false, std::sync::atomic::Ordering::Relaxed);
                    continue;
                }
                (_, Some("NoSuchUpload" | "InvalidPart" | "InvalidPartOrder")) => Ok(End::Unknown),
                (status, code) => {
                    let unanswered = unsaid(status) || code == Some("InternalError");
                    Err(Failure { unanswered, ..self.refused(&answer) })
                }
            };
        }
    }

    /// Aborts an upload, so that its parts use no space in the bucket.
    pub(super) async fn abort(&self, key: &str, upload: &str) -> Result<(), Failure> {
        let query = [("uploadId", upload)];
        let mut ask = Ask::new(Method::DELETE, key);
        ask.query = &query;
        let answer = self.send(ask).await?;
        match answer.status {
            200..=299 | 404 => Ok(()),
            _ => Err(self.refused(&answer)),
        }
    }

    /// Cleans up the uploads of a stored export. If that fails now, the record of the upload stays for the
    /// cleanup.
    pub(crate) async fn tidy(&self, id: &str, uploads: &Uploads) -> Result<(), Failure> {
        let (notes, of) = (uploads.clone(), id.to_owned());
        let Some((begun, parts)) = on_disk(move || Ok(notes.find(&of))).await? else {
            return Ok(());
        };
        if begun.place == self.requests.place() {
            for upload in self.open_uploads(&begun.key).await? {
                if upload != begun.upload {
                    self.abort(&begun.key, &upload).await?;
                } else if parts.len() as u64 == begun.parts() {
                    // Swift keeps the upload if the connection breaks while the parts are assembled, and
                    // aborting it would remove the object's parts. Completing it with fewer than all parts
                    // would do so too, so such an upload is not touched.
                    self.complete(&begun, &parts, true).await?;
                }
            }
        }
        uploads.end(id);
        Ok(())
    }

    /// Aborts the uploads of an export that will not be continued, if there is no object under its key.
    pub(crate) async fn abandon(&self, begun: &Begun) -> Result<(), Failure> {
        if begun.place == self.requests.place()
            && self.send(Ask::new(Method::HEAD, &begun.key)).await?.status == 404
        {
            self.clear(&begun.key).await?;
            self.abort(&begun.key, &begun.upload).await?;
        }
        Ok(())
    }

    /// Aborts uploads of this key that are not recorded here, because the answer to their creation was lost.
    /// Nothing may be stored under the key.
    async fn clear(&self, key: &str) -> Result<(), Failure> {
        for id in self.open_uploads(key).await? {
            self.abort(key, &id).await?;
        }
        Ok(())
    }

    /// Returns the ids of the uploads of this key, or none if the account may not list them.
    async fn open_uploads(&self, key: &str) -> Result<Vec<String>, Failure> {
        let query = [("prefix", key), ("uploads", "")];
        let mut ask = Ask::new(Method::GET, "");
        ask.query = &query;
        let answer = self.send(ask).await?;
        if matches!(answer.status, 429 | 500 | 502..=599) {
            return Err(self.refused(&answer));
        }
        let uploads = elements(&answer.body, "Upload");
        let of_key = uploads.filter(|upload| element(upload, "Key").as_deref() == Some(key));
        Ok(of_key.filter_map(|upload| element(upload, "UploadId")).collect())
    }
}

fn is(body: &str, code: &str) -> bool {
    element(body, "Code").as_deref() == Some(code)
}

/// Computes the SHA-256 of a range of a file with a small buffer.
async fn digest(file: &Arc<File>, range: std::ops::Range<u64>) -> Result<String, Failure> {
    const BUFFER: usize = 256 << 10;
    let file = Arc::clone(file);
    on_disk(move || {
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
        Ok(crate::file::hex(context.finish().as_ref()))
    })
    .await
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| {
        Failure::gateway(format!("reading or writing the gateway's disk failed: {error}"))
    })
}
