//! The exports: the queue in its order, the history, one export with its file, and its actions.
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_base::commit::CommitCheck;
use penstock_base::error::GatewayError;
use penstock_export::{ExportEntry, Exporter, Kind, OpenedExport, Status};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, cursor_after};
use penstock_http::state::{gateway, run_blocking};
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, Response, handler};
use std::io::Read as _;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of exports of a target's queue that are shown.
const MAX_QUEUE_ROWS: usize = 100;
/// The maximum number of exports that are read for one page of a filtered list.
const MAX_READ_EXPORTS: usize = 5_000;
/// The maximum number of bytes of a file that are shown.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// The choices of the filter.
const STATES: [(&str, &str); 5] = [
    ("", "All, newest first"),
    ("queue", "Waiting, in order"),
    ("blocked", "Blocked"),
    ("parked", "Parked"),
    ("delivered", "Delivered"),
];

#[derive(Template)]
#[template(path = "admin/exports.html")]
struct List {
    frame: Frame,
    states: Vec<Choice>,
    business_objects: Vec<Choice>,
    targets: Vec<Choice>,
    /// Whether the queue is shown, in its order.
    is_queue: bool,
    lines: Vec<TargetQueue>,
    rows: Vec<Row>,
    /// Whether a filter is set.
    is_narrowed: bool,
    pager: Pager,
}

/// One choice of a filter.
struct Choice {
    value: String,
    words: String,
    is_chosen: bool,
}

/// The queue of one target.
struct TargetQueue {
    target: String,
    rows: Vec<Row>,
    more: usize,
    blocked: Option<String>,
}

/// One row of a list.
struct Row {
    /// Its position in the queue, from 1; 0 in other lists.
    place: usize,
    id: String,
    /// Whether the row links to a page. An export that waits for space in the spool has no permanent page yet.
    is_entry: bool,
    business_object: String,
    target: String,
    sequence: u64,
    kind: &'static str,
    objects: String,
    size: String,
    age: String,
    state: StatusLabel,
}

/// The status of an export, as it is shown.
pub(super) struct StatusLabel(Status);

#[derive(Template)]
#[template(path = "admin/export.html")]
struct One {
    frame: Frame,
    entry: ExportEntry,
    state: StatusLabel,
    kind: &'static str,
    created: String,
    delivered: Option<String>,
    size: String,
    objects: String,
    by: Option<String>,
    /// The name of the file, without the folders before it.
    file: String,
    content: Shown,
    may_retry: bool,
    may_park: bool,
    may_replay: bool,
}

/// The beginning of the file.
enum Shown {
    /// The text, its size in words, and whether it is the whole file.
    Text { text: String, size: String, is_all: bool },
    /// Why there is none.
    Gone(String),
}

impl StatusLabel {
    pub(super) fn from_status(status: Status) -> Self {
        Self(status)
    }

    pub(super) fn words(&self) -> &'static str {
        match self.0 {
            Status::Waiting => "waiting for space",
            Status::Queued => "queued",
            Status::Delivering => "delivering",
            Status::Delivered => "delivered",
            Status::Blocked => "blocked",
            Status::Parked => "parked",
        }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.0 {
            Status::Delivered => "good",
            Status::Waiting | Status::Parked => "warn",
            Status::Blocked => "bad",
            Status::Queued | Status::Delivering => "",
        }
    }
}

impl Row {
    fn from_entry(place: usize, entry: ExportEntry) -> Self {
        Self {
            place,
            is_entry: entry.status != Status::Waiting,
            id: entry.id,
            business_object: entry.business_object_name,
            target: entry.target,
            sequence: entry.sequence,
            kind: kind_label(entry.kind),
            objects: words::format_number(entry.object_count),
            size: words::format_size(entry.bytes),
            age: words::format_age(&entry.created_at),
            state: StatusLabel(entry.status),
        }
    }
}

fn kind_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Full => "full",
        Kind::Incremental => "changes",
        Kind::Deleted => "deletions",
    }
}

/// The filter of a list, and the cursor of the page.
#[derive(Clone)]
struct ListFilter {
    state: String,
    business_object: Option<String>,
    target: Option<String>,
    after: Option<String>,
}

