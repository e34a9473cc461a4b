//! Cleanup of multipart uploads: of parked exports, and of stored exports whose completion a broken connection
//! left unclear. Their parts use space in the bucket.
use super::Inner;
use super::deliver::blocking;
use super::entry::Status;
use super::target::Target;
use super::uploads::Begun;
use std::sync::Arc;

/// Runs the cleanup at intervals, without end.
pub(super) async fn run(inner: Arc<Inner>) {
    loop {
        let left = blocking(&inner, find).await;
        for Left { id, begun, delivered } in left.unwrap_or_default() {
            let ended = match Target::open(&inner.options, &begun.target) {
                Ok(Target::S3(bucket)) if delivered => bucket.tidy(&id, &inner.uploads).await,
                Ok(Target::S3(bucket)) => bucket.abandon(&begun).await,
                // The target has changed, and the new one does not know the upload.
                _ => Ok(()),
            };
            match ended {
                Ok(()) => inner.uploads.end(&id),
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
        tokio::time::sleep(inner.options.pace.sweep).await;
    }
}

/// An upload whose export is not in the queue.
struct Left {
    id: String,
    begun: Begun,
    delivered: bool,
}

fn find(inner: &Inner) -> Result<Vec<Left>, penstock_base::fault::Fault> {
    let mut left = Vec::new();
    for id in inner.uploads.ids() {
        let entry = inner.queue.find(&inner.queue.state(), &id)?.map(|(_, _, entry)| entry);
        let status = entry.map(|entry| entry.status);
        if matches!(status, Some(Status::Queued | Status::Delivering | Status::Blocked)) {
            continue;
        }
        inner.uploads.sent(&id);
        if let Some((begun, _)) = inner.uploads.find(&id) {
            // An entry that was removed from the history was delivered.
            left.push(Left { id, begun, delivered: status != Some(Status::Parked) });
        }
    }
    Ok(left)
}
