//! What a client saves of a view.
use crate::mapping::Shape;
use crate::search::{Order, TextFilter, find_field_path};
use penstock_base::characters;
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_base::json::{self, Json, Members};
use penstock_resources::view::{
    MAX_COLUMNS, MAX_FIELD_CHARS, MAX_FILTERS, MAX_NAME_CHARS, MAX_VALUE_CHARS, ViewChart,
    ViewFilter,
};
use serde::{Deserialize, Serialize};

/// The maximum length of everything in bytes, as JSON. All views are in memory, and become addresses.
const MAX_BYTES: usize = 4 << 10;
/// The maximum nesting of a body.
const MAX_NESTING: usize = 8;

/// What is saved of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewContent {
    /// Its name.
    pub name: String,
    /// The id of its Business Object; in what a client sends, its id or name.
    pub business_object: String,
    /// What an object must fulfil, all of them.
    pub filters: Vec<ViewFilter>,
    /// The field that orders the objects, with `-` before it for descending.
    pub order_by: Option<String>,
    /// The fields that the table shows.
    pub columns: Option<Vec<String>>,
    /// The chart above the table.
    pub chart: Option<ViewChart>,
    /// Whether everybody sees it.
    pub shared: bool,
}

impl ViewContent {
    /// Reads the body of a request. It may have the read-only members of an answer; they have no effect.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` as [`json::parse`]; `ErrorClass::Invalid` with every finding.
    pub fn from_json(body: &[u8]) -> Result<Self, GatewayError> {
        Self::from_value(json::parse(body, MAX_NESTING)?)
    }

    /// Reads the value of such a body.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with every finding.
    pub fn from_value(value: Json) -> Result<Self, GatewayError> {
        let mut findings = Vec::new();
        let content = Members::of_object(value, "", &mut findings).map(read_content);
        if let Some(content) = content
            && findings.is_empty()
        {
            let bytes = serde_json::to_vec(&content).map_or(0, |json| json.len());
            if bytes <= MAX_BYTES {
                return Ok(content);
            }
            let message = format!("it has {bytes} bytes; the limit of a view is {MAX_BYTES}");
            findings.push(Finding::at_pointer("", message));
        }
        Err(invalid_view_error(findings))
    }

    /// Returns what does not fit the objects of this shape.
    pub fn find_misfits(&self, shape: &Shape) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (index, condition) in list_conditions(&self.filters).enumerate() {
            let Err(error) = condition.check(shape) else { continue };
            findings.extend(error.findings.into_iter().map(|finding| {
                let part = match finding.place {
                    Place::Pointer(part) => part,
                    Place::Line { .. } | Place::Whole => String::new(),
                };
                Finding::at_pointer(format!("/filters/{index}{part}"), finding.message)
            }));
        }
        if let Some(order) = &self.order_by {
            let name = order.strip_prefix('-').unwrap_or(order);
            if let Err(error) = Order::by_field(shape, name, name != order) {
                findings.push(Finding::at_pointer("/orderBy", error.detail));
            }
        }
        let columns = self.columns.iter().flatten().enumerate();
        let columns = columns.map(|(index, name)| (format!("/columns/{index}"), name));
        let chart = self.chart.iter().flat_map(|ViewChart { time, number, lines }| {
            let fields = [("time", time), ("number", number), ("lines", lines)];
            let named = fields.into_iter().filter_map(|(part, name)| Some((part, name.as_ref()?)));
            // An empty time is none, so that it is not that of the mapping.
            named.filter(|(part, name)| *part != "time" || !name.is_empty())
        });
        let chart = chart.map(|(part, name)| (format!("/chart/{part}"), name));
        for (pointer, name) in columns.chain(chart) {
            if let Err(error) = find_field_path(shape, name) {
                findings.push(Finding::at_pointer(pointer, error.detail));
            }
        }
        findings
    }
}

/// Returns the conditions of a view.
pub fn list_conditions(filters: &[ViewFilter]) -> impl Iterator<Item = TextFilter<'_>> {
    filters.iter().map(|ViewFilter { field, test, value }| TextFilter { field, test, value })
}

/// Returns the error of a view with these findings.
pub fn invalid_view_error(findings: Vec<Finding>) -> GatewayError {
    GatewayError::with_findings(ErrorClass::Invalid, "the view is not valid", findings)
}

