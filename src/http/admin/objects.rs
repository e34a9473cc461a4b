//! The objects of a Business Object: search, pages, and the page of one object.
use super::check::pretty;
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use crate::business_objects::{SEGMENT, named};
use crate::identifiers;
use crate::problem::Problem;
use crate::query::Query;
use crate::state::{blocking, gateway};
use askama::Template;
use oxrdf::{NamedNode, NamedOrBlankNode};
use penstock_base::Role;
use penstock_base::fault::{Fault, Kind};
use penstock_base::json::{self, Json, push_pointer};
use penstock_model::ingest::{Record, Writers, writers};
use penstock_model::mapping::{FieldKind, Property, Shape, Value};
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Bounds, Filter, Search, Test, Through};
use penstock_model::{members, view};
use penstock_service::gateway::Gateway;
use penstock_store::Read as _;
use percent_encoding::utf8_percent_encode;
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Rows of one page.
const ROWS: usize = 50;
/// The maximum columns besides the URI.
const COLUMNS: usize = 4;
/// The maximum fields that can be searched.
const FIELDS: usize = 200;
/// The maximum characters of a value in a list.
const LONGEST_VALUE: usize = 80;
/// The limits of one search: objects read, and time.
const LOOKED_AT: u64 = 200_000;
const TIME: Duration = Duration::from_secs(10);

