//! The current time and elapsed time on a machine whose clock may be wrong.
//!
//! **The time** ([`Clock::now`]) is that of the system's clock, with a lower limit: the moment at which the clock was
//! last known to be right, plus the time elapsed since. So a gateway whose clock starts in 1970 refuses a token that
//! expired last year. The moment moves only while the clock is synchronised, so a clock that was set far ahead by hand
//! has no lasting effect on it. After a wrong time server, `penstock clock reset` removes the moment.
//!
//! **Elapsed time** ([`Clock::elapsed`]) is for ages. It counts by the kernel's clock since boot, which cannot be set,
//! and continues across restarts of the program. The time while the machine is off is added once the clock is
//! synchronised; if it never is, that time does not count.
//!
//! The clock counts as synchronised while systemd-timesyncd reports it: the service touches a file each time its server
//! answers, at least every 34 minutes. A file older than two hours is not trusted, even if it only seems older because
//! the clock was set ahead. With another time service the state is unknown, and the time is that of the system's clock.
//!
//! **Stamps** ([`Clock::stamp`]) are times for ordered records. Each is the current time, or the time of the previous
//! stamp if that is later, and says whether the clock was reliable. So a gateway without a real-time clock ingests and
//! exports from its start on, and readers know later which times to doubt. After a clock that was set ahead, stamps
//! repeat its time until the clock has passed it. Nothing lowers them, because a restore finds a moment by their order.
//! The log, the status and `penstock clock show` report it.
//!
//! The state is a document of the store. The gateway writes it within a minute after another commit, and once an hour
//! if there is none.
use crate::blocking::spawn_blocking;
use crate::collections;
use crate::commit::{CommitCheck, NoClient, commit};
use crate::error::GatewayError;
use crate::table::{AsJson, Table};
use crate::time;
use jiff::{SignedDuration, Timestamp};
use nix::time::{ClockId, clock_gettime};
use parking_lot::{Mutex, MutexGuard};
use penstock_resources::export::Doubt;
use penstock_resources::gateway::ClockStatus;
use penstock_store::{Error, Store};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::MissedTickBehavior;

/// The state of the clock, among the documents about the gateway itself.
const CLOCK: Table<String, AsJson<ClockState>> = Table::new(collections::GATEWAY);
/// The document's key.
const DOCUMENT_KEY: &str = "clock";
/// The file that systemd-timesyncd touches each time its server answers (systemd-timesyncd.service(8)).
const SYNCHRONISED_FILE: &str = "/run/systemd/timesync/synchronized";
/// The maximum age in milliseconds at which the file is trusted: three of timesyncd's longest intervals.
const MAX_SYNCHRONISED_AGE_MS: u64 = 2 * 60 * 60 * 1000;
/// How far the clock may be behind the last known time, or behind the newest stamp, without a warning.
const TOLERANCE_MS: i64 = 60 * 1000;
/// The interval at which the moment known to be right is updated.
const UPDATE_INTERVAL: Duration = Duration::from_mins(1);
/// Without other commits, the state is written after this many intervals.
const MAX_IDLE_INTERVALS: u32 = 60;
/// 2026-01-01 in milliseconds since 1970: a clock that shows an earlier time than this version of Penstock is wrong.
const EARLIEST_PLAUSIBLE_MS: i64 = 1_767_225_600_000;

/// The gateway's clock. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {
    store: Store,
    state: Arc<Mutex<ClockState>>,
}

/// A time that is never earlier than that of the previous stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The time.
    pub at: Timestamp,
    /// Why the time may be wrong; `None` if the clock was reliable.
    pub doubt: Option<Doubt>,
}

impl Stamp {
    /// Creates a stamp with the time of the system's clock, without doubt.
    pub fn of_system() -> Self {
        Self { at: Timestamp::now(), doubt: None }
    }

    /// Formats the time as [`crate::time::now_rfc3339`] does.
    pub fn to_rfc3339(self) -> String {
        time::format_rfc3339(self.at)
    }
}

/// A reading of the machine's clocks at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reading {
    /// The system's clock, in milliseconds since 1970.
    wall: i64,
    /// Milliseconds since boot, sleep included.
    uptime: u64,
    /// The identifier of this boot.
    boot: String,
    /// Whether the clock is synchronised.
    synchronised: Option<bool>,
}

