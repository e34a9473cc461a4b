//! The exports: the queue in its order, the history, one export with its file, and its actions.
use super::empty_runs::list_empty_runs;
use super::export_file::{FileTable, ShownDifference, collect_uris};
use super::filter_bar::Select;
use super::frame::{Frame, PageReply, PageResult};
use super::labels::{self, Labelled as _};
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::Caller;
use penstock_base::Role;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_export::{EmptyRun, ExportExt as _};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, UuidCursor, cursor_after};
use penstock_http::state::gateway;
use penstock_resources::export::{Export, ExportKind, ExportStatus, Target};
use penstock_service::exports::{self, ExportAction, ExportFilter, ExportPreview, ExportSearch};
use penstock_service::gateway::Gateway;
use penstock_service::objects::find_labels;
use penstock_service::targets;
use salvo::{Depot, Request, handler};
use std::collections::BTreeSet;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of exports of a target's queue that are shown.
const MAX_QUEUE_ROWS: usize = 100;
/// The maximum number of exports that are read for one page of a filtered list.
const MAX_READ_EXPORTS: usize = 5_000;
/// The maximum number of bytes of a file that are shown.
const MAX_SHOWN_BYTES: usize = 16 << 10;
/// The maximum number of objects of a file that are shown as a table.
const MAX_SHOWN_OBJECTS: usize = 20;
/// The part of the page of an export that shows the difference to the one before.
const DIFFERENCE: &str = "difference";

/// The choices of the filter by state: the value, its label, and the states of the exports; `None` for all.
const STATES: [(&str, &str, Option<&[ExportStatus]>); 5] = [
    ("", "All, newest first", None),
    (
        QUEUE,
        "Waiting, in order",
        Some(&[
            ExportStatus::Waiting,
            ExportStatus::Queued,
            ExportStatus::Delivering,
            ExportStatus::Blocked,
        ]),
    ),
    ("blocked", "Blocked", Some(&[ExportStatus::Blocked])),
    ("parked", "Parked", Some(&[ExportStatus::Parked])),
    ("delivered", "Delivered", Some(&[ExportStatus::Delivered])),
];
/// The choice that shows the queues of the targets.
const QUEUE: &str = "queue";

#[derive(Template)]
#[template(path = "admin/exports.html")]
struct List {
    frame: Frame,
    filters: [Select; 3],
    /// Whether the queue is shown, in its order.
    is_queue: bool,
    lines: Vec<TargetQueue>,
    rows: Vec<Row>,
    /// The last runs that exported nothing, with the names of their Business Objects.
    empty_runs: Vec<(String, EmptyRun)>,
    /// Whether a filter is set.
    is_narrowed: bool,
    pager: Pager,
}

/// The queue of one target.
struct TargetQueue {
    target: Target,
    rows: Vec<Row>,
    /// The exports of the queue behind those that were read, in words; empty without any.
    more: String,
}

/// One row of a list: the position in the queue, from 1, or 0 in other lists; and the export.
type Row = (usize, Export);

#[derive(Template)]
#[template(path = "admin/export.html")]
struct One {
    frame: Frame,
    entry: Export,
    by: Option<String>,
    /// Whether the Business Object still exists.
    is_defined: bool,
    content: Shown,
    /// The first objects; the error says why there are none.
    table: Result<FileTable, String>,
    /// The difference to the export before, on its part of the page; the error says why there is none.
    difference: Option<Result<ShownDifference, String>>,
    may: Steps,
}

/// What may be done with an export now.
struct Steps {
    retry: bool,
    park: bool,
    replay: bool,
}

/// The beginning of the file.
enum Shown {
    /// The text, its size in words, and whether it is the whole file.
    Text { text: String, size: String, is_all: bool },
    /// Why there is none.
    Gone(String),
}

impl One {
    /// Whether the table has all objects of the file.
    fn shows_all_objects(&self) -> bool {
        let shown = self.table.as_ref().map_or(0, |table| table.rows.len());
        shown as u64 == self.entry.object_count
    }
}

