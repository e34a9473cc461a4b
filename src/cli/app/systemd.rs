//! Notifies the service manager (`sd_notify(3)`): readiness, the status text, and the watchdog. Does nothing without a
//! service manager.
use penstock_base::blocking::spawn_blocking;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::GatewayError;
use penstock_base::telemetry;
use penstock_http::state::State;
use penstock_resources::export::Target;
use penstock_service::gateway::Gateway;
use sd_notify::NotifyState;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// The interval of status texts, and the maximum interval of watchdog notifications.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);
/// `TimeoutStartSec=` of the unit.
const START_TIMEOUT: Duration = Duration::from_mins(5);
/// The maximum length of a status text in bytes. systemd ignores a whole notification of more than 4 KiB.
const MAX_STATUS_BYTES: usize = 2048;
/// A store that is being opened counts as dead after this time without progress.
const OPENING_TIMEOUT: Duration = Duration::from_mins(10);

/// Reports that HTTP requests are answered. The store may still be opening: requests get 503 meanwhile, and the
/// service manager must not end the service because of a long replay.
pub(super) fn notify_ready() {
    notify_manager(&[NotifyState::Ready]);
}

/// Reports that the start waits for `delay`, and extends the start timeout by it.
pub(super) fn notify_delay(words: &str, delay: Duration) {
    let limit = delay + START_TIMEOUT;
    let limit = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
    notify_manager(&[NotifyState::Status(words), NotifyState::ExtendTimeoutUsec(limit)]);
}

/// Reports that the service shuts down.
pub(super) fn notify_stopping() {
    notify_manager(&[NotifyState::Stopping, NotifyState::Status("Stopping")]);
}

/// Runs `reload` between the notifications of its begin and end.
pub(super) async fn notify_reload(reload: impl Future<Output = ()>) {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify_manager(&[NotifyState::Reloading, now]);
    }
    reload.await;
    notify_ready();
}

/// Sends the status text at intervals, and a watchdog notification with it while the gateway is alive.
pub(super) async fn report_state(state: Arc<State>) {
    let every = sd_notify::watchdog_enabled()
        .map_or(STATUS_INTERVAL, |limit| STATUS_INTERVAL.min(limit / 4));
    let mut opening = OpeningProgress { replayed: 0, since: Instant::now() };
    let mut pulse = StoreLiveness::default();
    loop {
        let (status, alive) = match state.gateway_if_open() {
            None => {
                let (done, _) = state.replay_progress();
                (
                    format!("Opening: {}", state.describe_opening()),
                    opening.is_progressing(done) || state.is_waiting(),
                )
            }
            Some(gateway) => {
                // All threads for blocking work may be busy for a while.
                let words = timeout(every, status_text(gateway)).await;
                let words = words.unwrap_or_else(|_| "Serving; busy".to_owned());
                (words, pulse.is_alive(&gateway.store, every).await)
            }
        };
        let status = shorten_status(&status);
        let mut notice = vec![NotifyState::Status(&status)];
        if alive {
            notice.push(NotifyState::Watchdog);
        } else {
            let stage = state.gateway_if_open().map(|gateway| gateway.store.stage().to_string());
            tracing::error!(
                stage,
                "The store does not answer; the watchdog was not notified, so the service manager may restart the service."
            );
        }
        notify_manager(&notice);
        telemetry::limit::log_suppressed();
        tokio::select! {
            () = sleep(every) => {}
            // Wakes early, so that the status does not remain "Opening" until the next interval.
            () = state.wait_until_opened() => {}
        }
    }
}

/// The progress of a store that is being opened, for the watchdog.
struct OpeningProgress {
    replayed: u64,
    since: Instant,
}

impl OpeningProgress {
    fn is_progressing(&mut self, done: u64) -> bool {
        if done != self.replayed {
            *self = Self { replayed: done, since: Instant::now() };
        }
        self.since.elapsed() < OPENING_TIMEOUT
    }
}

/// The liveness of the opened store, for the watchdog.
#[derive(Default)]
struct StoreLiveness {
    last_step_count: u64,
    /// The pending result of a probe commit. There is one probe at a time, on a thread of its own: the threads for
    /// blocking work can all be busy, which says nothing about the store.
    pending_probe: Option<oneshot::Receiver<()>>,
}

impl StoreLiveness {
    /// Whether the store makes progress, even if only within one long change, or admits a writer. A store that refuses
    /// commits is alive too, because [`penstock_service::recovery`] reopens it.
    async fn is_alive(&mut self, store: &GuardedStore, within: Duration) -> bool {
        let now = store.step_count();
        if std::mem::replace(&mut self.last_step_count, now) != now {
            return true;
        }
        let answer = self.pending_probe.get_or_insert_with(|| probe_writer(store.clone()));
        let Ok(answered) = timeout(within, answer).await else { return store.step_count() != now };
        self.pending_probe = None;
        answered.is_ok()
    }
}

fn probe_writer(store: GuardedStore) -> oneshot::Receiver<()> {
    let (sender, answer) = oneshot::channel();
    let asking = std::thread::Builder::new().name("pulse".into()).spawn(move || {
        let _ = store.commit::<_, GatewayError>(&NoClient, |_| Ok(()));
        // The receiver is gone when the service ends.
        let _ = sender.send(());
    });
    if let Err(error) = asking {
        tracing::warn!(%error, "Starting the thread that probes the store failed.");
    }
    answer
}