fn read_content(mut members: Members<'_>) -> ViewContent {
    let mut name = members.take_string("name");
    match name.as_deref().map(check_name) {
        Some(Ok(trimmed)) => name = Some(trimmed),
        Some(Err(why)) => members.add_finding("name", why),
        None => members.report_missing("name", "it says what the view shows"),
    }
    let business_object = members.take_string("businessObject");
    if business_object.is_none() {
        members.report_missing("businessObject", "the id or name of a Business Object");
    }
    let content = ViewContent {
        name: name.unwrap_or_default(),
        business_object: business_object.unwrap_or_default(),
        filters: read_filters(&mut members),
        order_by: take_text(&mut members, "orderBy", MAX_FIELD_CHARS),
        columns: read_columns(&mut members),
        chart: read_chart(&mut members),
        shared: members.take_boolean("shared").unwrap_or_default(),
    };
    for read_only in ["id", "owner", "version", "createdAt", "updatedAt", "updatedBy", "warnings"] {
        members.take(read_only);
    }
    members.report_unknown();
    content
}

/// Returns the name without surrounding white space, or why it cannot be one.
fn check_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() {
        Err("it is empty; say what the view shows".to_owned())
    } else if name.chars().count() > MAX_NAME_CHARS {
        Err(format!("it is longer than {MAX_NAME_CHARS} characters"))
    } else if let Some(why) = characters::describe_deceptive(name, characters::is_deceptive) {
        Err(why)
    } else {
        Ok(name.to_owned())
    }
}

fn read_filters(members: &mut Members<'_>) -> Vec<ViewFilter> {
    let elements = take_elements(members, "filters", MAX_FILTERS).unwrap_or_default();
    let pointer = members.pointer_to("filters");
    let mut filters = Vec::new();
    for (index, element) in elements.into_iter().enumerate() {
        let place = format!("{pointer}/{index}");
        let Some(mut parts) = Members::of_object(element, &place, members.findings()) else {
            continue;
        };
        let mut take = |name: &'static str, max_chars: usize, expected: &str| {
            let text = take_text(&mut parts, name, max_chars);
            if text.is_none() {
                parts.report_missing(name, expected);
            }
            text.unwrap_or_default()
        };
        filters.push(ViewFilter {
            field: take("field", MAX_FIELD_CHARS, "it names a field of the mapping"),
            test: take("test", MAX_FIELD_CHARS, "such as eq"),
            value: take("value", MAX_VALUE_CHARS, "the text that values are compared with"),
        });
        parts.report_unknown();
    }
    filters
}

fn read_columns(members: &mut Members<'_>) -> Option<Vec<String>> {
    let elements = take_elements(members, "columns", MAX_COLUMNS)?;
    let pointer = members.pointer_to("columns");
    let mut columns = Vec::new();
    for (index, element) in elements.into_iter().enumerate() {
        let why = match element {
            Json::String(name) if name.chars().count() > MAX_FIELD_CHARS => {
                format!("it is longer than {MAX_FIELD_CHARS} characters")
            }
            Json::String(name) => {
                columns.push(name);
                continue;
            }
            other => format!("expected the name of a field, not {}", other.kind_name()),
        };
        members.findings().push(Finding::at_pointer(format!("{pointer}/{index}"), why));
    }
    Some(columns)
}

fn read_chart(members: &mut Members<'_>) -> Option<ViewChart> {
    let value = members.take("chart")?;
    let place = members.pointer_to("chart");
    let mut parts = Members::of_object(value, &place, members.findings())?;
    let chart = ViewChart {
        time: take_text(&mut parts, "time", MAX_FIELD_CHARS),
        number: take_text(&mut parts, "number", MAX_FIELD_CHARS),
        lines: take_text(&mut parts, "lines", MAX_FIELD_CHARS),
    };
    parts.report_unknown();
    Some(chart)
}

/// Takes an array of at most so many elements.
fn take_elements(
    members: &mut Members<'_>,
    name: &'static str,
    max_elements: usize,
) -> Option<Vec<Json>> {
    let elements = members.take_array(name)?;
    if elements.len() > max_elements {
        let message = format!("it has {} elements; the limit is {max_elements}", elements.len());
        members.add_finding(name, message);
        return None;
    }
    Some(elements)
}

/// Takes a string of at most so many characters.
fn take_text(members: &mut Members<'_>, name: &'static str, max_chars: usize) -> Option<String> {
    let text = members.take_string(name)?;
    if text.chars().count() > max_chars {
        members.add_finding(name, format!("it is longer than {max_chars} characters"));
    }
    Some(text)
}
