//! The memory limit of the process, and what the gateway does when memory is low.
//!
//! Only memory that the kernel cannot reclaim counts: the anonymous pages of the process, because a gateway has no
//! swap. The kernel evicts cached file pages when it needs memory.
//!
//! The allocator is jemalloc, with one arena and a thread that returns unused pages to the kernel after a second
//! (`.cargo/config.toml`). glibc's allocator has an arena for each thread and returns only the unused end of each, so
//! after a peak the level would remain at [`MemoryLevel::Short`]. C code (zstd, one context at a time) keeps the
//! allocator of the C library: with jemalloc as its malloc, a preloaded library such as libfaketime would deadlock at the
//! start.
use crate::blocking::spawn_blocking;
use parking_lot::Mutex;
use penstock_resources::gateway::MemoryLevel;
use penstock_store::ReadStore;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tikv_jemalloc_ctl::{Access, AsName as _, thread};
use tikv_jemallocator::Jemalloc;
use tokio::sync::Notify;
use tokio::time::timeout;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The percentages of the limit from which memory counts as low, and as short.
const LOW_PERCENT: u64 = 75;
const SHORT_PERCENT: u64 = 90;
/// How long the memory in use and the limit are used again once they are read. Reading them takes tens of microseconds, and
/// many requests need them.
const READING_VALIDITY: Duration = Duration::from_millis(200);
/// The interval at which memory is measured without a request.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The minimum bytes of index entries in memory that are worth a checkpoint.
const MIN_CHECKPOINT_BYTES: u64 = 1 << 20;
/// This value and larger ones mean no limit: without a limit, version 1 of the control groups shows the largest number
/// of whole pages.
const UNLIMITED_BYTES: u64 = 1 << 62;
/// The root of the control groups (cgroups(7)).
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// The memory of the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Memory {
    /// `service.limits.memory`
    configured: Option<u64>,
    /// [`unreclaimable_bytes`]
    held: Arc<LastReading>,
    limit: Arc<LastReading>,
    /// Wakes [`Self::relieve_pressure`].
    is_needed: Arc<Notify>,
}

/// The bytes that were read last, and when; `None` if they are unknown.
#[derive(Debug, Default)]
struct LastReading(Mutex<Option<(Instant, Option<u64>)>>);

impl LastReading {
    /// Returns what was read less than [`READING_VALIDITY`] before `now`, otherwise reads it. Other threads wait meanwhile, so
    /// that only one reads.
    fn get_or_read(&self, now: Instant, read: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let mut last = self.0.lock();
        // It can be later than `now`, because another thread held the lock.
        if let Some((at, bytes)) = *last
            && now.saturating_duration_since(at) < READING_VALIDITY
        {
            return bytes;
        }
        let bytes = read();
        *last = Some((now, bytes));
        bytes
    }
}

impl Memory {
    /// Creates a handle for the memory of the process. The limit is `configured` bytes (`service.limits.memory`) or
    /// that of the control group, whichever is lower.
    pub fn new(configured: Option<u64>) -> Self {
        Self { configured, held: Arc::default(), limit: Arc::default(), is_needed: Arc::default() }
    }

    /// Returns the limit in bytes, read at most 200 ms ago; `None` without a limit.
    pub fn limit_bytes(&self) -> Option<u64> {
        self.limit.get_or_read(Instant::now(), || {
            let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
            let group = find_group_limit(&own, Path::new(CGROUP_ROOT));
            [self.configured, group].into_iter().flatten().min()
        })
    }

    /// Returns [`unreclaimable_bytes`], read at most 200 ms ago.
    fn held_bytes(&self) -> Option<u64> {
        self.held.get_or_read(Instant::now(), unreclaimable_bytes)
    }

    /// Returns the remaining bytes of the limit, read at most 200 ms ago; `None` without a limit, or if the memory in use is
    /// unknown.
    pub fn remaining_bytes(&self) -> Option<u64> {
        Some(self.limit_bytes()?.saturating_sub(self.held_bytes()?))
    }