/// The search operators: the name in the address, and the label.
const TESTS: [(&str, &str); 5] = [
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

/// The known ingestions that wrote an object.
struct Written {
    minted_by: Option<Ingestion>,
    named_by: Vec<Ingestion>,
    silent: String,
    is_silent: bool,
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
    let frame = Frame::of(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = named(req, &gateway)?;
    let asked = Asked { field, test, text: text.trim().to_owned(), after };
    let turn = if asked.searches() { Some(turn(&gateway).await?) } else { None };
    let page = blocking(move || {
        let _turn = turn;
        Ok(listed(frame, &gateway, &compiled, asked)?)
    })
    .await?;
    let status =
        if page.fault.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    frame::show_with(res, depot, status, &page);
    Ok(())
}

struct Asked {
    field: String,
    test: String,
    text: String,
    after: Option<String>,
}

/// Acquires a permit among the queries of GraphQL, since a search reads as much.
async fn turn(gateway: &Gateway) -> Result<OwnedSemaphorePermit, Problem> {
    gateway.query_permits.acquire().await.ok_or_else(|| {
        Problem::unavailable(1, "too many searches and queries are running; try again")
    })
}

impl Asked {
    /// Whether the request is a search.
    fn searches(&self) -> bool {
        !self.text.is_empty() || self.test == "exists"
    }

    /// Returns the filter; `None` without a search.
    fn filter(
        &self,
        shape: &Shape,
        fields: &[(String, Vec<String>)],
    ) -> Result<Option<Filter>, Fault> {
        if !self.searches() {
            return Ok(None);
        }
        let text = self.text.clone();
        let test = match self.test.as_str() {
            "" | "contains" => Test::ContainsAnyCase(text),
            "is" => Test::In(vec![text]),
            "before" => Test::Before(text),
            "after" => Test::After(text),
            "exists" => Test::Exists,
            other => {
                return Err(Fault::new(Kind::Invalid, format!("there is no operator {other:?}")));
            }
        };
        if self.field.is_empty() {
            return Ok(Some(Filter::Uri(test)));
        }
        let path = fields.iter().find(|(pointer, _)| *pointer == self.field);
        let (_, path) = path.ok_or_else(|| {
            Fault::new(Kind::Invalid, format!("the mapping has no field {:?}", self.field))
        })?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Filter::at(shape, &path, test).map(Some)
    }
}

fn listed(
    frame: Frame,
    gateway: &Gateway,
    compiled: &Compiled,
    asked: Asked,
) -> Result<List, Fault> {
    let shape = &compiled.mapping.root;
    let mut fields = Vec::new();
    searchable(shape, &mut Vec::new(), &mut fields);
    let columns = columns(shape);
    let searched = asked.filter(shape, &fields).and_then(|filter| {
        let search = Search {
            filter: filter.as_ref(),
            after: asked.after.as_deref(),
            limit: ROWS,
            ..Search::default()
        };
        search::page(&gateway.store, compiled, &search, &Bounds::new(LOOKED_AT, TIME))
    });
    let (page, fault) = match searched {
        Ok(page) => (page, None),
        // An invalid search in an address is not an error of the gateway.
        Err(fault) if matches!(fault.kind, Kind::Invalid | Kind::Malformed | Kind::TooLarge) => {
            (search::Page { found: Vec::new(), more: false }, Some(fault.detail))
        }
        Err(fault) => return Err(fault),
    };
    let nesting = gateway.settings.limits.nesting;
    let mut rows = Vec::with_capacity(page.found.len());
    for found in &page.found {
        // A new reader for each object, so that commits do not wait for the page.
        let read = gateway.store.read();
        let mut out = Vec::new();
        view::render(&read, shape, &found.uri, &mut out, &mut Vec::new())?;
        rows.push(Row::of(nesting, found.uri.as_str(), &out, &columns, &frame));
    }
    let next = page.found.last().filter(|_| page.more).map(|last| last.cursor.as_str());
    let (id, name) = names(compiled);
    let is_searched = asked.searches();
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
    let tests = TESTS.iter().map(|(value, words)| Choice {
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
fn names(compiled: &Compiled) -> (String, String) {
    (compiled.object.id.clone(), compiled.object.definition.name.clone())
}

/// Collects the fields that have values, each as a JSON Pointer and as its names.
fn searchable(shape: &Shape, path: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    for field in &shape.fields {
        let FieldKind::Property(Property { value, .. }) = &field.kind else { continue };
        path.push(field.name.clone());
        if let Value::Object(inner) = value {
            searchable(inner, path, found);
        } else if found.len() < FIELDS {
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
fn columns(shape: &Shape) -> Vec<String> {
    let values = shape.fields.iter().filter(|field| {
        matches!(&field.kind, FieldKind::Property(property) if !matches!(property.value, Value::Object(_)))
    });
    values.take(COLUMNS).map(|field| field.name.clone()).collect()
}

impl Row {
    fn of(nesting: usize, uri: &str, view: &[u8], columns: &[String], frame: &Frame) -> Self {
        let shown = match json::parse(view, nesting.saturating_add(2)) {
            Ok(Json::Object(members)) => members,
            _ => Vec::new(),
        };
        let value = |name: &String| {
            let value = shown.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            (name.clone(), value.map(short).unwrap_or_default())
        };
        Self {
            uri: uri.to_owned(),
            link: link(frame, uri),
            values: columns.iter().map(value).collect(),
        }
    }
}

/// Shortens a value for a list.
fn short(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Array(elements) => elements.iter().map(short).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the address of an object's page.
fn link(frame: &Frame, uri: &str) -> String {
    format!("{}/admin/object?uri={}", frame.prefix, utf8_percent_encode(uri, SEGMENT))
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
    let frame = Frame::of(req, depot, res, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let turn = turn(&gateway).await?;
    let page = blocking(move || {
        let _turn = turn;
        one(frame, &gateway, &node)
    })
    .await?;
    frame::show(res, depot, &page);
    Ok(())
}

fn one(frame: Frame, gateway: &Gateway, uri: &NamedNode) -> Result<One, Problem> {
    let all = gateway.catalogue.list();
    let (mut belongs, mut json, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let turtle = {
        let read = gateway.store.read();
        let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
        if quads.is_empty() {
            return Err(Problem::not_found(format!("No object {} is stored.", uri.as_str())));
        }
        for compiled in &all {
            if members::contains(&read, compiled, uri)? {
                let (id, name) = names(compiled);
                belongs.push((format!("{}/admin/objects/{id}", frame.prefix), name));
            }
        }
        if let Some(shape) = identifiers::shape(gateway, &read, uri, &quads)? {
            view::render(&read, &shape, uri, &mut json, &mut warnings)?;
        }
        identifiers::turtle(&quads)?
    };
    let bounds = Bounds::new(LOOKED_AT, TIME);
    let found =
        search::referrers(&gateway.store, &all, uri, Through::default(), None, ROWS, &bounds);
    let (referrers, more_referrers, unsearched) = match found {
        Ok(found) => (found.found, found.more, None),
        Err(fault) if fault.kind == Kind::TooLarge => (Vec::new(), false, Some(fault.detail)),
        Err(fault) => return Err(fault.into()),
    };
    let referrers = referrers
        .into_iter()
        // The object is in its own view; that is no reference.
        .filter(|referrer| referrer.uri != *uri)
        .map(|referrer| Referrer {
            link: link(&frame, referrer.uri.as_str()),
            uri: referrer.uri.into_string(),
            business_object: names(&referrer.business_object).1,
            path: referrer.path,
        });
    let text = if json.is_empty() {
        String::new()
    } else {
        pretty(&json, gateway.settings.limits.nesting)
    };
    Ok(One {
        referrers: referrers.collect(),
        json: text.lines().map(|line| linked(line, uri.as_str(), &frame)).collect(),
        warnings: warnings.iter().map(ToString::to_string).collect(),
        written: Written::of(gateway, writers(&gateway.store, uri.as_str())?, &frame),
        uri: uri.as_str().to_owned(),
        frame,
        belongs,
        turtle,
        more_referrers,
        unsearched,
    })
}

/// Links the object in a line of JSON, unless it is the shown one.
fn linked(line: &str, own: &str, frame: &Frame) -> Line {
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
        link: Some((link(frame, &uri), uri)),
        after: format!("\"{}", line.get(end..).unwrap_or_default()),
    }
}

impl Written {
    fn of(gateway: &Gateway, writers: Writers, frame: &Frame) -> Self {
        let is_admin = frame.may(Role::Admin);
        let of = |record: Record| Ingestion {
            at: words::moment(&record.at),
            by: gateway
                .auth
                .accounts
                .get(&record.caller)
                // A User must not learn more about the account than the API shows.
                .map_or_else(
                    || record.caller.clone(),
                    |account| {
                        if is_admin { words::name(&account) } else { record.caller.clone() }
                    },
                ),
            business_object: record.business_object_name,
            mode: record.mode.name(),
            counts: format!(
                "{} new, {} changed, {} removed",
                words::number(record.created),
                words::number(record.updated),
                words::number(record.deleted)
            ),
            id: record.id,
        };
        Self {
            minted_by: writers.minted_by.map(of),
            named_by: writers.named_by.into_iter().map(of).collect(),
            is_silent: writers.silent > 0,
            silent: words::many(writers.silent, "ingestion", "ingestions"),
            since: writers.since.as_deref().map(words::moment),
        }
    }
}
