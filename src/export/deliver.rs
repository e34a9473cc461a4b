//! Delivery: one worker for each target with entries waiting, oldest first, and again until it is through.
use super::Inner;
use super::queue::Job;
use super::target::{Failure, Target};
use crate::fault::Fault;
use crate::telemetry::metrics;
use rand::Rng as _;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{self, JoinSet};

/// The longest wait before the second attempt; it doubles with each failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait of all.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// How long a delivery under way may go on when the gateway stops.
const GRACE: Duration = Duration::from_secs(5);

/// Delivers until `stop` becomes true. A target that is blocked holds up no other.
pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut workers = JoinSet::new();
    let mut targets: HashMap<task::Id, String> = HashMap::new();
    while !*stop.borrow_and_update() {
        let waiting = blocking(&inner, |inner| Ok(inner.queue.targets_waiting())).await;
        for target in waiting.unwrap_or_default() {
            if !targets.values().any(|running| *running == target) {
                let worker = worker(Arc::clone(&inner), target.clone(), stop.clone());
                targets.insert(workers.spawn(worker).id(), target);
            }
        }
        tokio::select! {
            () = inner.queue.added.notified() => {}
            changed = stop.changed() => if changed.is_err() { break },
            Some(ended) = workers.join_next_with_id() => {
                let id = match ended {
                    Ok((id, ())) => id,
                    Err(error) => {
                        tracing::error!(%error, "A delivery worker failed and is started anew.");
                        error.id()
                    }
                };
                targets.remove(&id);
            }
        }
    }
    while workers.join_next().await.is_some() {}
}

/// Delivers what waits for one target; ends when nothing does.
async fn worker(inner: Arc<Inner>, target: String, mut stop: watch::Receiver<bool>) {
    let wake = {
        let target = target.clone();
        blocking(&inner, move |inner| Ok(inner.queue.wake(&target))).await
    };
    let Ok(wake) = wake else { return };
    let mut opened: Option<Target> = None;
    while !*stop.borrow() {
        let begun = {
            let target = target.clone();
            blocking(&inner, move |inner| inner.queue.begin(&target)).await
        };
        let job = match begun {
            Ok(Some(job)) => job,
            Ok(None) => return,
            Err(fault) => {
                tracing::error!(target_name = target, %fault, "The export queue could not be read.");
                if wait(LONGEST_WAIT, &wake, &mut stop).await {
                    continue;
                }
                return;
            }
        };
        let started = Instant::now();
        let result = tokio::select! {
            result = deliver(&inner, &mut opened, &job) => result,
            () = grace(&mut stop) => {
                let target_name = target.clone();
                let _ = blocking(&inner, move |inner| {
                    inner.queue.left_off(&target_name);
                    Ok(())
                })
                .await;
                tracing::info!(
                    export_id = job.entry.id,
                    target_name = target,
                    "A delivery was left off, since the gateway stops; it goes on at the next start."
                );
                return;
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        metrics::delivery(&target, result.is_ok(), job.entry.bytes, seconds);
        let noted = match result {
            Ok(()) => {
                let order = job.order;
                blocking(&inner, move |inner| inner.queue.delivered(order)).await.map_err(|fault| {
                    Failure {
                        reached: Some(true),
                        cause: format!(
                            "the target has it, and the gateway could not note that: {fault}"
                        ),
                    }
                })
            }
            Err(failure) => Err(failure),
        };
        match noted {
            Ok(entry) => {
                if job.entry.attempts > 0 {
                    tell(&inner, &target).await;
                }
                tracing::info!(
                    export_id = entry.id,
                    business_object = entry.business_object_name,
                    target_name = target,
                    sequence = entry.sequence,
                    objects = entry.object_count,
                    bytes = entry.bytes,
                    duration_ms = started.elapsed().as_millis(),
                    attempts = entry.attempts,
                    "An export was delivered."
                );
            }
            Err(Failure { reached, cause }) => {
                opened = None;
                let (target_name, error) = (target.clone(), cause.clone());
                let failures = blocking(&inner, move |inner| {
                    Ok(inner.queue.failed(&target_name, job.order, error, reached))
                })
                .await
                .unwrap_or(1);
                if failures == 1 {
                    tell(&inner, &target).await;
                }
                if failures.is_power_of_two() {
                    tracing::warn!(
                        export_id = job.entry.id,
                        business_object = job.entry.business_object_name,
                        target_name = target,
                        sequence = job.entry.sequence,
                        failures,
                        cause,
                        "An export did not get through and is tried again."
                    );
                }
                if !wait(backoff(failures), &wake, &mut stop).await {
                    return;
                }
            }
        }
    }
}

/// Tells of the target, which was just reached again or lost.
async fn tell(inner: &Arc<Inner>, target: &str) {
    let target = target.to_owned();
    let _ = blocking(inner, move |inner| {
        inner.tell_target(&target);
        Ok(())
    })
    .await;
}

async fn deliver(
    inner: &Arc<Inner>,
    opened: &mut Option<Target>,
    job: &Job,
) -> Result<(), Failure> {
    let entry = &job.entry;
    let target = match opened.take() {
        Some(target) => target,
        None => Target::open(&inner.options, &entry.target)?,
    };
    let target = opened.insert(target);
    let file = inner.queue.spool.file(&super::record::file_name(&entry.id), entry.bytes).map_err(
        |cause| Failure {
            reached: None,
            cause: format!("{cause}; park it to let the others go on"),
        },
    )?;
    target.deliver(file, entry, entry.attempts > 0).await
}

/// Between nothing and the cap, evenly ("full jitter"), so that many gateways do not come at once.
fn backoff(failures: u64) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    let cap = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
    cap.mul_f64(rand::rng().random_range(0.1..=1.0))
}

/// Waits until the time is over or somebody asks for an attempt; false when the gateway stops.
async fn wait(
    time: Duration,
    wake: &tokio::sync::Notify,
    stop: &mut watch::Receiver<bool>,
) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = wake.notified() => true,
        _ = stop.wait_for(|stop| *stop) => false,
    }
}

async fn grace(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
    tokio::time::sleep(GRACE).await;
}

async fn blocking<T: Send + 'static>(
    inner: &Arc<Inner>,
    work: impl FnOnce(&Inner) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let inner = Arc::clone(inner);
    task::spawn_blocking(move || work(&inner)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "A task of the exporter failed.");
        Err(Fault::new(
            crate::fault::Kind::Internal,
            "the exporter failed; the gateway's log says why",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_five_minutes() {
        for failures in [1, 2, 5, 9, 10, 1_000, u64::MAX] {
            let wait = backoff(failures);
            let cap = Duration::from_secs(1 << (failures - 1).min(9)).min(LONGEST_WAIT);
            assert!(wait <= cap && wait >= cap / 11, "{failures}: {wait:?}");
        }
    }
}
