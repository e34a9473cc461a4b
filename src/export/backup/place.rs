//! The place of a backup: objects in a bucket or files in a directory, through the code that delivers exports.
use crate::blocking::run_io;
use crate::cause::DeliveryFailure;
use crate::delivery::{Delivery, Replaces};
use crate::directory::Directory;
use crate::queue::ExportQueue;
use crate::s3::Bucket;
pub(super) use crate::s3::list::ListedObject;
pub(super) use crate::s3::small::{OtherObject, Precondition, Replaced, SmallObject};
use crate::target::{self, OpenTarget};
use crate::uplink::{Traffic, Uplink};
use crate::uploads::UploadFolder;
use crate::{DeliveryTimings, ExporterParts, file};
use jiff::Timestamp;
use penstock_base::hex::encode_hex;
use penstock_base::shared::Shared;
use penstock_config::{Compression, TargetKind, Targets};
use penstock_resources::export::{Cause, Export, ExportKind, ExportStatus};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file to store as an object.
#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) key: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// In lowercase hex.
    pub(super) sha256: String,
    /// Whether it is a base.
    pub(super) is_base: bool,
}

impl Upload {
    /// Returns whether the file still has the bytes that were written.
    pub(super) async fn is_whole(&self) -> bool {
        match open_upload(self).await {
            Ok(file) => has_digest(file, &self.sha256).await,
            Err(_) => false,
        }
    }
}

/// The objects below a prefix.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    pub(super) objects: Vec<ListedObject>,
    /// The time of the server's clock.
    pub(super) date: Option<Timestamp>,
}

/// Where objects are.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The bucketName of the target.
    pub(super) target: String,
    /// The bucket, or the path of the directory.
    pub(super) location: String,
}

/// The content of an object.
pub(super) enum ObjectBody {
    File(File),
    Response(reqwest::Response),
    /// In tests.
    #[cfg(test)]
    Bytes(Vec<u8>),
}