/// The state of the clock that is kept in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ClockState {
    /// Elapsed time in milliseconds at `uptime` of `boot`.
    elapsed: u64,
    uptime: u64,
    boot: String,
    /// When the clock was last known to be right.
    right: Option<KnownTime>,
    /// The newest stamp, in milliseconds since 1970.
    #[serde(default)]
    stamped: i64,
    /// Whether the log has the warning that the clock is behind the last known time.
    #[serde(skip)]
    is_behind_logged: bool,
    /// Whether the log has the warning that stamps repeat a time ahead of the clock.
    #[serde(skip)]
    is_repetition_logged: bool,
}

/// A moment at which the clock was known to be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownTime {
    wall: i64,
    elapsed: u64,
    boot: String,
}

impl Clock {
    /// Reads the state from the store; at the first start creates and writes it.
    pub fn open(store: Store) -> Result<Self, GatewayError> {
        let kept = match CLOCK.get(&store.read(), DOCUMENT_KEY) {
            Err(Error::Unreadable(error)) => {
                tracing::error!(%error, "Reading the stored state of the clock failed; the clock starts from the system's time.");
                None
            }
            kept => kept?,
        };
        let is_first = kept.is_none();
        let known = ClockState::continue_at(kept, &Reading::read_clocks());
        let clock = Self { store, state: Arc::new(Mutex::new(known)) };
        if is_first && let Err(error) = clock.save_state(&NoClient) {
            tracing::warn!(%error, "Storing the state of the clock failed.");
        }
        Ok(clock)
    }

    /// Returns the time: that of the system's clock, but never earlier than the time when the clock was last known to
    /// be right plus the time elapsed since.
    pub fn now(&self) -> Timestamp {
        timestamp_from_millis(self.lock_state().now(&Reading::read_clocks()))
    }

    /// Returns elapsed time in milliseconds. It cannot be set and continues across restarts. Its origin has no
    /// meaning; only differences do. Use it for ages.
    pub fn elapsed(&self) -> u64 {
        self.lock_state().elapsed(&Reading::read_clocks())
    }

    /// Returns how long ago the given elapsed time was. Returns zero if it is in the future, as it can be in a restored
    /// backup.
    pub fn elapsed_since(&self, elapsed: u64) -> Duration {
        Duration::from_millis(self.elapsed().saturating_sub(elapsed))
    }

    /// Returns a stamp for an ordered record. Call this where no other stamp can be issued before the record is stored,
    /// such as inside a commit.
    pub fn stamp(&self) -> Stamp {
        let (at, doubt) = self.lock_state().stamp(&Reading::read_clocks());
        Stamp { at: timestamp_from_millis(at), doubt }
    }

    /// Ensures that later stamps are not before this one (RFC 3339), which an earlier process issued.
    pub fn raise_stamp(&self, stamp: &str) {
        if let Ok(at) = stamp.parse::<Timestamp>() {
            let mut known = self.lock_state();
            known.stamped = known.stamped.max(at.as_millisecond());
        }
    }

    /// Returns the state of the clock, for an operator.
    pub fn report(&self) -> ClockStatus {
        let reading = Reading::read_clocks();
        let known = self.lock_state();
        let show = |wall| format!("{:.3}", timestamp_from_millis(wall));
        ClockStatus {
            now: show(known.now(&reading)),
            system: show(reading.wall),
            synchronised: reading.synchronised,
            source: reading.synchronised.map(|_| "systemd-timesyncd"),
            last_known: known.right.as_ref().map(|right| show(right.wall)),
            repeated_time: known.repeated_stamp(&reading).map(show),
            elapsed: known.elapsed(&reading),
        }
    }

    /// Describes the time that new records repeat while it is clearly ahead of the clock. Returns `None` if it is not,
    /// or if the clock itself is in doubt.
    pub fn describe_repeated_time(&self) -> Option<String> {
        self.lock_state().describe_repeated_stamp(&Reading::read_clocks())
    }

    /// Removes the moment at which the clock was last known to be right, so that the time is that of the system's
    /// clock. Stamps still do not go back. `check` runs in the same commit.
    ///
    /// # Errors
    /// The errors of `check` and of the store.
    pub fn reset(&self, check: &dyn CommitCheck) -> Result<(), GatewayError> {
        let before = self.lock_state().right.take();
        match self.save_state(check) {
            Ok(()) => {
                tracing::warn!("The clock was reset; the time is now that of the system's clock.");
                let mut known = self.lock_state();
                known.is_repetition_logged = false;
                known.log_repeated_stamp(&Reading::read_clocks());
                Ok(())
            }
            Err(error) => {
                self.lock_state().right = before;
                Err(error)
            }
        }
    }