    /// Returns how much memory is left, measured at most 200 ms ago.
    pub fn current_level(&self) -> MemoryLevel {
        match (self.held_bytes(), self.limit_bytes()) {
            (Some(held), Some(limit)) => level_of(held, limit),
            _ => MemoryLevel::Ample,
        }
    }

    /// Returns the allocator's unused pages to the kernel now, rather than after a second, and forgets how much memory was
    /// in use. Takes some milliseconds.
    pub fn return_unused_pages(&self) {
        let Ok(usual_ms) = Access::<isize>::read("opt.dirty_decay_ms\0".name()) else { return };
        // The arena, and the one that jemalloc creates for the first block of 8 MiB or more.
        for decay in ["arena.0.dirty_decay_ms\0", "arena.1.dirty_decay_ms\0"] {
            // A new value takes effect at once.
            if decay.name().write(0_isize).is_ok() {
                let _ = decay.name().write(usual_ms);
            }
        }
        *self.held.0.lock() = None;
    }

    /// Asks [`Self::relieve_pressure`] to free memory soon, because a request waits for it.
    pub fn request_relief(&self) {
        self.is_needed.notify_one();
    }

    /// Frees memory while it is low and when a request waits for it, until this future is dropped: lets the store write
    /// out its cache in a checkpoint.
    pub async fn relieve_pressure(self, store: ReadStore) {
        let mut before = MemoryLevel::Ample;
        loop {
            let is_needed = timeout(CHECK_INTERVAL, self.is_needed.notified()).await.is_ok();
            let level = self.current_level();
            if level != before {
                log_level_change(level);
                before = level;
            }
            if (is_needed || level > MemoryLevel::Ample)
                && store.stats().write_back_bytes >= MIN_CHECKPOINT_BYTES
            {
                let store = store.clone();
                // A store that cannot write logs that itself.
                let _ = spawn_blocking(move || store.checkpoint()).await;
            }
        }
    }
}

fn log_level_change(level: MemoryLevel) {
    match level {
        MemoryLevel::Ample => tracing::info!("Memory is sufficient again."),
        MemoryLevel::Low => tracing::info!("Memory is low; the store writes out its cache."),
        MemoryLevel::Short => tracing::warn!(
            held = unreclaimable_bytes(),
            "Memory is short; requests with large bodies are refused until there is enough memory."
        ),
    }
}

fn level_of(held: u64, limit: u64) -> MemoryLevel {
    let percent = held.saturating_mul(100) / limit.max(1);
    match percent {
        SHORT_PERCENT.. => MemoryLevel::Short,
        LOW_PERCENT.. => MemoryLevel::Low,
        _ => MemoryLevel::Ample,
    }
}

/// Returns the bytes of this process that the kernel cannot reclaim; `None` if unknown.
pub fn unreclaimable_bytes() -> Option<u64> {
    let status = read_status()?;
    let shared = find_status_value(&status, "RssShmem").unwrap_or_default();
    Some(find_status_value(&status, "RssAnon")? + shared)
}

/// Returns the resident memory of this process, in bytes; `None` if unknown.
pub fn resident_bytes() -> Option<u64> {
    find_status_value(&read_status()?, "VmRSS")
}

/// Reads `proc_pid_status(5)` of this process.
fn read_status() -> Option<String> {
    std::fs::read_to_string("/proc/self/status").ok()
}

/// Returns a value of `proc_pid_status(5)`, in bytes.
fn find_status_value(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the lowest limit of the process's control groups and their parents: `memory.high` and `memory.max` of
/// version 2, `memory.limit_in_bytes` of version 1. `own` is the content of `/proc/self/cgroup`, with lines of the form
/// `hierarchy:controllers:/group`.
fn find_group_limit(own: &str, root: &Path) -> Option<u64> {
    let limits = own.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
        if controllers.is_empty() {
            lowest_limit(root, group, &["memory.high", "memory.max"])
        } else if controllers.split(',').any(|controller| controller == "memory") {
            lowest_limit(&root.join("memory"), group, &["memory.limit_in_bytes"])
        } else {
            None
        }
    });
    limits.min()
}