/// Where the objects are. A test has one in memory, which fails.
pub(super) trait Objects: Send + Sync + 'static {
    /// Reads a small object. Returns `None` if it does not exist.
    fn get(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<SmallObject>, DeliveryFailure>> + Send;

    /// Replaces a small object, if the precondition holds.
    fn put(
        &self,
        key: &str,
        text: &str,
        precondition: &Precondition,
    ) -> impl Future<Output = Result<Replaced, DeliveryFailure>> + Send;

    /// Returns the object under the key of a file, if it has other bytes.
    fn find_other(
        &self,
        upload: &Upload,
    ) -> impl Future<Output = Result<Option<OtherObject>, DeliveryFailure>> + Send;

    /// Stores a file. One that is there already is not sent again. An object with other bytes is only replaced if it is
    /// `leftover`.
    fn upload(
        &self,
        upload: &Upload,
        leftover: Option<&OtherObject>,
    ) -> impl Future<Output = Result<(), DeliveryFailure>> + Send;

    /// Lists all objects whose keys begin with this, which ends in `/`.
    fn list(&self, prefix: &str) -> impl Future<Output = Result<Listing, DeliveryFailure>> + Send;

    /// Deletes an object. Returns false if that is not allowed.
    fn delete(&self, key: &str) -> impl Future<Output = Result<bool, DeliveryFailure>> + Send;

    /// Opens an object. Returns `None` if it does not exist.
    fn open(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<ObjectBody>, DeliveryFailure>> + Send;

    /// Returns whether it may support preconditions.
    fn has_preconditions(&self) -> bool;

    /// Returns where they are, for the operator.
    fn place(&self) -> Place;
}

/// What uploads share with exports, and for each kind of object what is its own.
#[derive(Debug)]
struct UploadParts {
    segments: UploadLane,
    base: UploadLane,
    queue: Shared<ExportQueue>,
    target: String,
}

/// Uploads one after the other.
#[derive(Debug)]
struct UploadLane {
    uploads: UploadFolder,
    uplink: Arc<Uplink>,
}

impl UploadLane {
    /// Aborts uploads that an earlier process began and nobody continues, so that they use no space in the bucket.
    async fn abandon_others(&self, bucket: &Bucket, id: &str) {
        for other in self.uploads.list_export_ids().iter().filter(|other| *other != id) {
            if let Some((record, _)) = self.uploads.read_upload(other)
                && bucket.abandon_upload(&record).await.is_err()
            {
                continue;
            }
            self.uploads.remove_record(other);
        }
    }
}

/// The objects of a configured target.
#[derive(Debug)]
pub(super) struct TargetObjects {
    target: OpenTarget,
    place: Place,
    /// `None` for a reader.
    parts: Option<UploadParts>,
}

impl TargetObjects {
    /// Opens a target for reading and writing small objects.
    ///
    /// # Errors
    /// The reason, for the operator.
    pub(super) fn open(
        targets: &Targets,
        data_dir: &Path,
        bucket_name: &str,
        gateway_id: &str,
        timings: &DeliveryTimings,
    ) -> Result<Self, String> {
        let bucket_place = target::describe_place(targets, bucket_name);
        let (target, location) = match target::resolve_kind(targets, bucket_name)? {
            Some(TargetKind::Sparql(_)) => {
                return Err(format!(
                    "the target `{bucket_name}` is a SPARQL store, which takes no backup"
                ));
            }
            Some(kind @ TargetKind::S3 { .. }) => {
                // The objects are compressed already, and must have the bytes that were encrypted.
                let mut kind = kind.clone();
                if let TargetKind::S3 { compression, .. } = &mut kind {
                    *compression = Compression::None;
                }
                let bucket = Bucket::open(&kind, bucket_name, gateway_id, timings);
                let bucket = OpenTarget::S3(Box::new(bucket.map_err(|failure| failure.cause)?));
                (bucket, bucket_place.unwrap_or_default())
            }
            kind => {
                let path = target::directory_path(data_dir, kind, bucket_name);
                let location = format!("the directory {}", path.display());
                (OpenTarget::Directory(Directory::new(path)), location)
            }
        };
        let place = Place { target: bucket_name.to_owned(), location };
        Ok(Self { target, place, parts: None })
    }

    /// Lets it store files, as the exporter does.
    pub(super) fn with_uploads(
        self,
        exporter: &ExporterParts,
        folder: &Path,
        bucket_name: &str,
    ) -> Self {
        let lane = |traffic, name| UploadLane {
            uploads: UploadFolder::new(folder.join("uploads").join(name)),
            uplink: Arc::new(exporter.uplink.for_traffic(traffic)),
        };
        let parts = UploadParts {
            segments: lane(Traffic::Segment, "segment"),
            base: lane(Traffic::Base, "base"),
            queue: exporter.queue.clone(),
            target: bucket_name.to_owned(),
        };
        let target = match self.target {
            OpenTarget::Directory(_) => {
                OpenTarget::Directory(target::open_directory(exporter, bucket_name))
            }
            other => other,
        };
        Self { target, parts: Some(parts), ..self }
    }

    async fn list_bucket(bucket: &Bucket, prefix: &str) -> Result<Listing, DeliveryFailure> {
        let mut listing = Listing::default();
        let mut after = None;
        loop {
            let page = bucket.list_page(prefix, after.as_deref()).await?;
            listing.objects.extend(page.objects);
            listing.date = page.date.or(listing.date);
            after = page.next;
            if after.is_none() {
                return Ok(listing);
            }
        }
    }
}

impl Objects for TargetObjects {
    async fn get(&self, key: &str) -> Result<Option<SmallObject>, DeliveryFailure> {
        match &self.target {
            OpenTarget::S3(bucket) => bucket.get_small(key).await,
            OpenTarget::Directory(directory) => {
                let text = directory.read_text(key).await?;
                Ok(text.map(|text| SmallObject { text, etag: None }))
            }
            OpenTarget::Sparql(_) => Ok(None),
        }
    }

    async fn put(
        &self,
        key: &str,
        text: &str,
        precondition: &Precondition,
    ) -> Result<Replaced, DeliveryFailure> {
        match &self.target {
            OpenTarget::S3(bucket) => bucket.put_small(key, text, precondition).await,
            OpenTarget::Directory(directory) => {
                // The worker has read the object just before.
                directory.put_text(key, text, ()).await?;
                Ok(Replaced::Stored(None))
            }
            OpenTarget::Sparql(_) => Ok(Replaced::Unsupported),
        }
    }

    async fn find_other(&self, upload: &Upload) -> Result<Option<OtherObject>, DeliveryFailure> {
        match &self.target {
            OpenTarget::S3(bucket) => bucket.find_other(&describe_upload(upload, "")).await,
            OpenTarget::Directory(directory) => {
                let Some(existing) = directory.open(&upload.key).await? else { return Ok(None) };
                let is_same = has_digest(existing, &upload.sha256).await;
                Ok((!is_same).then_some(OtherObject { etag: None }))
            }
            OpenTarget::Sparql(_) => Ok(None),
        }
    }

    async fn upload(
        &self,
        upload: &Upload,
        leftover: Option<&OtherObject>,
    ) -> Result<(), DeliveryFailure> {
        let Some(parts) = &self.parts else {
            return Err(DeliveryFailure::of_gateway("this target was opened for reading"));
        };
        let entry = describe_upload(upload, &parts.target);
        let lane = if upload.is_base { &parts.base } else { &parts.segments };
        let file = open_upload(upload).await;
        let delivery = Delivery {
            entry: &entry,
            metadata: None,
            file,
            may_be_stored: true,
            unclear_since: None,
            is_replay: false,
            replaces: leftover
                .map_or(Replaces::Nothing, |leftover| Replaces::Tagged(leftover.etag.as_deref())),
            uploads: &lane.uploads,
            uplink: &lane.uplink,
            queue: &parts.queue,
        };
        match &self.target {
            OpenTarget::S3(bucket) => {
                lane.abandon_others(bucket, &entry.id).await;
                bucket.deliver(delivery).await
            }
            OpenTarget::Directory(directory) => {
                if leftover.is_some() {
                    directory.remove(&upload.key).await?;
                }
                directory.deliver(delivery).await
            }
            OpenTarget::Sparql(_) => {
                Err(DeliveryFailure::of_gateway("a SPARQL store takes no backup"))
            }
        }
    }

    async fn list(&self, prefix: &str) -> Result<Listing, DeliveryFailure> {
        match &self.target {
            OpenTarget::S3(bucket) => Self::list_bucket(bucket, prefix).await,
            OpenTarget::Directory(directory) => {
                let page = directory.list(prefix).await?;
                Ok(Listing { objects: page.objects, date: page.date })
            }
            OpenTarget::Sparql(_) => Ok(Listing::default()),
        }
    }

    async fn delete(&self, key: &str) -> Result<bool, DeliveryFailure> {
        match &self.target {
            OpenTarget::S3(bucket) => bucket.delete_object(key).await,
            OpenTarget::Directory(directory) => match directory.remove(key).await {
                Err(failure) if failure.class == Cause::Policy => Ok(false),
                removed => removed.map(|()| true),
            },
            OpenTarget::Sparql(_) => Ok(false),
        }
    }

    async fn open(&self, key: &str) -> Result<Option<ObjectBody>, DeliveryFailure> {
        match &self.target {
            OpenTarget::S3(bucket) => Ok(bucket.get_object(key).await?.map(ObjectBody::Response)),
            OpenTarget::Directory(directory) => {
                Ok(directory.open(key).await?.map(ObjectBody::File))
            }
            OpenTarget::Sparql(_) => Ok(None),
        }
    }

    fn has_preconditions(&self) -> bool {
        matches!(self.target, OpenTarget::S3(_))
    }

    fn place(&self) -> Place {
        self.place.clone()
    }
}

/// Describes an upload as the export that the delivery code knows. Its id is that of its key, so that the same object is
/// known again after a restart.
fn describe_upload(upload: &Upload, target: &str) -> Export {
    Export {
        id: format!("backup-{}", encode_hex(&digest(upload.key.as_bytes()))),
        business_object: String::new(),
        business_object_name: String::new(),
        target: target.to_owned(),
        sequence: 0,
        kind: ExportKind::Full,
        status: ExportStatus::Delivering,
        object_count: 0,
        bytes: upload.bytes,
        data_checksum: String::new(),
        sha256: upload.sha256.clone(),
        key: upload.key.clone(),
        created_at: String::new(),
        clock: None,
        commit: None,
        delivered_at: None,
        attempts: 0,
        last_error: None,
        pushed_by: None,
        traceparent: None,
        warnings: Vec::new(),
    }
}

fn digest(bytes: &[u8]) -> Vec<u8> {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().to_vec()
}

async fn open_upload(upload: &Upload) -> Result<File, String> {
    let path = upload.path.clone();
    let opened = run_io(move || File::open(path));
    opened
        .await
        .map_err(|error: io::Error| format!("the file of the backup cannot be read: {error}"))
}

/// Returns whether a file has this SHA-256. A file that cannot be read has not.
async fn has_digest(mut existing: File, sha256: &str) -> bool {
    let read = run_io(move || {
        let digest = file::digest_to_end(&mut existing)?.1;
        Ok::<_, io::Error>(digest)
    });
    read.await.is_ok_and(|digest| digest == sha256)
}

impl ObjectBody {
    /// Returns a reader of a body that blocks. `runtime` is the one that opened it.
    pub(super) fn into_reader(self, runtime: &Arc<tokio::runtime::Runtime>) -> Box<dyn io::Read> {
        match self {
            Self::File(file) => Box::new(io::BufReader::with_capacity(1 << 16, file)),
            Self::Response(response) => {
                Box::new(crate::walk::place::ResponseReader::new(Arc::clone(runtime), response))
            }
            #[cfg(test)]
            Self::Bytes(bytes) => Box::new(io::Cursor::new(bytes)),
        }
    }
}
