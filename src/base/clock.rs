//! What time it is, and how much of it has passed, on a machine whose clock may be wrong.
//!
//! **The time** ([`Clock::now`]) is the system's clock, but never before the moment at which it was last
//! known to be right, and what has passed since: a gateway that starts in 1970 takes no token that expired
//! last year. That moment moves only while the clock is synchronised, so a clock that somebody sets far
//! ahead leaves nothing behind; what a wrong time server leaves, `penstock clock reset` lets go of.
//!
//! **Elapsed time** ([`Clock::elapsed`]) is for ages: it counts by the kernel's clock since boot, which
//! nobody sets. It goes on through restarts of the program. What passes while the machine is off is added
//! once its clock is synchronised; where it never is, that time does not count.
//!
//! The clock is synchronised while systemd-timesyncd says so: it touches a file each time it hears from its
//! server, every 34 minutes at most. A file that was touched longer ago, or that seems to be, since the
//! clock was set ahead, is not believed. With another time service nothing is known, and the time is the
//! system's alone.
//!
//! **Stamps** ([`Clock::stamp`]) are times for what stands in an order: each is the time, or that of the stamp
//! before where that is later, and says whether the clock could be believed. So a gateway without a clock of
//! its own ingests and exports from its start on, and whoever reads it later knows which times to doubt.
//!
//! What is known is a document of the store, written in the minute after other commits, and once an hour
//! without.
use crate::commit::{CommitCheck, NoClient, commit};
use crate::fault::{Fault, Kind};

/// The collection of documents of the gateway itself: its identifier, its clock, the counter of its starts.
pub const COLLECTION: &str = "gateway";
use crate::time;
use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};
use penstock_store::{Read as _, Store};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tokio::time::MissedTickBehavior;

/// The document's key.
const KEY: &[u8] = b"clock";
/// What systemd-timesyncd touches each time it hears from its server (systemd-timesyncd.service(8)).
const SYNCHRONISED: &str = "/run/systemd/timesync/synchronized";
/// A touch longer ago is not believed: three of timesyncd's longest intervals.
const BELIEVED_MS: u64 = 2 * 60 * 60 * 1000;
/// How far a synchronised clock may be behind what was known before it is worth a warning.
const TOLERANCE_MS: i64 = 60 * 1000;
/// How often the moment known to be right moves on.
const INTERVAL: Duration = Duration::from_mins(1);
/// Without other commits, what is known is written each time so many intervals have passed.
const IDLE_INTERVALS: u32 = 60;
/// 2026-01-01: a clock that says an earlier time than this version of Penstock has is wrong.
const WRITTEN: i64 = 1_767_225_600_000;

/// The gateway's clock. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock {
    store: Store,
    known: Arc<Mutex<Known>>,
}

/// A time that is never before that of the stamp before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The time.
    pub at: Timestamp,
    /// Why it may be wrong, if so.
    pub doubt: Option<Doubt>,
}

/// Why a time may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Doubt {
    /// The clock was not synchronised, or said a time that is long over.
    Unsynchronised,
    /// The clock was behind an earlier stamp, whose time it has instead.
    Behind,
}

impl Doubt {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsynchronised => "unsynchronised",
            Self::Behind => "behind",
        }
    }
}

impl Stamp {
    /// What the system's clock says.
    pub fn of_system() -> Self {
        Self { at: Timestamp::now(), doubt: None }
    }

    /// In the form of [`crate::time::rfc3339`].
    pub fn rfc3339(self) -> String {
        time::rfc3339_of(self.at)
    }
}

/// What `penstock clock` shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What the gateway takes for the time (RFC 3339).
    pub now: String,
    /// What the system's clock says.
    pub system: String,
    /// Whether the system's clock is synchronised; absent when nothing is known about it.
    pub synchronised: Option<bool>,
    /// What says so: `systemd-timesyncd`, or nothing.
    pub source: Option<&'static str>,
    /// When the clock was last known to be right.
    pub last_known: Option<String>,
    /// Milliseconds on the line of elapsed time.
    pub elapsed: u64,
}

/// What the machine says at one moment.
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

