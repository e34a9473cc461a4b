//! Writes the log to systemd's journal, or else to standard error.
//!
//! An event is one line of text. Line ends in a message are written as `\n`, so that external text cannot imitate
//! another event.
use super::journal::JournalLayer;
use super::limit::LimitLayer;
use super::recent::RecentLayer;
use super::targets::replace_earlier_targets;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{self, FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry};

/// `service.log.format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The current filter, which can be changed while the service runs.
static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging. `level` is a filter for tracing's `EnvFilter`. Further calls have no effect.
///
/// Under systemd, events go to the journal with their fields. In JSON format, they always go to standard error.
pub fn start_logging(level: &str, format: LogFormat) {
    let (filter, handle) = reload::Layer::new(build_filter(level));
    let subscriber = tracing_subscriber::registry().with(filter).with(LimitLayer).with(RecentLayer);
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        // This setting is for the fields of spans, which are written separately from the events.
        .with_ansi(std::io::stderr().is_terminal() && !is_journal())
        // With internal errors logged, a failed write would be reported by `eprintln!`, which panics if standard
        // error fails.
        .log_internal_errors(false);
    let journal = if is_journal() { JournalLayer::open() } else { None };
    let started = match (format, journal) {
        (LogFormat::Json, _) => subscriber.with(layer.json().flatten_event(true)).try_init(),
        (LogFormat::Text, Some(journal)) => subscriber.with(journal).try_init(),
        (LogFormat::Text, None) if is_journal() => subscriber
            .with(layer.event_format(LineFormat {
                priority: true,
                format: Format::default().with_ansi(false).without_time().with_level(false),
            }))
            .try_init(),
        (LogFormat::Text, None) => subscriber
            .with(layer.event_format(LineFormat {
                priority: false,
                format: Format::default().with_ansi(std::io::stderr().is_terminal()),
            }))
            .try_init(),
    };
    match started {
        // The cell is set once, together with the log.
        Ok(()) => drop(FILTER.set(handle)),
        Err(error) => tracing::debug!(%error, "The log was already started."),
    }
}

/// Changes the filter of the log.
pub fn set_level(level: &str) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(build_filter(level))
    {
        tracing::error!(%error, "Changing the log level failed.");
    }
}

fn build_filter(level: &str) -> EnvFilter {
    // At this level, the HTTP server and the scheduler would repeat what the gateway logs.
    let level = if level.eq_ignore_ascii_case("info") {
        "info,salvo_core=warn,tokio_cron_scheduler=warn"
    } else {
        level
    };
    EnvFilter::try_new(replace_earlier_targets(level)).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Whether standard error is connected to systemd's journal. `$JOURNAL_STREAM` names the device and inode of the
/// stream. The comparison is necessary because a program with redirected standard error inherits the variable too
/// (systemd.exec(5)).
pub fn is_journal() -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    std::fs::metadata("/proc/self/fd/2")
        .is_ok_and(|found| named == format!("{}:{}", found.dev(), found.ino()))
}

/// Returns the syslog priority (RFC 5424, 6.2.1) in the form that sd-daemon(3) expects at the beginning of a line.
fn syslog_priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// A format with one line for each event, whatever its content.
struct LineFormat<T> {
    priority: bool,
    format: Format<Full, T>,
}

impl<S, N, T> FormatEvent<S, N> for LineFormat<T>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    T: FormatTime,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        if self.priority {
            writer.write_str(syslog_priority(*event.metadata().level()))?;
        }
        let mut parts = line.trim_end_matches('\n').split('\n');
        writer.write_str(parts.next().unwrap_or_default())?;
        for part in parts {
            writer.write_str("\\n")?;
            writer.write_str(part)?;
        }
        writer.write_char('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_and_has_its_priority() {
        let sink = Sink::default();
        let writer = sink.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .event_format(LineFormat {
                priority: true,
                format: Format::default()
                    .with_ansi(false)
                    .without_time()
                    .with_level(false)
                    .with_target(false),
            })
            .finish();
        crate::telemetry::with_subscriber(subscriber, || {
            tracing::warn!(count = 2, "one\n<3>two");
            tracing::error!("three");
        });
        let written = String::from_utf8(sink.0.lock().clone()).unwrap();
        assert_eq!(written, "<4>one\\n<3>two count=2\n<3>three\n");
    }
}
