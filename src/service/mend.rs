//! Opening the store anew by itself after a write to the disk has failed or its index was found damaged,
//! and telling how far a replay has come.
use penstock_store::{Progress, ReadStore};
use std::time::{Duration, Instant};

/// How often it is looked whether the store takes commits.
const EVERY: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 5_000 });
/// The least time between two openings for damage of the index: the store is not to be closed all the time
/// where the next one is soon found.
const DAMAGE_EVERY: Duration = Duration::from_hours(1);
/// The least time between two lines about a replay.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Keeps the store open for as long as it is polled: a store that takes no commits is opened anew as
/// soon as the disk lets it, and one with a damaged index is given a new one.
pub async fn run(store: ReadStore) {
    let mut told = None;
    let mut last = None;
    loop {
        tokio::time::sleep(EVERY).await;
        let is_damaged = || store.damage().is_some();
        if store.poisoned().is_none() && !is_due(&mut last, Instant::now(), is_damaged) {
            continue;
        }
        let store = store.clone();
        let opening = tokio::task::spawn_blocking(move || {
            let mut replay = Replay::default();
            store.reopen(&mut |progress| replay.tell(progress))
        });
        let cause = match opening.await {
            Ok(Ok(())) => {
                told = None;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // Once for each cause, however often it is tried.
        if told.as_ref() != Some(&cause) {
            tracing::warn!(cause, "The store cannot be opened anew yet; it is tried again.");
            told = Some(cause);
        }
    }
}

/// Whether the store is to be opened anew for damage of its index; `last` is when that was so before.
fn is_due(last: &mut Option<Instant>, now: Instant, is_damaged: impl FnOnce() -> bool) -> bool {
    let is_early = last.is_some_and(|last| now.saturating_duration_since(last) < DAMAGE_EVERY);
    let is_due = !is_early && is_damaged();
    if is_due {
        *last = Some(now);
    }
    is_due
}

/// A replay of the journal as the log tells of it.
#[derive(Debug, Default)]
pub struct Replay {
    told: Option<Instant>,
}

impl Replay {
    /// Tells how far it has come, at most every few seconds.
    pub fn tell(&mut self, Progress { done, total }: Progress) {
        if self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) && done < total {
            return;
        }
        self.told = Some(Instant::now());
        tracing::info!(done, total, "The quad index is brought up to the journal.");
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
    async fn an_index_that_a_read_found_damaged_is_made_again() {
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
        let mending = tokio::spawn(run(ReadStore::clone(&store)));
        while store.damage().is_some() || store.poisoned().is_some() || about(&store).is_err() {
            tokio::time::sleep(EVERY).await;
        }
        assert_eq!(about(&store).unwrap(), [quad]);
        mending.abort();
    }

    #[test]
    fn damage_that_comes_again_is_mended_an_hour_later() {
        let (mut last, now) = (None, Instant::now());
        assert!(!is_due(&mut last, now, || false));
        assert!(is_due(&mut last, now, || true));
        assert!(!is_due(&mut last, now + DAMAGE_EVERY / 2, || true));
        assert!(is_due(&mut last, now + DAMAGE_EVERY, || true));
        assert!(!is_due(&mut last, now + DAMAGE_EVERY * 3 / 2, || true));
    }
}