impl ListFilter {
    fn is_match(&self, entry: &ExportEntry) -> bool {
        let state = match self.state.as_str() {
            "blocked" => entry.status == Status::Blocked,
            "parked" => entry.status == Status::Parked,
            "delivered" => entry.status == Status::Delivered,
            "queue" => !matches!(entry.status, Status::Delivered | Status::Parked),
            _ => true,
        };
        let is =
            |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        state
            && is(&self.business_object, &entry.business_object)
            && is(&self.target, &entry.target)
    }
}

/// Shows the list.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["state", "businessObject", "target", "cursor"])?;
    let word = |name: &str| query.get(name).filter(|word| !word.is_empty()).map(str::to_owned);
    let asked = ListFilter {
        state: word("state").unwrap_or_default(),
        business_object: word("businessObject"),
        target: word("target"),
        after: query.read_uuid_cursor()?,
    };
    let frame = Frame::for_caller(req, depot, res, Section::Exports);
    let gateway = gateway(depot)?;
    let page = run_blocking(move || Ok(build_list(frame, &gateway, &asked)?)).await?;
    frame::show_page(res, depot, &page);
    Ok(())
}

fn build_list(frame: Frame, gateway: &Gateway, filter: &ListFilter) -> Result<List, GatewayError> {
    let is_queue = filter.state == "queue";
    let targets = gateway.exporter.list_targets()?;
    let mut lines = Vec::new();
    let (mut rows, mut next) = (Vec::new(), None);
    if is_queue {
        for target in &targets {
            if filter.target.as_ref().is_some_and(|wanted| *wanted != target.name) {
                continue;
            }
            let (entries, all) = gateway.exporter.list_queue(&target.name, MAX_QUEUE_ROWS)?;
            let more = all.saturating_sub(entries.len());
            let entries =
                entries.into_iter().enumerate().filter(|(_, entry)| filter.is_match(entry));
            let rows: Vec<_> =
                entries.map(|(place, entry)| Row::from_entry(place + 1, entry)).collect();
            if !rows.is_empty() || more > 0 {
                let (target, blocked) = (target.name.clone(), target.blocked.clone());
                lines.push(TargetQueue { target, rows, more, blocked });
            }
        }
    } else {
        let (found, cursor) = find_exports(&gateway.exporter, filter)?;
        rows = found.into_iter().map(|entry| Row::from_entry(0, entry)).collect();
        next = cursor;
    }
    let parameters = [
        ("state", Some(filter.state.as_str()).filter(|state| !state.is_empty())),
        ("businessObject", filter.business_object.as_deref()),
        ("target", filter.target.as_deref()),
    ];
    let is_narrowed = parameters.iter().any(|(_, value)| value.is_some());
    let is_first = filter.after.is_none();
    let pager = Pager::new(&frame, "/admin/exports", &parameters, is_first, next.as_deref());
    let all = gateway.catalogue.list();
    let business_objects = all
        .iter()
        .map(|compiled| (compiled.object.id.clone(), compiled.object.definition.name.clone()));
    let states = STATES.iter().map(|(value, words)| ((*value).to_owned(), (*words).to_owned()));
    let names = targets.iter().map(|target| (target.name.clone(), target.name.clone()));
    Ok(List {
        states: build_choices(None, states, Some(&filter.state)),
        business_objects: build_choices(
            Some("All"),
            business_objects,
            filter.business_object.as_ref(),
        ),
        targets: build_choices(Some("All"), names, filter.target.as_ref()),
        frame,
        is_queue,
        lines,
        rows,
        is_narrowed,
        pager,
    })
}

fn build_choices(
    all: Option<&str>,
    others: impl Iterator<Item = (String, String)>,
    chosen: Option<&String>,
) -> Vec<Choice> {
    let all = all.map(|words| (String::new(), words.to_owned()));
    all.into_iter()
        .chain(others)
        .map(|(value, words)| Choice {
            is_chosen: chosen.is_some_and(|chosen| *chosen == value),
            value,
            words,
        })
        .collect()
}

/// Returns the exports that match the filter, newest first, and the cursor of the next page.
fn find_exports(
    exporter: &Exporter,
    filter: &ListFilter,
) -> Result<(Vec<ExportEntry>, Option<String>), GatewayError> {
    const PAGE: usize = 200;
    let mut found: Vec<ExportEntry> = Vec::new();
    let mut after = filter.after.clone();
    let mut read_count = 0;
    while read_count < MAX_READ_EXPORTS {
        let page = exporter.list(after.as_deref(), PAGE)?;
        let is_last = page.len() < PAGE;
        read_count += PAGE;
        for entry in page {
            if filter.is_match(&entry) && found.len() == ROWS_PER_PAGE {
                let next = found.last().map(|last| cursor_after(&last.id));
                return Ok((found, next));
            }
            after = Some(entry.id.clone());
            if filter.is_match(&entry) {
                found.push(entry);
            }
        }
        if is_last {
            return Ok((found, None));
        }
    }
    // There may be more. The next page continues where this one stopped reading.
    Ok((found, after.as_deref().map(cursor_after)))
}

