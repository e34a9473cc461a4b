//! The recorded ingestions that wrote an object.
use crate::admin::frame::Frame;
use crate::admin::words;
use penstock_auth::Caller;
use penstock_base::Role;
use penstock_model::ingest::WriteHistory;
use penstock_resources::ingestion::IngestionRecord;
use penstock_service::gateway::Gateway;

/// The recorded ingestions that wrote an object.
pub(super) struct Written {
    /// The ingestion that generated its URI.
    pub(super) minted_by: Option<Ingestion>,
    /// The newest ingestions that wrote it or the object that it is nested in, newest first.
    pub(super) named_by: Vec<Ingestion>,
    /// How many ingestions may have written it, because their records do not name objects.
    pub(super) silent: String,
    /// Whether there are such ingestions.
    pub(super) is_silent: bool,
    /// The time of the oldest record.
    pub(super) since: Option<String>,
}

/// One ingestion.
pub(super) struct Ingestion {
    pub(super) id: String,
    pub(super) at: String,
    pub(super) by: String,
    pub(super) business_object: Option<String>,
    pub(super) mode: &'static str,
    pub(super) counts: String,
    /// Whether it rejected objects that the viewer may see.
    pub(super) has_rejected: bool,
    /// Who approved it, if it published a change.
    pub(super) approved_by: Option<String>,
    /// Whether the viewer may see that change.
    pub(super) shows_change: bool,
}

impl Written {
    pub(super) fn from_history(
        gateway: &Gateway,
        by: &Caller,
        writers: WriteHistory,
        frame: &Frame,
    ) -> Self {
        let of = |record: IngestionRecord| Ingestion::from_record(gateway, by, record, frame);
        Self {
            minted_by: writers.minted_by.map(of),
            named_by: writers.named_by.into_iter().map(of).collect(),
            is_silent: writers.without_hashes > 0,
            silent: words::format_count(writers.without_hashes, "ingestion", "ingestions"),
            since: writers.since.as_deref().map(words::format_utc),
        }
    }
}

impl Ingestion {
    fn from_record(gateway: &Gateway, by: &Caller, record: IngestionRecord, frame: &Frame) -> Self {
        let is_own = |id: &str| id == by.id();
        Self {
            at: words::format_utc(&record.at),
            by: words::name_sender(gateway, by, &record.caller, record.api_key.as_deref()),
            shows_change: frame.may(Role::Admin)
                || is_own(&record.caller)
                || record.approved_by.as_deref().is_some_and(is_own),
            approved_by: record.approved_by.as_deref().map(|id| words::name_actor(gateway, by, id)),
            counts: describe_counts(&record),
            has_rejected: record.rejected > 0 && frame.may(Role::Contributor),
            business_object: record.business_object_name,
            mode: record.mode.name(),
            id: record.id,
        }
    }
}

fn describe_counts(record: &IngestionRecord) -> String {
    if let Some(quads) = record.quads {
        let [inserted, removed] = [quads.inserted, quads.removed].map(words::format_number);
        return format!("{inserted} quads inserted, {removed} removed");
    }
    let [created, updated, deleted] =
        [record.created, record.updated, record.deleted].map(words::format_number);
    let counts = format!("{created} new, {updated} changed, {deleted} removed");
    match record.rejected {
        0 => counts,
        rejected => format!("{counts}, {} rejected", words::format_number(rejected)),
    }
}
