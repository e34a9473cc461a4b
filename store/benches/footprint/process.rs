//! The kernel's figures about this process.
use crate::report_figure;
use std::fs;
use std::path::Path;
use std::time::Instant;

fn read_proc_entry(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Returns the number of bytes that this process caused to be sent to the device.
pub(crate) fn bytes_written() -> u64 {
    read_proc_entry("io", "write_bytes")
}

pub(crate) fn report_memory(when: &str) {
    report_figure(&format!("resident MB, {when}"), read_proc_entry("status", "VmRSS") / 1_000);
}

pub(crate) fn report_peak_memory() {
    report_figure("peak MB, loading", read_proc_entry("status", "VmHWM") / 1_000);
}

/// Returns the CPU seconds of this process, or of one of its threads.
fn cpu_seconds_of(of: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{of}/stat")).unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Measures a period of work from its beginning.
pub(crate) struct Measurement {
    clock: Instant,
    computed: f64,
    in_thread: f64,
    written: u64,
}

impl Measurement {
    pub(crate) fn begin() -> Self {
        Self {
            clock: Instant::now(),
            computed: cpu_seconds_of("self"),
            in_thread: cpu_seconds_of("thread-self"),
            written: bytes_written(),
        }
    }

    pub(crate) fn elapsed_seconds(&self) -> f64 {
        self.clock.elapsed().as_secs_f64()
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds_of("self") - self.computed
    }

    /// Returns the CPU seconds of only the calling thread.
    pub(crate) fn thread_cpu_seconds(&self) -> f64 {
        cpu_seconds_of("thread-self") - self.in_thread
    }

    pub(crate) fn bytes_written(&self) -> u64 {
        bytes_written() - self.written
    }

    pub(crate) fn report_rate(&self, what: &str, count: u64) {
        report_figure(
            &format!("{what}/s"),
            format!("{:.0}", count as f64 / self.elapsed_seconds()),
        );
        let computed = self.cpu_seconds().max(0.01);
        report_figure(&format!("{what}/s of computing"), format!("{:.0}", count as f64 / computed));
    }

    pub(crate) fn report_seconds(&self, what: &str) {
        report_figure(what, self.format_elapsed(""));
    }

    /// Formats the elapsed time.
    pub(crate) fn format_elapsed(&self, more: &str) -> String {
        format!("{:.2} s ({:.2} s of computing){more}", self.elapsed_seconds(), self.cpu_seconds())
    }
}

/// Returns the total size of all files in a folder and its subfolders, in bytes.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => folder_bytes(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

pub(crate) fn report_bytes_per_quad(what: &str, bytes: u64, quads: u64) {
    report_figure(what, format!("{:.1}", bytes as f64 / quads.max(1) as f64));
}
