//! Keeps recent warnings and errors of the log in memory, for operators of many gateways.
//!
//! A repeated line replaces its predecessor, so that frequent lines do not displace rare ones. The lines belong to
//! the process, as the log does. What must not be in the log must not be here either.
use super::targets::part_of_target;
use crate::time;
use parking_lot::Mutex;
use penstock_resources::gateway::LoggedError;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The maximum number of lines.
const MAX_LINES: usize = 50;
/// The maximum number of characters of a message or a field.
const MAX_TEXT_CHARS: usize = 400;

static LINES: Mutex<VecDeque<LoggedError>> = Mutex::new(VecDeque::new());

/// Returns the recent lines, the newest first.
pub fn recent_lines() -> Vec<LoggedError> {
    LINES.lock().iter().rev().cloned().collect()
}

/// The layer that keeps the recent lines.
pub(super) struct RecentLayer;

impl<S: Subscriber> Layer<S> for RecentLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        let level = match *meta.level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => return,
        };
        let part = meta.module_path().unwrap_or(meta.target());
        let mut line = LoggedError {
            time: time::now_rfc3339(),
            level,
            code: part_of_target(part),
            text: String::new(),
            count: 1,
            fields: BTreeMap::new(),
        };
        event.record(&mut LineVisitor(&mut line));
        let mut lines = LINES.lock();
        let is_same = |known: &LoggedError| (&known.code, &known.text) == (&line.code, &line.text);
        if let Some(before) = lines.iter().position(is_same).and_then(|at| lines.remove(at)) {
            line.count += before.count;
        }
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Writes the message and the fields of an event into its line.
struct LineVisitor<'l>(&'l mut LoggedError);

impl Visit for LineVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value: String = format!("{value:?}").chars().take(MAX_TEXT_CHARS).collect();
        if field.name() == "message" {
            self.0.text = value;
        } else {
            self.0.fields.insert(field.name(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn only_the_newest_warnings_are_kept() {
        let subscriber = tracing_subscriber::registry().with(RecentLayer);
        crate::telemetry::with_subscriber(subscriber, || {
            tracing::error!("It went wrong once.");
            for number in 0..MAX_LINES * 2 {
                tracing::info!("It went well.");
                tracing::warn!(number, cause = "x".repeat(MAX_TEXT_CHARS * 2), "It did not.");
            }
        });
        let recent = recent_lines();
        assert_eq!(recent.len(), 2);
        assert_eq!((recent[1].level, recent[1].count), ("error", 1));
        let newest = &recent[0];
        assert_eq!((newest.level, newest.text.as_str()), ("warning", "It did not."));
        assert_eq!(newest.count, MAX_LINES as u64 * 2);
        assert_eq!(newest.code, "telemetry::recent::tests");
        assert_eq!(newest.fields["number"], (MAX_LINES * 2 - 1).to_string());
        assert_eq!(newest.fields["cause"].len(), MAX_TEXT_CHARS);
        let subscriber = tracing_subscriber::registry().with(RecentLayer);
        crate::telemetry::with_subscriber(subscriber, || {
            (0..MAX_LINES * 2).for_each(|number| tracing::warn!("It was number {number}."));
        });
        assert_eq!(recent_lines().len(), MAX_LINES);
    }
}
