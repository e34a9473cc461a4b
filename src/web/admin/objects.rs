//! The objects of a Business Object: filters, order and pages, all in the address.
use super::filter_bar::Select;
use super::frame::{Frame, PageReply, PageResult, Section};
use super::object::{Cell, object_link};
use super::pager::Pager;
use super::words::{self, shorten_text};
use askama::Template;
use filters::{FilterRow, Filters};
use order::{SortHeader, Sorting};
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::push_pointer;
use penstock_http::caller::caller;
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_model::mapping::{
    Field, FieldKind, MEMBER_KEY, Mapping, Property, Shape, Value, format_language_tag,
};
use penstock_model::resource::Compiled;
use penstock_model::search::{ANY_MEMBER, ObjectCount};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{
    FoundField, FoundPage, FoundRow, IriNames, ObjectSearch, find_labels, search_objects,
};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

mod filters;
mod order;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of columns besides the label.
const MAX_COLUMNS: usize = 4;
/// The maximum number of fields that can be searched.
const MAX_SEARCH_FIELDS: usize = 200;

#[derive(Template)]
#[template(path = "admin/objects.html")]
struct List {
    frame: Frame,
    id: String,
    name: String,
    filters: Vec<FilterRow>,
    is_searched: bool,
    order: Select,
    /// How many objects there are, in words.
    total: String,
    headers: Vec<SortHeader>,
    rows: Vec<Row>,
    pager: Pager,
    /// Why the search failed.
    fault: Option<String>,
}

/// One object in a list.
struct Row {
    uri: String,
    label: Option<String>,
    link: String,
    /// The name and the values of each column.
    values: Vec<(String, Vec<Cell>)>,
}

/// A field that can be searched: its JSON Pointer, and the names that lead to it.
type SearchField = (String, Vec<String>);

/// Lists the objects of one Business Object.
#[handler]
pub(crate) async fn list_objects(req: &mut Request, depot: &mut Depot) -> PageResult {
    let known = filters::parameter_names().chain(["sort", "cursor"]).collect::<Vec<_>>();
    let query = Query::read(req, &known)?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let mut fields = Vec::new();
    collect_search_fields(&compiled.mapping.root, &mut Vec::new(), &mut fields);
    let request = ListRequest {
        fields,
        filters: Filters::read(&query, &label_pointer(&compiled.mapping)),
        sorting: Sorting::read(query.get("sort")),
        after: query.get("cursor").map(str::to_owned),
    };
    let found = match find_page(&gateway, caller(depot), &compiled, &request).await {
        Ok(found) => Ok(found),
        // An invalid search is the user's mistake: the page shows it.
        Err(error)
            if matches!(
                error.class,
                ErrorClass::Invalid | ErrorClass::Malformed | ErrorClass::TooLarge
            ) =>
        {
            Err(error.detail)
        }
        Err(error) => return Err(error.into()),
    };
    let status = if found.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let columns = list_columns(&compiled.mapping);
    let cells = CellReader {
        labels: match &found {
            Ok(found) => {
                find_labels(&gateway, caller(depot), collect_iris(found, &columns)).await?
            }
            Err(_) => HashMap::new(),
        },
        names: IriNames::new(&gateway),
        columns,
    };
    let page = List::new(frame, &compiled, &request, found, &cells);
    Ok(PageReply::show_with_status(status, &page))
}

/// What a list is asked for.
struct ListRequest {
    /// The fields that can be searched.
    fields: Vec<SearchField>,
    filters: Filters,
    sorting: Sorting,
    after: Option<String>,
}

impl ListRequest {
    /// Returns the parameters of an address with these filters and this order.
    fn to_parameters<'r>(&'r self, sort: Option<&'r str>) -> Vec<(&'static str, Option<&'r str>)> {
        let mut parameters = self.filters.to_parameters();
        parameters.push(("sort", sort.filter(|sort| !sort.is_empty())));
        parameters
    }
}

async fn find_page(
    gateway: &Gateway,
    by: &Caller,
    compiled: &Arc<Compiled>,
    request: &ListRequest,
) -> Result<FoundPage, GatewayError> {
    let filter = request.filters.build_filter(&compiled.mapping.root, &request.fields)?;
    let order = request.sorting.build_order(&compiled.mapping.root)?;
    let after = request.after.clone();
    let search = ObjectSearch { filter, order, after, limit: ROWS_PER_PAGE };
    search_objects(gateway, by, Arc::clone(compiled), search).await
}

impl List {
    /// Creates the page of these objects, or of the reason why the search failed.
    fn new(
        frame: Frame,
        compiled: &Compiled,
        request: &ListRequest,
        found: Result<FoundPage, String>,
        cells: &CellReader<'_>,
    ) -> Self {
        let id = &compiled.object.id;
        let is_searched = request.filters.is_search();
        let (mut rows, mut next, mut fault, mut total) = (Vec::new(), None, None, String::new());
        match found {
            Ok(FoundPage { page, rows: shown, count }) => {
                total = count.map(|count| describe_total(count, is_searched)).unwrap_or_default();
                for (found, row) in page.found.iter().zip(shown) {
                    rows.push(Row::new(found.uri.as_str(), row, cells, id, &frame));
                }
                next = page.found.into_iter().next_back().filter(|_| page.more);
            }
            Err(why) => fault = Some(why),
        }
        let path = format!("/admin/objects/{id}");
        let parameters = request.to_parameters(Some(request.sorting.as_parameter()));
        let next = next.map(|last| last.cursor);
        let pager =
            Pager::new(&frame, &path, &parameters, request.after.is_none(), next.as_deref());
        let address = |sort: &str| {
            let parameters = request.to_parameters(Some(sort));
            let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
            let query: Vec<String> =
                given.map(|(name, value)| format!("{name}={}", encode_segment(value))).collect();
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{}{path}{mark}{}", frame.prefix, query.join("&"))
        };
        let label = compiled.mapping.find_label_field().map(|(_, field)| field);
        let shown = label.into_iter().chain(cells.columns.iter().copied());
        let headers = request.sorting.list_headers(label.is_some(), shown, &address);
        Self {
            filters: request.filters.to_rows(&request.fields),
            order: request.sorting.list_choices(&compiled.mapping.root),
            id: id.clone(),
            name: compiled.object.definition.name.clone(),
            frame,
            is_searched,
            total,
            headers,
            rows,
            pager,
            fault,
        }
    }
}

