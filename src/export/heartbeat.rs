//! Heartbeats: the gateway's status as a document in each bucket and directory, so that a fleet can be watched from
//! there. They do not wait in the queue, and a failure delays nothing.
//!
//! A plain timer drives them and not tokio-cron-scheduler, because the interval must not follow a clock that is set.
use super::target::{self, OpenTarget};
use super::{Exporter, blocking, key};
use parking_lot::Mutex;
use penstock_base::time;
use penstock_resources::gateway::HeartbeatTimes;
use rand::Rng as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The maximum delay of the first heartbeat. It is random, because after a power cut many gateways start at once.
const MAX_FIRST_DELAY: Duration = Duration::from_secs(10);
/// The timeout of one heartbeat for one target.
const PUT_TIMEOUT: Duration = Duration::from_secs(45);
/// The maximum number of directories that heartbeats are written to at once. A file system that hangs keeps a thread.
const MAX_DIRECTORY_THREADS: usize = 4;

/// What happens at the places, by bucketName.
#[derive(Debug)]
struct Places {
    /// The places whose last heartbeat failed, so that each failure is reported once.
    failing: Mutex<BTreeSet<String>>,
    /// The places whose heartbeat has not ended. They get no other one until it has, because a file system that hangs
    /// keeps the thread, also after the timeout.
    running: Mutex<BTreeSet<String>>,
    /// A permit for each thread that writes into a directory.
    directory_threads: Arc<Semaphore>,
}

/// A heartbeat that is being written. It has ended once this is dropped.
#[derive(Debug)]
struct RunningPut {
    place: String,
    places: Arc<Places>,
}

impl Exporter {
    /// Writes a heartbeat to each bucket and directory at the interval of `service.export.heartbeat`, until `stop` becomes
    /// true. `collect` returns the document, or the reason why there is none. Without that setting it returns at once.
    pub async fn run_heartbeats<F>(
        &self,
        mut stop: watch::Receiver<bool>,
        collect: impl Fn(HeartbeatTimes) -> F + Send + Sync,
    ) where
        F: Future<Output = Result<String, String>> + Send,
    {
        let Some(interval) = self.inner.options.targets.heartbeat_interval else { return };
        let places = Arc::new(Places::new());
        let mut puts = JoinSet::new();
        let first_delay = MAX_FIRST_DELAY.mul_f64(rand::rng().random_range(0.0..1.0));
        let mut due = Instant::now() + first_delay;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            let late = due.elapsed();
            due += interval;
            if late >= interval {
                // Something took long, or the process was stopped. Missed heartbeats are not repeated.
                due = Instant::now() + interval;
            }
            let times = HeartbeatTimes {
                at: time::now_rfc3339(),
                next_due: time::rfc3339_after(due.saturating_duration_since(Instant::now())),
                interval_seconds: interval.as_secs(),
            };
            tokio::select! {
                () = self.begin_puts(&collect, times, &places, &mut puts) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Begins to write a heartbeat to each place, and reports the writes that have ended.
    async fn begin_puts<F>(
        &self,
        collect: &(impl Fn(HeartbeatTimes) -> F + Send + Sync),
        times: HeartbeatTimes,
        places: &Arc<Places>,
        puts: &mut JoinSet<()>,
    ) where
        F: Future<Output = Result<String, String>> + Send,
    {
        while let Some(ended) = puts.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(%error, "A task that writes heartbeats failed.");
            }
        }
        if self.inner.uplink.hold_reason().is_some() {
            return;
        }
        let keys = match self.list_heartbeat_places().await {
            Ok(keys) => keys,
            Err(cause) => return places.report("", &Err(cause)),
        };
        let text: Arc<str> = match collect(times).await {
            Ok(text) => text.into(),
            Err(cause) => return places.report("", &Err(cause)),
        };
        places.report("", &Ok(()));
        for (name, key) in keys {
            let Some(running) = places.begin_put(&name) else {
                places.report(&name, &Err("the last one is still being written".to_owned()));
                continue;
            };
            let (exporter, text, places) = (self.clone(), Arc::clone(&text), Arc::clone(places));
            puts.spawn(async move {
                let put = exporter.put_heartbeat(&name, &key, &text, running);
                let result = tokio::time::timeout(PUT_TIMEOUT, put).await.unwrap_or_else(|_| {
                    Err(format!("it took more than {} s", PUT_TIMEOUT.as_secs()))
                });
                places.report(&name, &result);
            });
        }
    }

    /// Returns the bucketName and the key for each place. Several bucketNames may be one bucket.
    async fn list_heartbeat_places(&self) -> Result<BTreeMap<String, String>, String> {
        let exporter = self.clone();
        let listed = blocking::run_blocking(&self.inner, move |inner| {
            let mut seen = BTreeSet::new();
            let mut places = BTreeMap::new();
            for target in exporter.list_targets()? {
                let options = &inner.options;
                if target::check_target(options, &target.name).is_err() || target.kind == "sparql" {
                    continue;
                }
                let prefix = target::key_prefix(&options.targets, &target.name);
                let key = key::heartbeat_key(&prefix, &options.gateway_id);
                if seen.insert(target::identify_folder(options, &target.name)) {
                    places.insert(target.name, key);
                }
            }
            Ok(places)
        });
        listed.await.map_err(|error| error.detail)
    }

    async fn put_heartbeat(
        &self,
        name: &str,
        key: &str,
        text: &str,
        running: RunningPut,
    ) -> Result<(), String> {
        let target = OpenTarget::open(&self.inner, name).map_err(|failure| failure.cause)?;
        let thread = match target {
            OpenTarget::Directory(_) => {
                Arc::clone(&running.places.directory_threads).acquire_owned().await.ok()
            }
            _ => None,
        };
        target.put_json(key, text, (running, thread)).await.map_err(|failure| failure.cause)
    }
}

impl Places {
    fn new() -> Self {
        Self {
            failing: Mutex::default(),
            running: Mutex::default(),
            directory_threads: Arc::new(Semaphore::new(MAX_DIRECTORY_THREADS)),
        }
    }

    /// Begins a heartbeat. Returns `None` if the last one has not ended.
    fn begin_put(self: &Arc<Self>, place: &str) -> Option<RunningPut> {
        self.running
            .lock()
            .insert(place.to_owned())
            .then(|| RunningPut { place: place.to_owned(), places: Arc::clone(self) })
    }

    /// Logs the first failure and the first success after it. `name` is a bucketName, or empty for the status itself.
    fn report(&self, name: &str, result: &Result<(), String>) {
        let mut failing = self.failing.lock();
        match result {
            Ok(()) if failing.remove(name) => {
                tracing::info!(target_name = name, "Heartbeats are written again.");
            }
            Err(cause) if failing.insert(name.to_owned()) => {
                tracing::warn!(
                    target_name = name,
                    cause,
                    "Writing a heartbeat failed; the gateway tries again at the next one."
                );
            }
            _ => {}
        }
    }
}

impl Drop for RunningPut {
    fn drop(&mut self) {
        self.places.running.lock().remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file system that hangs keeps its thread.
    #[test]
    fn a_place_that_hangs_gets_one_heartbeat_at_a_time_and_delays_no_other() {
        let places = Arc::new(Places::new());
        let hangs = places.begin_put("plant-a").unwrap();
        assert!(places.begin_put("plant-a").is_none());
        assert!(places.begin_put("plant-b").is_some());
        drop(hangs);
        assert!(places.begin_put("plant-a").is_some());
    }
}
