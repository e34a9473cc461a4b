//! Delivery. Each target with queued entries has one worker, which delivers the oldest entry and retries until
//! it succeeds.
use super::backoff::Announcements;
use super::cause::{Class, Failure};
use super::entry::Entry;
use super::parcel::Parcel;
use super::queue::Job;
use super::target::{self, Target};
use super::{Inner, sweep};
use penstock_base::fault::Fault;
use penstock_base::telemetry::metrics;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};

/// The time that a delivery in progress has to finish when the gateway stops.
const GRACE: Duration = Duration::from_secs(5);
/// The interval at which a closed window is checked again, because the clock may be set.
const LOOK_AT_THE_CLOCK: Duration = Duration::from_secs(20);

/// Delivers until `stop` becomes true. A blocked target does not block the others.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut workers = JoinSet::new();
    let mut targets: HashMap<task::Id, String> = HashMap::new();
    let mut sweeping = JoinSet::new();
    sweeping.spawn(sweep::run(Arc::clone(&inner)));
    while !*stop.borrow_and_update() {
        let waiting = blocking(&inner, |inner| Ok(inner.queue.targets_waiting())).await;
        for target in waiting.unwrap_or_default() {
            if !targets.values().any(|running| *running == target) {
                let worker = Worker::new(Arc::clone(&inner), target.clone(), stop.clone());
                targets.insert(workers.spawn(worker.run()).id(), target);
            }
        }
        tokio::select! {
            () = inner.queue.added.notified() => {}
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
struct Worker {
    inner: Arc<Inner>,
    name: String,
    stop: watch::Receiver<bool>,
    /// Reopened after each failure, so that fixes (a certificate, a DNS address) take effect.
    opened: Option<Target>,
    announcements: Announcements,
}

impl Worker {
    fn new(inner: Arc<Inner>, name: String, stop: watch::Receiver<bool>) -> Self {
        Self { inner, name, stop, opened: None, announcements: Announcements::default() }
    }

    async fn run(mut self) {
        let name = self.name.clone();
        let wake = blocking(&self.inner, move |inner| Ok(inner.queue.wake(&name))).await;
        let Ok(wake) = wake else { return };
        while self.opens().await {
            let name = self.name.clone();
            let job = match blocking(&self.inner, move |inner| inner.queue.begin(&name)).await {
                Ok(Some(job)) => job,
                Ok(None) => return,
                Err(fault) => {
                    tracing::error!(target_name = self.name, %fault, "The export queue could not be read.");
                    let longest = self.inner.options.pace.longest;
                    if !wait(longest, &wake, &mut self.stop, None::<std::future::Ready<()>>).await {
                        return;
                    }
                    continue;
                }
            };
            let started = Instant::now();
            let result = {
                let mut stop = self.stop.clone();
                tokio::select! {
                    result = self.deliver(&job) => result,
                    () = grace(&mut stop) => Err(Failure::new(Class::Closed, "the gateway stops")),
                }
            };
            let result = match result {
                Err(Failure { class: Class::Closed, cause, .. }) => {
                    self.leave_off(&job.entry, &cause).await;
                    continue;
                }
                result => result,
            };
            let seconds = started.elapsed().as_secs_f64();
            metrics::delivery(&self.name, result.is_ok(), job.entry.bytes, seconds);
            let noted = match result {
                Ok(()) => self.note(job.order).await,
                Err(failure) => Err(failure),
            };
            match noted {
                Ok(entry) => self.delivered(&entry, started.elapsed()).await,
                Err(failure) => {
                    if !self.failed(&job, failure, &wake).await {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until the delivery window is open. Returns false if the gateway stops.
    async fn opens(&mut self) -> bool {
        let mut paused = false;
        while !*self.stop.borrow() {
            if self.inner.uplink.is_open() {
                return true;
            }
            if !std::mem::replace(&mut paused, true) {
                let why = self.inner.uplink.paused().unwrap_or_default();
                tracing::info!(target_name = self.name, why, "Deliveries are paused.");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AT_THE_CLOCK) => {}
                _ = self.stop.wait_for(|stop| *stop) => {}
            }
        }
        false
    }

    async fn deliver(&mut self, job: &Job) -> Result<(), Failure> {
        let entry = &job.entry;
        let options = &self.inner.options;
        target::check_embedded(&options.targets, &entry.target, job.made_for.as_deref())?;
        let target = match self.opened.take() {
            Some(target) => target,
            None => Target::open(options, &entry.target)?,
        };
        let target = self.opened.insert(target);
        let file = self.inner.queue.spool.file(&super::record::file_name(&entry.id), entry.bytes);
        let parcel = Parcel {
            entry,
            file,
            unclear: job.unclear,
            unanswered: job.unanswered,
            uploads: &self.inner.uploads,
            uplink: &self.inner.uplink,
        };
        target.deliver(parcel).await
    }

    /// Commits that the export is delivered.
    async fn note(&self, order: u64) -> Result<Entry, Failure> {
        let noted = blocking(&self.inner, move |inner| {
            let entry = inner.queue.delivered(order, inner.stamp())?;
            inner.uploads.sent(&entry.id);
            Ok(entry)
        });
        noted.await.map_err(|fault| {
            let cause =
                format!("the target stored the file, but recording the delivery failed: {fault}");
            Failure { unanswered: true, ..Failure::gateway(cause) }
        })
    }

    async fn delivered(&mut self, entry: &Entry, time: Duration) {
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
        if self.announcements.over() {
            self.tell().await;
        }
    }

    /// Records and reports a failure, then waits for the next attempt. Returns false if the gateway stops.
    async fn failed(&mut self, job: &Job, failure: Failure, wake: &Notify) -> bool {
        let (name, order, pace) = (self.name.clone(), job.order, self.inner.options.pace);
        let (class, cause) = (failure.class, failure.cause.clone());
        let (failures, time) = blocking(&self.inner, move |inner| {
            Ok(inner.queue.failed(&name, order, &failure, |failures| pace.wait(&failure, failures)))
        })
        .await
        .unwrap_or((1, pace.first));
        if self.announcements.is_due(class, Instant::now()) {
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
        if failures == 1 {
            self.tell().await;
        }
        let link = self.opened.as_ref().filter(|_| class.is_link());
        let probing = link.map(|target| back(target, pace.probe));
        let goes_on = wait(time, wake, &mut self.stop, probing).await;
        self.opened = None;
        goes_on
    }

    async fn leave_off(&self, entry: &Entry, why: &str) {
        let name = self.name.clone();
        let _ = blocking(&self.inner, move |inner| {
            inner.queue.left_off(&name);
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

    /// Publishes the state of the target after it became reachable or unreachable.
    async fn tell(&self) {
        let name = self.name.clone();
        let _ = blocking(&self.inner, move |inner| {
            inner.tell_target(&name);
            Ok(())
        })
        .await;
    }
}

/// Probes the target and returns once it answers again after it was unreachable.
async fn back(target: &Target, every: Duration) {
    let mut away = false;
    loop {
        let asked = Instant::now();
        if target.is_answered().await {
            if away {
                return;
            }
        } else {
            away = true;
        }
        tokio::time::sleep(every.saturating_sub(asked.elapsed()).max(every / 4)).await;
    }
}

/// Waits until the time is over, an attempt is requested, or the link is back. Returns false if the gateway
/// stops.
async fn wait(
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

async fn grace(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
    tokio::time::sleep(GRACE).await;
}

pub(super) async fn blocking<T: Send + 'static>(
    inner: &Arc<Inner>,
    work: impl FnOnce(&Inner) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let inner = Arc::clone(inner);
    task::spawn_blocking(move || work(&inner)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "A task of the exporter failed.");
        Err(Fault::new(
            penstock_base::fault::Kind::Internal,
            "the exporter failed; the gateway's log says why",
        ))
    })
}