    /// Updates the state at intervals, and writes it to the store, until this future is dropped.
    pub async fn run_updates(self) {
        let mut interval = tokio::time::interval(UPDATE_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut sequence, mut idle) = (self.store.stats().sequence, 0);
        loop {
            interval.tick().await;
            self.update_state();
            idle += 1;
            if self.store.stats().sequence == sequence && idle < MAX_IDLE_INTERVALS {
                continue;
            }
            let clock = self.clone();
            // A store that refuses commits logs that itself; the state remains in memory.
            let _ = spawn_blocking(move || clock.save_state(&NoClient)).await;
            (sequence, idle) = (self.store.stats().sequence, 0);
        }
    }

    /// Writes the state to the store at shutdown. Blocking.
    pub fn save_at_shutdown(&self) {
        self.update_state();
        if let Err(error) = self.save_state(&NoClient) {
            tracing::warn!(%error, "Storing the state of the clock failed.");
        }
    }

    fn update_state(&self) {
        let reading = Reading::read_clocks();
        let mut known = self.lock_state();
        known.update_known_time(&reading);
        known.log_repeated_stamp(&reading);
    }

    fn save_state(&self, check: &dyn CommitCheck) -> Result<(), GatewayError> {
        let reading = Reading::read_clocks();
        commit(&self.store, check, |change| -> Result<(), GatewayError> {
            let known = self.lock_state().at_reading(&reading);
            Ok(CLOCK.put(change, DOCUMENT_KEY, &known)?)
        })?;
        Ok(())
    }

    fn lock_state(&self) -> MutexGuard<'_, ClockState> {
        // The state is consistent after each statement, so it stays usable after a panic elsewhere.
        self.state.lock()
    }
}

impl ClockState {
    /// Continues the stored state at this reading, or creates it.
    fn continue_at(kept: Option<Self>, reading: &Reading) -> Self {
        let Reading { wall, uptime, boot, .. } = reading;
        let mut known = match kept {
            // The same boot: the kernel's clock has counted all time since.
            Some(kept) if kept.boot == *boot && kept.uptime <= *uptime => kept,
            Some(kept) => Self { uptime: *uptime, boot: boot.clone(), ..kept },
            None => Self {
                elapsed: u64::try_from(*wall).unwrap_or_default(),
                uptime: *uptime,
                boot: boot.clone(),
                right: None,
                stamped: 0,
                is_behind_logged: false,
                is_repetition_logged: false,
            },
        };
        known.update_known_time(reading);
        known
    }

    fn elapsed(&self, reading: &Reading) -> u64 {
        self.elapsed.saturating_add(reading.uptime.saturating_sub(self.uptime))
    }

    fn now(&self, reading: &Reading) -> i64 {
        let known = self.right.as_ref().map(|right| right.earliest_time_at(self.elapsed(reading)));
        known.map_or(reading.wall, |known| known.max(reading.wall))
    }

    /// Returns the time of a new stamp in milliseconds since 1970, and why it may be wrong.
    fn stamp(&mut self, reading: &Reading) -> (i64, Option<Doubt>) {
        let now = self.now(reading);
        let doubt = if now < self.stamped {
            Some(Doubt::Behind)
        } else if is_doubtful(now, reading) {
            Some(Doubt::Unsynchronised)
        } else {
            None
        };
        self.stamped = self.stamped.max(now);
        (self.stamped, doubt)
    }

    /// Returns the time that new stamps repeat, if it is clearly ahead of the time.
    fn repeated_stamp(&self, reading: &Reading) -> Option<i64> {
        let ahead = self.stamped.saturating_sub(self.now(reading));
        (ahead > TOLERANCE_MS).then_some(self.stamped)
    }

    /// As [`Clock::describe_repeated_time`].
    fn describe_repeated_stamp(&self, reading: &Reading) -> Option<String> {
        let now = self.now(reading);
        let stamped = self.repeated_stamp(reading).filter(|_| !is_doubtful(now, reading))?;
        let show = |wall| time::format_rfc3339(timestamp_from_millis(wall));
        Some(format!(
            "new ingestions, exports and definitions repeat the time {} of an earlier one, {:#} ahead of the clock \
             ({}), and `penstock clock reset` does not change that; rely on sequences until the clock has passed it, or \
             restore a backup from before",
            show(stamped),
            SignedDuration::from_secs(stamped.saturating_sub(now) / 1000),
            show(now),
        ))
    }

