//! What the service manager is told (`sd_notify(3)`): that the service is ready, how it is, and that it
//! is alive. Without one, all of it does nothing.
use crate::gateway::Gateway;
use crate::http::State;
use crate::telemetry;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How often the state in words is told, and the watchdog at least.
const EVERY: Duration = Duration::from_secs(10);
/// What the unit has as `TimeoutStartSec=`.
const START: Duration = Duration::from_mins(5);
/// A store that is being opened and has made no step for so long is taken for dead.
const OPENING: Duration = Duration::from_mins(10);

/// HTTP is answered. The store may still be opening: requests get 503 meanwhile, and a long replay is
/// no reason to be ended.
pub(super) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The start waits for so long, and takes no more than it usually may after that.
pub(super) fn delayed(words: &str, delay: Duration) {
    let limit = delay + START;
    let limit = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Status(words), NotifyState::ExtendTimeoutUsec(limit)]);
}

/// The stop has begun.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("Stopping")]);
}

/// Runs what a reload does between the two notices of it.
pub(super) async fn reloading(reload: impl Future<Output = ()>) {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
    reload.await;
    ready();
}

/// Tells the state in words, and for as long as the gateway is alive the watchdog that it is.
pub(super) async fn run(state: Arc<State>) {
    let every = sd_notify::watchdog_enabled().map_or(EVERY, |limit| EVERY.min(limit / 4));
    let mut opening = Opening { replayed: 0, since: Instant::now() };
    let mut steps = 0;
    loop {
        let (status, alive) = match state.gateway_if_open() {
            None => {
                let (done, _) = state.replayed();
                (
                    format!("Opening: {}", state.opening()),
                    opening.goes_on(done) || state.is_waiting(),
                )
            }
            Some(gateway) => {
                // Threads that block may all be taken for a while.
                let words = timeout(every, words(gateway)).await;
                let words = words.unwrap_or_else(|_| "Serving; busy".to_owned());
                (words, is_alive(gateway, &mut steps, every).await)
            }
        };
        let mut notice = vec![NotifyState::Status(&status)];
        if alive {
            notice.push(NotifyState::Watchdog);
        } else {
            let stage = state.gateway_if_open().map(|gateway| gateway.store.stage().to_string());
            tracing::error!(
                stage,
                "The store does not answer, so the watchdog was not told that it does."
            );
        }
        tell(&notice);
        telemetry::limit::tell();
        tokio::select! {
            () = sleep(every) => {}
            // What is told must not be that it is opening, for as long as the next turn is away.
            () = state.is_opened() => {}
        }
    }
}

/// A store that is being opened, as the watchdog sees it.
struct Opening {
    replayed: u64,
    since: Instant,
}

impl Opening {
    fn goes_on(&mut self, done: u64) -> bool {
        if done != self.replayed {
            *self = Self { replayed: done, since: Instant::now() };
        }
        self.since.elapsed() < OPENING
    }
}

/// Whether the store makes progress, be it within one long change, or lets a writer in. One that refuses (`mend`
/// opens it anew) is alive, too.
async fn is_alive(gateway: &Gateway, steps: &mut u64, within: Duration) -> bool {
    let now = gateway.store.steps();
    if std::mem::replace(steps, now) != now {
        return true;
    }
    let store = gateway.store.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let _ = store.transact::<_, penstock_store::Error>(|_| Ok(()));
    });
    timeout(within, asked).await.is_ok() || gateway.store.steps() != now
}

/// How the gateway is, in a line.
async fn words(gateway: &Gateway) -> String {
    if let Some(cause) = gateway.store.poisoned() {
        return format!("The store takes no commits: {cause}");
    }
    let exporter = gateway.exporter.clone();
    let targets = tokio::task::spawn_blocking(move || exporter.targets()).await;
    let Ok(Ok(targets)) = targets else { return "Serving".to_owned() };
    let waiting: u64 = targets.iter().map(|target| target.depth).sum();
    let mut words = match waiting {
        0 => "Serving; no export waits".to_owned(),
        1 => "Serving; 1 export waits".to_owned(),
        many => format!("Serving; {many} exports wait"),
    };
    for target in &targets {
        if let Some(cause) = &target.blocked {
            words = format!("{words}; {} is blocked: {cause}", target.name);
        }
    }
    words
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "The service manager could not be told.");
    }
}
