//! Delivery. Each target with queued entries has one worker. The worker delivers the first entry of the queue and
//! retries until that succeeds.
use super::backoff::{FailureLogLimit, RetryRule};
use super::blocking::run_blocking;
use super::cause::{DeliveryFailure, DeliveryOutcome};
use super::delivery::{Delivery, MetadataObject, Replaces};
use super::delivery_loop::{DeliveryQueue, Next, deliver_queue};
use super::queue::DeliveryJob;
use super::target::{self, OpenTarget};
use super::{ExporterParts, sweep};
use penstock_base::shared::Shared;
use penstock_base::telemetry::metrics;
use penstock_resources::export::{Cause, Export};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};

/// The interval at which a closed window is checked again, because the clock may be set.
const WINDOW_CHECK_INTERVAL: Duration = Duration::from_secs(20);

/// Delivers until `stop` becomes true. A blocked target does not block the others.
pub(super) async fn run_deliveries(inner: Shared<ExporterParts>, mut stop: watch::Receiver<bool>) {
    let mut workers = JoinSet::new();
    let mut targets: HashMap<task::Id, String> = HashMap::new();
    let mut cleanup = JoinSet::new();
    cleanup.spawn(sweep::run_cleanup(inner.clone()));
    while !*stop.borrow_and_update() {
        let waiting = run_blocking(&inner.queue, |queue| Ok(queue.list_queued_targets())).await;
        for (target, wake) in waiting.unwrap_or_default() {
            if !targets.values().any(|running| *running == target) {
                let worker = DeliveryWorker::new(inner.clone(), target.clone(), wake);
                targets.insert(workers.spawn(deliver_queue(worker, stop.clone())).id(), target);
            }
        }
        tokio::select! {
            () = inner.queue.entry_added.notified() => {}
            changed = stop.changed() => if changed.is_err() { break },
            Some(ended) = workers.join_next_with_id() => {
                let id = match ended {
                    Ok((id, ())) => id,
                    Err(error) => {
                        tracing::error!(%error, "A delivery worker failed; the gateway starts it again.");
                        error.id()
                    }
                };
                targets.remove(&id);
            }
        }
    }
    while workers.join_next().await.is_some() {}
}

/// Delivers the queue of one target, and ends when it is empty.
struct DeliveryWorker {
    inner: Shared<ExporterParts>,
    name: String,
    /// Ends the backoff.
    wake: Arc<Notify>,
    /// The open target. The worker reopens it after each failure, so that fixes (a certificate, a DNS address)
    /// take effect.
    opened: Option<OpenTarget>,
    failure_log_limit: FailureLogLimit,
    /// Why the target is blocked, as webhooks know it. `None` while it is not.
    reported_class: Option<Cause>,
    /// Whether the delivery window is closed, as the log knows it.
    is_paused: bool,
}

/// An attempt to deliver the first export of the queue.
struct Attempt {
    job: DeliveryJob,
    started: Instant,
}

impl DeliveryQueue for DeliveryWorker {
    type Head = Attempt;
    type Sent = Result<DeliveryOutcome, DeliveryFailure>;

    /// Starts the delivery of the first export in the queue, once the delivery window is open.
    async fn next_head(&mut self) -> Result<Attempt, Next> {
        if let Some(why) = self.inner.uplink.pause_reason() {
            if !std::mem::replace(&mut self.is_paused, true) {
                tracing::info!(target_name = self.name, why, "Deliveries are paused.");
            }
            return Err(Next::wait_for(tokio::time::sleep(WINDOW_CHECK_INTERVAL)));
        }
        self.is_paused = false;
        let name = self.name.clone();
        match run_blocking(&self.inner.queue, move |queue| queue.begin_delivery(&name)).await {
            Ok(Some(job)) => Ok(Attempt { job, started: Instant::now() }),
            Ok(None) => Err(Next::End),
            Err(fault) => {
                tracing::error!(target_name = self.name, %fault, "The export queue could not be read.");
                let max_delay = self.inner.options.timings.max_delay;
                Err(Next::retry_after(max_delay, Arc::clone(&self.wake)))
            }
        }
    }

    async fn send(&mut self, Attempt { job, .. }: &mut Attempt) -> Self::Sent {
        let entry = &job.entry;
        let options = &self.inner.options;
        target::check_embedded(&options.targets, &entry.target, job.made_for.as_deref())?;
        let target = match self.opened.take() {
            Some(target) => target,
            None => OpenTarget::open(&self.inner, &entry.target)?,
        };
        let target = self.opened.insert(target);
        let file =
            self.inner.queue.spool.open_file(&super::record::file_name(&entry.id), entry.bytes);
        let delivery = Delivery {
            entry,
            metadata: MetadataObject::of_export(entry, job.metadata.clone()),
            file,
            may_be_stored: job.may_be_stored,
            unclear_since: job.unclear_since,
            is_replay: job.is_replay,
            replaces: Replaces::Damaged,
            uploads: &self.inner.uploads,
            uplink: &self.inner.uplink,
            queue: &self.inner.queue,
        };
        target.deliver(delivery).await
    }

    async fn record(
        &mut self,
        Attempt { job, started }: Attempt,
        sent: Option<Self::Sent>,
    ) -> Next {
        let sent = sent.unwrap_or_else(|| Err(DeliveryFailure::interrupt("the gateway stops")));
        if let Err(DeliveryFailure { is_interruption: true, cause, .. }) = &sent {
            self.interrupt_delivery(&job.entry, cause).await;
            return Next::Continue;
        }
        let seconds = started.elapsed().as_secs_f64();
        metrics::count_delivery(&self.name, sent.is_ok(), job.entry.bytes, seconds);
        let recorded = match sent {
            Ok(outcome) => self.record_delivery(&job, outcome).await,
            Err(failure) => Err(failure),
        };
        match recorded {
            Ok(entry) => {
                self.reported_class = None;
                self.log_delivery(&entry, started.elapsed()).await;
                Next::Continue
            }
            Err(failure) => self.handle_failure(&job, failure).await,
        }
    }
}

