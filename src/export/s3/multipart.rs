//! Long files: a multipart upload, one part after the other, gone on with where it was.
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

/// The least that S3 takes as a part that is not the last: what a broken connection costs at most.
const PART: u64 = 5 << 20;
/// Parts of one upload (S3 takes 10,000).
const MOST_PARTS: u64 = 9_000;
/// How long a server may take to put the parts together.
const JOINING: Duration = Duration::from_mins(5);

/// How an attempt to bring an upload to its end ended.
enum End {
    /// The object is there, as it was sent.
    Stored,
    /// There is an object under its key already.
    Taken,
    /// The server does not know the upload, or not its parts.
    Unknown,
}

impl Bucket {
    /// Sends the file in parts; false when there is an object under its key.
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
                // It may have ended well without our hearing of it.
                End::Unknown => {
                    uploads.end(&entry.id);
                    if self.look(entry).await? == Held::Same {
                        return Ok(true);
                    }
                }
            }
        }
        if *before != Held::Untold {
            // What is not ended now is once the file is stored.
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
                        "the bucket `{}` lost the parts of a long file that it had taken",
                        self.name
                    ),
                ))
            }
        }
    }

    /// Begins an upload, and notes it.
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

    /// Sends the parts that are missing and has them put together.
    #[expect(clippy::too_many_arguments, reason = "it is what one upload is made of")]
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
                return Err(Failure::new(Class::Closed, "the window closed"));
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
            // A server that began to answer before it was done says there how it ended.
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

    /// Ends an upload, so that its parts take no room in the bucket.
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

    /// Leaves nothing behind of the uploads of an export that is stored. Where that does not work now, the
    /// note of the upload stays, for the sweep.
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
                    // Swift does not forget the upload when the connection breaks while it puts the parts
                    // together, and to end it would take the object's parts away. So would putting together
                    // fewer than all; such an upload is left alone.
                    self.complete(&begun, &parts, true).await?;
                }
            }
        }
        uploads.end(id);
        Ok(())
    }

    /// Ends the uploads of an export that nobody will go on with, where nothing is stored under its key.
    pub(crate) async fn abandon(&self, begun: &Begun) -> Result<(), Failure> {
        if begun.place == self.requests.place()
            && self.send(Ask::new(Method::HEAD, &begun.key)).await?.status == 404
        {
            self.clear(&begun.key).await?;
            self.abort(&begun.key, &begun.upload).await?;
        }
        Ok(())
    }

    /// Ends uploads of this key that are not noted here: what came back from their beginning was lost.
    /// Nothing may be stored under the key.
    async fn clear(&self, key: &str) -> Result<(), Failure> {
        for id in self.open_uploads(key).await? {
            self.abort(key, &id).await?;
        }
        Ok(())
    }

    /// The ids of the uploads of this key; none where the account may not ask for them.
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

/// SHA-256 of a range, in a buffer of moderate size.
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
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|error| Failure::gateway(format!("the disk of the gateway failed: {error}")))
}
