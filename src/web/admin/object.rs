//! The page of one object: its JSON and Turtle, what refers to it, and the ingestions that wrote it.
use super::changes::ChangeRow;
use super::check::format_json;
use super::frame::{Frame, PageReply, PageResult, Section};
use super::words::{self, shorten_text};
use askama::Template;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_model::ingest::{Record, WriteHistory};
use penstock_service::changes::list_touching_changes;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{ObjectDetails, describe_object};
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/object.html")]
struct Page {
    frame: Frame,
    uri: String,
    /// Its label; the URI without one.
    label: String,
    /// The Business Objects that it belongs to: address and name.
    belongs: Vec<(String, String)>,
    /// The open changes that touch it and that the viewer may see.
    pending: Vec<ChangeRow>,
    /// Whether all open changes were searched.
    is_searched: bool,
    /// Its JSON in the view of a Business Object, if one shows it.
    json: Vec<Line>,
    warnings: Vec<String>,
    turtle: String,
    referrers: Vec<Referrer>,
    more_referrers: bool,
    /// Why the search for referring objects failed.
    unsearched: Option<String>,
    written: Written,
}

/// A line of JSON. The URI in it links to its object.
struct Line {
    before: String,
    link: Option<(String, String)>,
    after: String,
}

/// An object that refers to another one.
struct Referrer {
    uri: String,
    label: Option<String>,
    link: String,
    business_object: String,
    path: String,
}

/// The recorded ingestions that wrote an object.
struct Written {
    /// The ingestion that generated its URI.
    minted_by: Option<Ingestion>,
    /// The newest ingestions that wrote it or the object that it is nested in, newest first.
    named_by: Vec<Ingestion>,
    /// How many ingestions may have written it, because their records do not name objects.
    silent: String,
    /// Whether there are such ingestions.
    is_silent: bool,
    /// The time of the oldest record.
    since: Option<String>,
}

/// One ingestion.
struct Ingestion {
    id: String,
    at: String,
    by: String,
    business_object: Option<String>,
    mode: &'static str,
    counts: String,
    /// Whether it rejected objects that the viewer may see.
    has_rejected: bool,
}

/// Shows one object.
#[handler]
pub(crate) async fn show_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["uri"])?;
    let gateway = gateway(depot)?;
    let details = describe_object(&gateway, query.get("uri").unwrap_or_default()).await?;
    let by = caller(depot);
    let uri = details.uri.as_str().to_owned();
    let touching = list_touching_changes(&gateway, by, uri).await?;
    let pending = touching.changes.iter();
    let pending = pending.map(|one| ChangeRow::from_visible(one, &gateway, by)).collect();
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let page = Page::new(frame, &gateway, details);
    Ok(PageReply::show(&Page { pending, is_searched: touching.is_complete, ..page }))
}

/// Returns the address of an object's page.
pub(super) fn object_link(frame: &Frame, uri: &str) -> String {
    format!("{}/admin/object?uri={}", frame.prefix, encode_segment(uri))
}

impl Page {
    fn new(frame: Frame, gateway: &Gateway, details: ObjectDetails) -> Self {
        let uri = details.uri.into_string();
        let belongs = details.business_objects.iter().map(|compiled| {
            let object = &compiled.object;
            let link = format!("{}/admin/objects/{}", frame.prefix, object.id);
            (link, object.definition.name.clone())
        });
        let json = details.json.unwrap_or_default();
        let json = format_json(&json, gateway.settings.limits.nesting);
        let (referrers, more_referrers, unsearched) = match details.referrers {
            Ok(page) => (page.found, page.more, None),
            Err(error) => (Vec::new(), false, Some(error.detail)),
        };
        let referrers = referrers.into_iter().map(|(referrer, label)| Referrer {
            label: label.as_deref().map(shorten_text),
            link: object_link(&frame, referrer.uri.as_str()),
            uri: referrer.uri.into_string(),
            business_object: referrer.business_object.object.definition.name.clone(),
            path: referrer.path,
        });
        Self {
            belongs: belongs.collect(),
            pending: Vec::new(),
            is_searched: true,
            label: details.label.as_deref().map_or_else(|| uri.clone(), shorten_text),
            json: json.lines().map(|line| link_line(line, &uri, &frame)).collect(),
            warnings: details.warnings.iter().map(ToString::to_string).collect(),
            turtle: details.turtle,
            referrers: referrers.collect(),
            more_referrers,
            unsearched,
            written: Written::from_history(gateway, details.history, &frame),
            uri,
            frame,
        }
    }
}

/// Makes the URI in a line of JSON a link to its object, unless it is the object of this page.
fn link_line(line: &str, own: &str, frame: &Frame) -> Line {
    let plain = || Line { before: line.to_owned(), link: None, after: String::new() };
    let Some(begin) =
        line.find("\"uri\": \"").filter(|at| line.get(..*at).is_some_and(|b| b.trim().is_empty()))
    else {
        return plain();
    };
    let value = line.get(begin + 7..).unwrap_or_default().trim_end_matches(',');
    let Ok(uri) = serde_json::from_str::<String>(value) else { return plain() };
    if uri == own {
        return plain();
    }
    let end = begin + 7 + value.len();
    Line {
        before: format!("{}\"", line.get(..begin + 7).unwrap_or_default()),
        link: Some((object_link(frame, &uri), uri)),
        after: format!("\"{}", line.get(end..).unwrap_or_default()),
    }
}

impl Written {
    fn from_history(gateway: &Gateway, writers: WriteHistory, frame: &Frame) -> Self {
        let is_admin = frame.may(Role::Admin);
        let of = |record: Record| Ingestion {
            at: words::format_utc(&record.at),
            // A User must not learn more about the account than the API shows.
            by: words::name_account(gateway, &record.caller, is_admin),
            counts: describe_counts(&record),
            has_rejected: record.rejected > 0 && frame.may(Role::Contributor),
            business_object: record.business_object_name,
            mode: record.mode.name(),
            id: record.id,
        };
        Self {
            minted_by: writers.minted_by.map(of),
            named_by: writers.named_by.into_iter().map(of).collect(),
            is_silent: writers.without_hashes > 0,
            silent: words::format_count(writers.without_hashes, "ingestion", "ingestions"),
            since: writers.since.as_deref().map(words::format_utc),
        }
    }
}

fn describe_counts(record: &Record) -> String {
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
