//! The objects of a Business Object: search and pages.
use super::frame::{Frame, PageReply, PageResult, Section};
use super::object::object_link;
use super::pager::Pager;
use super::words::shorten_text;
use askama::Template;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, Json, push_pointer};
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_model::mapping::{FieldKind, Mapping, Property, Shape, Value};
use penstock_model::resource::Compiled;
use penstock_model::search::{Filter, ValueTest};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{FoundPage, ObjectView, search_objects};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of columns besides the URI.
const MAX_COLUMNS: usize = 4;
/// The maximum number of fields that can be searched.
const MAX_SEARCH_FIELDS: usize = 200;

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
    /// The name of the field with the labels.
    label: Option<String>,
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
    label: Option<String>,
    link: String,
    /// The name and the value of each column.
    values: Vec<(String, String)>,
}

/// What the form asks for.
struct SearchRequest {
    field: String,
    test: String,
    text: String,
    after: Option<String>,
}

/// A field that can be searched: its JSON Pointer, and the names that lead to it.
type SearchField = (String, Vec<String>);

/// Lists the objects of one Business Object.
#[handler]
pub(crate) async fn list_objects(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["field", "test", "text", "cursor"])?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let parameter = |name: &str| query.get(name).unwrap_or_default();
    let is_searched = ["field", "test", "text"].iter().any(|name| query.get(name).is_some());
    let request = SearchRequest {
        // People search by the label, unless they choose another field.
        field: if is_searched {
            parameter("field").to_owned()
        } else {
            label_pointer(&compiled.mapping)
        },
        test: parameter("test").to_owned(),
        text: parameter("text").trim().to_owned(),
        after: query.get("cursor").map(str::to_owned),
    };
    let mut fields = Vec::new();
    collect_search_fields(&compiled.mapping.root, &mut Vec::new(), &mut fields);
    let found = match find_page(&gateway, &compiled, &request, &fields).await {
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
    let nesting = gateway.settings.limits.nesting;
    let page = List::new(frame, &compiled, request, fields, found, nesting)?;
    Ok(PageReply::show_with_status(status, &page))
}

async fn find_page(
    gateway: &Gateway,
    compiled: &Arc<Compiled>,
    request: &SearchRequest,
    fields: &[SearchField],
) -> Result<FoundPage, GatewayError> {
    let filter = request.build_filter(&compiled.mapping.root, fields)?;
    let (compiled, after) = (Arc::clone(compiled), request.after.clone());
    search_objects(gateway, compiled, filter, after, ROWS_PER_PAGE).await
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
        fields: &[SearchField],
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

impl List {
    /// Creates the page of these objects, or of the reason why the search failed.
    fn new(
        frame: Frame,
        compiled: &Compiled,
        request: SearchRequest,
        fields: Vec<SearchField>,
        found: Result<FoundPage, String>,
        nesting: usize,
    ) -> Result<Self, GatewayError> {
        let label = compiled.mapping.find_label_field().map(|(_, field)| field.name.clone());
        let columns = list_columns(&compiled.mapping.root, label.as_deref());
        let (mut rows, mut next, mut fault) = (Vec::new(), None, None);
        match found {
            Ok(FoundPage { page, views }) => {
                for (found, view) in page.found.iter().zip(views?) {
                    rows.push(Row::from_view(nesting, found.uri.as_str(), view, &columns, &frame));
                }
                next = page.found.into_iter().next_back().filter(|_| page.more);
            }
            Err(why) => fault = Some(why),
        }
        let id = compiled.object.id.clone();
        let is_searched = request.is_search();
        let searched = |value| Some(value).filter(|_| is_searched);
        let parameters = [
            ("field", searched(request.field.as_str())),
            ("test", searched(request.test.as_str())),
            ("text", searched(request.text.as_str())),
        ];
        let (path, next) = (format!("/admin/objects/{id}"), next.map(|last| last.cursor));
        let pager =
            Pager::new(&frame, &path, &parameters, request.after.is_none(), next.as_deref());
        let uri = (String::new(), "URI".to_owned());
        let named = fields.into_iter().map(|(pointer, path)| (pointer, path.join(" › ")));
        let fields = std::iter::once(uri).chain(named).map(|(value, words)| Choice {
            is_chosen: value == request.field,
            value,
            words,
        });
        let tests = OPERATORS.iter().map(|(value, words)| Choice {
            is_chosen: *value == request.test,
            value: (*value).to_owned(),
            words: (*words).to_owned(),
        });
        Ok(Self {
            fields: fields.collect(),
            tests: tests.collect(),
            text: request.text,
            name: compiled.object.definition.name.clone(),
            frame,
            id,
            is_searched,
            label,
            columns,
            rows,
            pager,
            fault,
        })
    }
}

/// Collects the fields that have values, each as a JSON Pointer and as its names.
fn collect_search_fields(shape: &Shape, path: &mut Vec<String>, found: &mut Vec<SearchField>) {
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

/// Returns the JSON Pointer of the field with the labels; empty, as for the URI, without one.
fn label_pointer(mapping: &Mapping) -> String {
    let mut pointer = String::new();
    if let Some((_, field)) = mapping.find_label_field() {
        push_pointer(&mut pointer, &field.name);
    }
    pointer
}

/// Returns the fields that a list shows beside the label: the first ones that have values.
fn list_columns(shape: &Shape, label: Option<&str>) -> Vec<String> {
    let values = shape.fields.iter().filter(|field| {
        label != Some(&field.name)
            && matches!(&field.kind, FieldKind::Property(property) if !matches!(property.value, Value::Object(_)))
    });
    values.take(MAX_COLUMNS).map(|field| field.name.clone()).collect()
}

impl Row {
    fn from_view(
        nesting: usize,
        uri: &str,
        ObjectView { json, label }: ObjectView,
        columns: &[String],
        frame: &Frame,
    ) -> Self {
        let shown = match json::parse(&json, nesting.saturating_add(2)) {
            Ok(Json::Object(members)) => members,
            _ => Vec::new(),
        };
        let value = |name: &String| {
            let value = shown.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            (name.clone(), value.map(shorten_value).unwrap_or_default())
        };
        Self {
            uri: uri.to_owned(),
            label: label.as_deref().map(shorten_text),
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
    shorten_text(&text)
}
