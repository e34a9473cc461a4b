//! Reading a backup from a bucket: the head, the eras, and the objects that lead to a commit.
use super::chain::Checksum;
use super::head::{BaseEntry, DocumentError, EraRecord, Head, LastFrame};
use super::keys::BackupKeys;
use super::objects::{ObjectError, Segment, open_base, open_segment};
use super::place::{Objects, Place, SmallObject, TargetObjects};
use super::plan::{EraObjects, sort_by_era};
use super::secrecy::{BackupKey, HeadSecret};
use crate::DeliveryTimings;
use crate::cause::DeliveryFailure;
use crate::target;
use crate::walk::place::{pause_before_retry, retry_transient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_config::Targets;
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Reads the backup of one gateway.
#[derive(Debug)]
pub(super) struct Reader<O> {
    pub(super) runtime: Arc<Runtime>,
    pub(super) objects: O,
    pub(super) keys: BackupKeys,
    pub(super) key: BackupKey,
    pub(super) gateway: String,
}

/// A head with its entity tag.
#[derive(Debug, Clone)]
pub(super) struct ReadHead {
    pub(super) head: Head,
    pub(super) etag: Option<String>,
}

/// A base that was read.
#[derive(Debug, Clone)]
pub(super) struct ReadBase {
    pub(super) entry: BaseEntry,
    pub(super) secret: Option<HeadSecret>,
}

/// Why an object cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// It does not exist.
    #[error("{0} does not exist")]
    Missing(String),
    /// Its content is wrong.
    #[error("{key}: {error}")]
    Object { key: String, error: ObjectError },
    /// The objects that are listed do not lead to the commit.
    #[error(transparent)]
    Incomplete(GatewayError),
    /// What is done with its content failed.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

/// An error of a visitor of frames.
pub(super) enum FrameError {
    Object(ObjectError),
    Gateway(GatewayError),
}

impl From<ObjectError> for FrameError {
    fn from(error: ObjectError) -> Self {
        Self::Object(error)
    }
}

impl From<ReadError> for GatewayError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Gateway(error) | ReadError::Incomplete(error) => error,
            error => Self::new(ErrorClass::Damaged, error.to_string()),
        }
    }
}

impl Reader<TargetObjects> {
    /// Opens the backup of a gateway in a configured target.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the target or the key cannot be used.
    pub(super) fn of_target(
        targets: &Targets,
        data_dir: &Path,
        bucket_name: &str,
        gateway: &str,
        key: Option<&str>,
    ) -> Result<Self, GatewayError> {
        let invalid = |cause: String| GatewayError::new(ErrorClass::Invalid, cause);
        let key = BackupKey::parse(key).map_err(invalid)?;
        let timings = DeliveryTimings::default();
        let objects = TargetObjects::open(targets, data_dir, bucket_name, gateway, &timings);
        let prefix = target::key_prefix(targets, bucket_name);
        Self::new(objects.map_err(invalid)?, &prefix, gateway, key)
    }

    /// Lists the gateways that have a backup in a configured target.
    ///
    /// # Errors
    /// As [`Self::of_target`], and if the target cannot be read.
    pub(super) fn list_gateways(
        targets: &Targets,
        data_dir: &Path,
        bucket_name: &str,
    ) -> Result<Vec<String>, GatewayError> {
        // The name is no part of a gateway's root, so that the listing is of all of them.
        let reader = Self::of_target(targets, data_dir, bucket_name, "x", None)?;
        let all = reader.keys.root.trim_end_matches("x/");
        let listing = reader.wait(|| reader.objects.list(all))?;
        let mut gateways: Vec<String> = listing
            .objects
            .iter()
            .filter_map(|object| Some(object.key.strip_prefix(all)?.split_once('/')?.0.to_owned()))
            .collect();
        gateways.dedup();
        // A console can have created an object for the folder itself.
        if gateways.is_empty() {
            return Err(GatewayError::new(
                ErrorClass::NotFound,
                format!(
                    "the target {bucket_name} has no backup of any gateway: {} has nothing below {all}",
                    reader.objects.place().location
                ),
            ));
        }
        Ok(gateways)
    }
}