impl DeliveryWorker {
    fn new(inner: Shared<ExporterParts>, name: String, wake: Arc<Notify>) -> Self {
        Self {
            inner,
            name,
            wake,
            opened: None,
            failure_log_limit: FailureLogLimit::default(),
            reported_class: None,
            is_paused: false,
        }
    }

    /// Commits that the export is delivered, and that the target needs a full export if it does.
    async fn record_delivery(
        &self,
        job: &DeliveryJob,
        outcome: DeliveryOutcome,
    ) -> Result<Export, DeliveryFailure> {
        let (order, id) = (job.order, job.entry.business_object.clone());
        let recorded = run_blocking(&self.inner, move |inner| {
            let outcome = inner.complete_outcome(outcome, &id);
            let at = inner.current_stamp();
            let entry = inner.queue.record_delivery(order, at, &outcome, &inner.uploads)?;
            if outcome.needs_full {
                inner.options.catalogue.watch().mark(&entry.business_object);
            }
            if let Some(warning) = &outcome.warning {
                tracing::warn!(
                    export_id = entry.id,
                    business_object = entry.business_object_name,
                    target_name = entry.target,
                    sequence = entry.sequence,
                    warning,
                    "A delivery has a warning."
                );
            }
            Ok(entry)
        });
        recorded.await.map_err(|error| {
            let cause =
                format!("the target stored the file, but recording the delivery failed: {error}");
            DeliveryFailure { outcome_unknown: true, ..DeliveryFailure::of_gateway(cause) }
        })
    }

    async fn log_delivery(&mut self, entry: &Export, time: Duration) {
        tracing::info!(
            export_id = entry.id,
            business_object = entry.business_object_name,
            target_name = self.name,
            sequence = entry.sequence,
            objects = entry.object_count,
            bytes = entry.bytes,
            duration_ms = time.as_millis(),
            attempts = entry.attempts,
            "An export was delivered."
        );
        if self.failure_log_limit.reset_after_success() {
            self.publish_target(false).await;
        }
    }

    /// Records and reports a failure, and returns how long to wait for the next attempt.
    async fn handle_failure(&mut self, job: &DeliveryJob, failure: DeliveryFailure) -> Next {
        let (name, order, timings) = (self.name.clone(), job.order, self.inner.options.timings);
        let (class, cause, is_link) = (failure.class, failure.cause.clone(), failure.is_link());
        let (failures, delay) = run_blocking(&self.inner.queue, move |queue| {
            let rule = RetryRule::of_targets(timings);
            Ok(queue.record_failure(&name, order, failure, &rule))
        })
        .await
        .unwrap_or((1, timings.first_delay));
        if self.failure_log_limit.should_log(class, Instant::now()) {
            tracing::warn!(
                export_id = job.entry.id,
                business_object = job.entry.business_object_name,
                target_name = self.name,
                sequence = job.entry.sequence,
                attempts = failures,
                cause,
                "A delivery failed; the gateway retries it."
            );
        }
        let is_newly_blocked = self.reported_class.replace(class) != Some(class);
        if failures == 1 || is_newly_blocked {
            self.publish_target(is_newly_blocked).await;
        }
        let retry = Next::retry_after(delay, Arc::clone(&self.wake));
        match self.opened.take().filter(|_| is_link) {
            Some(target) => retry.or_after(wait_until_reachable(target, timings.probe_interval)),
            None => retry,
        }
    }

    async fn interrupt_delivery(&self, entry: &Export, why: &str) {
        let name = self.name.clone();
        let interrupted = run_blocking(&self.inner.queue, move |queue| {
            queue.interrupt_delivery(&name);
            Ok(())
        });
        let _ = interrupted.await;
        tracing::info!(
            export_id = entry.id,
            target_name = self.name,
            why,
            "A delivery was interrupted; it continues later."
        );
    }

    /// Publishes the state of the target after it changed. Webhooks also get that it is blocked, or blocked by something
    /// else, if `is_newly_blocked`.
    async fn publish_target(&self, is_newly_blocked: bool) {
        let name = self.name.clone();
        let _ = run_blocking(&self.inner, move |inner| {
            inner.publish_target(&name, is_newly_blocked);
            Ok(())
        })
        .await;
    }
}

impl ExporterParts {
    /// Completes the warning of an outcome: how the target gets a full export if it needs one.
    fn complete_outcome(&self, outcome: DeliveryOutcome, business_object: &str) -> DeliveryOutcome {
        let exports_on_change = || {
            let found = self.options.catalogue.get(business_object);
            found.is_some_and(|found| found.object.definition.export_on_change)
        };
        let needs_push = outcome.needs_full && !exports_on_change();
        let remedy = match (outcome.needs_full, needs_push) {
            (false, _) => ".",
            (true, false) => "; a full export follows.",
            (true, true) => "; push the Business Object for a full export.",
        };
        let warning = outcome.warning.map(|warning| format!("{warning}{remedy}"));
        DeliveryOutcome { warning, needs_push, ..outcome }
    }
}

/// Probes the target until it answers after at least one probe without an answer.
async fn wait_until_reachable(target: OpenTarget, every: Duration) {
    let mut was_unreachable = false;
    loop {
        let started = Instant::now();
        if target.is_reachable().await {
            if was_unreachable {
                return;
            }
        } else {
            was_unreachable = true;
        }
        tokio::time::sleep(every.saturating_sub(started.elapsed()).max(every / 4)).await;
    }
}
