//! `/admin/ingestions/{id}`: the record of one ingestion.
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_resources::ingestion::IngestionRecord;
use penstock_service::ingestions::find_ingestion;
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/ingestion.html")]
struct One {
    frame: Frame,
    title: String,
    record: IngestionRecord,
    /// Whether the Business Object still exists.
    is_defined: bool,
    sender: String,
    approver: Option<String>,
    /// The number of objects for each result, or of quads.
    counts: Vec<(&'static str, String)>,
}

/// Shows one ingestion.
#[handler]
pub(crate) async fn show_ingestion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let record = find_ingestion(&gateway, path_parameter(req, "id").to_owned()).await?;
    let object = record.business_object.as_deref();
    let is_defined = object.is_some_and(|id| gateway.catalogue.get(id).is_some());
    Ok(PageReply::show(&One {
        frame,
        title: describe_record(&record),
        is_defined,
        sender: words::name_sender(&gateway, by, &record.caller, record.api_key.as_deref()),
        approver: record.approved_by.as_deref().map(|id| words::name_actor(&gateway, by, id)),
        counts: list_counts(&record),
        record,
    }))
}

/// Names an ingestion: what it did, and when.
pub(super) fn describe_record(record: &IngestionRecord) -> String {
    let at = words::format_utc(&record.at);
    match &record.business_object_name {
        Some(name) => format!("{} into {name}, {at}", record.mode.name()),
        None => format!("{}, {at}", record.mode.name()),
    }
}

fn list_counts(record: &IngestionRecord) -> Vec<(&'static str, String)> {
    let counts = match record.quads {
        Some(quads) => vec![("Quads inserted", quads.inserted), ("Quads removed", quads.removed)],
        None => vec![
            ("New objects", record.created),
            ("Changed", record.updated),
            ("Unchanged", record.unchanged),
            ("Removed", record.deleted),
        ],
    };
    counts.into_iter().map(|(label, count)| (label, words::format_number(count))).collect()
}
