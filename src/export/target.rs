//! Where a bucketName leads.
use super::Options;
use super::directory::Directory;
use super::entry::Entry;
use super::s3::Bucket;
use crate::config::{TargetKind, check_bucket_name};
use std::fs::File;

/// A target, ready to take files.
#[derive(Debug)]
pub(super) enum Target {
    /// A folder.
    Directory(Directory),
    /// A bucket.
    S3(Box<Bucket>),
}

/// Why a file was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Whether the target was reached; `None` when nothing was tried.
    pub(super) reached: Option<bool>,
    /// Why, in words, with the mend, without a secret.
    pub(super) cause: String,
}

impl Target {
    /// Opens the target of this bucketName.
    pub(super) fn open(options: &Options, bucket_name: &str) -> Result<Self, Failure> {
        let failure = |cause| Failure { reached: None, cause };
        let kind = kind(options, bucket_name).map_err(failure)?;
        match kind {
            None | Some(TargetKind::Directory { path: None }) => Ok(Self::Directory(
                Directory::new(options.data_dir.join("buckets").join(bucket_name)),
            )),
            Some(TargetKind::Directory { path: Some(path) }) => {
                Ok(Self::Directory(Directory::new(path.join(bucket_name))))
            }
            Some(kind) => {
                Bucket::open(kind, bucket_name, &options.gateway_id).map(Box::new).map(Self::S3)
            }
        }
    }

    /// Delivers one file, and returns once the target has it for good. `again` when it may have it already.
    pub(super) async fn deliver(
        &self,
        file: File,
        entry: &Entry,
        again: bool,
    ) -> Result<(), Failure> {
        match self {
            Self::Directory(directory) => directory.deliver(file, entry).await,
            Self::S3(bucket) => bucket.deliver(file, entry, again).await,
        }
    }
}

/// What the configuration says of a bucketName; `None` is the embedded default, a directory.
fn kind<'a>(options: &'a Options, bucket_name: &str) -> Result<Option<&'a TargetKind>, String> {
    check_bucket_name(bucket_name)?;
    let targets = &options.targets;
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
    kind(options, bucket_name).map(|_| ())
}

/// What every key of this target begins with.
pub(super) fn prefix(options: &Options, bucket_name: &str) -> String {
    let targets = &options.targets;
    let target = targets.named.get(bucket_name).or(targets.default.as_ref());
    target.map_or_else(String::new, |target| target.prefix.clone())
}

/// The type of this target, as the configuration calls it.
pub(super) fn type_name(options: &Options, bucket_name: &str) -> &'static str {
    match kind(options, bucket_name) {
        Ok(Some(TargetKind::S3 { .. })) => "s3",
        _ => "directory",
    }
}

/// Where a bucketName leads, in words that change when it leads elsewhere.
pub(super) fn place(options: &Options, bucket_name: &str) -> String {
    let prefix = prefix(options, bucket_name);
    match kind(options, bucket_name) {
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
