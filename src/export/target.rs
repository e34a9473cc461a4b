//! Resolves a bucketName to its target.
use super::cause::{DeliveryFailure, DeliveryOutcome};
use super::delivery::Delivery;
use super::directory::Directory;
use super::key::{ExportExt as _, FileSettings};
use super::s3::Bucket;
use super::sparql::StoreTarget;
use super::{ExportOptions, ExporterParts};
use penstock_base::bucket_name::check_bucket_name;
use penstock_base::error::Finding;
use penstock_config::{ExportFormat, SparqlProtocol, TargetKind, Targets};
use penstock_resources::export::Export;
use penstock_resources::warning::Warning;
use std::path::{Path, PathBuf};

/// An opened target.
#[derive(Debug)]
pub(super) enum OpenTarget {
    /// A directory.
    Directory(Directory),
    /// An S3 bucket.
    S3(Box<Bucket>),
    /// A SPARQL store.
    Sparql(Box<StoreTarget>),
}

impl OpenTarget {
    /// Opens the target of a bucketName.
    pub(super) fn open(
        exporter: &ExporterParts,
        bucket_name: &str,
    ) -> Result<Self, DeliveryFailure> {
        let options = &exporter.options;
        let kind =
            resolve_kind(&options.targets, bucket_name).map_err(DeliveryFailure::of_gateway)?;
        match kind {
            None | Some(TargetKind::Directory { .. }) => {
                Ok(Self::Directory(open_directory(exporter, bucket_name)))
            }
            Some(TargetKind::Sparql(store)) => {
                StoreTarget::open(store, bucket_name, &options.timings)
                    .map(Box::new)
                    .map(Self::Sparql)
            }
            Some(kind) => Bucket::open(kind, bucket_name, &options.gateway_id, &options.timings)
                .map(Box::new)
                .map(Self::S3),
        }
    }

    /// Delivers one file. Returns once the target has stored it.
    pub(super) async fn deliver(
        &self,
        delivery: Delivery<'_>,
    ) -> Result<DeliveryOutcome, DeliveryFailure> {
        self.check_format(delivery.entry)?;
        match self {
            Self::Directory(directory) => directory.deliver(delivery).await?,
            Self::S3(bucket) => bucket.deliver(delivery).await?,
            Self::Sparql(store) => return store.deliver(delivery).await,
        }
        Ok(DeliveryOutcome::default())
    }

    /// Replaces a document of a bucket or a directory that is not an export. `guard` is dropped once that has ended, which
    /// for a directory can be after this future is dropped.
    pub(super) async fn put_json(
        &self,
        key: &str,
        text: &str,
        guard: impl Send + 'static,
    ) -> Result<(), DeliveryFailure> {
        match self {
            Self::Directory(directory) => directory.put_text(key, text, guard).await,
            Self::S3(bucket) => bucket.put_json(key, text).await,
            Self::Sparql(_) => Ok(()),
        }
    }

    /// Fails if the export was created for a target of another type.
    fn check_format(&self, entry: &Export) -> Result<(), DeliveryFailure> {
        let (was, is) = match (self, entry.graph()) {
            (Self::Sparql(_), None) => ("a bucket or a directory", "is a SPARQL store"),
            (Self::Directory(_) | Self::S3(_), Some(_)) => ("a SPARQL store", "is none"),
            _ => return Ok(()),
        };
        Err(DeliveryFailure::of_gateway(format!(
            "the export was created for {was}, but the target now {is}; restore the target's `type`, or park the \
             export so that the next ones can be delivered"
        )))
    }

    /// Tests whether the target would accept files with this key prefix, without writing one. Returns a remark
    /// on what could not be checked.
    pub(super) async fn test_access(
        &self,
        prefix: &str,
    ) -> Result<Option<&'static str>, DeliveryFailure> {
        match self {
            Self::Directory(directory) => directory.test_access().await,
            Self::S3(bucket) => bucket.test_access(prefix).await,
            Self::Sparql(store) => store.test_access().await,
        }
    }

    /// Returns whether the target answers.
    pub(super) async fn is_reachable(&self) -> bool {
        match self {
            Self::Directory(_) => true,
            Self::S3(bucket) => bucket.is_reachable().await,
            Self::Sparql(store) => store.is_reachable().await,
        }
    }
}

/// Opens the folder of a directory target. The data directory, which has the embedded ones, is on a disk that is mounted.
pub(super) fn open_directory(exporter: &ExporterParts, bucket_name: &str) -> Directory {
    let ExportOptions { targets, data_dir, .. } = &exporter.options;
    let kind = resolve_kind(targets, bucket_name).ok().flatten();
    let directory = Directory::new(directory_path(data_dir, kind, bucket_name));
    match kind {
        Some(TargetKind::Directory { path: Some(_) }) => {
            let is_of_backup = exporter.backup_target.get().is_some_and(|name| name == bucket_name);
            let backup_of = is_of_backup.then_some(data_dir.as_path());
            directory.with_history(exporter.queue.clone(), bucket_name, backup_of)
        }
        _ => directory,
    }
}

/// Returns the folder of a directory target.
pub(super) fn directory_path(
    data_dir: &Path,
    kind: Option<&TargetKind>,
    bucket_name: &str,
) -> PathBuf {
    match kind {
        Some(TargetKind::Directory { path: Some(path) }) => path.join(bucket_name),
        _ => data_dir.join("buckets").join(bucket_name),
    }
}

