//! The cleanup of multipart uploads, whose parts use space in the bucket. These are uploads of parked exports, and of
//! stored exports if a broken connection left the completion unclear. The staging graphs in a SPARQL store are dropped too,
//! of exports that are parked, or delivered after an attempt that failed.
use super::ExporterParts;
use super::blocking::run_blocking;
use super::target::OpenTarget;
use super::uploads::UploadRecord;
use penstock_base::error::GatewayError;
use penstock_base::shared::Shared;
use penstock_resources::export::ExportStatus;

/// Runs the cleanup periodically, until the task is aborted.
pub(super) async fn run_cleanup(inner: Shared<ExporterParts>) {
    loop {
        let ids = run_blocking(&inner, |inner| Ok(inner.uploads.list_export_ids())).await;
        for id in ids.unwrap_or_default() {
            // Not before its turn, because an operator may retry or replay it meanwhile.
            let of = id.clone();
            let found = run_blocking(&inner, move |inner| find_abandoned(inner, &of)).await;
            let Ok(Some(AbandonedUpload { record: begun, delivered })) = found else { continue };
            let ended = match OpenTarget::open(&inner, &begun.target) {
                Ok(OpenTarget::S3(bucket)) if delivered => {
                    bucket.clean_up_uploads(&id, &inner.uploads).await
                }
                Ok(OpenTarget::S3(bucket)) => bucket.abandon_upload(&begun).await,
                Ok(OpenTarget::Sparql(store)) if delivered => {
                    match store.drop_retried_staging(&id, &begun, &inner.uploads).await {
                        Ok(true) => Ok(()),
                        Ok(false) => continue,
                        Err(failure) => Err(failure),
                    }
                }
                Ok(OpenTarget::Sparql(store)) => {
                    match store.drop_parked_staging(&id, &begun, &inner.uploads).await {
                        // The record stays, for the next attempt.
                        Ok(()) => continue,
                        failed => failed,
                    }
                }
                // The target has changed, and the new one does not know the upload.
                _ => Ok(()),
            };
            match ended {
                Ok(()) => inner.uploads.remove_if_current(&id, &begun),
                Err(failure) => {
                    let cause = failure.cause;
                    tracing::debug!(
                        export_id = id,
                        cause,
                        "An abandoned upload could not be cleaned up."
                    );
                }
            }
        }
        tokio::time::sleep(inner.options.timings.cleanup_interval).await;
    }
}

/// An upload whose export is not in the queue.
pub(super) struct AbandonedUpload {
    record: UploadRecord,
    pub(super) delivered: bool,
}

/// Returns the upload of this export if it is to be cleaned up. It is not while exports are held, because the bucket may
/// be that of another machine.
pub(super) fn find_abandoned(
    inner: &ExporterParts,
    id: &str,
) -> Result<Option<AbandonedUpload>, GatewayError> {
    if inner.uplink.hold_reason().is_some() {
        return Ok(None);
    }
    let entry = inner.queue.find_entry(&inner.queue.lock_state(), id)?.map(|(_, _, entry)| entry);
    let status = entry.map(|entry| entry.status);
    if matches!(
        status,
        Some(ExportStatus::Queued | ExportStatus::Delivering | ExportStatus::Blocked)
    ) {
        return Ok(None);
    }
    inner.uploads.remove_compressed_file(id);
    let Some((record, _)) = inner.uploads.read_upload(id) else { return Ok(None) };
    // An export without an entry was delivered: a parked one keeps its entry until its upload is cleaned up.
    let delivered = status != Some(ExportStatus::Parked);
    Ok(Some(AbandonedUpload { record, delivered }))
}