impl<O: Objects> Reader<O> {
    pub(super) fn new(
        objects: O,
        prefix: &str,
        gateway: &str,
        key: BackupKey,
    ) -> Result<Self, GatewayError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| GatewayError::new(ErrorClass::Internal, error.to_string()))?;
        let keys = BackupKeys::new(prefix, gateway, key.encrypts());
        Ok(Self { runtime: Arc::new(runtime), objects, keys, key, gateway: gateway.to_owned() })
    }

    /// Waits for a request, and retries it after transient failures.
    pub(super) fn wait<T, F: Future<Output = Result<T, DeliveryFailure>>>(
        &self,
        request: impl Fn() -> F,
    ) -> Result<T, GatewayError> {
        retry_transient(|| self.runtime.block_on(request()))
    }

    /// Reads the head. Returns `None` if there is none.
    pub(super) fn read_head(&self) -> Result<Option<ReadHead>, GatewayError> {
        let key = self.keys.head();
        let found = self.wait(|| self.objects.get(&key))?;
        let Some(SmallObject { text, etag }) = found else { return Ok(None) };
        let head = Head::read(&text, &self.gateway);
        let head = head.map_err(|error| document_error(&key, &error))?;
        Ok(Some(ReadHead { head, etag }))
    }

    /// Reads the head, and refuses the key if it is not that of the era to read.
    pub(super) fn require_head(&self) -> Result<ReadHead, GatewayError> {
        self.read_head()?.ok_or_else(|| self.missing_backup_error())
    }

    /// Returns the error for a gateway without a backup.
    pub(super) fn missing_backup_error(&self) -> GatewayError {
        let Place { target, location } = self.objects.place();
        GatewayError::new(
            ErrorClass::NotFound,
            format!(
                "the target {target} has no backup of the gateway {}: {location} has no {}; check --gateway, and the path \
                 and prefix of the target",
                self.gateway,
                self.keys.head()
            ),
        )
    }

    /// Returns the error for an era that the backup does not have.
    pub(super) fn missing_era_error(&self, era: &str) -> GatewayError {
        GatewayError::new(
            ErrorClass::NotFound,
            format!(
                "the backup of the gateway {} in the target {} has no era {era}; penstock offsite-backup list shows what \
                 there is",
                self.gateway,
                self.objects.place().target
            ),
        )
    }

    /// Checks that the key opens objects of a key with this fingerprint.
    pub(super) fn check_key(&self, fingerprint: Option<&str>) -> Result<(), GatewayError> {
        let own = self.key.fingerprint();
        let root = &self.keys.root;
        let refuse =
            |what: &str| Err(GatewayError::new(ErrorClass::Forbidden, format!("{root}: {what}")));
        match (fingerprint, own.as_deref()) {
            (None, None) => Ok(()),
            (None, Some(_)) => refuse(
                "this backup is not encrypted; remove service.backup.key, and set service.backup.insecure=true",
            ),
            (Some(_), None) => {
                refuse("this backup is encrypted; set service.backup.key to its age identity")
            }
            (Some(theirs), Some(own)) if theirs != own => refuse(&format!(
                "this backup is encrypted for the key with the fingerprint {theirs}, and service.backup.key has {own}"
            )),
            _ if !self.key.can_decrypt() => refuse(
                "service.backup.key is a recipient, which cannot decrypt; set the age identity (AGE-SECRET-KEY-1…)",
            ),
            _ => Ok(()),
        }
    }

    /// Lists all eras.
    pub(super) fn list_eras(&self) -> Result<BTreeMap<String, EraObjects>, GatewayError> {
        let listing = self.wait(|| self.objects.list(&self.keys.root))?;
        Ok(sort_by_era(&listing, &self.keys))
    }

    /// Reads the record of an era. Returns `None` if it does not exist.
    pub(super) fn read_era(&self, era: &str) -> Result<Option<EraRecord>, GatewayError> {
        let key = self.keys.era(era);
        let Some(found) = self.wait(|| self.objects.get(&key))? else { return Ok(None) };
        let record = EraRecord::read(&found.text).map_err(|error| document_error(&key, &error))?;
        if record.gateway != self.gateway || record.era != era {
            let text = format!(
                "{key} is of the era {} of the gateway {:?}; it was copied from there",
                record.era, record.gateway
            );
            return Err(GatewayError::new(ErrorClass::Damaged, text));
        }
        Ok(Some(record))
    }

    /// Opens an object. Returns `None` if it does not exist.
    pub(super) fn open(&self, key: &str) -> Result<Option<Box<dyn Read>>, GatewayError> {
        let body = self.wait(|| self.objects.open(key))?;
        Ok(body.map(|body| body.into_reader(&self.runtime)))
    }

    /// Opens an object, and opens it again after a broken connection.
    pub(super) fn open_hashing<'a>(&'a self, key: &'a str) -> Result<Hashing<'a, O>, ReadError> {
        let input = self.open(key)?.ok_or_else(|| ReadError::Missing(key.to_owned()))?;
        let digest = Context::new(&SHA256);
        Ok(Hashing { reader: self, key, input, digest, bytes: 0, failures: 0 })
    }

    /// Reads a base: passes its content to `read`, which returns its sequence. Returns its bytes and SHA-256 too.
    pub(super) fn read_base(
        &self,
        era: &str,
        sequence: u64,
        read: &mut dyn FnMut(&mut dyn Read, &Path) -> Result<u64, penstock_store::Error>,
    ) -> Result<ReadBase, ReadError> {
        let key = self.keys.base(era, sequence);
        let object_error = |error| ReadError::Object { key: key.clone(), error };
        let mut input = self.open_hashing(&key)?;
        let opened = open_base(&mut input, &self.key, (&self.gateway, era));
        let mut opened = opened.map_err(object_error)?;
        let found = read(&mut opened.content, Path::new(&key)).map_err(|error| match error {
            // The stream of the object failed or ended.
            penstock_store::Error::Io { action: "reading", source, .. } => {
                object_error(source.into())
            }
            error => ReadError::Gateway(GatewayError::new(ErrorClass::Damaged, error.to_string())),
        })?;
        let secret = opened.line.secret.take();
        drop(opened);
        if found != sequence {
            let what = format!("it has the state of commit {found}; it was moved");
            return Err(object_error(ObjectError::Wrong(what)));
        }
        let (bytes, sha256) = input.finish().map_err(|error| object_error(error.into()))?;
        Ok(ReadBase { entry: BaseEntry { sequence, bytes, sha256 }, secret })
    }

    /// Reads a segment: passes each frame to `visit`. `position` is the last frame that was read, with the checksum up to
    /// it. Returns the checksum up to the segment's last frame.
    pub(super) fn read_segment(
        &self,
        era: &str,
        (first, last): Segment,
        position: Option<(u64, Checksum)>,
        visit: &mut impl FnMut(u64, &[u8], Checksum) -> Result<(), GatewayError>,
    ) -> Result<Checksum, ReadError> {
        let key = self.keys.segment(era, first, last);
        let object_error = |error| ReadError::Object { key: key.clone(), error };
        let unlike = |at: u64| {
            ObjectError::Wrong(format!(
                "up to frame {at} it does not have the checksum of the objects before it; it does not belong to them"
            ))
        };
        let mut input = self.open_hashing(&key)?;
        let opened = open_segment(&mut input, &self.key, (&self.gateway, era), (first, last));
        let opened = opened.map_err(object_error)?;
        let after = opened.line.after;
        let is_known = |sequence: u64, checksum| {
            position.is_none_or(|(at, expected)| at != sequence || expected == checksum)
        };
        if !is_known(first - 1, opened.line.before) {
            return Err(object_error(unlike(first - 1)));
        }
        let read = opened.read_frames(&mut |sequence, frame, checksum| {
            if !is_known(sequence, checksum) {
                return Err(FrameError::Object(unlike(sequence)));
            }
            visit(sequence, frame, checksum).map_err(FrameError::Gateway)
        });
        match read {
            Ok(()) => Ok(after),
            Err(FrameError::Object(error)) => Err(object_error(error)),
            Err(FrameError::Gateway(error)) => Err(error.into()),
        }
    }

    /// Checks that what was read leads to the last frame of an era.
    pub(super) fn check_end(
        &self,
        last: &LastFrame,
        position: Option<(u64, Checksum)>,
    ) -> Result<(), GatewayError> {
        match position {
            Some((sequence, checksum))
                if sequence == last.sequence && checksum != last.checksum =>
            {
                Err(GatewayError::new(
                    ErrorClass::Damaged,
                    format!(
                        "the frames up to {sequence} do not have the checksum that {} says: some of them are not those that \
                         the gateway sent",
                        self.keys.head()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Converts a document under this key that cannot be used into an error.
pub(super) fn document_error(key: &str, error: &DocumentError) -> GatewayError {
    GatewayError::new(ErrorClass::Damaged, format!("{key}: {error}"))
}

/// The maximum number of failures of one object in a row.
const MAX_FAILURES: u32 = 4;

/// Counts and hashes what is read. After a broken connection it opens the object again and skips what it has read.
pub(super) struct Hashing<'a, O> {
    reader: &'a Reader<O>,
    key: &'a str,
    input: Box<dyn Read>,
    digest: Context,
    bytes: u64,
    /// Failures since the last byte.
    failures: u32,
}

impl<O: Objects> Read for Hashing<'_, O> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.input.read(buffer) {
                Ok(read) => {
                    self.failures = 0;
                    self.digest.update(buffer.get(..read).unwrap_or_default());
                    self.bytes += read as u64;
                    return Ok(read);
                }
                Err(error) if self.failures >= MAX_FAILURES => return Err(error),
                Err(error) => {
                    self.failures += 1;
                    pause_before_retry(self.failures);
                    tracing::debug!(key = self.key, %error, "Reading an object broke off; it is opened again.");
                    self.input = self.reopen()?;
                }
            }
        }
    }
}

impl<O: Objects> Hashing<'_, O> {
    fn reopen(&self) -> io::Result<Box<dyn Read>> {
        let opened = self.reader.open(self.key).map_err(io::Error::other)?;
        let mut input = opened.ok_or_else(|| io::Error::other("it does not exist any more"))?;
        io::copy(&mut input.by_ref().take(self.bytes), &mut io::sink())?;
        Ok(input)
    }

    /// Reads the rest. Returns the number of bytes, and the SHA-256 of all of them in hex.
    fn finish(mut self) -> io::Result<(u64, String)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((self.bytes, encode_hex(self.digest.finish().as_ref())))
    }
}