/// Returns the configured target of a bucketName. `None` is the embedded default, a directory.
pub(super) fn resolve_kind<'a>(
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
                "the bucketName `{bucket_name}` has no target: the configuration has {}, and no \
                 `service.export.default`",
                known.join(", ")
            ))
        }
    }
}

/// Checks that a bucketName has a target. The error is the reason.
pub(super) fn check_target(options: &ExportOptions, bucket_name: &str) -> Result<(), String> {
    resolve_kind(&options.targets, bucket_name).map(|_| ())
}

/// Returns how a target names and writes its files. The embedded default has the default settings.
pub(super) fn file_settings(targets: &Targets, bucket_name: &str) -> FileSettings {
    let target = targets.named.get(bucket_name).or(targets.default.as_ref());
    target.map_or_else(FileSettings::default, |target| FileSettings {
        prefix: target.prefix.clone(),
        key: target.key.clone(),
        format: match &target.kind {
            TargetKind::Sparql(store) if store.protocol == SparqlProtocol::GraphStore => {
                ExportFormat::Triples
            }
            TargetKind::Sparql(_) => ExportFormat::Quads,
            TargetKind::Directory { .. } | TargetKind::S3 { .. } => target.format,
        },
        graph: match &target.kind {
            TargetKind::Sparql(store) => Some(store.graph.clone()),
            TargetKind::Directory { .. } | TargetKind::S3 { .. } => None,
        },
    })
}

/// Returns the key prefix of a target.
pub(super) fn key_prefix(targets: &Targets, bucket_name: &str) -> String {
    file_settings(targets, bucket_name).prefix
}

/// Returns the warnings about the settings of a target.
pub(super) fn collect_warnings(targets: &Targets, bucket_name: &str) -> Vec<Warning> {
    let FileSettings { key, graph, .. } = file_settings(targets, bucket_name);
    // The exports of a SPARQL store have no keys of the template.
    let why = key.warning().filter(|_| graph.is_none());
    let warn = |why: &str| Finding::whole(format!("the key template {key} {why}"));
    why.map(warn).into_iter().map(Warning::from).collect()
}

/// Returns the type of a target, as the configuration calls it.
pub(super) fn type_name(options: &ExportOptions, bucket_name: &str) -> &'static str {
    match resolve_kind(&options.targets, bucket_name) {
        Ok(Some(TargetKind::S3 { .. })) => "s3",
        Ok(Some(TargetKind::Sparql(_))) => "sparql",
        _ => "directory",
    }
}

/// Describes the configured target of a bucketName without file system paths. Returns `None` for the embedded
/// default, and for a directory target without a path, because both use the same directory.
pub(super) fn describe_place(targets: &Targets, bucket_name: &str) -> Option<String> {
    match resolve_kind(targets, bucket_name) {
        Ok(None | Some(TargetKind::Directory { path: None })) | Err(_) => None,
        Ok(Some(TargetKind::Directory { path: Some(_) })) => Some("a directory".to_owned()),
        Ok(Some(TargetKind::S3 { endpoint, bucket, .. })) => {
            let bucket = bucket.as_deref().unwrap_or(bucket_name);
            Some(format!("the bucket `{bucket}` at {endpoint}"))
        }
        Ok(Some(TargetKind::Sparql(store))) => {
            Some(format!("the SPARQL store at {}", store.endpoint))
        }
    }
}

/// Fails if an export for a configured target would be delivered into the embedded directory. Otherwise a start
/// without the configuration of the targets would deliver the whole queue there.
pub(super) fn check_embedded(
    targets: &Targets,
    bucket_name: &str,
    made_for: Option<&str>,
) -> Result<(), DeliveryFailure> {
    match (made_for, resolve_kind(targets, bucket_name)) {
        (Some(made_for), Ok(None)) => Err(DeliveryFailure::of_gateway(format!(
            "the export was created for {made_for}, but the configuration no longer has any target; restore \
             `service.export.targets.{bucket_name}` or `service.export.default` and restart the gateway \
             (`service.export.default.type=directory` to deliver into the data directory)"
        ))),
        _ => Ok(()),
    }
}

/// Returns a text that identifies where the keys of a target begin. It is the same for two bucketNames that lead to one
/// place.
pub(super) fn identify_folder(options: &ExportOptions, bucket_name: &str) -> String {
    let prefix = key_prefix(&options.targets, bucket_name);
    match resolve_kind(&options.targets, bucket_name) {
        Ok(Some(TargetKind::S3 { .. })) => identify_place(options, bucket_name),
        kind => {
            let kind = kind.ok().flatten();
            let path = directory_path(&options.data_dir, kind, bucket_name);
            format!("{} {prefix}", path.display())
        }
    }
}

/// Returns a text that identifies the target of a bucketName and changes when the target changes.
pub(super) fn identify_place(options: &ExportOptions, bucket_name: &str) -> String {
    let prefix = key_prefix(&options.targets, bucket_name);
    match resolve_kind(&options.targets, bucket_name) {
        Ok(None | Some(TargetKind::Directory { path: None })) | Err(_) => {
            format!("directory {prefix}")
        }
        Ok(Some(TargetKind::Directory { path: Some(path) })) => {
            format!("directory {} {prefix}", path.display())
        }
        Ok(Some(TargetKind::S3 { endpoint, bucket, .. })) => {
            format!("{endpoint} {} {prefix}", bucket.as_deref().unwrap_or(bucket_name))
        }
        Ok(Some(TargetKind::Sparql(store))) => {
            format!("sparql {} {:?} {}", store.endpoint, store.protocol, store.graph)
        }
    }
}
