//! Delivery. Each target with queued entries has one worker. The worker delivers the first entry of the queue and
//! retries until that succeeds.
use super::backoff::FailureLogLimit;
use super::cause::DeliveryFailure;
use super::delivery::{Delivery, DeliveryOutcome, MetadataObject};
use super::queue::DeliveryJob;
use super::target::{self, OpenTarget};
use super::{Inner, sweep};
use penstock_base::error::GatewayError;
use penstock_base::shared::Shared;
use penstock_base::telemetry::metrics;
use penstock_resources::export::{Cause, Export};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};

/// The time that a delivery or a request of a webhook in progress has to finish when the gateway stops.
pub(super) const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// The interval at which a closed window is checked again, because the clock may be set.
const WINDOW_CHECK_INTERVAL: Duration = Duration::from_secs(20);

/// Delivers until `stop` becomes true. A blocked target does not block the others.
pub(super) async fn run_deliveries(inner: Shared<Inner>, mut stop: watch::Receiver<bool>) {
    let mut workers = JoinSet::new();
    let mut targets: HashMap<task::Id, String> = HashMap::new();
    let mut cleanup = JoinSet::new();
    cleanup.spawn(sweep::run_cleanup(inner.clone()));
    while !*stop.borrow_and_update() {
        let waiting = run_blocking(&inner, |inner| Ok(inner.queue.list_queued_targets())).await;
        for target in waiting.unwrap_or_default() {
            if !targets.values().any(|running| *running == target) {
                let worker = DeliveryWorker::new(inner.clone(), target.clone(), stop.clone());
                targets.insert(workers.spawn(worker.deliver_queue()).id(), target);
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
    inner: Shared<Inner>,
    name: String,
    stop: watch::Receiver<bool>,
    /// The open target. The worker reopens it after each failure, so that fixes (a certificate, a DNS address)
    /// take effect.
    opened: Option<OpenTarget>,
    failure_log_limit: FailureLogLimit,
    /// Why the target is blocked, as webhooks know it. `None` while it is not.
    reported_class: Option<Cause>,
}

impl DeliveryWorker {
    fn new(inner: Shared<Inner>, name: String, stop: watch::Receiver<bool>) -> Self {
        Self {
            inner,
            name,
            stop,
            opened: None,
            failure_log_limit: FailureLogLimit::default(),
            reported_class: None,
        }
    }

    async fn deliver_queue(mut self) {
        let name = self.name.clone();
        let wake = run_blocking(&self.inner, move |inner| Ok(inner.queue.wake_signal(&name))).await;
        let Ok(wake) = wake else { return };
        while self.wait_for_window().await {
            let job = match self.begin_delivery().await {
                Ok(Some(job)) => job,
                Ok(None) => return,
                Err(fault) => {
                    tracing::error!(target_name = self.name, %fault, "The export queue could not be read.");
                    let max_delay = self.inner.options.timings.max_delay;
                    let back = None::<std::future::Ready<()>>;
                    if !wait_for_retry(max_delay, &wake, &mut self.stop, back).await {
                        return;
                    }
                    continue;
                }
            };
            let started = Instant::now();
            let result = match self.deliver_unless_stopped(&job).await {
                Err(DeliveryFailure { is_interruption: true, cause, .. }) => {
                    self.interrupt_delivery(&job.entry, &cause).await;
                    continue;
                }
                result => result,
            };
            let seconds = started.elapsed().as_secs_f64();
            metrics::count_delivery(&self.name, result.is_ok(), job.entry.bytes, seconds);
            let recorded = match result {
                Ok(outcome) => self.record_delivery(&job, outcome).await,
                Err(failure) => Err(failure),
            };
            match recorded {
                Ok(entry) => {
                    self.reported_class = None;
                    self.log_delivery(&entry, started.elapsed()).await;
                }
                Err(failure) => {
                    if !self.handle_failure(&job, failure, &wake).await {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until the delivery window is open. Returns false if the gateway stops.
    async fn wait_for_window(&mut self) -> bool {
        let mut paused = false;
        while !*self.stop.borrow() {
            if self.inner.uplink.is_open() {
                return true;
            }
            if !std::mem::replace(&mut paused, true) {
                let why = self.inner.uplink.pause_reason().unwrap_or_default();
                tracing::info!(target_name = self.name, why, "Deliveries are paused.");
            }
            tokio::select! {
                () = tokio::time::sleep(WINDOW_CHECK_INTERVAL) => {}
                _ = self.stop.wait_for(|stop| *stop) => {}
            }
        }
        false
    }

    /// Starts the delivery of the first export in the queue. Returns `None` if the queue is empty.
    async fn begin_delivery(&self) -> Result<Option<DeliveryJob>, GatewayError> {
        let name = self.name.clone();
        run_blocking(&self.inner, move |inner| inner.queue.begin_delivery(&name)).await
    }

    /// Delivers an export, and gives up if the gateway stops and the delivery takes too long.
    async fn deliver_unless_stopped(
        &mut self,
        job: &DeliveryJob,
    ) -> Result<DeliveryOutcome, DeliveryFailure> {
        let mut stop = self.stop.clone();
        tokio::select! {
            result = self.deliver_job(job) => result,
            () = wait_for_grace_end(&mut stop) => {
                Err(DeliveryFailure::interrupt("the gateway stops"))
            }
        }
    }

    async fn deliver_job(&mut self, job: &DeliveryJob) -> Result<DeliveryOutcome, DeliveryFailure> {
        let entry = &job.entry;
        let options = &self.inner.options;
        target::check_embedded(&options.targets, &entry.target, job.made_for.as_deref())?;
        let target = match self.opened.take() {
            Some(target) => target,
            None => OpenTarget::open(options, &entry.target)?,
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
            uploads: &self.inner.uploads,
            uplink: &self.inner.uplink,
            exporter: &self.inner,
        };
        target.deliver(delivery).await
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
            let entry = inner.queue.record_delivery(order, inner.current_stamp(), &outcome)?;
            inner.uploads.remove_compressed_file(&entry.id);
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

    /// Records and reports a failure, then waits for the next attempt. Returns false if the gateway stops.
    async fn handle_failure(
        &mut self,
        job: &DeliveryJob,
        failure: DeliveryFailure,
        wake: &Notify,
    ) -> bool {
        let (name, order, pace) = (self.name.clone(), job.order, self.inner.options.timings);
        let (class, cause, is_link) = (failure.class, failure.cause.clone(), failure.is_link());
        let (failures, time) = run_blocking(&self.inner, move |inner| {
            Ok(inner.queue.record_failure(&name, order, &failure, |failures| {
                pace.next_delay(&failure, failures)
            }))
        })
        .await
        .unwrap_or((1, pace.first_delay));
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
        let link = self.opened.as_ref().filter(|_| is_link);
        let probing = link.map(|target| wait_until_reachable(target, pace.probe_interval));
        let continues = wait_for_retry(time, wake, &mut self.stop, probing).await;
        self.opened = None;
        continues
    }

    async fn interrupt_delivery(&self, entry: &Export, why: &str) {
        let name = self.name.clone();
        let _ = run_blocking(&self.inner, move |inner| {
            inner.queue.interrupt_delivery(&name);
            Ok(())
        })
        .await;
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

impl Inner {
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
async fn wait_until_reachable(target: &OpenTarget, every: Duration) {
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

/// Waits until the time is over, a retry is requested, or the link is back. Returns false if the gateway
/// stops.
async fn wait_for_retry(
    time: Duration,
    wake: &Notify,
    stop: &mut watch::Receiver<bool>,
    back: Option<impl Future<Output = ()>>,
) -> bool {
    let back = async {
        match back {
            Some(back) => back.await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = wake.notified() => true,
        () = back => true,
        _ = stop.wait_for(|stop| *stop) => false,
    }
}

async fn wait_for_grace_end(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
    tokio::time::sleep(SHUTDOWN_GRACE).await;
}

pub(super) async fn run_blocking<T: Send + 'static>(
    inner: &Shared<Inner>,
    work: impl FnOnce(&Inner) -> Result<T, GatewayError> + Send + 'static,
) -> Result<T, GatewayError> {
    let inner = inner.clone();
    task::spawn_blocking(move || work(&inner)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "A task of the exporter failed.");
        Err(GatewayError::new(
            penstock_base::error::ErrorClass::Internal,
            "the exporter failed; the gateway's log says why",
        ))
    })
}