/// What is known of the time: kept in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// Elapsed time at `uptime` of `boot`.
    elapsed: u64,
    uptime: u64,
    boot: String,
    /// When the clock was last known to be right.
    right: Option<Right>,
    /// The newest stamp, in milliseconds since 1970.
    #[serde(default)]
    stamped: i64,
    /// Whether the log says that the clock is behind what was known.
    #[serde(skip)]
    told: bool,
}

/// A moment at which the clock was known to be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Right {
    wall: i64,
    elapsed: u64,
    boot: String,
}

impl Clock {
    /// Reads what is known of the time; at the first start writes where it begins.
    pub fn open(store: Store) -> Result<Self, Fault> {
        let kept = store.read().document(COLLECTION, KEY)?;
        let kept = kept.and_then(|bytes| match serde_json::from_slice::<Known>(&bytes) {
            Ok(kept) => Some(kept),
            Err(error) => {
                tracing::error!(%error, "What was known of the time could not be read; it begins anew.");
                None
            }
        });
        let is_first = kept.is_none();
        let known = Known::go_on(kept, &Reading::take());
        let clock = Self { store, known: Arc::new(Mutex::new(known)) };
        if is_first && let Err(error) = clock.save(&NoClient) {
            tracing::warn!(%error, "What is known of the time could not be kept.");
        }
        Ok(clock)
    }

    /// The time: the system's, but never before what it was when it was last known to be right, and what
    /// has passed since.
    pub fn now(&self) -> Timestamp {
        timestamp(self.known().now(&Reading::take()))
    }

    /// Milliseconds on a line that nobody sets and that goes on through restarts. Where it begins means
    /// nothing; only differences do. Use it for ages.
    pub fn elapsed(&self) -> u64 {
        self.known().elapsed(&Reading::take())
    }

    /// How long ago something was that happened at this elapsed time; nothing, for what a restored backup
    /// has from a time that is still to come.
    pub fn since(&self, elapsed: u64) -> Duration {
        Duration::from_millis(self.elapsed().saturating_sub(elapsed))
    }

    /// A time for what stands in an order: take it where nothing can come between, as in a commit.
    pub fn stamp(&self) -> Stamp {
        let (at, doubt) = self.known().stamp(&Reading::take());
        Stamp { at: timestamp(at), doubt }
    }

    /// Lets no stamp be before this time (RFC 3339), which an earlier process gave.
    pub fn not_before(&self, stamp: &str) {
        if let Ok(at) = stamp.parse::<Timestamp>() {
            let mut known = self.known();
            known.stamped = known.stamped.max(at.as_millisecond());
        }
    }

    /// What is known, for an operator.
    pub fn report(&self) -> Report {
        let reading = Reading::take();
        let known = self.known();
        let show = |wall| format!("{:.3}", timestamp(wall));
        Report {
            now: show(known.now(&reading)),
            system: show(reading.wall),
            synchronised: reading.synchronised,
            source: reading.synchronised.map(|_| "systemd-timesyncd"),
            last_known: known.right.as_ref().map(|right| show(right.wall)),
            elapsed: known.elapsed(&reading),
        }
    }

    /// Lets go of when the clock was last known to be right: the time is what the system's clock says.
    /// `check` is made in its commit.
    ///
    /// # Errors
    /// What `check` and the store fail with.
    pub fn reset(&self, check: &dyn CommitCheck) -> Result<(), Fault> {
        let before = self.known().right.take();
        match self.save(check) {
            Ok(()) => {
                tracing::warn!("The clock was reset: the time is what the system's clock says.");
                Ok(())
            }
            Err(fault) => {
                self.known().right = before;
                Err(fault)
            }
        }
    }

    /// Moves on, and keeps what is known, until this is dropped.
    pub async fn run(self) {
        let mut interval = tokio::time::interval(INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut sequence, mut idle) = (self.store.stats().sequence, 0);
        loop {
            interval.tick().await;
            self.move_on();
            idle += 1;
            if self.store.stats().sequence == sequence && idle < IDLE_INTERVALS {
                continue;
            }
            let clock = self.clone();
            // A store that takes no commit says so itself; what is known is in memory.
            let _ = tokio::task::spawn_blocking(move || clock.save(&NoClient)).await;
            (sequence, idle) = (self.store.stats().sequence, 0);
        }
    }

