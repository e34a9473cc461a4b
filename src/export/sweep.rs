//! The cleanup of multipart uploads, whose parts use space in the bucket. These are uploads of parked exports, and of
//! stored exports if a broken connection left the completion unclear. The staging graphs in a SPARQL store are dropped too,
//! of exports that are parked, or delivered after an attempt that failed.
use super::ExporterParts;
use super::blocking::run_blocking;
use super::target::OpenTarget;
use super::uploads::UploadRecord;
use penstock_base::shared::Shared;
use penstock_resources::export::ExportStatus;

/// Runs the cleanup periodically, until the task is aborted.
pub(super) async fn run_cleanup(inner: Shared<ExporterParts>) {
    loop {
        let abandoned = run_blocking(&inner, find_abandoned).await;
        for AbandonedUpload { id, record: begun, delivered } in abandoned.unwrap_or_default() {
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
                Ok(()) => inner.uploads.remove_record(&id),
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
    id: String,
    record: UploadRecord,
    pub(super) delivered: bool,
}

/// Returns the uploads to clean up: none while exports are held, because the bucket may be that of another machine.
pub(super) fn find_abandoned(
    inner: &ExporterParts,
) -> Result<Vec<AbandonedUpload>, penstock_base::error::GatewayError> {
    let mut abandoned = Vec::new();
    if inner.uplink.hold_reason().is_some() {
        return Ok(abandoned);
    }
    for id in inner.uploads.list_export_ids() {
        let entry =
            inner.queue.find_entry(&inner.queue.lock_state(), &id)?.map(|(_, _, entry)| entry);
        let status = entry.map(|entry| entry.status);
        if matches!(
            status,
            Some(ExportStatus::Queued | ExportStatus::Delivering | ExportStatus::Blocked)
        ) {
            continue;
        }
        inner.uploads.remove_compressed_file(&id);
        if let Some((begun, _)) = inner.uploads.read_upload(&id) {
            // An export without an entry was delivered: a parked one keeps its entry until its upload is cleaned up.
            abandoned.push(AbandonedUpload {
                id,
                record: begun,
                delivered: status != Some(ExportStatus::Parked),
            });
        }
    }
    Ok(abandoned)
}