fn describe_total(count: ObjectCount, is_searched: bool) -> String {
    let ObjectCount { counted, is_complete } = count;
    let objects = words::format_count(counted, "object", "objects");
    match (is_complete, is_searched) {
        (true, false) => objects,
        (true, true) if counted == 1 => format!("{objects} matches"),
        (true, true) => format!("{objects} match"),
        (false, false) => format!("At least {objects}"),
        (false, true) => format!("At least {objects} match"),
    }
}

/// Collects the fields that have values, each as a JSON Pointer and as its names.
fn collect_search_fields(shape: &Shape, path: &mut Vec<String>, found: &mut Vec<SearchField>) {
    let named = shape.iter_properties().filter(|(_, field, _)| !field.is_nameless());
    for (_, field, Property { value, .. }) in named {
        path.push(field.name.clone());
        if let Value::Object(inner) = value {
            collect_nested_fields(inner, path, found);
        } else if value.kind().is_searchable() {
            add_search_field(path, found);
            for language in value.language_map().iter().flat_map(|map| &map.languages) {
                path.push(format_language_tag(language).into_owned());
                add_search_field(path, found);
                path.pop();
            }
        }
        path.pop();
    }
}

/// Collects the fields of nested objects. Those of a map are the names of its members, and what any member holds.
fn collect_nested_fields(shape: &Shape, path: &mut Vec<String>, found: &mut Vec<SearchField>) {
    let Some(map) = shape.map_member() else { return collect_search_fields(shape, path, found) };
    path.push(MEMBER_KEY.to_owned());
    add_search_field(path, found);
    path.pop();
    path.push(ANY_MEMBER.to_owned());
    match map.value {
        Some((_, value)) => match value.value.shape() {
            Some(inner) => collect_nested_fields(inner, path, found),
            None if value.value.kind().is_searchable() => add_search_field(path, found),
            None => {}
        },
        None => collect_search_fields(shape, path, found),
    }
    path.pop();
}

fn add_search_field(path: &[String], found: &mut Vec<SearchField>) {
    if found.len() < MAX_SEARCH_FIELDS {
        let mut pointer = String::new();
        for name in path {
            push_pointer(&mut pointer, name);
        }
        found.push((pointer, path.to_vec()));
    }
}

/// Returns the JSON Pointer of the field with the labels; empty, as for the URI, without one.
fn label_pointer(mapping: &Mapping) -> String {
    let mut pointer = String::new();
    if let Some((_, field)) = mapping.find_label_field() {
        push_pointer(&mut pointer, &field.name);
    }
    pointer
}

/// Returns the fields that a list shows beside the label: the first ones that have values, and the first time.
fn list_columns(mapping: &Mapping) -> Vec<&Field> {
    let label = mapping.find_label_field().map(|(_, field)| &field.name);
    let holds_values = |field: &&Field| {
        Some(&field.name) != label && field.kind != FieldKind::Id && !field.contains_objects()
    };
    let fields = || mapping.root.fields.iter().filter(holds_values);
    let mut columns: Vec<&Field> = fields().take(MAX_COLUMNS).collect();
    if !columns.iter().any(|field| field.is_single_time())
        && let Some(time) = fields().find(|field| field.is_single_time())
    {
        columns.truncate(MAX_COLUMNS - 1);
        columns.push(time);
    }
    columns
}

/// Returns the IRIs in these columns.
fn collect_iris(found: &FoundPage, columns: &[&Field]) -> BTreeSet<String> {
    let fields = found.rows.iter().flat_map(|row| &row.fields);
    let shown = fields
        .filter(|field| field.holds_iris && columns.iter().any(|column| column.name == field.name));
    shown.flat_map(|field| field.texts.iter().cloned()).collect()
}

/// The columns of a list, and the names of the IRIs in them.
struct CellReader<'c> {
    columns: Vec<&'c Field>,
    labels: HashMap<String, String>,
    names: IriNames,
}

impl CellReader<'_> {
    fn to_cell(&self, text: &str, is_iri: bool, frame: &Frame) -> Cell {
        if is_iri {
            Cell::for_iri(text, &self.labels, &self.names, frame)
        } else {
            Cell::for_text(shorten_text(text))
        }
    }
}

impl Row {
    fn new(
        uri: &str,
        FoundRow { label, fields }: FoundRow,
        cells: &CellReader<'_>,
        id: &str,
        frame: &Frame,
    ) -> Self {
        let read = |field: &FoundField| {
            let texts = field.texts.iter();
            texts.map(|text| cells.to_cell(text, field.holds_iris, frame)).collect()
        };
        let values = cells.columns.iter().map(|column| {
            let field = fields.iter().find(|field| field.name == column.name);
            (column.name.clone(), field.map(read).unwrap_or_default())
        });
        Self {
            values: values.collect(),
            uri: uri.to_owned(),
            label: label.as_deref().map(shorten_text),
            link: format!("{}&view={}", object_link(frame, uri), encode_segment(id)),
        }
    }
}
