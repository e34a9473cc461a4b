//! The memory limit of the process, and what the gateway does when memory is low.
//!
//! Only memory that the kernel cannot reclaim counts: the anonymous pages of the process, because a gateway has no
//! swap. The kernel evicts cached file pages when it needs memory.
//!
//! The allocator is jemalloc, with two arenas and a thread that returns unused pages to the kernel after a second
//! (`.cargo/config.toml`). glibc's allocator has an arena for each thread and returns only the end of each. After a
//! peak the level would remain at [`Level::Short`]. C code (zstd, one context at a time) keeps the allocator of the C
//! library: with jemalloc as its malloc, a preloaded library such as libfaketime would deadlock at the start.
use penstock_store::ReadStore;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The percentages of the limit from which memory counts as low, and as short.
const LOW: u64 = 75;
const SHORT: u64 = 90;
/// How long a measured level stays valid: measuring takes some microseconds, and many requests ask.
const LOOK: Duration = Duration::from_millis(200);
/// The interval at which memory is measured without a request.
const EVERY: Duration = Duration::from_secs(2);
/// The minimum bytes of index entries in memory that are worth a checkpoint.
const WORTH: u64 = 1 << 20;
/// Values from this on mean no limit: without a limit, version 1 of the control groups shows the largest number of
/// whole pages.
const NO_LIMIT: u64 = 1 << 62;
/// The root of the control groups (cgroups(7)).
const GROUPS: &str = "/sys/fs/cgroup";

/// How much memory is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Enough.
    Ample,
    /// Three quarters of the limit are in use: the store writes out its cache.
    Low,
    /// Nine tenths of the limit are in use: most request bodies are refused.
    Short,
}

/// The memory of the process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Memory {
    /// `service.limits.memory`
    configured: Option<u64>,
    looked: Arc<Mutex<Option<(Instant, Level)>>>,
}

impl Memory {
    /// Creates a handle for the memory of the process. The limit is `configured` bytes (`service.limits.memory`) or
    /// that of the control group, whichever is lower.
    pub fn new(configured: Option<u64>) -> Self {
        Self { configured, looked: Arc::default() }
    }

    /// Returns the limit in bytes; `None` without a limit.
    pub fn limit(&self) -> Option<u64> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        [self.configured, limit_of(&own, Path::new(GROUPS))].into_iter().flatten().min()
    }

    /// Returns the remaining bytes of the limit; `None` without a limit, or if the memory in use is unknown.
    pub fn left(&self) -> Option<u64> {
        Some(self.limit()?.saturating_sub(held()?))
    }

    /// Returns how much memory is left, measured at most 200 ms ago.
    pub fn level(&self) -> Level {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, level)) = *looked
            && at.elapsed() < LOOK
        {
            return level;
        }
        let level = match (held(), self.limit()) {
            (Some(held), Some(limit)) => level(held, limit),
            _ => Level::Ample,
        };
        *looked = Some((Instant::now(), level));
        level
    }

    /// Frees memory while it is low, until this future is dropped: lets the store write out its cache in a checkpoint.
    pub async fn relieve(self, store: ReadStore) {
        let mut before = Level::Ample;
        loop {
            tokio::time::sleep(EVERY).await;
            let level = self.level();
            if level != before {
                tell(level);
                before = level;
            }
            if level > Level::Ample && store.stats().write_back_bytes >= WORTH {
                let store = store.clone();
                // A store that cannot write logs that itself.
                let _ = tokio::task::spawn_blocking(move || store.checkpoint()).await;
            }
        }
    }
}

fn tell(level: Level) {
    match level {
        Level::Ample => tracing::info!("Memory is sufficient again."),
        Level::Low => tracing::info!("Memory is low; the store writes out its cache."),
        Level::Short => tracing::warn!(
            held = held(),
            "Memory is short; requests with large bodies are refused until there is enough memory."
        ),
    }
}

fn level(held: u64, limit: u64) -> Level {
    let percent = held.saturating_mul(100) / limit.max(1);
    match percent {
        SHORT.. => Level::Short,
        LOW.. => Level::Low,
        _ => Level::Ample,
    }
}