/// Returns a status text as one line of at most [`MAX_STATUS_BYTES`] and a mark. It quotes answers of targets, and each
/// further line would be another notification, such as `STOPPING=1`.
fn shorten_status(text: &str) -> String {
    let (short, rest) = text.split_at(text.floor_char_boundary(MAX_STATUS_BYTES));
    let mark = if rest.is_empty() { "" } else { "…" };
    format!("{}{mark}", short.replace(char::is_control, " "))
}

/// Returns the gateway's state.
async fn status_text(gateway: &Gateway) -> String {
    if let Some(cause) = gateway.store.poison_cause() {
        return format!("The store refuses commits: {cause}");
    }
    let (exporter, disk) = (gateway.exporter.clone(), gateway.disk.clone());
    let collected = spawn_blocking(move || -> Result<_, GatewayError> {
        let problems = Problems {
            hold: exporter.hold_reason(),
            is_disk_in_reserve: disk.is_in_reserve(),
            failing: exporter.list_failing(),
        };
        Ok((exporter.list_targets()?, problems))
    });
    let Ok(Ok((targets, problems))) = collected.await else { return "Serving".to_owned() };
    describe_state(&targets, &problems)
}

/// What an operator has to know besides the targets.
#[derive(Debug, Default)]
struct Problems {
    /// Why nothing is sent and no source is read, if so.
    hold: Option<String>,
    is_disk_in_reserve: bool,
    /// The Business Objects whose automatic exports fail, each with the cause.
    failing: Vec<(String, String)>,
}

fn describe_state(targets: &[Target], problems: &Problems) -> String {
    let waiting: u64 = targets.iter().map(|target| target.depth).sum();
    let mut words = match waiting {
        0 => "Serving; no export waits".to_owned(),
        1 => "Serving; 1 export waits".to_owned(),
        many => format!("Serving; {many} exports wait"),
    };
    if let Some(cause) = &problems.hold {
        words = format!("{words}; nothing is sent: {cause}");
    }
    if problems.is_disk_in_reserve {
        words.push_str("; the disk is full up to its reserve, so ingestions are refused");
    }
    for (name, cause) in &problems.failing {
        words = format!("{words}; the automatic exports of {name} fail: {cause}");
    }
    for target in targets {
        if let Some(cause) = &target.blocked {
            words = format!("{words}; {} is blocked: {cause}", target.name);
        }
    }
    words
}

fn notify_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "Notifying the service manager failed.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{Options, Store};
    use std::sync::mpsc;

    const SOON: Duration = Duration::from_millis(100);

    /// A runtime whose only thread for blocking work is busy.
    fn busy_runtime() -> (tokio::runtime::Runtime, mpsc::Sender<()>) {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.max_blocking_threads(1).enable_all().build().unwrap();
        let (free, wait) = mpsc::channel();
        runtime.spawn_blocking(move || wait.recv());
        (runtime, free)
    }

    #[test]
    fn a_status_is_one_short_line() {
        let quoted = shorten_status("Serving; away is blocked: 500\nSTOPPING=1\r\n");
        assert_eq!(quoted, "Serving; away is blocked: 500 STOPPING=1  ");
        let long = shorten_status(&"ä".repeat(MAX_STATUS_BYTES));
        assert_eq!(long, format!("{}…", "ä".repeat(MAX_STATUS_BYTES / 2)));
    }

    #[test]
    fn the_status_says_what_stands_still() {
        assert_eq!(describe_state(&[], &Problems::default()), "Serving; no export waits");
        let problems = Problems {
            hold: Some("another machine has taken over".to_owned()),
            is_disk_in_reserve: true,
            failing: vec![("Pumps".to_owned(), "no such folder".to_owned())],
        };
        assert_eq!(
            describe_state(&[], &problems),
            "Serving; no export waits; nothing is sent: another machine has taken over; the disk is full up to its reserve, \
             so ingestions are refused; the automatic exports of Pumps fail: no such folder"
        );
    }

    #[test]
    fn a_store_is_alive_while_all_blocking_threads_are_busy() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let store = GuardedStore::from(store);
        let (runtime, _free) = busy_runtime();
        let mut pulse = StoreLiveness { last_step_count: store.step_count(), pending_probe: None };
        assert!(runtime.block_on(pulse.is_alive(&store, Duration::from_mins(1))));
        runtime.shutdown_background();
    }

    #[test]
    fn a_stuck_writer_is_probed_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let store = GuardedStore::from(store);
        let (begun, is_begun) = mpsc::channel();
        let (free, wait) = mpsc::channel::<()>();
        let of_writer = store.clone();
        let writer = std::thread::spawn(move || {
            of_writer.commit::<_, GatewayError>(&NoClient, |_| {
                begun.send(()).unwrap();
                let _ = wait.recv();
                Ok(())
            })
        });
        is_begun.recv().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut pulse = StoreLiveness { last_step_count: store.step_count(), pending_probe: None };
        runtime.block_on(async {
            assert!(!pulse.is_alive(&store, SOON).await);
            assert!(!pulse.is_alive(&store, SOON).await);
        });
        drop(free);
        writer.join().unwrap().unwrap();
        // The first probe gets its result.
        assert!(runtime.block_on(pulse.is_alive(&store, Duration::from_mins(1))));
    }
}
