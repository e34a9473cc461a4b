//! The gateway's status, for `/api/v1/status` and the overview page.
use super::Gateway;
use super::restored::describe_restored;
use crate::definitions::{FolderOutcome, find_drift};
use crate::sources;
use jiff::{SignedDuration, Timestamp};
use penstock_auth::{Authorized, Role};
use penstock_base::disk;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory;
use penstock_base::telemetry::metrics::StatusPart;
use penstock_base::telemetry::{metrics, recent};
use penstock_base::time;
use penstock_export::backup::Backups;
use penstock_model::{changes, dead_letters};
use penstock_resources::export::Target;
use penstock_resources::gateway::{
    CertificateStatus, ChangesStatus, DefinitionsStatus, DiskStatus, Drift, DriftState,
    MemoryLevel, MemoryStatus, QueueStatus, RejectedStatus, Status, StoreStatus,
};

/// The maximum number of warnings about definition files.
const MAX_DEFINITION_WARNINGS: usize = 20;
/// The maximum number of definitions that are listed as not being as their files define them.
const MAX_LISTED_DRIFT: usize = 20;

/// The time before the end of a certificate in which the status, the page Overview and the log warn.
pub const CERTIFICATE_WARNING_TIME: SignedDuration = SignedDuration::from_hours(21 * 24);

/// The maximum number of warnings about automatic exports that fail. [`QueueStatus::failing`] has all names.
const MAX_EXPORT_WARNINGS: usize = 20;
/// The maximum number of warnings about sources. `GET /api/v1/sources` has all.
const MAX_SOURCE_WARNINGS: usize = 20;

/// What becomes of a part of the status that cannot be read. The error is in the log.
pub(super) enum Unreadable<'a> {
    /// There is no status without it.
    Fail,
    /// It has its default, and is one of these.
    LeaveOut(&'a mut Vec<StatusPart>),
}

impl Unreadable<'_> {
    fn check<T: Default>(
        &mut self,
        part: StatusPart,
        read: Result<T, GatewayError>,
    ) -> Result<T, GatewayError> {
        match (self, read) {
            (Self::LeaveOut(parts), Err(error)) if error.class == ErrorClass::Internal => {
                parts.push(part);
                Ok(T::default())
            }
            (_, read) => read,
        }
    }
}