/// Returns the bytes of this process that the kernel cannot reclaim; `None` if unknown.
pub fn held() -> Option<u64> {
    Some(line("RssAnon")? + line("RssShmem").unwrap_or_default())
}

/// Returns the resident memory of this process, in bytes; `None` if unknown.
pub fn resident() -> Option<u64> {
    line("VmRSS")
}

/// Reads a value of `proc_pid_status(5)`, in bytes.
fn line(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the lowest limit of the process's control groups and their parents: `memory.high` and `memory.max` of
/// version 2, `memory.limit_in_bytes` of version 1. `own` is the content of `/proc/self/cgroup`, with lines of the form
/// `hierarchy:controllers:/group`.
fn limit_of(own: &str, root: &Path) -> Option<u64> {
    let limits = own.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
        if controllers.is_empty() {
            least(root, group, &["memory.high", "memory.max"])
        } else if controllers.split(',').any(|controller| controller == "memory") {
            least(&root.join("memory"), group, &["memory.limit_in_bytes"])
        } else {
            None
        }
    });
    limits.min()
}

/// Returns the lowest limit in these files of the group and its parents. `max` means no limit, and so does a value from
/// [`NO_LIMIT`] on.
fn least(root: &Path, group: &str, files: &[&str]) -> Option<u64> {
    let group = root.join(group);
    let groups = group.ancestors().take_while(|group| group.starts_with(root));
    let said = groups.flat_map(|group| files.iter().map(|file| group.join(file)));
    let limits =
        said.filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.filter(|limit| *limit < NO_LIMIT).min()
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
        assert_eq!(limit_of(own, root.path()), None);
        std::fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit_of(own, root.path()), None);
        std::fs::write(group.join("memory.high"), "170000000\n").unwrap();
        std::fs::write(root.path().join("system.slice/memory.max"), "300000000\n").unwrap();
        assert_eq!(limit_of(own, root.path()), Some(170_000_000));
        std::fs::write(root.path().join("memory.max"), "100000000\n").unwrap();
        assert_eq!(limit_of(own, root.path()), Some(100_000_000));
        assert_eq!(limit_of("0::/\n", root.path()), Some(100_000_000));
        assert_eq!(limit_of("4:cpu,memoryless:/user\n", root.path()), None);
    }

    #[test]
    fn the_limit_of_a_group_of_version_1_counts_too() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("memory/system.slice/penstock.service");
        std::fs::create_dir_all(&group).unwrap();
        let own = "12:pids:/else\n4:cpu,memory:/system.slice/penstock.service\n0::/system.slice\n";
        assert_eq!(limit_of(own, root.path()), None);
        std::fs::write(root.path().join("memory/memory.limit_in_bytes"), "9223372036854771712\n")
            .unwrap();
        assert_eq!(limit_of(own, root.path()), None);
        std::fs::write(group.join("memory.limit_in_bytes"), "134217728\n").unwrap();
        assert_eq!(limit_of(own, root.path()), Some(134_217_728));
        std::fs::create_dir_all(root.path().join("system.slice")).unwrap();
        std::fs::write(root.path().join("system.slice/memory.max"), "100000000\n").unwrap();
        assert_eq!(limit_of(own, root.path()), Some(100_000_000));
    }

    #[test]
    fn the_level_follows_from_the_memory_in_use() {
        assert_eq!(level(74, 100), Level::Ample);
        assert_eq!(level(75, 100), Level::Low);
        assert_eq!(level(89, 100), Level::Low);
        assert_eq!(level(90, 100), Level::Short);
        assert_eq!(level(1, 0), Level::Short);
        assert!(held().unwrap() <= resident().unwrap());
        assert_eq!(Memory::new(Some(1)).level(), Level::Short);
        assert_eq!(
            Memory::new(Some(u64::MAX)).limit(),
            Memory::new(None).limit().or(Some(u64::MAX))
        );
    }
}
