//! Backups of the whole store, and the continuous backup.
use crate::audit::change_event;
use crate::gateway::{Gateway, data_events};
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::gateway::{BackupState, BackupStatus};
use penstock_store::Backup;
use std::io::Write;

/// Writes a backup to `out`, and records it in the audit trail, complete or not. Commits continue meanwhile. Only the
/// command that receives it knows whether it could write the file. Blocking.
///
/// # Errors
/// `ErrorClass::Internal` if the store cannot be read or `out` cannot be written.
pub fn write_backup(
    gateway: &Gateway,
    by: &Authorized,
    out: &mut dyn Write,
) -> Result<Backup, GatewayError> {
    by.require_role(Role::Admin)?;
    let result = gateway.store.write_backup(out);
    gateway.auth.audit.record_event(data_events::backup_event(&result));
    match &result {
        Ok(Backup { sequence, quads, .. }) => {
            tracing::info!(
                sequence,
                quads,
                "A backup was sent to `penstock backup`, which reports whether the file is complete."
            );
        }
        Err(cause) => tracing::warn!(%cause, "A backup failed."),
    }
    result.map_err(|cause| GatewayError::new(ErrorClass::Internal, cause.to_string()))
}

/// Makes this gateway the one that writes the continuous backup: it begins a new era, whichever gateway wrote the last
/// one.
///
/// # Errors
/// `ErrorClass::Conflict` without a continuous backup, and with a store that is only a copy for inspection; the errors of
/// the store, which must take the event.
pub async fn take_over_backup(gateway: &Gateway, by: &Authorized) -> Result<(), GatewayError> {
    gateway
        .run(by, Role::Admin, |gateway, by| {
            let Some(backups) = &gateway.backups else {
                let detail = "there is no continuous backup: service.backup.target is not set";
                return Err(GatewayError::new(ErrorClass::Conflict, detail));
            };
            let BackupStatus { state, target, .. } = backups.report();
            // The takeover of a copy fails, so it needs no event. Any other has its event before it begins.
            if state != BackupState::Copy {
                let audit = &gateway.auth.audit;
                audit.flush();
                let event = change_event(by, "backup.taken-over", format!("{target:?}"));
                gateway.store.commit(by, |transaction| audit.add_event(transaction, &event))?;
            }
            backups.take_over()?;
            tracing::info!(by = by.id(), "A takeover of the continuous backup was requested.");
            Ok(())
        })
        .await
}