impl Gateway {
    /// Collects the gateway's status for this caller. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn collect_status(&self, by: &Authorized) -> Result<Status, GatewayError> {
        let mut status = self.collect_numbers(Unreadable::Fail)?;
        status.warnings.clone_from(&self.settings.warnings);
        status.warnings.extend(describe_level(&status.memory));
        status.warnings.extend(self.disk.describe_shortage());
        status.warnings.extend(self.clock.describe_repeated_time());
        status.warnings.extend(list_failing_exports(&self.exporter.list_failing()));
        let certificate = status.certificate.as_ref();
        let of_certificate = certificate.and_then(|one| describe_end(one, Timestamp::now()));
        status.warnings.extend(of_certificate);
        let of_sources = status.sources.iter().flat_map(|source| &source.warnings);
        let of_sources = of_sources.take(MAX_SOURCE_WARNINGS).map(|one| one.message.clone());
        let of_sources: Vec<_> = of_sources.collect();
        status.warnings.extend(of_sources);
        let of_backup = status.backup.as_ref().map(|backup| backup.warnings.clone());
        status.warnings.extend(of_backup.unwrap_or_default());
        status.last_errors = recent::recent_lines();
        let mut folder = self.definition_files.outcome();
        if by.role < Role::Admin {
            (status.changes, status.webhooks) = (None, Vec::new());
            folder.redact();
            for line in &mut status.last_errors {
                line.fields.clear();
            }
        }
        status.warnings.extend(list_folder_warnings(&folder));
        status.definitions.errors = folder.errors;
        if by.role == Role::Admin {
            status.warnings.extend(describe_restored(&self.store, &self.auth)?);
        }
        Ok(status)
    }

    /// Collects what the status has besides warnings and lines of the log, which the metrics do not have.
    pub(super) fn collect_numbers(
        &self,
        mut unreadable: Unreadable<'_>,
    ) -> Result<Status, GatewayError> {
        let (stats, spool) = (self.store.stats(), self.exporter.spool_usage());
        let targets = self.exporter.list_targets()?;
        let memory = MemoryStatus {
            resident_bytes: memory::resident_bytes(),
            held_bytes: memory::unreclaimable_bytes(),
            limit_bytes: self.memory.limit_bytes(),
            level: self.memory.current_level(),
        };
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            gateway_id: self.gateway_id.clone(),
            epoch: self.epoch,
            uptime_seconds: metrics::uptime().as_secs(),
            store: StoreStatus {
                format: self.store.format().number(),
                sequence: stats.sequence,
                quads: stats.quads,
                write_back_bytes: stats.write_back_bytes,
                poisoned: self.store.poison_cause(),
            },
            queue: QueueStatus { parked: spool.parked, ..self.collect_queue(&targets) },
            targets,
            rejected: unreadable.check(StatusPart::Rejected, self.collect_rejected())?,
            changes: unreadable.check(StatusPart::Changes, self.collect_changes().map(Some))?,
            definitions: {
                let drift = unreadable.check(StatusPart::Drift, find_drift(self))?;
                collect_definitions(drift, self.definition_files.outcome())
            },
            backup: self.backups.as_ref().map(Backups::report),
            sources: sources::collect_sources(self),
            webhooks: self.webhooks.list()?,
            disk: DiskStatus {
                free_bytes: disk::free_bytes_of(&self.settings.data_dir),
                reserve_bytes: self.settings.limits.disk_reserve_bytes,
                in_reserve: self.disk.is_in_reserve(),
                journal_bytes: stats.journal_bytes,
                index_bytes: stats.index_bytes,
                spool_bytes: spool.waiting,
                spool_limit_bytes: spool.limit,
                history_bytes: spool.delivered,
            },
            memory,
            clock: self.clock.report(),
            certificate: self.settings.server.tls.as_ref().map(|tls| CertificateStatus {
                self_signed: tls.certificate.is_none(),
                expires_at: format_certificate_end(),
            }),
            warnings: Vec::new(),
            last_errors: Vec::new(),
        })
    }

    fn collect_rejected(&self) -> Result<RejectedStatus, GatewayError> {
        let totals = dead_letters::read_totals(&self.store.read())?;
        Ok(RejectedStatus {
            dead_letters: totals.letters,
            bytes: totals.bytes,
            limit_bytes: self.settings.limits.rejected_bytes,
            evicted: totals.evicted,
            expired: totals.expired,
        })
    }

    fn collect_changes(&self) -> Result<ChangesStatus, GatewayError> {
        let totals = changes::read_totals(&self.store.read())?;
        Ok(ChangesStatus {
            open: totals.open,
            limit_open: self.settings.limits.changes,
            closed: totals.closed,
            bytes: totals.bytes(),
            limit_bytes: self.settings.limits.change_bytes,
        })
    }

    fn collect_queue(&self, targets: &[Target]) -> QueueStatus {
        QueueStatus {
            depth: targets.iter().map(|target| target.depth).sum(),
            bytes: targets.iter().map(|target| target.bytes).sum(),
            // RFC 3339 in UTC with a fixed length: the order of the texts is that of the times.
            oldest: targets.iter().filter_map(|target| target.oldest.clone()).min(),
            oldest_age_seconds: targets.iter().filter_map(|target| target.oldest_age_seconds).max(),
            blocked: targets
                .iter()
                .filter(|target| target.blocked.is_some())
                .map(|target| target.name.clone())
                .collect(),
            parked: 0,
            waiting: self.exporter.list_waiting_names(),
            failing: self.exporter.list_failing().into_iter().map(|(name, _)| name).collect(),
        }
    }
}

/// Collects what is known of the definitions from files. Those that no file has any more are last.
fn collect_definitions(
    (managed, mut drift): (usize, Vec<Drift>),
    folder: FolderOutcome,
) -> DefinitionsStatus {
    drift.sort_by_key(|drift| drift.state == DriftState::Unmanaged);
    let drift_count = drift.len();
    let unwanted_count = drift.partition_point(|drift| drift.state != DriftState::Unmanaged);
    drift.truncate(MAX_LISTED_DRIFT);
    let FolderOutcome { is_running, applied_at, errors, error_count, .. } = folder;
    DefinitionsStatus {
        managed,
        drift,
        drift_count,
        unwanted_count,
        running: is_running,
        applied_at,
        errors,
        error_count,
    }
}