impl Shown {
    /// Shows the beginning of a file of this length, cut at a character boundary.
    fn from_bytes(mut bytes: Vec<u8>, length: u64) -> Self {
        let is_all = bytes.len() as u64 == length;
        if let Err(error) = std::str::from_utf8(&bytes) {
            bytes.truncate(error.valid_up_to());
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Self::Text { size: words::format_size(text.len() as u64), text, is_all }
    }
}

/// Shows the list.
#[handler]
pub(crate) async fn list_exports(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["state", "businessObject", "target", "cursor"])?;
    let after = query.read_cursor::<UuidCursor>()?;
    let query = query.without_empty();
    let parameters = ["state", "businessObject", "target"].map(|name| (name, query.get(name)));
    let [state, business_object, target] = parameters.map(|(_, value)| value);
    let statuses = STATES.iter().find(|(value, ..)| Some(*value) == state);
    let filter = ExportFilter {
        business_object: business_object.map(str::to_owned),
        target: target.map(str::to_owned),
        statuses: statuses.and_then(|(.., statuses)| *statuses),
    };
    let frame = Frame::new(req, depot, Section::Exports);
    let gateway = gateway(depot)?;
    let all_targets = targets::list_targets(&gateway).await?;
    let is_queue = state == Some(QUEUE);
    let is_first = after.is_none();
    let is_plain = is_first && state.is_none() && target.is_none();
    let empty_runs = if is_plain { list_empty_runs(&gateway, business_object) } else { Vec::new() };
    let (mut lines, mut rows, mut next) = (Vec::new(), Vec::new(), None);
    if is_queue {
        lines = list_queues(&gateway, &all_targets, &filter).await?;
    } else {
        let (limit, max_read) = (ROWS_PER_PAGE, MAX_READ_EXPORTS);
        let search = ExportSearch { filter, after, limit, max_read };
        let found = exports::find_exports(&gateway, search).await?;
        rows = found.items.into_iter().map(|entry| (0, entry)).collect();
        next = found.next.as_deref().map(cursor_after);
    }
    let states = STATES.iter().map(|(value, words, _)| (*value, *words));
    let names = all_targets.into_iter().map(|target| (target.name.clone(), target.name));
    let page = List {
        filters: [
            Select::new("state", "State", states, state),
            Select::of_business_objects(&gateway, business_object),
            Select::with_all("target", "Target", names, target),
        ],
        is_queue,
        lines,
        rows,
        empty_runs,
        is_narrowed: parameters.iter().any(|(_, value)| value.is_some()),
        pager: Pager::new(&frame, "/admin/exports", &parameters, is_first, next.as_deref()),
        frame,
    };
    Ok(PageReply::show(&page))
}

/// Returns the queues with exports that the filter selects.
async fn list_queues(
    gateway: &Gateway,
    targets: &[Target],
    filter: &ExportFilter,
) -> Result<Vec<TargetQueue>, GatewayError> {
    let mut lines = Vec::new();
    for target in targets {
        if filter.target.as_ref().is_some_and(|wanted| *wanted != target.name) {
            continue;
        }
        let (entries, total) = exports::list_queue(gateway, &target.name, MAX_QUEUE_ROWS).await?;
        let more =
            describe_more(total.saturating_sub(entries.len()), filter.business_object.is_some());
        let rows: Vec<_> = (1..).zip(entries).filter(|(_, entry)| filter.is_match(entry)).collect();
        if !rows.is_empty() || !more.is_empty() {
            lines.push(TargetQueue { target: target.clone(), rows, more });
        }
    }
    Ok(lines)
}

/// Describes the exports of a queue behind those that were read: a filter has not seen them.
fn describe_more(more: usize, is_filtered: bool) -> String {
    match more {
        0 => String::new(),
        more if is_filtered => format!(
            "Only the first {MAX_QUEUE_ROWS} exports of the queue were searched; {} behind them.",
            words::format_count(more as u64, "more export is", "more exports are")
        ),
        more => format!("and {more} more"),
    }
}

