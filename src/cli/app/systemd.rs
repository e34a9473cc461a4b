//! What the service manager is told (`sd_notify(3)`): that the service is ready, how it is, and that it
//! is alive. Without one, all of it does nothing.
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::fault::Fault;
use penstock_base::telemetry;
use penstock_http::State;
use penstock_service::gateway::Gateway;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
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
    let mut pulse = Pulse::default();
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
                (words, pulse.is_alive(&gateway.store, every).await)
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

/// Whether the store lives, as the watchdog sees it.
#[derive(Default)]
struct Pulse {
    steps: u64,
    /// The answer to the question whether it lets a writer in. There is one at a time, on a thread of its
    /// own: those that may block can all be taken, which is no fault of the store's.
    asked: Option<oneshot::Receiver<()>>,
}

impl Pulse {
    /// Whether the store makes progress, be it within one long change, or lets a writer in. One that refuses
    /// (`mend` opens it anew) is alive, too.
    async fn is_alive(&mut self, store: &GuardedStore, within: Duration) -> bool {
        let now = store.steps();
        if std::mem::replace(&mut self.steps, now) != now {
            return true;
        }
        let answer = self.asked.get_or_insert_with(|| ask(store.clone()));
        let Ok(answered) = timeout(within, answer).await else { return store.steps() != now };
        self.asked = None;
        answered.is_ok()
    }
}

fn ask(store: GuardedStore) -> oneshot::Receiver<()> {
    let (sender, answer) = oneshot::channel();
    let asking = std::thread::Builder::new().name("pulse".into()).spawn(move || {
        let _ = store.commit::<_, Fault>(&NoClient, |_| Ok(()));
        // Nobody waits for it any more when the service ends.
        let _ = sender.send(());
    });
    if let Err(error) = asking {
        tracing::warn!(%error, "No thread could be started to ask the store whether it lives.");
    }
    answer
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

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{Options, Store};
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_millis(100);

    /// One thread that may block, which is taken.
    fn busy() -> (tokio::runtime::Runtime, mpsc::Sender<()>) {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.max_blocking_threads(1).enable_all().build().unwrap();
        let (free, wait) = mpsc::channel();
        runtime.spawn_blocking(move || wait.recv());
        (runtime, free)
    }

    #[test]
    fn a_store_lives_while_all_threads_that_block_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let store = GuardedStore::from(store);
        let (runtime, _free) = busy();
        let mut pulse = Pulse { steps: store.steps(), asked: None };
        assert!(runtime.block_on(pulse.is_alive(&store, Duration::from_mins(1))));
        runtime.shutdown_background();
    }

    #[test]
    fn a_writer_that_is_stuck_is_asked_about_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let store = GuardedStore::from(store);
        let (begun, is_begun) = mpsc::channel();
        let (free, wait) = mpsc::channel::<()>();
        let of_writer = store.clone();
        let writer = std::thread::spawn(move || {
            of_writer.commit::<_, Fault>(&NoClient, |_| {
                begun.send(()).unwrap();
                let _ = wait.recv();
                Ok(())
            })
        });
        is_begun.recv().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut pulse = Pulse { steps: store.steps(), asked: None };
        runtime.block_on(async {
            assert!(!pulse.is_alive(&store, SOON).await);
            assert!(!pulse.is_alive(&store, SOON).await);
        });
        drop(free);
        writer.join().unwrap().unwrap();
        // The first question is answered.
        assert!(runtime.block_on(pulse.is_alive(&store, Duration::from_mins(1))));
    }
}
