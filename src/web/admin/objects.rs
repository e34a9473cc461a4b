//! The page "Explore": the objects of a Business Object with filters, charts, facets and a table. Its state is the address.
//!
//! - `address`: the address and its parameters; `state`: what the page shows; `conditions`, `columns`, `order`: parts of it
//! - `filters`, `column_form`: the filters and how to add one; how to change the columns
//! - `table`: the rows; `empty`: what the page says without one
//! - `part_request`: what a request for the page or a part of it is about
//! - `parts`: what loads on its own: `bars`, `lines` with their `scale`, `facets`, suggestions
//! - `saved`: saved views; `requests`: the same question for programs
use super::filter_bar::Select;
use super::frame::{Frame, PageReply, PageResult, read_cookie};
use super::menu::Section;
use super::pager::Pager;
use super::words;
use address::{Pair, find_value, read_pairs, write_parameters, write_query};
use askama::Template;
use column_form::COLUMNS_COOKIE;
use columns::{TableColumn, find_columns, list_columns, list_default_columns, list_offered};
use empty::Empty;
use filters::{Chip, FilterForm, WrongFilter, list_chips};
use order::{SortHeader, list_headers};
use part_request::{PartRequest, explain, skip_if_busy};
use parts::InlineParts;
use penstock_auth::Role;
use penstock_base::error::ErrorClass;
use penstock_http::caller::caller;
use penstock_http::origin::origin;
use penstock_http::problem::Problem;
use penstock_http::state::state as app_state;
use penstock_model::csv::{CsvOptions, CsvWriter};
use penstock_model::mapping::{Mapping, Property, Shape};
use penstock_model::resource::Compiled;
use penstock_model::search::{SearchField, list_search_fields};
use penstock_service::objects::{FoundPage, IriNames, ObjectSearch, find_labels, search_objects};
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};
use saved::{ShownView, UnsavedView};
use state::State;
use std::collections::HashMap;
use std::sync::Arc;
use table::{Row, TableBuilder, collect_iris};

pub(super) mod address;
mod bars;
pub(crate) mod column_form;
mod columns;
mod conditions;
mod empty;
mod facets;
mod filters;
mod lines;
mod order;
mod part_request;
pub(crate) mod parts;
pub(crate) mod requests;
pub(crate) mod saved;
mod scale;
mod state;
mod table;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The forms of a download, and their parameters. An element of an array can have the delimiter, so CSV always has escapes.
const DOWNLOADS: [(&str, &[(&str, &str)]); 4] = [
    ("CSV", &[("format", "csv"), ("arrayEscape", "true")]),
    (
        "CSV for spreadsheets",
        &[("format", "csv"), ("arrayEscape", "true"), ("spreadsheet", "true")],
    ),
    ("NDJSON", &[("format", "ndjson")]),
    ("JSON", &[("format", "json")]),
];
/// The maximum number of fields that the page names as left out of CSV.
const MAX_NAMED_FIELDS: usize = 5;
/// The maximum number of fields that a chart offers.
const MAX_CHART_FIELDS: usize = 100;