/// Shows one export.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::for_caller(req, depot, res, Section::Exports);
    let gateway = gateway(depot)?;
    let id = path_parameter(req, "id").to_owned();
    let page = run_blocking(move || {
        let entry = gateway.exporter.get(&id)?;
        let entry = entry.ok_or_else(|| {
            Problem::not_found(format!(
                "There is no export {id:?}, or its record is no longer kept."
            ))
        })?;
        Ok(build_page(frame, &gateway, entry))
    })
    .await?;
    frame::show_page(res, depot, &page);
    Ok(())
}

fn build_page(frame: Frame, gateway: &Gateway, entry: ExportEntry) -> One {
    let content = match gateway.exporter.open_content(&entry.id) {
        Ok(content) => read_preview(content),
        Err(error) => Shown::Gone(error.detail),
    };
    let is_kept = matches!(content, Shown::Text { .. });
    let account = entry.pushed_by.as_deref().and_then(|id| gateway.auth.accounts.get(id));
    let waits = matches!(entry.status, Status::Queued | Status::Blocked);
    let may = frame.may(Role::Admin);
    One {
        state: StatusLabel(entry.status),
        kind: kind_label(entry.kind),
        created: words::format_utc(&entry.created_at),
        delivered: entry.delivered_at.as_deref().map(words::format_utc),
        size: words::format_size(entry.bytes),
        objects: words::format_count(entry.object_count, "object", "objects"),
        by: account
            .map(|account| words::display_name(&account))
            .or_else(|| entry.pushed_by.clone()),
        file: entry.key.rsplit('/').next().unwrap_or_default().to_owned(),
        may_retry: may && (waits || entry.status == Status::Parked),
        may_park: may && waits,
        may_replay: may && is_kept && entry.status == Status::Delivered,
        content,
        frame,
        entry,
    }
}

/// Reads the beginning of a file, cut at a character boundary.
fn read_preview(content: OpenedExport) -> Shown {
    let mut bytes = Vec::with_capacity(
        MAX_SHOWN_BYTES.min(usize::try_from(content.length).unwrap_or(MAX_SHOWN_BYTES)),
    );
    if let Err(error) = content.file.take(MAX_SHOWN_BYTES as u64).read_to_end(&mut bytes) {
        return Shown::Gone(format!("it could not be read: {error}"));
    }
    let is_all = bytes.len() as u64 == content.length;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text.to_owned(),
        Err(error) => String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default())
            .into_owned(),
    };
    Shown::Text { size: words::format_size(text.len() as u64), text, is_all }
}

/// Retries the delivery of a waiting export now, or queues a parked one again.
#[handler]
pub(crate) async fn retry(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    run_action(req, depot, res, Exporter::retry, "The export is retried now.").await
}

/// Parks a waiting export.
#[handler]
pub(crate) async fn park(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let words = "The export is parked. The exports after it continue; consumers see a gap until it is retried.";
    run_action(req, depot, res, Exporter::park, words).await
}

/// Queues a delivered file again.
#[handler]
pub(crate) async fn replay(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    run_action(req, depot, res, Exporter::replay, "The file is queued again, under its own key.")
        .await
}

async fn run_action(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    action: impl FnOnce(&Exporter, &dyn CommitCheck, &str) -> Result<ExportEntry, GatewayError>
    + Send
    + 'static,
    done: &str,
) -> Result<(), Problem> {
    let exporter = gateway(depot)?.exporter;
    let (by, id) = (caller(depot).clone(), path_parameter(req, "id").to_owned());
    let page = format!("/admin/exports/{id}");
    match run_blocking(move || Ok(action(&exporter, &by, &id))).await? {
        Ok(_) => frame::redirect_with_notice(res, depot, &page, done),
        Err(error) if error.class == penstock_base::error::ErrorClass::NotFound => {
            return Err(error.into());
        }
        Err(error) => frame::redirect_with_error(res, depot, &page, &error.detail),
    }
    Ok(())
}