/// Returns the lowest limit in these files of the group and its parents. `max` means no limit, and so does a value of
/// at least [`UNLIMITED_BYTES`].
fn lowest_limit(root: &Path, group: &str, files: &[&str]) -> Option<u64> {
    let group = root.join(group);
    let groups = group.ancestors().take_while(|group| group.starts_with(root));
    let said = groups.flat_map(|group| files.iter().map(|file| group.join(file)));
    let limits =
        said.filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.filter(|limit| *limit < UNLIMITED_BYTES).min()
}

thread_local! {
    /// The counters of this thread: bytes allocated and freed since it began.
    static COUNTERS: Option<(thread::ThreadLocal<u64>, thread::ThreadLocal<u64>)> = find_counters();
    /// The bytes freed by [`drop_foreign`].
    static FOREIGN: Cell<i64> = const { Cell::new(0) };
}

fn find_counters() -> Option<(thread::ThreadLocal<u64>, thread::ThreadLocal<u64>)> {
    Some((thread::allocatedp::read().ok()?, thread::deallocatedp::read().ok()?))
}

/// Returns the bytes that this thread allocated minus those that it freed. The difference between two calls is the
/// memory that the work between them still holds, if no other thread frees it. Takes some nanoseconds.
pub fn thread_bytes() -> i64 {
    thread_totals().held()
}

/// The bytes that a thread has allocated and freed since it began.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadTotals {
    /// All bytes that it has allocated.
    pub allocated: u64,
    /// All bytes that it has freed, whichever thread had allocated them.
    pub freed: u64,
    /// Those of them that [`drop_foreign`] has freed.
    freed_foreign: i64,
}

impl ThreadTotals {
    /// The bytes that it allocated minus those that it freed, without those of [`drop_foreign`].
    pub fn held(&self) -> i64 {
        self.allocated.wrapping_sub(self.freed).cast_signed() + self.freed_foreign
    }
}

/// Returns what this thread has allocated and freed. Takes some nanoseconds.
pub fn thread_totals() -> ThreadTotals {
    let (allocated, freed) = COUNTERS.with(|counters| {
        counters.map_or((0, 0), |(allocated, freed)| (allocated.get(), freed.get()))
    });
    ThreadTotals { allocated, freed, freed_foreign: FOREIGN.get() }
}