/// Shows one export.
#[handler]
pub(crate) async fn show_export(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["show"])?;
    let shows_difference = match query.get("show") {
        None => false,
        Some(DIFFERENCE) => true,
        Some(other) => {
            let detail = format!("the part {other:?} of an export is unknown; it is {DIFFERENCE}");
            return Err(Problem::malformed(detail));
        }
    };
    let frame = Frame::new(req, depot, Section::Exports);
    let gateway = gateway(depot)?;
    let id = path_parameter(req, "id");
    // Beside the difference, only the details of the export are shown.
    let (max_bytes, max_objects) =
        if shows_difference { (0, 0) } else { (MAX_SHOWN_BYTES, MAX_SHOWN_OBJECTS) };
    let preview = exports::preview_export(&gateway, id, max_bytes, max_objects).await?;
    let kind = preview.entry.kind;
    let mut page = build_page(frame, &gateway, caller(depot), preview);
    if shows_difference {
        let compared = exports::compare_export(&gateway, id).await?;
        let uris = compared.as_ref().map_or_else(|_| BTreeSet::new(), collect_uris);
        // Without labels, for example while too many searches are running, the page has only URIs.
        let labels = find_labels(&gateway, caller(depot), uris).await.unwrap_or_default();
        let show = |found| ShownDifference::new(found, &labels, kind, &page.frame);
        page.difference = Some(compared.map(show));
    }
    Ok(PageReply::show(&page))
}

fn build_page(frame: Frame, gateway: &Gateway, by: &Caller, preview: ExportPreview) -> One {
    let ExportPreview { entry, beginning, objects } = preview;
    let content = match beginning {
        Ok(bytes) => Shown::from_bytes(bytes, entry.bytes),
        Err(cause) => Shown::Gone(cause),
    };
    let is_kept = matches!(content, Shown::Text { .. });
    let waits = matches!(entry.status, ExportStatus::Queued | ExportStatus::Blocked);
    let may = frame.may(Role::Admin);
    One {
        by: entry.pushed_by.as_deref().map(|id| words::name_requester(gateway, by, id)),
        is_defined: gateway.catalogue.check_exists(&entry.business_object).is_ok(),
        may: Steps {
            retry: may && (waits || entry.status == ExportStatus::Parked),
            park: may && waits,
            replay: may && is_kept && entry.status == ExportStatus::Delivered,
        },
        table: objects.map(|objects| FileTable::new(&objects, &frame)),
        difference: None,
        content,
        frame,
        entry,
    }
}

/// Does with an export what a button of its page asks for.
pub(crate) struct ActionForm(pub(crate) ExportAction);

#[handler]
impl ActionForm {
    async fn handle(&self, req: &mut Request, depot: &mut Depot) -> PageResult {
        let id = path_parameter(req, "id");
        let page = format!("/admin/exports/{id}");
        let done = match self.0 {
            ExportAction::Retry => "The export is retried now.",
            ExportAction::Park => {
                "The export is parked. The exports after it continue; consumers see a gap until it is retried."
            }
            ExportAction::Replay => "The file is queued again, under its own key.",
        };
        match exports::change_export(&gateway(depot)?, caller(depot), id, self.0).await {
            Ok(_) => Ok(PageReply::redirect(page, done)),
            Err(error) if error.class == ErrorClass::NotFound => Err(error.into()),
            Err(error) => Ok(PageReply::redirect_with_error(page, error.detail)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_behind_those_that_were_read_are_counted_as_not_searched() {
        assert_eq!(describe_more(0, true), "");
        assert_eq!(describe_more(7, false), "and 7 more");
        assert_eq!(
            describe_more(7, true),
            "Only the first 100 exports of the queue were searched; 7 more exports are behind them."
        );
    }
}
