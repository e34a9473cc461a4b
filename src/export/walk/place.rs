//! The location of the objects to check: a directory or a bucket.
use crate::backoff::DeliveryTimings;
use crate::cause::DeliveryFailure;
use crate::key::{self, ExportKey, FileSettings};
use crate::s3::Bucket;
use crate::target;
use crate::transport::max_total_time;
use penstock_base::backoff::exponential_delay;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::shared_folder::{SharedFolder, TEMPORARY_EXTENSION};
use penstock_config::{Compression, KeyTemplate, TargetKind, Targets};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The idle timeout while an object is read.
const READ_IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The maximum number of attempts for a request, and to read an object whose connection breaks.
pub(super) const MAX_ATTEMPTS: u32 = 4;
/// The delay after the first failure, which doubles with each further one.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(2);
/// The maximum delay.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(16);

/// The location of the objects.
#[derive(Debug)]
pub struct BucketLocation {
    kind: LocationKind,
    /// The templates of the keys, those with the most placeholders first: they match the fewest keys.
    templates: Vec<KeyTemplate>,
    /// The prefix of the target, if it is known.
    prefix: Option<String>,
}

#[derive(Debug)]
enum LocationKind {
    Directory(PathBuf),
    Bucket { runtime: std::sync::Arc<Runtime>, bucket: Box<Bucket>, prefix: String },
}

/// The credentials for a bucket that is given by its URL.
#[derive(Clone, Default)]
pub struct ReadCredentials {
    /// `AWS_ACCESS_KEY_ID`
    pub access_key_id: String,
    /// `AWS_SECRET_ACCESS_KEY`
    pub secret_access_key: String,
    /// `AWS_REGION`
    pub region: String,
}

/// An object to read.
pub(super) struct ObjectReader {
    pub(super) body: Box<dyn Read>,
    pub(super) headers: ObjectHeaders,
}

/// The headers of an object in a bucket. A file in a directory has none.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectHeaders {
    /// The value of the `Content-Encoding` header.
    pub(super) encoding: Option<String>,
    /// `sha256` of its metadata.
    pub(super) sha256: Option<String>,
    /// `sequence` of its metadata.
    pub(super) sequence: Option<String>,
    /// `kind` of its metadata.
    pub(super) kind: Option<String>,
    /// `gateway-id` of its metadata.
    pub(super) gateway: Option<String>,
}

impl BucketLocation {
    /// Returns the location of a directory.
    pub fn of_directory(path: PathBuf) -> Self {
        Self::of_kind(LocationKind::Directory(path))
    }

    fn of_kind(kind: LocationKind) -> Self {
        Self { kind, templates: vec![KeyTemplate::default()], prefix: None }
    }

    /// Reads keys by these templates too, besides the default and the target's own.
    #[must_use]
    pub fn with_templates(mut self, templates: impl IntoIterator<Item = KeyTemplate>) -> Self {
        self.templates.extend(templates);
        self.templates.sort_by_key(|template| std::cmp::Reverse(template.placeholder_count()));
        self.templates.dedup();
        self
    }

    /// Returns every reading of a key.
    pub(super) fn parse_key(&self, path: &str) -> Vec<ExportKey> {
        ExportKey::parse_all(path, &self.templates, self.prefix.as_deref())
    }

    /// Returns whether this is the key of a heartbeat or of a backup.
    pub(super) fn is_reserved_key(&self, path: &str) -> bool {
        key::is_reserved_key(path, self.prefix.as_deref())
    }

    /// Returns the location of a configured target.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the bucketName has no target.
    pub fn of_target(
        targets: &Targets,
        data_dir: &Path,
        bucket_name: &str,
    ) -> Result<Self, GatewayError> {
        let invalid = |cause: String| GatewayError::new(ErrorClass::Invalid, cause);
        let FileSettings { prefix, key, .. } = target::file_settings(targets, bucket_name);
        let place = match target::resolve_kind(targets, bucket_name).map_err(invalid)? {
            Some(kind @ TargetKind::S3 { .. }) => {
                Self::of_bucket(kind, bucket_name, prefix.clone())?
            }
            Some(TargetKind::Sparql(store)) => {
                return Err(invalid(format!(
                    "the target `{bucket_name}` is the SPARQL store at {}, which has no files to verify",
                    store.endpoint
                )));
            }
            kind => Self::of_directory(target::directory_path(data_dir, kind, bucket_name)),
        };
        Ok(Self { prefix: Some(prefix), ..place }.with_templates([key]))
    }

