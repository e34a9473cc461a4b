//! The objects of a Business Object: search, pages, and the page of one object.
use super::check::format_json;
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use oxrdf::{NamedNode, NamedOrBlankNode};
use penstock_api::business_objects::find_business_object;
use penstock_api::identifiers;
use penstock_base::Role;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, Json, push_pointer};
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::ingest::{Record, WriteHistory, find_write_history};
use penstock_model::mapping::{FieldKind, Property, Shape, Value};
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Filter, ReferenceFilter, Search, SearchBudget, ValueTest};
use penstock_model::{members, view};
use penstock_service::gateway::Gateway;
use penstock_store::Read as _;
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of columns besides the URI.
const MAX_COLUMNS: usize = 4;
/// The maximum number of fields that can be searched.
const MAX_SEARCH_FIELDS: usize = 200;
/// The maximum number of characters of a value in a list.
const MAX_VALUE_CHARS: usize = 80;
/// The maximum number of objects that one search reads.
const MAX_READ_OBJECTS: u64 = 200_000;
/// The maximum time of one search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The search operators: the name in the address, and the label.
const OPERATORS: [(&str, &str); 5] = [
    ("contains", "contains"),
    ("is", "is"),
    ("before", "is before or less than"),
    ("after", "is after or greater than"),
    ("exists", "has a value"),
];

#[derive(Template)]
#[template(path = "admin/objects.html")]
struct List {
    frame: Frame,
    id: String,
    name: String,
    fields: Vec<Choice>,
    tests: Vec<Choice>,
    text: String,
    is_searched: bool,
    columns: Vec<String>,
    rows: Vec<Row>,
    pager: Pager,
    /// Why the search failed.
    fault: Option<String>,
}

struct Choice {
    value: String,
    words: String,
    is_chosen: bool,
}

/// One object in a list.
struct Row {
    uri: String,
    link: String,
    /// The name and the value of each column.
    values: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "admin/object.html")]
struct One {
    frame: Frame,
    uri: String,
    /// The Business Objects that it belongs to: address and name.
    belongs: Vec<(String, String)>,
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
    business_object: String,
    mode: &'static str,
    counts: String,
}

/// Lists the objects of one Business Object.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["field", "test", "text", "cursor"])?;
    let asked = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let (field, test, text) = (asked("field"), asked("test"), asked("text"));
    let after = query.get("cursor").map(str::to_owned);
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(req, &gateway)?;
    let asked = SearchRequest { field, test, text: text.trim().to_owned(), after };
    let permit = if asked.is_search() { Some(acquire_permit(&gateway).await?) } else { None };
    let page = run_blocking(move || {
        let _permit = permit;
        Ok(build_list(frame, &gateway, &compiled, asked)?)
    })
    .await?;
    let status =
        if page.fault.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    frame::show_page_with_status(res, depot, status, &page);
    Ok(())
}

struct SearchRequest {
    field: String,
    test: String,
    text: String,
    after: Option<String>,
}

/// Acquires one of the permits of GraphQL queries, since a search reads as much as a query.
async fn acquire_permit(gateway: &Gateway) -> Result<OwnedSemaphorePermit, Problem> {
    gateway.query_permits.acquire().await.ok_or_else(|| {
        Problem::unavailable(1, "too many searches and queries are running; try again")
    })
}

impl SearchRequest {
    /// Whether the request is a search.
    fn is_search(&self) -> bool {
        !self.text.is_empty() || self.test == "exists"
    }

    /// Returns the filter; `None` without a search.
    fn build_filter(
        &self,
        shape: &Shape,
        fields: &[(String, Vec<String>)],
    ) -> Result<Option<Filter>, GatewayError> {
        if !self.is_search() {
            return Ok(None);
        }
        let text = self.text.clone();
        let test = match self.test.as_str() {
            "" | "contains" => ValueTest::ContainsAnyCase(text),
            "is" => ValueTest::In(vec![text]),
            "before" => ValueTest::Before(text),
            "after" => ValueTest::After(text),
            "exists" => ValueTest::Exists,
            other => {
                return Err(GatewayError::new(
                    ErrorClass::Invalid,
                    format!("there is no operator {other:?}"),
                ));
            }
        };
        if self.field.is_empty() {
            return Ok(Some(Filter::Uri(test)));
        }
        let path = fields.iter().find(|(pointer, _)| *pointer == self.field);
        let (_, path) = path.ok_or_else(|| {
            GatewayError::new(
                ErrorClass::Invalid,
                format!("the mapping has no field {:?}", self.field),
            )
        })?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Filter::for_field(shape, &path, test).map(Some)
    }
}