    /// Keeps what is known, at the end. Blocks.
    pub fn close(&self) {
        self.move_on();
        if let Err(error) = self.save(&NoClient) {
            tracing::warn!(%error, "What is known of the time could not be kept.");
        }
    }

    fn move_on(&self) {
        self.known().move_on(&Reading::take());
    }

    fn save(&self, check: &dyn CommitCheck) -> Result<(), Fault> {
        let reading = Reading::take();
        commit(&self.store, check, |change| -> Result<(), Fault> {
            let known = self.known().at(&reading);
            let value = serde_json::to_vec(&known)
                .map_err(|error| Fault::new(Kind::Internal, error.to_string()))?;
            Ok(change.put(COLLECTION, KEY, &value)?)
        })?;
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Whole after each statement: a panic elsewhere leaves it usable.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// What was kept, going on at this reading.
    fn go_on(kept: Option<Self>, reading: &Reading) -> Self {
        let Reading { wall, uptime, boot, .. } = reading;
        let mut known = match kept {
            // The same boot: all that has passed is counted.
            Some(kept) if kept.boot == *boot && kept.uptime <= *uptime => kept,
            Some(kept) => Self { uptime: *uptime, boot: boot.clone(), ..kept },
            None => Self {
                elapsed: u64::try_from(*wall).unwrap_or_default(),
                uptime: *uptime,
                boot: boot.clone(),
                right: None,
                stamped: 0,
                told: false,
            },
        };
        known.move_on(reading);
        known
    }

    fn elapsed(&self, reading: &Reading) -> u64 {
        self.elapsed.saturating_add(reading.uptime.saturating_sub(self.uptime))
    }

    fn now(&self, reading: &Reading) -> i64 {
        let known = self.right.as_ref().map(|right| right.at(self.elapsed(reading)));
        known.map_or(reading.wall, |known| known.max(reading.wall))
    }

    /// The time of a stamp, and whether it is to be doubted.
    fn stamp(&mut self, reading: &Reading) -> (i64, Option<Doubt>) {
        let now = self.now(reading);
        let doubt = if now < self.stamped {
            Some(Doubt::Behind)
        } else if reading.synchronised == Some(false) || now < WRITTEN {
            Some(Doubt::Unsynchronised)
        } else {
            None
        };
        self.stamped = self.stamped.max(now);
        (self.stamped, doubt)
    }

    /// The same, told at this reading.
    fn at(&self, reading: &Reading) -> Self {
        Self {
            elapsed: self.elapsed(reading),
            uptime: reading.uptime.max(self.uptime),
            ..self.clone()
        }
    }

    /// Notes that the clock is right, if it is.
    fn move_on(&mut self, reading: &Reading) {
        if reading.synchronised != Some(true) {
            return;
        }
        if let Some(right) = self.right.clone() {
            let passed = u64::try_from(reading.wall.saturating_sub(right.wall)).unwrap_or_default();
            let off = right.elapsed.saturating_add(passed);
            // Within one boot every millisecond is counted already.
            if right.boot != self.boot && off > self.elapsed(reading) {
                *self = Self { elapsed: off, uptime: reading.uptime, ..self.clone() };
            }
            let behind = right.at(self.elapsed(reading)).saturating_sub(reading.wall);
            if behind > TOLERANCE_MS {
                if !self.told {
                    tracing::warn!(
                        behind_seconds = behind / 1000,
                        "The synchronised clock is behind what it was when it was last known to be right; \
                         the later counts, until `penstock clock reset`."
                    );
                    self.told = true;
                }
                return;
            }
        }
        self.told = false;
        let elapsed = self.elapsed(reading);
        self.right = Some(Right { wall: reading.wall, elapsed, boot: self.boot.clone() });
    }
}

impl Right {
    /// What the time is at this elapsed time, at the least.
    fn at(&self, elapsed: u64) -> i64 {
        let passed = i64::try_from(elapsed.saturating_sub(self.elapsed)).unwrap_or(i64::MAX);
        self.wall.saturating_add(passed)
    }
}

impl Reading {
    fn take() -> Self {
        let wall = Timestamp::now().as_millisecond();
        Self {
            wall,
            uptime: uptime(),
            boot: boot(),
            synchronised: synchronised(Path::new(SYNCHRONISED), wall),
        }
    }
}

/// Whether the system's clock is synchronised; `None` when nothing is known about it.
pub fn is_synchronised() -> Option<bool> {
    synchronised(Path::new(SYNCHRONISED), Timestamp::now().as_millisecond())
}

fn synchronised(mark: &Path, now: i64) -> Option<bool> {
    if !mark.parent()?.exists() {
        return None;
    }
    let touched = std::fs::metadata(mark).and_then(|mark| mark.modified()).ok();
    let touched = touched.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let touched = touched.and_then(|at| i64::try_from(at.as_millis()).ok());
    Some(touched.is_some_and(|touched| now.abs_diff(touched) <= BELIEVED_MS))
}

fn uptime() -> u64 {
    // Linux has had it since 2.6.39.
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(0, |time| u64::try_from(Duration::from(time).as_millis()).unwrap_or(u64::MAX))
}

/// The identifier of this boot of the machine, in 32 hexadecimal digits: that of the kernel, or where the
/// service may not see it, the one that its unit gives it (`Environment=BOOT_ID=%b`).
pub fn boot() -> String {
    static BOOT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let read = || {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .or_else(|_| std::env::var("BOOT_ID"))
            .unwrap_or_default()
    };
    BOOT.get_or_init(|| read().chars().filter(char::is_ascii_hexdigit).collect()).clone()
}

fn timestamp(wall: i64) -> Timestamp {
    Timestamp::from_millisecond(wall).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;
    const START: i64 = 1_790_000_000_000;

    fn reading(wall: i64, uptime: i64, boot: &str, synchronised: bool) -> Reading {
        Reading {
            wall,
            uptime: uptime.try_into().unwrap(),
            boot: boot.into(),
            synchronised: Some(synchronised),
        }
    }

    fn first(synchronised: bool) -> Known {
        Known::go_on(None, &reading(START, HOUR, "a", synchronised))
    }

    #[test]
    fn the_time_is_never_before_it_was_known_to_be_right_and_what_passed_since() {
        let known = first(true);
        assert_eq!(known.now(&reading(START + HOUR, 2 * HOUR, "a", false)), START + HOUR);
        // Set back while it runs.
        assert_eq!(known.now(&reading(0, 2 * HOUR, "a", false)), START + HOUR);
        // Another boot, without a battery: the time off is not known.
        let known = Known::go_on(Some(known), &reading(0, 1000, "b", false));
        assert_eq!(known.now(&reading(500, 1500, "b", false)), START + 500);
    }

    #[test]
    fn a_jump_ahead_leaves_nothing_behind() {
        let mut known = first(true);
        let ahead = reading(START + 30_000 * DAY, HOUR + 60_000, "a", false);
        known.move_on(&ahead);
        assert_eq!(known.now(&ahead), ahead.wall);
        let back = reading(START + HOUR, 2 * HOUR, "a", false);
        assert_eq!(known.now(&back), START + HOUR);
        assert_eq!(known.elapsed(&back), known.elapsed(&reading(0, HOUR, "a", false)) + 3_600_000);
    }

    #[test]
    fn a_time_server_that_lied_is_believed_until_the_reset() {
        let mut known = first(true);
        let lie = reading(START + 30_000 * DAY, 2 * HOUR, "a", true);
        known.move_on(&lie);
        let truth = reading(START + 2 * HOUR, 3 * HOUR, "a", true);
        known.move_on(&truth);
        assert_eq!(known.now(&truth), lie.wall + HOUR);
        assert!(known.told);
        known.right = None;
        assert_eq!(known.now(&truth), truth.wall);
        known.move_on(&truth);
        assert_eq!(known.right.as_ref().unwrap().wall, truth.wall);
    }

    #[test]
    fn elapsed_time_goes_on_through_restarts() {
        let known = first(false);
        let begun = known.elapsed(&reading(0, HOUR, "a", false));
        let kept = known.at(&reading(0, HOUR + 10, "a", false));
        // The program alone: what passed meanwhile counts, whatever the clock says.
        let again = Known::go_on(Some(kept.clone()), &reading(5, HOUR + 1000, "a", false));
        assert_eq!(again.elapsed(&reading(5, HOUR + 1000, "a", false)), begun + 1000);
        // The machine, whose clock nobody vouches for: what passed is not known.
        let booted = Known::go_on(Some(kept), &reading(START + DAY, 50, "b", false));
        assert_eq!(booted.elapsed(&reading(0, 60, "b", false)), begun + 20);
    }

    #[test]
    fn time_off_counts_once_the_clock_is_synchronised() {
        let known = first(true);
        let begun = known.elapsed(&reading(0, HOUR, "a", true));
        let mut known = Known::go_on(Some(known), &reading(7, 50, "b", false));
        assert_eq!(known.elapsed(&reading(7, 50, "b", false)), begun);
        known.move_on(&reading(START + DAY, 60, "b", true));
        assert_eq!(known.elapsed(&reading(START + DAY, 60, "b", true)), begun + DAY as u64);
        // Once: within the boot the kernel's clock counts.
        known.move_on(&reading(START + 9 * DAY, 70, "b", true));
        assert_eq!(known.elapsed(&reading(0, 70, "b", true)), begun + DAY as u64 + 10);
    }

    #[test]
    fn stamps_never_go_back_and_say_when_they_are_to_be_doubted() {
        let mut known = first(false);
        let mut stamp = |wall, synchronised| known.stamp(&reading(wall, HOUR, "a", synchronised));
        assert_eq!(stamp(5, false), (5, Some(Doubt::Unsynchronised)));
        assert_eq!(stamp(7, true), (7, Some(Doubt::Unsynchronised)), "1970 is over");
        assert_eq!(stamp(START, true), (START, None));
        assert_eq!(stamp(6, false), (START, Some(Doubt::Behind)));
        assert_eq!(stamp(START - 1, true), (START, Some(Doubt::Behind)));
        assert_eq!(stamp(START + 1, true), (START + 1, None));
        // Nothing is known of the clock.
        let untold = Reading { synchronised: None, ..reading(START + 2, HOUR, "a", false) };
        assert_eq!(known.stamp(&untold), (START + 2, None));
        // Over a restart, where the clock begins anew.
        let mut known = Known::go_on(Some(known), &reading(0, 50, "b", false));
        assert_eq!(known.stamp(&reading(1, 60, "b", false)), (START + 2, Some(Doubt::Behind)));
    }

    #[test]
    fn a_mark_that_was_touched_long_ago_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("timesync/synchronized");
        let now = Timestamp::now().as_millisecond();
        assert_eq!(synchronised(&mark, now), None);
        std::fs::create_dir(mark.parent().unwrap()).unwrap();
        assert_eq!(synchronised(&mark, now), Some(false));
        std::fs::write(&mark, "").unwrap();
        assert_eq!(synchronised(&mark, now), Some(true));
        assert_eq!(synchronised(&mark, now + 3 * HOUR), Some(false));
        assert_eq!(synchronised(&mark, now - 3 * HOUR), Some(false));
    }

    #[test]
    fn what_is_known_is_kept_in_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let options = penstock_store::Options::default();
            Clock::open(Store::open(folder.path(), options, &mut |_| {}).unwrap()).unwrap()
        };
        let clock = open();
        let begun = clock.elapsed();
        clock.known().right =
            Some(Right { wall: START + 30_000 * DAY, elapsed: begun, boot: boot() });
        clock.save(&NoClient).unwrap();
        drop(clock);
        let clock = open();
        assert!(clock.elapsed() >= begun);
        assert!(clock.now().as_millisecond() >= START + 30_000 * DAY);
        clock.reset(&NoClient).unwrap();
        drop(clock);
        assert!(open().now() < Timestamp::now() + jiff::SignedDuration::from_secs(1));
    }
}
