//! The worker that makes bases and sends them. The worker that ships names them in the head.
use super::head::BaseEntry;
use super::objects::{discard_file, write_base};
use super::parts::{BaseWork, Parts, Uploaded, kept_failure, spoiled_failure, store_failure};
use super::place::{Objects, Upload};
use super::secrecy::HeadSecret;
use super::state::OwnBase;
use crate::backoff::{FailedAttempts, FailureLogLimit, RetryRule};
use crate::cause::DeliveryFailure;
use crate::delivery_loop::{DeliveryQueue, Next};
use penstock_base::error::format_mebibytes;
use penstock_base::time;
use std::sync::Arc;
use std::time::Instant;

/// Makes and sends one base at a time.
pub(super) struct BaseWorker<O> {
    parts: Arc<Parts<O>>,
    /// A base in a file, which is sent until the bucket has it.
    made: Option<MadeBase>,
    attempts: Option<FailedAttempts>,
    log_limit: FailureLogLimit,
}

/// What the worker is asked for.
#[derive(Debug, Clone)]
pub(super) struct WantedBase {
    era: String,
    secret: Option<HeadSecret>,
}

/// A base in a file.
#[derive(Debug, Clone)]
struct MadeBase {
    era: String,
    base: OwnBase,
}

impl<O: Objects> BaseWorker<O> {
    pub(super) fn new(parts: Arc<Parts<O>>) -> Self {
        Self { parts, made: None, attempts: None, log_limit: FailureLogLimit::default() }
    }

    /// Makes a base and sends it.
    pub(super) async fn make_and_send(
        &mut self,
        wanted: &WantedBase,
    ) -> Result<(), DeliveryFailure> {
        let made = match self.made.take().filter(|made| made.era == wanted.era) {
            Some(made) => made,
            None => self.make(wanted.clone()).await?,
        };
        let upload = Upload {
            key: self.parts.keys.base(&made.era, made.base.entry.sequence),
            path: self.parts.folder.base_file(),
            bytes: made.base.entry.bytes,
            sha256: made.base.entry.sha256.clone(),
            is_base: true,
        };
        self.made = Some(made.clone());
        let uploaded = self.parts.upload(&upload).await?;
        if uploaded == Uploaded::HeadChanged {
            return Err(kept_failure(&upload.key));
        }
        self.made = None;
        discard_file(&upload.path);
        if uploaded == Uploaded::Spoiled {
            return Err(spoiled_failure(&upload));
        }
        if uploaded == Uploaded::Kept {
            // The next base is that of a later commit, with another key.
            return Err(kept_failure(&upload.key));
        }
        self.parts.reported.lock().report.sent_bytes[1] += upload.bytes;
        let mut work = self.parts.base.lock();
        if matches!(&*work, BaseWork::Wanted { era, .. } if *era == made.era) {
            *work = BaseWork::Stored { era: made.era, base: made.base };
        }
        drop(work);
        self.parts.wake.notify_one();
        Ok(())
    }

    async fn make(&self, wanted: WantedBase) -> Result<MadeBase, DeliveryFailure> {
        let made = self.parts.run(move |parts| {
            check_space(parts)?;
            let path = parts.folder.base_file();
            let place = (parts.gateway.as_str(), wanted.era.as_str());
            let (at, elapsed) = (time::format_rfc3339(parts.clock.now()), parts.clock.elapsed());
            let written =
                write_base(&parts.store, &path, &parts.key, place, wanted.secret.as_ref());
            let (backup, file) = written.map_err(|error| {
                discard_file(&path);
                store_failure(&error)
            })?;
            let (sequence, bytes, sha256) = (backup.sequence, file.bytes, file.sha256);
            let entry = BaseEntry { sequence, bytes, sha256 };
            Ok(MadeBase { era: wanted.era, base: OwnBase { entry, at, elapsed, sent_since: 0 } })
        });
        made.await
    }

    /// Returns the base to make next.
    pub(super) fn wanted(&self) -> Option<WantedBase> {
        match &*self.parts.base.lock() {
            BaseWork::Wanted { era, secret } => {
                Some(WantedBase { era: era.clone(), secret: secret.clone() })
            }
            BaseWork::Idle | BaseWork::Stored { .. } => None,
        }
    }
}

/// Checks that the disk has space for the file above its reserve.
fn check_space<O>(parts: &Parts<O>) -> Result<(), DeliveryFailure> {
    let stats = parts.store.stats();
    // A base takes less than half of the index, whatever the journal has.
    let needed = stats.base_bytes.max(stats.index_bytes / 2).min(stats.index_bytes + (1 << 20));
    let Some(free) = parts.disk.free_bytes() else { return Ok(()) };
    let available = free.saturating_sub(parts.disk.reserve_bytes());
    if available >= needed {
        return Ok(());
    }
    Err(DeliveryFailure::of_gateway(format!(
        "a base of the backup needs about {} of the gateway's disk for a moment, and {} are free above \
         service.limits.disk-reserve; free disk space",
        format_mebibytes(needed),
        format_mebibytes(available)
    )))
}

impl<O: Objects> DeliveryQueue for BaseWorker<O> {
    type Head = WantedBase;
    type Sent = Result<(), DeliveryFailure>;

    async fn next_head(&mut self) -> Result<WantedBase, Next> {
        let wake = Arc::clone(&self.parts.base_wake);
        self.wanted().ok_or_else(|| Next::wait_for(async move { wake.notified().await }))
    }

    async fn send(&mut self, wanted: &mut WantedBase) -> Self::Sent {
        let parts = Arc::clone(&self.parts);
        tokio::select! {
            sent = self.make_and_send(wanted) => sent,
            // A gateway that was replaced writes nothing more.
            () = parts.wait_until_unwanted(&wanted.era) => {
                Err(DeliveryFailure::interrupt("the base is not wanted any more"))
            }
        }
    }

    async fn record(&mut self, wanted: WantedBase, sent: Option<Self::Sent>) -> Next {
        let failure = match sent {
            None => return Next::Continue,
            Some(Ok(())) => {
                self.attempts = None;
                self.log_limit.reset_after_success();
                self.parts.reported.lock().base_failure = None;
                tracing::info!(era = wanted.era, "A base of the backup was sent.");
                return Next::Continue;
            }
            Some(Err(failure)) if failure.is_interruption => return Next::Continue,
            Some(Err(failure)) => failure,
        };
        if self.log_limit.should_log(failure.class, Instant::now()) {
            let cause = failure.cause.as_str();
            tracing::warn!(
                cause,
                "A base of the backup could not be made or sent; the gateway retries."
            );
        }
        // Commits are shipped meanwhile, so the backup is not blocked.
        self.parts.reported.lock().base_failure = Some(failure.cause.clone());
        let rule = RetryRule::of_targets(self.parts.timings);
        let attempts = FailedAttempts::add(self.attempts.take(), failure, &rule);
        let delay = attempts.delay;
        self.attempts = Some(attempts);
        Next::retry_after(delay, Arc::clone(&self.parts.base_wake))
    }
}