    /// Returns the location of the bucket at `https://HOST[:PORT]/BUCKET[/PREFIX]`.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the URL is not valid.
    pub fn of_url(url: &str, credentials: ReadCredentials) -> Result<Self, GatewayError> {
        let parsed = reqwest::Url::parse(url).map_err(|error| {
            GatewayError::new(ErrorClass::Invalid, format!("{url} is not a URL: {error}"))
        })?;
        let path = percent_encoding::percent_decode_str(parsed.path().trim_start_matches('/'));
        let path = path.decode_utf8_lossy().into_owned();
        let (bucket, prefix) = path.split_once('/').unwrap_or((&path, ""));
        if bucket.is_empty() || !matches!(parsed.scheme(), "http" | "https") {
            let text = format!(
                "{url} names no bucket; the form is https://HOST/BUCKET or https://HOST/BUCKET/PREFIX"
            );
            return Err(GatewayError::new(ErrorClass::Invalid, text));
        }
        let kind = TargetKind::S3 {
            endpoint: parsed.origin().ascii_serialization(),
            region: credentials.region,
            bucket: None,
            access_key_id: credentials.access_key_id,
            secret_access_key: credentials.secret_access_key,
            path_style: true,
            ca_file: None,
            compression: Compression::None,
        };
        Self::of_bucket(&kind, bucket, prefix.to_owned())
    }

