//! What the operator sees of the backup.
use super::holes::Holes;
use super::keys::era_number;
use super::parts::{BaseWork, Parts, Reported};
use super::place::Objects;
use penstock_resources::export::Cause;
use penstock_resources::gateway::BackupHole;
pub use penstock_resources::gateway::{BackupState, BackupStatus};

impl<O: Objects> Parts<O> {
    /// Returns what is shown. Blocking.
    pub(super) fn report(&self) -> BackupStatus {
        let reported = self.reported.lock().clone();
        let mut report = reported.report.clone();
        report.target.clone_from(&self.options.target);
        report.interval_seconds = self.options.interval.as_secs();
        report.number = report.era.as_deref().and_then(era_number);
        report.base_pending = *self.base.lock() != BaseWork::Idle;
        report.is_held = self.uplink.hold_reason().is_some();
        let newest = self.store.newest_durable();
        if let Some(last) = report.last_sequence.filter(|last| *last < newest) {
            report.lag_bytes = self.store.bytes_after(last).unwrap_or(0);
            report.lag_seconds = self.age_after(last);
        }
        report.warnings = list_warnings(&report, &reported);
        report.warnings.extend(self.warn_of_other_writers(&report));
        report.warnings.extend(self.folder.describe_damage());
        report
    }

    /// Returns the warning about a target that cannot prevent that two machines write one backup.
    fn warn_of_other_writers(&self, report: &BackupStatus) -> Option<String> {
        let cause = if self.objects.has_preconditions() {
            "does not refuse a wrong If-Match"
        } else {
            "is a directory"
        };
        (report.single_writer == Some(false)).then(|| {
            format!(
                "the backup's target {cause}, so two machines that write one backup cannot be excluded; do not start two \
                 machines with one gateway id"
            )
        })
    }

    /// Returns the number of commits that this gateway has not sent yet. Blocking.
    pub(super) fn count_unsent(&self) -> u64 {
        let newest = self.store.newest_durable();
        let reported = self.reported.lock();
        match reported.report.state {
            BackupState::Replaced | BackupState::Copy => 0,
            _ => newest.saturating_sub(reported.report.last_sequence.unwrap_or(0)),
        }
    }

    /// Returns the age in seconds of the oldest commit after `last`, by the gateway's clock and exact to the interval.
    fn age_after(&self, last: u64) -> u64 {
        let oldest = self.folder.read_points(last, 1);
        let at = oldest.first().and_then(|point| point.time.timestamp());
        let age = at.map_or(0, |at| self.clock.now().as_second() - at.as_second());
        // A clock that was set back is behind what it recorded.
        u64::try_from(age).unwrap_or(0)
    }

    /// Records the success of an attempt.
    pub(super) fn clear_failure(&self) -> bool {
        let mut reported = self.reported.lock();
        let had_failed = reported.class.take().is_some();
        let report = &mut reported.report;
        if report.state == BackupState::Blocked {
            report.state = match (&report.era, report.base_sequence) {
                (None, _) => BackupState::Starting,
                (Some(_), None) => BackupState::FirstBase,
                (Some(_), Some(_)) => BackupState::Running,
            };
            (report.cause, report.cause_since) = (None, None);
        }
        had_failed
    }

    /// Records a segment of `bytes` that is in the bucket.
    pub(super) fn report_segment(&self, bytes: u64) {
        self.reported.lock().report.bytes += bytes;
    }

    pub(super) fn report_holes(&self, holes: &Holes) {
        self.reported.lock().report.holes = holes.list();
    }
}

/// Lists what needs attention.
fn list_warnings(report: &BackupStatus, reported: &Reported) -> Vec<String> {
    let mut warnings = Vec::new();
    let cause = report.cause.as_deref().unwrap_or_default();
    match report.state {
        BackupState::Replaced | BackupState::Copy => warnings.push(cause.to_owned()),
        BackupState::Blocked => {
            warnings.push(format!("the backup is blocked: {cause}; the gateway retries"));
        }
        BackupState::FirstBase | BackupState::Running if !report.restorable => {
            warnings.push(
                "there is no backup that can be restored until the next base is complete"
                    .to_owned(),
            );
        }
        BackupState::Starting | BackupState::FirstBase | BackupState::Running => {}
    }
    let is_link = matches!(reported.class, Some(Cause::Unreachable | Cause::Broken));
    if report.is_late() && !is_link && report.state != BackupState::Replaced {
        warnings.push(format!(
            "the backup is {} s behind the commits, more than 10 times service.backup.interval",
            report.lag_seconds
        ));
    }
    for (what, failure) in [
        ("a base of the backup could not be made or sent", &reported.base_failure),
        ("the backup could not be listed, merged or cleaned up", &reported.cleanup_failure),
    ] {
        if let Some(cause) = failure {
            warnings.push(format!("{what}: {cause}; the gateway retries"));
        }
    }
    if report.may_delete == Some(false) {
        warnings.push(
            "the credentials of the backup's target may not delete objects, so nothing of the backup is merged or \
             deleted"
                .to_owned(),
        );
    }
    if !report.holes.is_empty() {
        let holes = report.holes.iter().map(|BackupHole { from, to }| format!("{from} to {to}"));
        warnings.push(format!(
            "the commits {} were not sent one by one: the backup has them only as part of a later base, so no point in time \
             between them can be restored",
            holes.collect::<Vec<_>>().join(", ")
        ));
    }
    warnings
}
