//! The log: to the journal of systemd where there is one, else to standard error.
//!
//! A line of text is one event: line ends in a message are written as `\n`, so that nothing that came
//! from outside can pass for an event of its own.
use super::journal::Journal;
use super::limit::Limit;
use super::recent::Recent;
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
    /// Readable lines.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// The filter that is in force; it can be changed while the service runs.
static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging; `filter` as tracing's `EnvFilter` reads it. A second call changes nothing.
///
/// Under systemd events go to the journal with their fields; as JSON, where that is asked for, they go
/// to standard error everywhere.
pub fn start(level: &str, format: LogFormat) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let subscriber = tracing_subscriber::registry().with(filter).with(Limit).with(Recent);
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        // For the fields of spans, which are written apart from the events.
        .with_ansi(std::io::stderr().is_terminal() && !is_journal())
        // It would report a failed write to standard error by `eprintln!`, which panics there.
        .log_internal_errors(false);
    let journal = if is_journal() { Journal::open() } else { None };
    let started = match (format, journal) {
        (LogFormat::Json, _) => subscriber.with(layer.json().flatten_event(true)).try_init(),
        (LogFormat::Text, Some(journal)) => subscriber.with(journal).try_init(),
        (LogFormat::Text, None) if is_journal() => subscriber
            .with(layer.event_format(Lines {
                priority: true,
                format: Format::default().with_ansi(false).without_time().with_level(false),
            }))
            .try_init(),
        (LogFormat::Text, None) => subscriber
            .with(layer.event_format(Lines {
                priority: false,
                format: Format::default().with_ansi(std::io::stderr().is_terminal()),
            }))
            .try_init(),
    };
    match started {
        // It is set once, with the log itself.
        Ok(()) => drop(FILTER.set(handle)),
        Err(error) => tracing::debug!(%error, "The log was already started."),
    }
}

/// Changes what is logged from now on.
pub fn set_level(level: &str) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(filter(level))
    {
        tracing::error!(%error, "The log level could not be changed.");
    }
}

fn filter(level: &str) -> EnvFilter {
    // At this level the server and the scheduler beneath say again what the gateway says itself.
    let level = if level.eq_ignore_ascii_case("info") {
        "info,salvo_core=warn,tokio_cron_scheduler=warn"
    } else {
        level
    };
    EnvFilter::try_new(replace_earlier_targets(level)).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Whether standard error leads to systemd's journal: `$JOURNAL_STREAM` names the device and inode of
/// the stream, and a program that redirects standard error inherits the variable all the same
/// (systemd.exec(5)).
pub fn is_journal() -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    std::fs::metadata("/proc/self/fd/2")
        .is_ok_and(|found| named == format!("{}:{}", found.dev(), found.ino()))
}

/// The priority of syslog (RFC 5424, 6.2.1) as sd-daemon(3) takes it at the beginning of a line.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// One event a line, whatever the event holds.
struct Lines<T> {
    priority: bool,
    format: Format<Full, T>,
}

impl<S, N, T> FormatEvent<S, N> for Lines<T>
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
            writer.write_str(priority(*event.metadata().level()))?;
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
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
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
            .event_format(Lines {
                priority: true,
                format: Format::default()
                    .with_ansi(false)
                    .without_time()
                    .with_level(false)
                    .with_target(false),
            })
            .finish();
        crate::telemetry::heard(subscriber, || {
            tracing::warn!(count = 2, "one\n<3>two");
            tracing::error!("three");
        });
        let written = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written, "<4>one\\n<3>two count=2\n<3>three\n");
    }
}