    fn of_bucket(kind: &TargetKind, name: &str, prefix: String) -> Result<Self, GatewayError> {
        let internal =
            |error: io::Error| GatewayError::new(ErrorClass::Internal, error.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = std::sync::Arc::new(runtime.map_err(internal)?);
        let bucket =
            Bucket::open(kind, name, "", &DeliveryTimings::default()).map_err(to_gateway_error)?;
        Ok(Self::of_kind(LocationKind::Bucket { runtime, bucket: Box::new(bucket), prefix }))
    }

    /// Passes every key in the bucket to `each`, including the prefix.
    pub(super) fn for_each_key(
        &self,
        each: &mut dyn FnMut(&str) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        match &self.kind {
            LocationKind::Directory(root) => for_each_file(root, root, each),
            LocationKind::Bucket { runtime, bucket, prefix } => {
                let mut after: Option<String> = None;
                loop {
                    let page = retry_transient(|| {
                        runtime.block_on(bucket.list_page(prefix, after.as_deref()))
                    })?;
                    page.objects.iter().try_for_each(|object| each(&object.key))?;
                    after = page.next;
                    if after.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Opens an object. Returns `None` if it does not exist.
    pub(super) fn open_object(&self, key: &str) -> Result<Option<ObjectReader>, GatewayError> {
        match &self.kind {
            LocationKind::Directory(root) => {
                let key = Path::new(key);
                let opened = SharedFolder::open_root(root).and_then(|root| {
                    let folder = root.open_below(key.parent().unwrap_or(Path::new("")))?;
                    let Some(folder) = folder else { return Ok(None) };
                    folder.open_file(Path::new(key.file_name().unwrap_or_default()))
                });
                let file = opened.map_err(|error| unreadable_error(&root.join(key), &error))?;
                Ok(file.map(|file| ObjectReader {
                    body: Box::new(file),
                    headers: ObjectHeaders::default(),
                }))
            }
            LocationKind::Bucket { runtime, bucket, .. } => {
                let response = retry_transient(|| runtime.block_on(bucket.get_object(key)))?;
                let Some(response) = response else { return Ok(None) };
                let header =
                    |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
                let headers = ObjectHeaders {
                    encoding: header("content-encoding"),
                    sha256: header("x-amz-meta-sha256"),
                    sequence: header("x-amz-meta-sequence"),
                    kind: header("x-amz-meta-kind"),
                    gateway: header("x-amz-meta-gateway-id"),
                };
                Ok(Some(ObjectReader {
                    headers,
                    body: Box::new(ResponseReader::new(std::sync::Arc::clone(runtime), response)),
                }))
            }
        }
    }
}

/// Passes every file below a folder to `each`, as its path relative to `root`. Files that are being written are left
/// out.
fn for_each_file(
    root: &Path,
    folder: &Path,
    each: &mut dyn FnMut(&str) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable_error(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable_error(folder, &error))?;
        let path = entry.path();
        // A link to a folder counts as a file, which cannot be read.
        if entry.file_type().map_err(|error| unreadable_error(&path, &error))?.is_dir() {
            for_each_file(root, &path, each)?;
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !(name.starts_with('.') && name.ends_with(TEMPORARY_EXTENSION)) {
            each(&path.strip_prefix(root).unwrap_or(&path).to_string_lossy())?;
        }
    }
    Ok(())
}

fn unreadable_error(path: &Path, error: &io::Error) -> GatewayError {
    let kind = if error.kind() == io::ErrorKind::NotFound {
        ErrorClass::NotFound
    } else {
        ErrorClass::Internal
    };
    GatewayError::new(kind, format!("{} cannot be read: {error}", path.display()))
}

/// Blocks the thread before the next attempt, after this number of failures in a row.
pub(crate) fn pause_before_retry(failures: u32) {
    let delay = exponential_delay(FIRST_RETRY_DELAY, failures.into(), MAX_RETRY_DELAY);
    std::thread::sleep(delay);
}

/// Retries a request after transient failures.
pub(crate) fn retry_transient<T>(
    mut request: impl FnMut() -> Result<T, DeliveryFailure>,
) -> Result<T, GatewayError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match request() {
            Err(failure) if failure.is_transient() && attempts < MAX_ATTEMPTS => {
                pause_before_retry(attempts);
            }
            answer => return answer.map_err(to_gateway_error),
        }
    }
}

fn to_gateway_error(failure: DeliveryFailure) -> GatewayError {
    GatewayError::new(ErrorClass::Internal, failure.cause)
}

/// Reads the body of an answer as a stream. It ends if nothing arrives for long, or if all takes too long for its bytes.
pub(crate) struct ResponseReader {
    runtime: std::sync::Arc<Runtime>,
    response: reqwest::Response,
    rest: bytes::Bytes,
    /// The bytes that have arrived.
    received: u64,
    /// How long it has waited for them. The time between the reads does not count.
    waited: Duration,
}

impl ResponseReader {
    pub(crate) fn new(runtime: std::sync::Arc<Runtime>, response: reqwest::Response) -> Self {
        Self { runtime, response, rest: bytes::Bytes::new(), received: 0, waited: Duration::ZERO }
    }
}

impl Read for ResponseReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let begun = Instant::now();
            let next = self.runtime.block_on(async {
                tokio::time::timeout(READ_IDLE_TIMEOUT, self.response.chunk()).await
            });
            self.rest = match next {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(0),
                Ok(Err(error)) => return Err(io::Error::other(error)),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            };
            self.received += self.rest.len() as u64;
            self.waited += begun.elapsed();
            if self.waited > max_total_time(self.received) {
                let why = "the server sends the object too slowly";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
        let length = self.rest.len().min(buffer.len());
        let taken = self.rest.split_to(length);
        buffer.get_mut(..length).unwrap_or_default().copy_from_slice(&taken);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::build_client;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::Arc;

    #[test]
    fn an_object_that_arrives_byte_by_byte_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (connection, _) = listener.accept().unwrap();
            let mut request = BufReader::new(&connection).lines();
            while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na";
            (&connection).write_all(answer).unwrap();
            // Until the client closes it.
            let _ = (&connection).read_to_end(&mut Vec::new());
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = build_client(None, &DeliveryTimings::default()).unwrap();
        let response = runtime.block_on(client.get(url).send()).unwrap();
        let mut reader = ResponseReader::new(Arc::new(runtime), response);
        reader.waited = max_total_time(2) + Duration::from_secs(1);
        assert_eq!(reader.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop((reader, client));
        server.join().unwrap();
    }
}
