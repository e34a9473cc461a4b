//! The newest warnings and errors of the log, kept in memory for whoever looks after many gateways.
//!
//! One that is told again takes the place of the one before, so that what is told often does not drive out
//! what was told once. They belong to the process, as the log does. What must not stand in the log stands not here either.
use crate::time;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Lines that are kept.
const KEPT: usize = 50;
/// Characters of a message, or of a field.
const LONGEST: usize = 400;

static LINES: Mutex<VecDeque<Line>> = Mutex::new(VecDeque::new());

/// A warning or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// When (RFC 3339, UTC).
    pub time: String,
    /// `warning`, or `error`, which means that an operator has to act.
    pub level: &'static str,
    /// The part of the gateway that says it, such as `export::deliver`.
    pub code: &'static str,
    /// What, in words.
    pub text: String,
    /// How often it was told.
    pub count: u64,
    /// The particulars: what it is about, and the cause.
    pub fields: BTreeMap<&'static str, String>,
}

/// The newest ones, the newest first.
pub fn lines() -> Vec<Line> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
}

/// What keeps them.
pub(super) struct Recent;

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        let level = match *meta.level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => return,
        };
        let part = meta.module_path().unwrap_or(meta.target());
        let mut line = Line {
            time: time::rfc3339(),
            level,
            code: part.strip_prefix("penstock_").unwrap_or(part),
            text: String::new(),
            count: 1,
            fields: BTreeMap::new(),
        };
        event.record(&mut line);
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &Line| (known.code, &known.text) == (line.code, &line.text);
        if let Some(before) = lines.iter().position(is_same).and_then(|at| lines.remove(at)) {
            line.count += before.count;
        }
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value: String = format!("{value:?}").chars().take(LONGEST).collect();
        if field.name() == "message" {
            self.text = value;
        } else {
            self.fields.insert(field.name(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn the_newest_warnings_are_kept_and_no_more() {
        let subscriber = tracing_subscriber::registry().with(Recent);
        crate::telemetry::heard(subscriber, || {
            tracing::error!("It went wrong once.");
            for number in 0..KEPT * 2 {
                tracing::info!("It went well.");
                tracing::warn!(number, cause = "x".repeat(LONGEST * 2), "It did not.");
            }
        });
        let told = lines();
        assert_eq!(told.len(), 2);
        assert_eq!((told[1].level, told[1].count), ("error", 1));
        let newest = &told[0];
        assert_eq!((newest.level, newest.text.as_str()), ("warning", "It did not."));
        assert_eq!(newest.count, KEPT as u64 * 2);
        assert_eq!(newest.code, "base::telemetry::recent::tests");
        assert_eq!(newest.fields["number"], (KEPT * 2 - 1).to_string());
        assert_eq!(newest.fields["cause"].len(), LONGEST);
        let subscriber = tracing_subscriber::registry().with(Recent);
        crate::telemetry::heard(subscriber, || {
            (0..KEPT * 2).for_each(|number| tracing::warn!("It was number {number}."));
        });
        assert_eq!(lines().len(), KEPT);
    }
}
