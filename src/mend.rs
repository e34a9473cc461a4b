//! Opening the store anew by itself after a write to the disk has failed, and telling how far a
//! replay has come.
use penstock_store::{Progress, Store};
use std::time::{Duration, Instant};

/// How often it is looked whether the store takes commits.
const EVERY: Duration = Duration::from_secs(5);
/// The least time between two lines about a replay.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Keeps the store open for as long as it is polled: a store that takes no commits is opened anew as
/// soon as the disk lets it.
pub async fn run(store: Store) {
    let mut told = None;
    loop {
        tokio::time::sleep(EVERY).await;
        if store.poisoned().is_none() {
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
