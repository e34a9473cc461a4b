//! The memory that the process may have, and what is done when it runs short.
//!
//! What counts is what the kernel cannot take back: the process's anonymous pages, since a gateway has no
//! swap. Files that are in memory go by themselves.
//!
//! The allocator is jemalloc, with two arenas and a thread that returns unused pages to the kernel after a second
//! (`.cargo/config.toml`). glibc's has an arena for each thread and returns only the end of each, so that after a peak
//! the level would stay at [`Level::Short`] for good. C code (zstd, one context at a time) keeps the C library's: were
//! jemalloc its malloc too, a preloaded library such as libfaketime would wait for itself at the start.
use penstock_store::ReadStore;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Parts of the limit, in percent, from which on memory is low, and short.
const LOW: u64 = 75;
const SHORT: u64 = 90;
/// How long a look at it counts: looking takes some microseconds, and many requests ask.
const LOOK: Duration = Duration::from_millis(200);
/// How often it is looked at without being asked.
const EVERY: Duration = Duration::from_secs(2);
/// Entries of the index that wait in memory are written out for no less than so many bytes.
const WORTH: u64 = 1 << 20;
/// Version 1 of the control groups has the largest number of whole pages where there is no limit.
const NO_LIMIT: u64 = 1 << 62;
/// The root of the control groups (cgroups(7)).
const GROUPS: &str = "/sys/fs/cgroup";

/// How much memory is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Enough.
    Ample,
    /// Three quarters of the limit are in use: what waits in memory to be written is written.
    Low,
    /// Nine tenths: hardly any request bodies are taken.
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
    /// The memory of the process, of which so many bytes may be used (`service.limits.memory`), and no more
    /// than its control group may.
    pub fn new(configured: Option<u64>) -> Self {
        Self { configured, looked: Arc::default() }
    }

    /// The bytes that may be used; `None` when nothing bounds them.
    pub fn limit(&self) -> Option<u64> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        [self.configured, limit_of(&own, Path::new(GROUPS))].into_iter().flatten().min()
    }

    /// The bytes that are left of the limit; `None` when nothing bounds them, or it is not known what is held.
    pub fn left(&self) -> Option<u64> {
        Some(self.limit()?.saturating_sub(held()?))
    }

    /// How much is left.
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

    /// Makes room while it is low, until this is dropped: what the store keeps to be written later is written.
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
                // A store that cannot be written says so itself.
                let _ = tokio::task::spawn_blocking(move || store.checkpoint()).await;
            }
        }
    }
}

fn tell(level: Level) {
    match level {
        Level::Ample => tracing::info!("There is enough memory again."),
        Level::Low => tracing::info!("Memory is low; what waits to be written is written."),
        Level::Short => tracing::warn!(
            held = held(),
            "Memory is short; requests with large bodies are refused until there is more."
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

/// The bytes of this process that the kernel cannot take back; `None` when it cannot be told.
pub fn held() -> Option<u64> {
    Some(line("RssAnon")? + line("RssShmem").unwrap_or_default())
}

/// The resident memory of this process, in bytes; `None` when it cannot be told.
pub fn resident() -> Option<u64> {
    line("VmRSS")
}

/// A line of `proc_pid_status(5)`, in bytes.
fn line(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The least of what the control groups of the process and those above them may have: `memory.high` and
/// `memory.max` of version 2, `memory.limit_in_bytes` of version 1. `own` is `/proc/self/cgroup`, whose lines
/// are `hierarchy:controllers:/group`.
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

/// The least of what these files of the group and of those above it say. `max` is none, and so is what no
/// machine has, which is how version 1 says it.
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
    fn the_least_limit_of_the_groups_counts() {
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
    fn the_level_is_that_of_what_is_held() {
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