fn build_list(
    frame: Frame,
    gateway: &Gateway,
    compiled: &Compiled,
    asked: SearchRequest,
) -> Result<List, GatewayError> {
    let shape = &compiled.mapping.root;
    let mut fields = Vec::new();
    collect_search_fields(shape, &mut Vec::new(), &mut fields);
    let columns = list_columns(shape);
    let searched = asked.build_filter(shape, &fields).and_then(|filter| {
        let search = Search {
            filter: filter.as_ref(),
            after: asked.after.as_deref(),
            limit: ROWS_PER_PAGE,
            ..Search::default()
        };
        search::find_page(
            &gateway.store,
            compiled,
            &search,
            &SearchBudget::new(MAX_READ_OBJECTS, SEARCH_TIMEOUT),
        )
    });
    let (page, fault) = match searched {
        Ok(page) => (page, None),
        // An invalid search is the user's mistake: the page shows it.
        Err(fault)
            if matches!(
                fault.class,
                ErrorClass::Invalid | ErrorClass::Malformed | ErrorClass::TooLarge
            ) =>
        {
            (search::SearchPage { found: Vec::new(), more: false }, Some(fault.detail))
        }
        Err(fault) => return Err(fault),
    };
    let nesting = gateway.settings.limits.nesting;
    let mut rows = Vec::with_capacity(page.found.len());
    for found in &page.found {
        // A new reader for each object, so that commits do not wait for the page.
        let read = gateway.store.read();
        let mut out = Vec::new();
        view::render_object(&read, shape, &found.uri, &mut out, &mut Vec::new())?;
        rows.push(Row::from_view(nesting, found.uri.as_str(), &out, &columns, &frame));
    }
    let next = page.found.last().filter(|_| page.more).map(|last| last.cursor.as_str());
    let (id, name) = id_and_name(compiled);
    let is_searched = asked.is_search();
    let parameters = [
        ("field", Some(asked.field.as_str()).filter(|_| is_searched)),
        ("test", Some(asked.test.as_str()).filter(|_| is_searched)),
        ("text", Some(asked.text.as_str()).filter(|_| is_searched)),
    ];
    let path = format!("/admin/objects/{id}");
    let pager = Pager::new(&frame, &path, &parameters, asked.after.is_none(), next);
    let uri = (String::new(), "URI".to_owned());
    let named = fields.into_iter().map(|(pointer, path)| (pointer, path.join(" › ")));
    let fields = std::iter::once(uri).chain(named).map(|(value, words)| Choice {
        is_chosen: value == asked.field,
        value,
        words,
    });
    let tests = OPERATORS.iter().map(|(value, words)| Choice {
        is_chosen: *value == asked.test,
        value: (*value).to_owned(),
        words: (*words).to_owned(),
    });
    Ok(List {
        fields: fields.collect(),
        tests: tests.collect(),
        text: asked.text,
        frame,
        id,
        name,
        is_searched,
        columns,
        rows,
        pager,
        fault,
    })
}

/// Returns the id and name of a Business Object.
fn id_and_name(compiled: &Compiled) -> (String, String) {
    (compiled.object.id.clone(), compiled.object.definition.name.clone())
}

/// Collects the fields that have values, each as a JSON Pointer and as its names.
fn collect_search_fields(
    shape: &Shape,
    path: &mut Vec<String>,
    found: &mut Vec<(String, Vec<String>)>,
) {
    for field in &shape.fields {
        let FieldKind::Property(Property { value, .. }) = &field.kind else { continue };
        path.push(field.name.clone());
        if let Value::Object(inner) = value {
            collect_search_fields(inner, path, found);
        } else if found.len() < MAX_SEARCH_FIELDS {
            let mut pointer = String::new();
            for name in path.iter() {
                push_pointer(&mut pointer, name);
            }
            found.push((pointer, path.clone()));
        }
        path.pop();
    }
}

/// Returns the fields that a list shows: the first ones that have values.
fn list_columns(shape: &Shape) -> Vec<String> {
    let values = shape.fields.iter().filter(|field| {
        matches!(&field.kind, FieldKind::Property(property) if !matches!(property.value, Value::Object(_)))
    });
    values.take(MAX_COLUMNS).map(|field| field.name.clone()).collect()
}