#[derive(Template)]
#[template(path = "admin/objects.html")]
struct Page {
    frame: Frame,
    id: String,
    name: String,
    /// The address of the page without parameters, and with them.
    path: String,
    address: String,
    /// The parameters of the address, for forms.
    parameters: String,
    /// The saved view, if the address names one.
    view: Option<ShownView>,
    /// What the form that saves a view had, if it failed.
    unsaved: Option<UnsavedView>,
    chips: Vec<Chip>,
    /// The address of the page without a filter.
    unfiltered: String,
    adding: FilterForm,
    chart: ChartForm,
    /// The addresses of the parts that load on their own.
    histogram: String,
    lines: Option<String>,
    facets: String,
    suggestions: String,
    /// The address of the page with its parts.
    whole: String,
    /// The parts, if the page has them.
    inline: Option<InlineParts>,
    /// How many objects there are, in words.
    total: String,
    headers: Vec<SortHeader>,
    rows: Vec<Row>,
    pager: Pager,
    columns: ColumnForm,
    /// The time zone of the times, and whether the table has times.
    zone: String,
    has_times: bool,
    /// The forms of a download, and its addresses.
    downloads: [(&'static str, String); 4],
    /// The fields that CSV leaves out, in words.
    omitted: String,
    requests: String,
    empty: Option<Empty>,
    /// Why the search failed.
    fault: Option<String>,
    /// Why the table is missing for now.
    missing: Option<String>,
    /// The address of the page with the same part of the table.
    retry: String,
}

/// The form that chooses what the charts show.
struct ChartForm {
    time: Select,
    number: Select,
    lines: Select,
    /// The parameters of the address besides these.
    others: String,
}

/// The forms that change the columns.
struct ColumnForm {
    /// The columns besides the label.
    shown: Vec<String>,
    /// The fields that can be added.
    offered: Vec<String>,
    /// Whether somebody has chosen them.
    is_chosen: bool,
}

/// Shows the page.
#[handler]
pub(crate) async fn explore_objects(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> PageResult {
    let pairs = read_pairs(req)?;
    let mut request = PartRequest::new(req, depot, &pairs)?;
    if request.state.columns.is_none() {
        let kept = read_cookie(req, COLUMNS_COOKIE).unwrap_or_default();
        let kept = kept.split('\n').map(str::to_owned).collect();
        let kept = find_columns(request.shape(), kept);
        request.state.columns = Some(kept).filter(|columns| !columns.is_empty());
    }
    let compiled = Arc::clone(&request.compiled);
    let wrong = WrongFilter::take(&mut request.state, &compiled.mapping.root, &pairs);
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let after = find_value(&pairs, "cursor").map(str::to_owned);
    let columns = request.state.columns.clone();
    let columns = columns.unwrap_or_else(|| list_default_columns(&request.compiled.mapping));
    let found = find_page(&request, after.clone(), columns.clone()).await?;
    let status = match &found {
        Ok(_) if wrong.is_none() => StatusCode::OK,
        Ok(_) | Err(NoTable::Invalid(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        Err(NoTable::Unavailable(problem)) => {
            res.headers_mut().extend(problem.clone().into_headers());
            problem.status()
        }
    };
    let table_columns = list_columns(request.shape(), &columns);
    let labels = match &found {
        Ok(found) => {
            let iris = collect_iris(found, &table_columns);
            skip_if_busy(find_labels(&request.gateway, &request.by, iris).await)?
        }
        Err(_) => HashMap::new(),
    };
    let empty = match &found {
        Ok(found) if found.rows.is_empty() && after.is_none() => {
            let base = origin(depot).base_url(app_state(depot).settings()).unwrap_or_default();
            Some(Empty::explain(&request, &base).await?)
        }
        _ => None,
    };
    // Parts would wait as long as the table has.
    let has_parts = request.state.shows_parts && !matches!(found, Err(NoTable::Unavailable(_)));
    let inline = if has_parts { Some(InlineParts::build(&request).await?) } else { None };
    let view = request.state.view.as_ref().map(|view| ShownView::new(view, caller(depot)));
    let shown = Shown { found, labels, columns, after, wrong };
    let unsaved = UnsavedView::read(&pairs);
    let page = Page { view, unsaved, inline, empty, ..Page::new(frame, &request, shown) };
    Ok(PageReply::show_with_status(status, &page))
}

/// What the table shows.
struct Shown {
    found: Result<FoundPage, NoTable>,
    /// The labels of the objects that values name, by URI.
    labels: HashMap<String, String>,
    /// The columns besides the label.
    columns: Vec<String>,
    /// The cursor after which the table begins.
    after: Option<String>,
    /// The filter that the table does not have because it does not fit.
    wrong: Option<WrongFilter>,
}

/// Why there is no table.
enum NoTable {
    /// The search does not fit, or would take too long.
    Invalid(String),
    /// Too many searches and queries are running, or the store is being reopened.
    Unavailable(Problem),
}

/// Finds the objects of a page, or why they cannot be shown.
async fn find_page(
    request: &PartRequest,
    after: Option<String>,
    columns: Vec<String>,
) -> Result<Result<FoundPage, NoTable>, Problem> {
    let search = request.explore().and_then(|explored| {
        let order = request.state.build_order(request.shape())?;
        Ok(ObjectSearch { filter: explored.filter, order, after, limit: ROWS_PER_PAGE })
    });
    let compiled = Arc::clone(&request.compiled);
    let found = match search {
        Ok(search) => {
            search_objects(&request.gateway, &request.by, compiled, search, columns).await
        }
        Err(error) => Err(error),
    };
    match found {
        Err(error) if matches!(error.class, ErrorClass::Unavailable(_)) => {
            Ok(Err(NoTable::Unavailable(error.into())))
        }
        found => Ok(explain(found)?.map_err(NoTable::Invalid)),
    }
}

impl Page {
    fn new(frame: Frame, request: &PartRequest, shown: Shown) -> Self {
        let Shown { found, labels, columns, after, wrong } = shown;
        let (shape, state, path) = (request.shape(), &request.state, request.path());
        let id = &request.compiled.object.id;
        let table_columns = list_columns(shape, &columns);
        let label = request.compiled.mapping.find_label_field().map(|(_, field)| &*field.name);
        let builder = TableBuilder {
            state,
            shape,
            columns: &table_columns,
            labels,
            names: IriNames::new(&request.gateway),
            zone: &request.zone,
            path: &path,
            frame: &frame,
        };
        let (mut rows, mut next, mut total) = (Vec::new(), None, String::new());
        let (mut fault, mut missing) = (None, None);
        match found {
            Ok(FoundPage { page, rows: shown, count }) => {
                let is_searched = !state.conditions.is_empty();
                total = count
                    .map(|count| words::describe_total(count, is_searched))
                    .unwrap_or_default();
                for (found, row) in page.found.iter().zip(shown) {
                    rows.push(builder.build_row(found.uri.as_str(), row, id));
                }
                next = page.found.into_iter().next_back().filter(|_| page.more);
            }
            Err(NoTable::Invalid(why)) => fault = Some(why),
            Err(NoTable::Unavailable(problem)) => missing = Some(problem.detail().to_owned()),
        }
        let parameters = state.list_pairs(shape);
        let pairs: Vec<_> =
            parameters.iter().map(|(name, value)| (name.as_str(), Some(value.as_str()))).collect();
        let next = next.map(|last| last.cursor);
        let page = format!("/admin/objects/{id}");
        let pager = Pager::new(&frame, &page, &pairs, after.is_none(), next.as_deref());
        let cursor = after.map(|cursor| ("cursor".to_owned(), cursor));
        let retried: Vec<Pair> = parameters.iter().cloned().chain(cursor).collect();
        let retry = format!("{path}{}", write_query(&retried));
        let in_order = |sort: &str| request.address_of(&state.with_order(sort));
        let whole = State { shows_parts: true, ..state.clone() };
        let unfiltered = State { conditions: Vec::new(), ..state.clone() };
        let has_lines = state.chart.number.is_some() && state.time_field(shape).is_some();
        Self {
            view: None,
            unsaved: None,
            inline: None,
            empty: None,
            id: id.clone(),
            name: request.compiled.object.definition.name.clone(),
            chips: list_chips(state, shape, &path),
            unfiltered: request.address_of(&unfiltered),
            adding: FilterForm::new(shape, label, wrong),
            chart: ChartForm::new(state, shape),
            histogram: request.part_address("histogram"),
            lines: has_lines.then(|| request.part_address("chart")),
            facets: request.part_address("facets"),
            suggestions: format!("{path}/suggestions"),
            whole: request.address_of(&whole),
            headers: list_headers(state, shape, label, &table_columns, &in_order),
            has_times: table_columns.iter().any(TableColumn::is_date_time),
            columns: ColumnForm {
                offered: list_offered(shape, &columns),
                is_chosen: state.has_chosen_columns(shape),
                shown: columns,
            },
            zone: request.zone.to_string(),
            downloads: list_downloads(request),
            omitted: describe_omitted(&request.compiled.mapping),
            requests: request.part_address("requests"),
            address: format!("{path}{}", write_query(&parameters)),
            parameters: write_parameters(&parameters),
            path,
            total,
            rows,
            pager,
            fault,
            missing,
            retry,
            frame,
        }
    }
}

impl ChartForm {
    fn new(state: &State, shape: &Shape) -> Self {
        let fields = list_search_fields(shape);
        let choose = |is_offered: &dyn Fn(&SearchField<'_>) -> bool| -> Vec<(String, String)> {
            let names = fields.iter().filter(|field| is_offered(field)).map(|field| &field.name);
            let named = names.take(MAX_CHART_FIELDS).map(|name| (name.clone(), name.clone()));
            std::iter::once((String::new(), "none".to_owned())).chain(named).collect()
        };
        let has_codes = |property: &Property| property.codes.is_some();
        let times = choose(&|field| field.property.order().is_time());
        let numbers =
            choose(&|field| field.property.order().is_number() && !has_codes(field.property));
        let lines = choose(&|field| {
            let order = field.property.order();
            has_codes(field.property) || !order.is_time() && !order.is_number()
        });
        let own = ["time", "number", "lines"];
        let mut others = state.list_pairs(shape);
        others.retain(|(name, _)| !own.contains(&name.as_str()));
        let time = state.time_field(shape);
        Self {
            time: Select::new("time", "Time", times, time.as_deref()),
            number: Select::new("number", "Number", numbers, state.chart.number.as_deref()),
            lines: Select::new("lines", "A line for each", lines, state.chart.lines.as_deref()),
            others: write_parameters(&others),
        }
    }
}

/// Returns the path of the objects of a Business Object in the API, without the prefix.
fn build_api_path(compiled: &Compiled) -> String {
    format!("/api/v1/business-objects/{}/objects", compiled.object.id)
}

/// Returns the downloads of all objects that the filters select.
fn list_downloads(request: &PartRequest) -> [(&'static str, String); 4] {
    let pairs = request.state.list_search_pairs(request.shape());
    DOWNLOADS.map(|(words, form)| {
        let form = form.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let all: Vec<Pair> = form.chain(pairs.iter().cloned()).collect();
        let path = build_api_path(&request.compiled);
        (words, format!("{}{path}{}", request.prefix, write_query(&all)))
    })
}

/// Names the fields that a download as CSV leaves out; empty without one.
fn describe_omitted(mapping: &Mapping) -> String {
    let writer = CsvWriter::new(mapping, &CsvOptions::default());
    let omitted = writer.as_ref().map(CsvWriter::omitted_fields).unwrap_or_default();
    let mut names: Vec<String> = omitted.iter().take(MAX_NAMED_FIELDS).cloned().collect();
    if let Some(more) = omitted.len().checked_sub(MAX_NAMED_FIELDS).filter(|more| *more > 0) {
        names.push(words::format_count(more as u64, "more field", "more fields"));
    }
    names.join(", ")
}
