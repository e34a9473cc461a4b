//! Where a bucketName leads.
use super::Options;
use super::cause::Failure;
use super::directory::Directory;
use super::parcel::Parcel;
use super::s3::Bucket;
use penstock_config::{TargetKind, Targets, check_bucket_name};
use std::path::{Path, PathBuf};

/// A target, ready to take files.
#[derive(Debug)]
pub(super) enum Target {
    /// A folder.
    Directory(Directory),
    /// A bucket.
    S3(Box<Bucket>),
}

impl Target {
    /// Opens the target of this bucketName.
    pub(super) fn open(options: &Options, bucket_name: &str) -> Result<Self, Failure> {
        let kind = kind(&options.targets, bucket_name).map_err(Failure::gateway)?;
        match kind {
            None | Some(TargetKind::Directory { .. }) => {
                Ok(Self::Directory(Directory::new(folder(&options.data_dir, kind, bucket_name))))
            }
            Some(kind) => Bucket::open(kind, bucket_name, &options.gateway_id, &options.pace)
                .map(Box::new)
                .map(Self::S3),
        }
    }

    /// Delivers one file, and returns once the target has it for good.
    pub(super) async fn deliver(&self, parcel: Parcel<'_>) -> Result<(), Failure> {
        match self {
            Self::Directory(directory) => directory.deliver(parcel).await,
            Self::S3(bucket) => bucket.deliver(parcel).await,
        }
    }

    /// Whether it would take files whose keys begin with `prefix`, without writing one; what could not be told.
    pub(super) async fn probe(&self, prefix: &str) -> Result<Option<&'static str>, Failure> {
        match self {
            Self::Directory(directory) => directory.probe(),
            Self::S3(bucket) => bucket.probe(prefix).await,
        }
    }

    /// Whether anybody answers there.
    pub(super) async fn is_answered(&self) -> bool {
        match self {
            Self::Directory(_) => true,
            Self::S3(bucket) => bucket.is_answered().await,
        }
    }
}

/// The folder of a target that is one.
pub(super) fn folder(data_dir: &Path, kind: Option<&TargetKind>, bucket_name: &str) -> PathBuf {
    match kind {
        Some(TargetKind::Directory { path: Some(path) }) => path.join(bucket_name),
        _ => data_dir.join("buckets").join(bucket_name),
    }
}

/// What the configuration says of a bucketName; `None` is the embedded default, a directory.
pub(super) fn kind<'a>(
    targets: &'a Targets,
    bucket_name: &str,
) -> Result<Option<&'a TargetKind>, String> {
    check_bucket_name(bucket_name)?;
    match targets.named.get(bucket_name).or(targets.default.as_ref()) {
        Some(target) => Ok(Some(&target.kind)),
        None if targets.named.is_empty() => Ok(None),
        None => {
            let known: Vec<_> = targets.named.keys().map(|name| format!("`{name}`")).collect();
            Err(format!(
                "the bucketName `{bucket_name}` leads nowhere: the configuration has {}, and no \
                 `service.export.default`",
                known.join(", ")
            ))
        }
    }
}

/// Why a bucketName leads nowhere.
pub(super) fn check(options: &Options, bucket_name: &str) -> Result<(), String> {
    kind(&options.targets, bucket_name).map(|_| ())
}

/// What every key of this target begins with.
pub(super) fn prefix(targets: &Targets, bucket_name: &str) -> String {
    let target = targets.named.get(bucket_name).or(targets.default.as_ref());
    target.map_or_else(String::new, |target| target.prefix.clone())
}

/// The type of this target, as the configuration calls it.
pub(super) fn type_name(options: &Options, bucket_name: &str) -> &'static str {
    match kind(&options.targets, bucket_name) {
        Ok(Some(TargetKind::S3 { .. })) => "s3",
        _ => "directory",
    }
}

/// Where a bucketName leads, in words for whoever may not see paths; `None` for the embedded default and for
/// a directory that is at the same place.
pub(super) fn configured_place(targets: &Targets, bucket_name: &str) -> Option<String> {
    match kind(targets, bucket_name) {
        Ok(None | Some(TargetKind::Directory { path: None })) | Err(_) => None,
        Ok(Some(TargetKind::Directory { path: Some(_) })) => Some("a directory".to_owned()),
        Ok(Some(TargetKind::S3 { endpoint, bucket, .. })) => {
            let bucket = bucket.as_deref().unwrap_or(bucket_name);
            Some(format!("the bucket `{bucket}` at {endpoint}"))
        }
    }
}

/// Refuses the embedded default for what was made for a configured target: a start without the configuration
/// of the targets must not take for delivered what waits for them.
pub(super) fn check_embedded(
    targets: &Targets,
    bucket_name: &str,
    made_for: Option<&str>,
) -> Result<(), Failure> {
    match (made_for, kind(targets, bucket_name)) {
        (Some(made_for), Ok(None)) => Err(Failure::gateway(format!(
            "the export was made for {made_for}, and the configuration names no target any more; bring \
             `service.export.targets.{bucket_name}` or `service.export.default` back and restart the gateway \
             (`service.export.default.type=directory` if it is to go into the data directory)"
        ))),
        _ => Ok(()),
    }
}

/// Where a bucketName leads, in words that change when it leads elsewhere.
pub(super) fn place(options: &Options, bucket_name: &str) -> String {
    let prefix = prefix(&options.targets, bucket_name);
    match kind(&options.targets, bucket_name) {
        Ok(None | Some(TargetKind::Directory { path: None })) | Err(_) => {
            format!("directory {prefix}")
        }
        Ok(Some(TargetKind::Directory { path: Some(path) })) => {
            format!("directory {} {prefix}", path.display())
        }
        Ok(Some(TargetKind::S3 { endpoint, bucket, .. })) => {
            format!("{endpoint} {} {prefix}", bucket.as_deref().unwrap_or(bucket_name))
        }
    }
}