impl Row {
    fn from_view(
        nesting: usize,
        uri: &str,
        view: &[u8],
        columns: &[String],
        frame: &Frame,
    ) -> Self {
        let shown = match json::parse(view, nesting.saturating_add(2)) {
            Ok(Json::Object(members)) => members,
            _ => Vec::new(),
        };
        let value = |name: &String| {
            let value = shown.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            (name.clone(), value.map(shorten_value).unwrap_or_default())
        };
        Self {
            uri: uri.to_owned(),
            link: object_link(frame, uri),
            values: columns.iter().map(value).collect(),
        }
    }
}

/// Shortens a value for a list.
fn shorten_value(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Array(elements) => elements.iter().map(shorten_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the address of an object's page.
fn object_link(frame: &Frame, uri: &str) -> String {
    format!("{}/admin/object?uri={}", frame.prefix, encode_segment(uri))
}

/// Shows one object.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["uri"])?;
    let uri = query.get("uri").unwrap_or_default();
    let node = NamedNode::new(uri)
        .map_err(|error| Problem::malformed(format!("{uri:?} is not an IRI: {error}")))?;
    let frame = Frame::for_caller(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let permit = acquire_permit(&gateway).await?;
    let page = run_blocking(move || {
        let _permit = permit;
        build_page(frame, &gateway, &node)
    })
    .await?;
    frame::show_page(res, depot, &page);
    Ok(())
}

fn build_page(frame: Frame, gateway: &Gateway, uri: &NamedNode) -> Result<One, Problem> {
    let all = gateway.catalogue.list();
    let (mut belongs, mut json, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let turtle = {
        let read = gateway.store.read();
        let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
        if quads.is_empty() {
            return Err(Problem::not_found(format!("No object {} is stored.", uri.as_str())));
        }
        for compiled in &all {
            if members::is_member(&read, compiled, uri)? {
                let (id, name) = id_and_name(compiled);
                belongs.push((format!("{}/admin/objects/{id}", frame.prefix), name));
            }
        }
        if let Some(shape) = identifiers::find_shape(gateway, &read, uri, &quads)? {
            view::render_object(&read, &shape, uri, &mut json, &mut warnings)?;
        }
        identifiers::to_turtle(&quads)?
    };
    let budget = SearchBudget::new(MAX_READ_OBJECTS, SEARCH_TIMEOUT);
    let found = search::find_referrers(
        &gateway.store,
        &all,
        uri,
        ReferenceFilter::default(),
        None,
        ROWS_PER_PAGE,
        &budget,
    );
    let (referrers, more_referrers, unsearched) = match found {
        Ok(found) => (found.found, found.more, None),
        Err(error) if error.class == ErrorClass::TooLarge => {
            (Vec::new(), false, Some(error.detail))
        }
        Err(error) => return Err(error.into()),
    };
    let referrers = referrers
        .into_iter()
        // The object's own view contains its URI, which is not a reference.
        .filter(|referrer| referrer.uri != *uri)
        .map(|referrer| Referrer {
            link: object_link(&frame, referrer.uri.as_str()),
            uri: referrer.uri.into_string(),
            business_object: id_and_name(&referrer.business_object).1,
            path: referrer.path,
        });
    let text = if json.is_empty() {
        String::new()
    } else {
        format_json(&json, gateway.settings.limits.nesting)
    };
    Ok(One {
        referrers: referrers.collect(),
        json: text.lines().map(|line| link_line(line, uri.as_str(), &frame)).collect(),
        warnings: warnings.iter().map(ToString::to_string).collect(),
        written: Written::from_history(
            gateway,
            find_write_history(&gateway.store, uri.as_str())?,
            &frame,
        ),
        uri: uri.as_str().to_owned(),
        frame,
        belongs,
        turtle,
        more_referrers,
        unsearched,
    })
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
            by: gateway
                .auth
                .accounts
                .get(&record.caller)
                // A User must not learn more about the account than the API shows.
                .map_or_else(
                    || record.caller.clone(),
                    |account| {
                        if is_admin { words::display_name(&account) } else { record.caller.clone() }
                    },
                ),
            business_object: record.business_object_name,
            mode: record.mode.name(),
            counts: format!(
                "{} new, {} changed, {} removed",
                words::format_number(record.created),
                words::format_number(record.updated),
                words::format_number(record.deleted)
            ),
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