    /// Logs that new stamps repeat a time ahead of the clock, once until they no longer do.
    fn log_repeated_stamp(&mut self, reading: &Reading) {
        let repeated = self.describe_repeated_stamp(reading);
        if let Some(text) = &repeated
            && !self.is_repetition_logged
        {
            tracing::warn!("The clock is behind the times of earlier records: {text}.");
        }
        self.is_repetition_logged = repeated.is_some();
    }

    /// Returns the same state, expressed at this reading.
    fn at_reading(&self, reading: &Reading) -> Self {
        Self {
            elapsed: self.elapsed(reading),
            uptime: reading.uptime.max(self.uptime),
            ..self.clone()
        }
    }

    /// Records this reading as the moment last known to be right, if the clock is synchronised.
    fn update_known_time(&mut self, reading: &Reading) {
        if reading.synchronised != Some(true) {
            return;
        }
        if let Some(right) = self.right.clone() {
            let passed = u64::try_from(reading.wall.saturating_sub(right.wall)).unwrap_or_default();
            let off = right.elapsed.saturating_add(passed);
            // Within one boot the kernel's clock has counted all time already.
            if right.boot != self.boot && off > self.elapsed(reading) {
                *self = Self { elapsed: off, uptime: reading.uptime, ..self.clone() };
            }
            let behind = right.earliest_time_at(self.elapsed(reading)).saturating_sub(reading.wall);
            if behind > TOLERANCE_MS {
                if !self.is_behind_logged {
                    tracing::warn!(
                        behind_seconds = behind / 1000,
                        "The synchronised clock is behind the time that was last known to be right; the gateway \
                         uses the later time until `penstock clock reset`."
                    );
                    self.is_behind_logged = true;
                }
                return;
            }
        }
        self.is_behind_logged = false;
        let elapsed = self.elapsed(reading);
        self.right = Some(KnownTime { wall: reading.wall, elapsed, boot: self.boot.clone() });
    }
}

impl KnownTime {
    /// Returns the earliest possible time at this elapsed time, in milliseconds since 1970.
    fn earliest_time_at(&self, elapsed: u64) -> i64 {
        let passed = i64::try_from(elapsed.saturating_sub(self.elapsed)).unwrap_or(i64::MAX);
        self.wall.saturating_add(passed)
    }
}

impl Reading {
    fn read_clocks() -> Self {
        let wall = Timestamp::now().as_millisecond();
        Self {
            wall,
            uptime: read_uptime(),
            boot: boot_id(),
            synchronised: check_synchronised(Path::new(SYNCHRONISED_FILE), wall),
        }
    }
}

/// Whether this time may be wrong: the clock is known not to be synchronised, or the time is before this version.
fn is_doubtful(now: i64, reading: &Reading) -> bool {
    reading.synchronised == Some(false) || now < EARLIEST_PLAUSIBLE_MS
}

/// Whether a clock that shows this time may be right: it is not before this version.
pub fn is_plausible(now: Timestamp) -> bool {
    now.as_millisecond() >= EARLIEST_PLAUSIBLE_MS
}

/// Whether the system's clock is synchronised; `None` if unknown.
pub fn is_synchronised() -> Option<bool> {
    check_synchronised(Path::new(SYNCHRONISED_FILE), Timestamp::now().as_millisecond())
}

fn check_synchronised(mark: &Path, now: i64) -> Option<bool> {
    if !mark.parent()?.exists() {
        return None;
    }
    let touched = std::fs::metadata(mark).and_then(|mark| mark.modified()).ok();
    let touched = touched.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let touched = touched.and_then(|at| i64::try_from(at.as_millis()).ok());
    Some(touched.is_some_and(|touched| now.abs_diff(touched) <= MAX_SYNCHRONISED_AGE_MS))
}

fn read_uptime() -> u64 {
    // Linux has this clock since 2.6.39.
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(0, |time| u64::try_from(Duration::from(time).as_millis()).unwrap_or(u64::MAX))
}

/// Returns the identifier of this boot of the machine, in 32 hexadecimal digits. It comes from the kernel, or from the
/// unit (`Environment=BOOT_ID=%b`) if the service may not read the kernel's.
pub fn boot_id() -> String {
    static BOOT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let read = || {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .or_else(|_| std::env::var("BOOT_ID"))
            .unwrap_or_default()
    };
    BOOT.get_or_init(|| read().chars().filter(char::is_ascii_hexdigit).collect()).clone()
}

fn timestamp_from_millis(wall: i64) -> Timestamp {
    Timestamp::from_millisecond(wall).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
