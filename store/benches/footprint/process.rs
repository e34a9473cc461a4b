//! The kernel's figures about this process.
use crate::tell;
use std::fs;
use std::path::Path;
use std::time::Instant;

fn entry(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Returns the number of bytes that this process caused to be sent to the device.
pub(crate) fn written() -> u64 {
    entry("io", "write_bytes")
}

pub(crate) fn tell_memory(when: &str) {
    tell(&format!("resident MB, {when}"), entry("status", "VmRSS") / 1_000);
}

pub(crate) fn tell_peak() {
    tell("peak MB, loading", entry("status", "VmHWM") / 1_000);
}

/// Returns the CPU seconds of this process, or of one of its threads.
fn computed(of: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{of}/stat")).unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Measures a period of work from its beginning.
pub(crate) struct Stretch {
    clock: Instant,
    computed: f64,
    in_thread: f64,
    written: u64,
}

impl Stretch {
    pub(crate) fn begin() -> Self {
        Self {
            clock: Instant::now(),
            computed: computed("self"),
            in_thread: computed("thread-self"),
            written: written(),
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    pub(crate) fn computed(&self) -> f64 {
        computed("self") - self.computed
    }

    /// Returns the CPU seconds of only the calling thread.
    pub(crate) fn computed_here(&self) -> f64 {
        computed("thread-self") - self.in_thread
    }

    pub(crate) fn written(&self) -> u64 {
        written() - self.written
    }

    pub(crate) fn tell_rate(&self, what: &str, count: u64) {
        tell(&format!("{what}/s"), format!("{:.0}", count as f64 / self.seconds()));
        let computed = self.computed().max(0.01);
        tell(&format!("{what}/s of computing"), format!("{:.0}", count as f64 / computed));
    }

    pub(crate) fn tell_seconds(&self, what: &str) {
        tell(what, self.told(""));
    }

    /// Formats the elapsed time.
    pub(crate) fn told(&self, more: &str) -> String {
        format!("{:.2} s ({:.2} s of computing){more}", self.seconds(), self.computed())
    }
}

/// Returns the total size of all files in a folder and its subfolders, in bytes.
pub(crate) fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_of(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

pub(crate) fn tell_bytes(what: &str, bytes: u64, quads: u64) {
    tell(what, format!("{:.1}", bytes as f64 / quads.max(1) as f64));
}
