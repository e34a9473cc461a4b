//! What the data directory says of the backup, whether a worker runs or not, and the request to take over.
use super::folder::BackupFolder;
use super::state::LocalState;
use penstock_base::error::{ErrorClass, GatewayError};
use std::path::Path;

/// Asks a gateway that does not run to begin a new era at its next start. `record` stores the event first, so that no
/// takeover is without one. Blocking.
///
/// # Errors
/// `ErrorClass::Conflict` if the store is a copy for inspection; `ErrorClass::Damaged` if a newer version wrote the state of
/// the backup; the errors of `record` and of the disk.
pub fn request_take_over(
    data_dir: &Path,
    record: impl FnOnce() -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    store_take_over(&BackupFolder::of(data_dir), record)
}

/// Requests a takeover as [`request_take_over`].
pub(super) fn store_take_over(
    folder: &BackupFolder,
    record: impl FnOnce() -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let state = folder.repair_state()?;
    if state.copy {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            "this store is a copy for inspection (penstock restore --copy), which cannot take over; restore it without \
             --copy",
        ));
    }
    record()?;
    let kept = if state.lost.is_some() { folder.keep_damaged_state() } else { Ok(()) };
    let state = LocalState { take_over: true, lost: None, ..state };
    kept.and_then(|()| folder.write_state(&state)).map_err(|error| state_error(folder, &error))
}

/// Returns the sequence after which the journal must keep all frames for the backup. Blocking.
///
/// # Errors
/// A newer version wrote the state of the backup.
pub fn retain_after(data_dir: &Path) -> Result<Option<u64>, GatewayError> {
    let state = BackupFolder::of(data_dir).read_state()?;
    // If it is not known what was sent, the journal keeps all that it has.
    Ok(if state.lost.is_some() { Some(0) } else { state.retain_after() })
}

/// Returns whether a head of this data directory's backup was confirmed, or may have been. Blocking.
pub(crate) fn has_era(data_dir: &Path) -> Result<bool, GatewayError> {
    let state = BackupFolder::of(data_dir).read_state()?;
    Ok(state.era.is_some() || state.lost.is_some())
}

/// Repairs the state of the backup at the start. Returns why exports, sources and webhooks of this data directory stand still
/// from then on, if they do, and logs it. The caller has the lock of the store.
pub(crate) fn stored_hold(data_dir: &Path) -> Result<Option<String>, GatewayError> {
    let state = BackupFolder::of(data_dir).repair_state()?;
    let reason = state.hold_reason();
    if reason.is_some() {
        state.log_hold();
    }
    Ok(reason)
}

/// Returns whether exports whose files are gone still have to be replaced, because the store was restored from a bucket.
pub(crate) fn has_lost_exports(data_dir: &Path) -> bool {
    BackupFolder::of(data_dir).has_lost_exports()
}

/// Records whether exports whose files are gone still have to be replaced.
pub(crate) fn record_lost_exports(data_dir: &Path, are_lost: bool) -> Result<(), GatewayError> {
    let folder = BackupFolder::of(data_dir);
    folder.set_lost_exports(are_lost).map_err(|error| state_error(&folder, &error))
}

/// Explains that the state or the folder of the backup could not be written.
pub(super) fn state_error(folder: &BackupFolder, error: &std::io::Error) -> GatewayError {
    let text = format!("writing {} failed: {error}", folder.path.display());
    GatewayError::new(ErrorClass::Internal, text)
}
