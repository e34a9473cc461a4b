//! The continuous backup: what it needs, and the target that it goes to.
use super::section::{Build, Scope, read_defaults};
use super::table::{BackupSettings, Settings};
use super::targets::TARGET_PREFIX;
use super::types::{Backup, TargetKind};

/// The setting of the target.
const TARGET: &str = "service.backup.target";

impl Backup {
    /// Returns the backup without a key to this target, with the defaults.
    pub fn without_key(target: &str) -> Self {
        let BackupSettings { interval, base, keep, new_era, .. } = read_defaults();
        Self { target: target.to_owned(), interval, base, keep, key: None, insecure: true, new_era }
    }
}

impl Build for BackupSettings {
    type Value = Option<Backup>;

    fn build(self, scope: &mut Scope<'_>) -> Option<Backup> {
        let Self { target, interval, base, keep, key, insecure, new_era } = self;
        let Some(target) = target else {
            if key.is_some() {
                let warning = format!("service.backup.key does nothing: {TARGET} is not set");
                scope.report.warnings.push(warning);
            }
            return None;
        };
        if key.is_none() && !insecure {
            let message = "it is missing: a backup has all data, so it needs a key to encrypt it (penstock offsite-backup \
                           new-key prints one), or service.backup.insecure=true";
            scope.error("key", message);
        }
        Some(Backup { target, interval, base, keep, key, insecure, new_era })
    }
}

/// Checks that the backup goes to a configured bucket or directory, and that this is not the disk of the data itself.
pub(super) fn check_target(settings: &Settings, scope: &mut Scope<'_>) {
    let Some(Backup { target: name, .. }) = &settings.backup else { return };
    let targets = &settings.targets;
    let Some(target) = targets.named.get(name).or(targets.default.as_ref()) else {
        // Of a target whose settings have errors, those are reported.
        if !scope.ids(TARGET_PREFIX).contains(name) {
            let names: Vec<&str> = targets.named.keys().map(String::as_str).collect();
            let known = if names.is_empty() {
                String::new()
            } else {
                format!("; the configured targets are {}", names.join(", "))
            };
            let message = format!(
                "there is no target with this bucketName{known}; set service.export.targets.{name}.type"
            );
            scope.error(TARGET, message);
        }
        return;
    };
    match &target.kind {
        TargetKind::Sparql(_) => {
            scope.error(
                TARGET,
                "it is a SPARQL store; a backup needs a target of type s3 or directory",
            );
        }
        TargetKind::Directory { .. } if settings.keeps_backup_with_data() => {
            scope.report.warnings.push(format!(
                "the backup goes to the target {name}, which is in service.data-dir: it is lost together with the data"
            ));
        }
        TargetKind::Directory { .. } | TargetKind::S3 { .. } => {}
    }
}

impl Settings {
    /// Returns whether the backup goes to a directory in `service.data-dir`, with which it is lost.
    pub fn keeps_backup_with_data(&self) -> bool {
        let Some(Backup { target: name, .. }) = &self.backup else { return false };
        let target = self.targets.named.get(name).or(self.targets.default.as_ref());
        // Without any configured target, every name is a directory there.
        target.is_none_or(|target| match &target.kind {
            TargetKind::Directory { path } => {
                path.as_ref().is_none_or(|path| path.starts_with(&self.data_dir))
            }
            TargetKind::Sparql(_) | TargetKind::S3 { .. } => false,
        })
    }
}
