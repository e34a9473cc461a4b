//! Clearing up after long uploads that nobody goes on with: the export was parked, or delivered by another
//! way. Their parts take room in the bucket, and the notes of them room on the disk.
use super::Inner;
use super::deliver::blocking;
use super::entry::Status;
use super::target::Target;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked for any.
const INTERVAL: Duration = Duration::from_hours(1);

/// Sweeps now and then, for good.
pub(super) async fn run(inner: Arc<Inner>) {
    loop {
        once(&inner).await;
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn once(inner: &Arc<Inner>) {
    let left = blocking(inner, |inner| {
        let ids = inner.uploads.ids().into_iter();
        let mut left = Vec::new();
        for id in ids {
            let entry = inner.queue.find(&inner.queue.state(), &id)?.map(|(_, _, entry)| entry);
            let waits = entry.is_some_and(|entry| {
                matches!(entry.status, Status::Queued | Status::Delivering | Status::Blocked)
            });
            if !waits {
                let begun = inner.uploads.find(&id).map(|(begun, _)| begun);
                left.push((id, begun));
            }
        }
        Ok(left)
    });
    for (id, begun) in left.await.unwrap_or_default() {
        if let Some(begun) = begun {
            let ended = match Target::open(&inner.options, &begun.target) {
                Ok(Target::S3(bucket)) => bucket.abandon(&begun).await,
                // It leads elsewhere now, where nobody knows of the upload.
                _ => Ok(()),
            };
            if let Err(failure) = ended {
                let cause = failure.cause;
                tracing::debug!(export_id = id, cause, "An upload that was left could not be ended.");
                continue;
            }
        }
        let _ = blocking(inner, move |inner| {
            inner.uploads.forget(&id);
            Ok(())
        })
        .await;
    }
}