/// Lists the Business Objects whose automatic exports fail, from their names and the causes.
fn list_failing_exports(failing: &[(String, String)]) -> Vec<String> {
    let listed = failing.iter().take(MAX_EXPORT_WARNINGS);
    listed
        .map(|(name, cause)| {
            format!("the automatic exports of {name:?} fail, and the gateway retries them: {cause}")
        })
        .collect()
}

/// Lists what an operator should look at in the files of `service.definitions.dir`.
fn list_folder_warnings(folder: &FolderOutcome) -> Vec<String> {
    let FolderOutcome { errors, error_count, warnings, warning_count, .. } = folder;
    let errors = errors.iter().map(|error| {
        format!(
            "service.definitions.dir was not applied, and the definitions of the last good run stay: {error}"
        )
    });
    let warnings = warnings.iter().map(|warning| format!("service.definitions.dir: {warning}"));
    let mut listed: Vec<String> = errors.chain(warnings).take(MAX_DEFINITION_WARNINGS).collect();
    let more = (error_count + warning_count).saturating_sub(listed.len());
    if more > 0 {
        listed.push(format!(
            "service.definitions.dir: {more} more; penstock apply --dry-run shows all"
        ));
    }
    listed
}

/// Describes what a level other than [`MemoryLevel::Ample`] means for clients, and what the operator can do.
fn describe_level(memory: &MemoryStatus) -> Option<String> {
    let (level, refused) = match memory.level {
        MemoryLevel::Ample => return None,
        MemoryLevel::Low => ("low", "request bodies are still accepted"),
        MemoryLevel::Short => (
            "short",
            "bodies of more than 1 MiB get 503, and smaller ones are accepted one at a time",
        ),
    };
    Some(format!(
        "memory is {level}: {} of {} bytes are in use, so {refused}; give the gateway more memory \
         (service.limits.memory, or the limit of its control group), or send fewer requests at once",
        memory.held_bytes.unwrap_or_default(),
        memory.limit_bytes.unwrap_or_default(),
    ))
}

fn format_certificate_end() -> Option<String> {
    let end = Timestamp::from_second(metrics::certificate_expiry()?).ok()?;
    Some(time::format_rfc3339(end))
}

/// Describes that the certificate has expired, or expires soon.
fn describe_end(certificate: &CertificateStatus, now: Timestamp) -> Option<String> {
    let ends = certificate.expires_at.as_ref()?;
    let left = ends.parse::<Timestamp>().ok()?.duration_since(now);
    let state = if left <= SignedDuration::ZERO {
        "has expired, or the clock is wrong, so clients refuse to connect"
    } else if left < CERTIFICATE_WARNING_TIME {
        "expires soon"
    } else {
        return None;
    };
    Some(format!(
        "the HTTPS certificate {state} ({ends}); install a new one, and reload the gateway (SIGHUP)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_business_object_whose_exports_fail_is_a_warning() {
        let failing: Vec<_> = (10..40).map(|n| (format!("P{n}"), "no folder".to_owned())).collect();
        let warnings = list_failing_exports(&failing);
        assert_eq!(warnings.len(), MAX_EXPORT_WARNINGS);
        assert_eq!(
            warnings[0],
            "the automatic exports of \"P10\" fail, and the gateway retries them: no folder"
        );
        assert!(list_failing_exports(&[]).is_empty());
    }

    #[test]
    fn a_certificate_is_a_warning_three_weeks_before_its_end() {
        let describe = |ends: Option<&str>| {
            let certificate =
                CertificateStatus { self_signed: false, expires_at: ends.map(str::to_owned) };
            describe_end(&certificate, "2026-11-28T12:00:00Z".parse().unwrap()).unwrap_or_default()
        };
        assert_eq!(describe(None), "");
        assert_eq!(describe(Some("2026-12-20T12:00:00.000Z")), "");
        let soon = describe(Some("2026-12-19T11:00:00.000Z"));
        assert!(soon.contains("expires soon (2026-12-19T11:00:00.000Z); install"), "{soon}");
        let over = describe(Some("2026-11-28T12:00:00.000Z"));
        assert!(over.contains("has expired"), "{over}");
    }
}