/// Drops a value that another thread allocated. It does not count as memory that this thread freed.
pub fn drop_foreign<T>(value: T) {
    let before = thread_bytes();
    drop(value);
    FOREIGN.set(FOREIGN.get() + before - thread_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_the_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("system.slice/penstock.service");
        std::fs::create_dir_all(&group).unwrap();
        let own = "0::/system.slice/penstock.service\n";
        assert_eq!(find_group_limit(own, root.path()), None);
        std::fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(find_group_limit(own, root.path()), None);
        std::fs::write(group.join("memory.high"), "170000000\n").unwrap();
        std::fs::write(root.path().join("system.slice/memory.max"), "300000000\n").unwrap();
        assert_eq!(find_group_limit(own, root.path()), Some(170_000_000));
        std::fs::write(root.path().join("memory.max"), "100000000\n").unwrap();
        assert_eq!(find_group_limit(own, root.path()), Some(100_000_000));
        assert_eq!(find_group_limit("0::/\n", root.path()), Some(100_000_000));
        assert_eq!(find_group_limit("4:cpu,memoryless:/user\n", root.path()), None);
    }

    #[test]
    fn the_limit_of_a_group_of_version_1_counts_too() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("memory/system.slice/penstock.service");
        std::fs::create_dir_all(&group).unwrap();
        let own = "12:pids:/else\n4:cpu,memory:/system.slice/penstock.service\n0::/system.slice\n";
        assert_eq!(find_group_limit(own, root.path()), None);
        std::fs::write(root.path().join("memory/memory.limit_in_bytes"), "9223372036854771712\n")
            .unwrap();
        assert_eq!(find_group_limit(own, root.path()), None);
        std::fs::write(group.join("memory.limit_in_bytes"), "134217728\n").unwrap();
        assert_eq!(find_group_limit(own, root.path()), Some(134_217_728));
        std::fs::create_dir_all(root.path().join("system.slice")).unwrap();
        std::fs::write(root.path().join("system.slice/memory.max"), "100000000\n").unwrap();
        assert_eq!(find_group_limit(own, root.path()), Some(100_000_000));
    }

    #[test]
    fn memory_that_a_thread_holds_is_counted_for_it_only() {
        let before = thread_bytes();
        let held = vec![1_u8; 1 << 20];
        assert!(thread_bytes() - before >= 1 << 20);
        let other = std::thread::spawn(|| {
            let before = thread_bytes();
            drop(vec![1_u8; 1 << 22]);
            thread_bytes() - before
        });
        assert!(other.join().unwrap() < 1 << 20);
        drop(held);
        assert!(thread_bytes() - before < 1 << 19);
        let foreign = std::thread::spawn(|| vec![1_u8; 1 << 22]).join().unwrap();
        let kept = foreign.clone();
        drop_foreign(foreign);
        assert!(thread_bytes() - before >= 1 << 22);
        drop(kept);
    }

    #[test]
    fn unused_pages_are_returned_at_once() {
        const PEAK: usize = 64 << 20;
        for size in [1 << 12, 1 << 20, PEAK / 2] {
            let held: Vec<_> = (0..PEAK / size).map(|_| vec![1_u8; size]).collect();
            let peak = unreclaimable_bytes().unwrap();
            drop(held);
            Memory::new(None).return_unused_pages();
            assert!(unreclaimable_bytes().unwrap() + (PEAK as u64 / 2) < peak, "{size}");
        }
    }

    #[test]
    fn a_reading_is_used_again_until_it_is_old() {
        let last = LastReading::default();
        let begun = Instant::now();
        let almost = READING_VALIDITY.saturating_sub(Duration::from_nanos(1));
        assert_eq!(last.get_or_read(begun, || Some(1)), Some(1));
        assert_eq!(last.get_or_read(begun + almost, || Some(2)), Some(1));
        assert_eq!(last.get_or_read(begun + READING_VALIDITY, || Some(3)), Some(3));
        assert_eq!(last.get_or_read(begun, || Some(4)), Some(3), "another thread was faster");
    }

    #[test]
    fn what_is_left_follows_from_the_last_reading_until_pages_are_returned() {
        let memory = Memory::new(Some(1 << 40));
        let limit = memory.limit_bytes().unwrap();
        *memory.held.0.lock() = Some((Instant::now() + CHECK_INTERVAL * 1000, Some(limit - 5)));
        assert_eq!(memory.remaining_bytes(), Some(5));
        assert_eq!(memory.clone().current_level(), MemoryLevel::Short);
        memory.return_unused_pages();
        assert_ne!(memory.remaining_bytes(), Some(5));
    }

    #[test]
    fn the_level_follows_from_the_memory_in_use() {
        assert_eq!(level_of(74, 100), MemoryLevel::Ample);
        assert_eq!(level_of(75, 100), MemoryLevel::Low);
        assert_eq!(level_of(89, 100), MemoryLevel::Low);
        assert_eq!(level_of(90, 100), MemoryLevel::Short);
        assert_eq!(level_of(1, 0), MemoryLevel::Short);
        assert!(unreclaimable_bytes().unwrap() <= resident_bytes().unwrap());
        assert_eq!(Memory::new(Some(1)).current_level(), MemoryLevel::Short);
        assert_eq!(
            Memory::new(Some(u64::MAX)).limit_bytes(),
            Memory::new(None).limit_bytes().or(Some(u64::MAX))
        );
    }
}
