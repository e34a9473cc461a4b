//! Backups of the whole store.
use crate::gateway::{Gateway, data_events};
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::Backup;
use std::io::Write;

/// Writes a backup to `out`, and records it in the audit trail, complete or not. Commits continue meanwhile. Blocking.
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
            tracing::info!(sequence, quads, "A backup was written.");
        }
        Err(cause) => tracing::warn!(%cause, "A backup failed."),
    }
    result.map_err(|cause| GatewayError::new(ErrorClass::Internal, cause.to_string()))
}
