//! Writes log events to systemd's journal, with each field as a field of the entry: `journalctl
//! BUSINESS_OBJECT=Pump`.
use log::kv::{Error, Key, Source, Value, VisitSource};
use std::fmt::{self, Write as _};
use systemd_journal_logger::JournalLog;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The field of events that names an export's target. The name `target` is reserved by tracing.
const TARGET: &str = "target_name";

/// A layer that writes the log to the journal.
pub(super) struct JournalLayer(JournalLog);

impl JournalLayer {
    /// Connects to the journal. Returns `None` if there is none.
    pub(super) fn open() -> Option<Self> {
        JournalLog::new().ok().map(Self)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JournalLayer {
    fn on_new_span(&self, given: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            given.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, given: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            given.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.named.extend(outer.named.iter().cloned());
            }
        }
        let meta = event.metadata();
        // The client writes the record's target into the field TARGET, which names an export's target here.
        let target = fields.named.iter().find(|(name, _)| *name == TARGET);
        let target = target.map_or_else(String::new, |(_, value)| value.clone());
        // The client maps each level to a priority one step more severe than syslog's: information becomes a notice,
        // and debugging becomes information. So pass the next lower level.
        let level = match *meta.level() {
            Level::ERROR => log::Level::Error,
            Level::WARN => log::Level::Warn,
            Level::INFO => log::Level::Debug,
            Level::DEBUG | Level::TRACE => log::Level::Trace,
        };
        // If the journal refuses an entry, there is nowhere else to report it.
        let _ = self.0.journal_send(
            &log::Record::builder()
                .level(level)
                .target(&target)
                .module_path(meta.module_path())
                .file(meta.file())
                .line(meta.line())
                .key_values(&fields)
                .args(format_args!("{fields}"))
                .build(),
        );
    }
}

/// The message of an event or a span, and its fields by name.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    named: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing into a string cannot fail.
            let _ = write!(self.message, "{value:?}");
        } else {
            self.named.push((field.name(), format!("{value:?}")));
        }
    }
}

impl fmt::Display for Fields {
    /// Writes the message and the fields in one line, for readers who see only messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.named.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl Source for Fields {
    fn visit<'kvs>(&'kvs self, visitor: &mut dyn VisitSource<'kvs>) -> Result<(), Error> {
        let fields = self.named.iter().filter(|(name, _)| *name != TARGET);
        fields
            .map(|(name, value)| (Key::from(*name), Value::from(value.as_str())))
            .try_for_each(|(name, value)| visitor.visit_pair(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Fields>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().push(fields);
        }
    }

    #[test]
    fn fields_are_in_the_message_and_available_separately() {
        let kept = Kept::default();
        let subscriber = tracing_subscriber::registry().with(kept.clone());
        crate::telemetry::with_subscriber(subscriber, || {
            tracing::info!(business_object = "Pump", count = 2, "It was done.");
        });
        let kept = kept.0.lock();
        let Fields { named, .. } = &kept[0];
        assert_eq!(kept[0].to_string(), "It was done. business_object=Pump count=2");
        assert_eq!(named, &[("business_object", "Pump".to_owned()), ("count", "2".to_owned())]);
    }
}
