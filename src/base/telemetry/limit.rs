//! Limits the log, so that an error that occurs a thousand times a second fills neither the journal nor the disk.
//!
//! Each kind of warning or error (each place in the program that logs one) has a limit of its own. A number of them
//! is written each minute, the rest are counted, and one line reports the count. All other events are written,
//! because they record completed work, such as an ingestion or an export.
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The maximum number of lines of one kind in a [`WINDOW`].
const MAX_LINES_PER_WINDOW: u64 = 60;
const WINDOW: Duration = Duration::from_mins(1);

static KINDS: Mutex<Option<HashMap<Identifier, LineKind>>> = Mutex::new(None);

/// The lines of one kind in the current window, which begins with its first line.
#[derive(Debug)]
struct LineKind {
    begun: Instant,
    seen: u64,
    /// The message of the first suppressed line.
    text: String,
}

/// The layer that limits the log.
pub(super) struct LimitLayer;

impl<S: Subscriber> Layer<S> for LimitLayer {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        *event.metadata().level() > Level::WARN || is_within_limit(event, Instant::now())
    }
}

fn is_within_limit(event: &Event<'_>, now: Instant) -> bool {
    let mut kinds = KINDS.lock();
    let kinds = kinds.get_or_insert_default();
    let kind = kinds.entry(event.metadata().callsite()).or_insert_with(|| LineKind {
        begun: now,
        seen: 0,
        text: String::new(),
    });
    kind.seen += 1;
    if kind.seen == MAX_LINES_PER_WINDOW + 1 {
        event.record(&mut Message(&mut kind.text));
    }
    kind.seen <= MAX_LINES_PER_WINDOW
}

/// Logs how many lines were suppressed in the windows that have ended. The gateway calls it periodically.
pub fn log_suppressed() {
    for (count, text) in take_ended_windows(Instant::now()) {
        tracing::warn!(count, like = text, "Suppressed further lines of one kind.");
    }
}

/// Removes the windows that have ended, and returns the number and message of their suppressed lines.
fn take_ended_windows(now: Instant) -> Vec<(u64, String)> {
    let mut suppressed = Vec::new();
    if let Some(kinds) = KINDS.lock().as_mut() {
        kinds.retain(|_, kind| {
            let is_over = now.duration_since(kind.begun) >= WINDOW;
            if is_over && kind.seen > MAX_LINES_PER_WINDOW {
                suppressed.push((kind.seen - MAX_LINES_PER_WINDOW, std::mem::take(&mut kind.text)));
            }
            !is_over
        });
    }
    suppressed
}

struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Count(Arc<AtomicU64>);

    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn warnings_of_a_kind_are_limited_and_suppressed_ones_counted() {
        let count = Count::default();
        let subscriber = tracing_subscriber::registry().with(LimitLayer).with(count.clone());
        crate::telemetry::with_subscriber(subscriber, || {
            for number in 0..MAX_LINES_PER_WINDOW * 10 {
                tracing::warn!(number, "The same again.");
                tracing::info!("An ingestion was done.");
            }
            tracing::warn!("Something else.");
        });
        assert_eq!(
            count.0.load(Ordering::Relaxed),
            MAX_LINES_PER_WINDOW + MAX_LINES_PER_WINDOW * 10 + 1
        );
        assert_eq!(take_ended_windows(Instant::now()), []);
        let later = Instant::now() + WINDOW;
        let ended = take_ended_windows(later);
        assert!(
            ended.contains(&(MAX_LINES_PER_WINDOW * 9, "The same again.".to_owned())),
            "{ended:?}"
        );
        assert_eq!(take_ended_windows(later), []);
    }
}
