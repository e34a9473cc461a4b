//! Reopens the store automatically after a failed write to the disk or damage of its index, and logs the progress of a
//! replay.
use penstock_base::backoff::exponential_delay;
use penstock_base::blocking::spawn_blocking;
use penstock_store::{Progress, ReadStore};
use std::time::{Duration, Instant};

/// The interval between two checks of the store.
const CHECK_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 5_000 });
/// A store that refuses commits again within this time after it was reopened has a disk that still fails. Reads fail while it
/// is reopened, so it is reopened less and less often.
const RELAPSE_TIME: Duration = Duration::from_secs(15);
/// The maximum delay of a reopening.
const MAX_DELAY: Duration = Duration::from_mins(1);
/// The minimum time between two reopenings because of a damaged index. Otherwise a medium that keeps failing would keep
/// the store closed.
const MIN_REPAIR_INTERVAL: Duration = Duration::from_hours(1);
/// The minimum time between two log lines about a replay.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// Reopens the store when necessary, until this future is dropped. A store that refuses commits is reopened as soon as
/// the disk accepts writes; one with a damaged index gets a new index.
pub async fn reopen_when_needed(store: ReadStore) {
    let mut logged_cause = None;
    let mut last = None;
    let mut pace = Pace::default();
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let (now, is_damaged) = (Instant::now(), || store.index_damage().is_some());
        let is_due = match store.poison_cause() {
            Some(_) => pace.is_due(now),
            None => is_repair_due(&mut last, now, is_damaged),
        };
        if !is_due {
            continue;
        }
        let store = store.clone();
        let opening = spawn_blocking(move || {
            let mut replay = ReplayLog::default();
            store.reopen(&mut |progress| replay.log_progress(progress))
        });
        let cause = match opening.await {
            Ok(Ok(())) => {
                logged_cause = None;
                pace.record_reopening(Instant::now());
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // Each cause is logged once, however often the gateway retries.
        if logged_cause.as_ref() != Some(&cause) {
            tracing::warn!(cause, "Reopening the store failed; the gateway retries every 5 s.");
            logged_cause = Some(cause);
        }
    }
}

/// How often a store is reopened that refuses commits.
#[derive(Debug, Default)]
struct Pace {
    /// When it was reopened last.
    reopened_at: Option<Instant>,
    /// When it was found to refuse commits, since then.
    refused_at: Option<Instant>,
    /// How often in a row it refused commits soon after it was reopened.
    relapses: u64,
}

impl Pace {
    /// Whether to reopen the store, which refuses commits.
    fn is_due(&mut self, now: Instant) -> bool {
        let refused_at = self.refused_at.unwrap_or(now);
        if self.refused_at.is_none() {
            let is_relapse = |at: Instant| now.saturating_duration_since(at) < RELAPSE_TIME;
            let is_relapse = self.reopened_at.is_some_and(is_relapse);
            self.relapses = if is_relapse { self.relapses + 1 } else { 0 };
            self.refused_at = Some(now);
        }
        let delay = match self.relapses {
            0 => Duration::ZERO,
            relapses => exponential_delay(CHECK_INTERVAL, relapses, MAX_DELAY),
        };
        now.saturating_duration_since(refused_at) >= delay
    }

    fn record_reopening(&mut self, now: Instant) {
        (self.reopened_at, self.refused_at) = (Some(now), None);
    }
}

/// Whether to reopen the store because its index is damaged; `last` is when that happened before.
fn is_repair_due(
    last: &mut Option<Instant>,
    now: Instant,
    is_damaged: impl FnOnce() -> bool,
) -> bool {
    let is_early =
        last.is_some_and(|last| now.saturating_duration_since(last) < MIN_REPAIR_INTERVAL);
    let is_due = !is_early && is_damaged();
    if is_due {
        *last = Some(now);
    }
    is_due
}

/// Logs the progress of a replay of the journal.
#[derive(Debug, Default)]
pub struct ReplayLog {
    last_logged: Option<Instant>,
}

impl ReplayLog {
    /// Logs the progress, at most every 5 s.
    pub fn log_progress(&mut self, Progress { done, total }: Progress) {
        if self.last_logged.is_some_and(|told| told.elapsed() < LOG_INTERVAL) && done < total {
            return;
        }
        self.last_logged = Some(Instant::now());
        tracing::info!(done, total, "Replaying the journal into the quad index.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{GraphName, NamedNode, Quad};
    use penstock_store::{Error, Options, Read as _, Store};
    use std::fs;
    use std::os::unix::fs::FileExt as _;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_damaged_index_is_rebuilt() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let iri = NamedNode::new_unchecked("https://example.org/name");
        let quad = Quad::new(iri.clone(), iri.clone(), iri.clone(), GraphName::DefaultGraph);
        open().transact::<_, Error>(|change| change.insert(quad.as_ref())).unwrap();
        let store = open();
        for run in fs::read_dir(dir.path().join("index/runs")).unwrap() {
            let file = fs::OpenOptions::new().write(true).open(run.unwrap().path()).unwrap();
            file.write_all_at(&[7; 16], 8).unwrap();
        }
        let about = |store: &Store| store.read().quads_about(&iri.clone().into());
        assert!(matches!(about(&store), Err(Error::Index(_))));
        let reopening = tokio::spawn(reopen_when_needed(ReadStore::clone(&store)));
        while store.index_damage().is_some()
            || store.poison_cause().is_some()
            || about(&store).is_err()
        {
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        assert_eq!(about(&store).unwrap(), [quad]);
        reopening.abort();
    }

    #[test]
    fn a_disk_that_keeps_failing_is_tried_less_and_less_often() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        // Returns how long the store waits until it is reopened, and fails again a second later.
        let mut wait = |good_for: Duration| {
            now += good_for;
            let begun = now;
            while !pace.is_due(now) {
                now += CHECK_INTERVAL;
            }
            pace.record_reopening(now);
            (now - begun).as_millis() / CHECK_INTERVAL.as_millis()
        };
        let second = Duration::from_secs(1);
        assert_eq!([(); 5].map(|()| wait(second)), [0, 1, 2, 4, 8]);
        assert_eq!([RELAPSE_TIME, second].map(&mut wait), [0, 1]);
        for _ in 0..20 {
            wait(second);
        }
        assert_eq!(wait(second), MAX_DELAY.as_millis() / CHECK_INTERVAL.as_millis());
    }

    #[test]
    fn repeated_damage_is_repaired_an_hour_later() {
        let (mut last, now) = (None, Instant::now());
        assert!(!is_repair_due(&mut last, now, || false));
        assert!(is_repair_due(&mut last, now, || true));
        assert!(!is_repair_due(&mut last, now + MIN_REPAIR_INTERVAL / 2, || true));
        assert!(is_repair_due(&mut last, now + MIN_REPAIR_INTERVAL, || true));
        assert!(!is_repair_due(&mut last, now + MIN_REPAIR_INTERVAL * 3 / 2, || true));
    }
}
