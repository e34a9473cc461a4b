//! `/api/v1/business-objects/{id}/objects`: the stored objects in the view, a page or all of them; and their summaries.
use crate::sparql::{WriteLimit, stream_answer};
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::{AnyPageQuery, Choice, FilterParameters};
use penstock_http::problem::Problem;
use penstock_http::query::{TextCursor, cursor_after, parse_cursor};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::csv::{CsvFormat, CsvOptions};
use penstock_model::mapping::Shape;
use penstock_model::resource::Compiled;
use penstock_model::search::{Filter, Order, SummaryRequest, parse_filters, refuse_search_cursor};
use penstock_model::view::compute_etag;
use penstock_resources::object::{ObjectsOrObject, ViewedObject};
use penstock_resources::summary::Summary;
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{self, Download, DownloadForm, ObjectSearch, ObjectsPage};
use salvo::http::header::{CONTENT_DISPOSITION, ETAG, HeaderMap, VARY};
use salvo::http::{Method, ResBody};
use schemars::JsonSchema;
use std::sync::Arc;

/// The media type of CSV.
const CSV: &str = "text/csv";
/// The media type of lines of JSON.
const NDJSON: &str = "application/x-ndjson";
/// The character between the elements of an array in a cell.
const ARRAY_DELIMITER: &str = "|";

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/business-objects/{id}/objects", User, list_objects)
            .describe(
                "listObjects",
                "Objects",
                "Lists the stored objects in the view, ordered by URI: the content of an export.\n\nWith `uri`, the \
                 response is only that object, without a list around it. `filter.…` lists only the objects that pass \
                 all filters, and `orderBy` lists them in another order.\n\nWith `format`, or a media type in `Accept` other \
                 than JSON, the response has all these objects of one snapshot, however many. If it fails after its \
                 beginning, the connection ends without the end of the response. CSV has the columns that an ingestion \
                 takes: single values, arrays of values, and fields of single nested objects.",
            )
            .parameter("id", "The Business Object's id or name.")
            .parameter(
                "limit",
                "Items of a page, 1 to 1000; 100 when absent. A page of large objects ends earlier.",
            )
            .answer::<ObjectsOrObject>(200, "A page, with `uri` one object, or all objects.")
            .answer_as::<String>(CSV)
            .answer_as::<String>(NDJSON)
            .problems(&[400, 404, 413, 422]),
        get("/api/v1/business-objects/{id}/objects/{uri}", User, get_object)
            .describe("getObject", "Objects", "Returns one stored object in the view.")
            .parameter("id", "The Business Object's id or name.")
            .parameter("uri", "The object's URI, percent-encoded.")
            .answer::<ViewedObject>(200, "The object.")
            .answer_header("ETag", "A digest of the view, for `If-Match` of an ingestion.")
            .problems(&[400, 404, 413]),
        get("/api/v1/business-objects/{id}/summary", User, summarize_objects)
            .describe(
                "summarizeObjects",
                "Objects",
                "Counts the stored objects by groups, and computes measures of each group.\n\nAn object counts in each group \
                 that one of its values belongs to. Past the limits of a search the answer is 422, never a figure of a part.",
            )
            .parameter("id", "The Business Object's id or name.")
            .answer::<Summary>(200, "The groups, at most 1,000.")
            .problems(&[400, 404, 409, 422]),
    ]
}

penstock_http::parameters! {
    /// Which objects are listed.
    struct ObjectsQuery {
        "uri" => uri: Option<String>, "One object's URI; not together with other parameters.";
        "orderBy" => order_by: Option<String>, "The field that the objects are ordered by, with `-` before it for descending. Objects without a value come last. By `uri` when absent.";
        "format" => format: Option<ObjectsFormat>, "All objects as `csv`, `ndjson` or `json`, in place of `Accept`; not together with `limit` or `cursor`.";
        "fields" => fields: Option<String>, "CSV: the columns, separated by commas, such as `name,position.latitude`.";
        "delimiter" => delimiter: Option<String>, "CSV: the ASCII character between cells, or `tab`; a comma when absent.";
        "arrayDelimiter" => array_delimiter: Option<String>, "CSV: the character between the elements of an array in one cell, or `tab`; `|` when absent.";
        "arrayEscape" => array_escape: Option<bool>, "CSV: whether `\\` stands before an array delimiter that is part of an element, and before a `\\`. Without it, such an element ends the download.";
        "decimalComma" => decimal_comma: Option<bool>, "CSV: whether numbers have a comma in place of the decimal point. When absent, only numbers of fields that take no point in CSV have their separator; with `false`, all have a point.";
        "spreadsheet" => spreadsheet: Option<bool>, "CSV: whether a `'` is put before each cell that a spreadsheet would take for a formula.";
        ..rest: (FilterQuery, AnyPageQuery)
    }
}

penstock_http::parameters! {
    /// Which objects are selected.
    struct FilterQuery {
        "filter." => filters: FilterParameters, "`filter.<field>=value` or `filter.<field>.<test>=value`, with the tests of GraphQL: `eq`, `in` (repeat the parameter), `contains`, `containsAnyCase`, `startsWith`, `before`, `after`, `atLeast`, `atMost` and `exists` (`true` or `false`). The fields of nested objects and the members of maps are named with dots. An object must pass all filters; those below one array, for the same element.";
    }
}

impl FilterQuery {
    /// Returns the filter that an object must pass; `None` without one.
    fn build(&self, shape: &Shape) -> Result<Option<Filter>, GatewayError> {
        let given = self.filters.0.iter();
        parse_filters(shape, given.map(|(name, values)| (name.as_str(), values.as_slice())))
    }
}

/// The form of all objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
enum ObjectsFormat {
    /// A header and a record for each object.
    Csv,
    /// A line for each object.
    Ndjson,
    /// One document.
    Json,
}

impl Choice for ObjectsFormat {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "csv" => Ok(Self::Csv),
            "ndjson" => Ok(Self::Ndjson),
            "json" => Ok(Self::Json),
            _ => Err(format!(
                "the query parameter format is {name:?}; it must be csv, ndjson or json"
            )),
        }
    }
}

/// Reads which objects are selected, and their order.
fn read_search(
    query: &ObjectsQuery,
    shape: &Shape,
) -> Result<(Option<Filter>, Order), GatewayError> {
    let order = query.order_by.as_deref().map_or(Ok(Order::default()), |text| {
        Order::parse(shape, text).map_err(|error| {
            let detail = format!("the query parameter orderBy: {}", error.detail);
            GatewayError { detail, ..error }
        })
    });
    Ok((query.rest.0.build(shape)?, order?))
}

async fn list_objects(call: Call<'_>, query: ObjectsQuery) -> ReplyResult {
    let gateway = call.gateway()?;
    let (by, business_object) = (call.caller(), find_business_object(&gateway, call.path("id"))?);
    let format = query.format.or_else(|| negotiate_format(call.req.headers()));
    let is_paged = ["limit", "cursor"].iter().any(|name| call.req.queries().contains_key(*name));
    let is_search = !query.rest.0.filters.0.is_empty() || query.order_by.is_some();
    if let Some(uri) = &query.uri {
        if is_paged {
            return Err(Problem::malformed("uri names one object: leave out limit and cursor"));
        }
        if is_search {
            return Err(Problem::malformed("uri names one object: leave out filters and orderBy"));
        }
        if query.format.is_some() {
            return Err(Problem::malformed(
                "uri names one object, which is JSON: leave out format",
            ));
        }
        check_no_csv_parameters(&query)?;
        return object_reply(&gateway, by, &business_object, uri).await;
    }
    if let Some(format) = format {
        if is_paged {
            return Err(Problem::malformed(
                "a download has all objects: leave out limit and cursor",
            ));
        }
        return download_objects(&call, &query, business_object, format).await;
    }
    check_no_csv_parameters(&query)?;
    let page = if is_search {
        let (filter, order) = read_search(&query, &business_object.mapping.root)?;
        let (_, AnyPageQuery { limit, cursor }) = query.rest;
        let search = ObjectSearch { filter, order, after: cursor, limit };
        objects::list_found_objects(&gateway, by, business_object, search).await?
    } else {
        let (_, AnyPageQuery { limit, cursor }) = query.rest;
        cursor.as_deref().map_or(Ok(()), refuse_search_cursor)?;
        let after = cursor.as_deref().map(parse_cursor::<TextCursor>).transpose()?;
        let page = objects::list_objects(&gateway, by, business_object, after, limit).await?;
        let next = page.next.map(|uri| cursor_after(&uri));
        ObjectsPage { next, ..page }
    };
    // The objects are JSON already, so the members of the page are put around them.
    let mut body = page.json;
    body.splice(..0, *br#"{"items":"#);
    body.extend_from_slice(br#","next":"#);
    match page.next {
        Some(cursor) => body.extend_from_slice(format!("\"{cursor}\"").as_bytes()),
        None => body.extend_from_slice(b"null"),
    }
    body.push(b'}');
    Ok(Reply::bytes("application/json", body).with_header(VARY, "Accept"))
}

/// Returns the form of all objects, if the request names its media type and does not prefer JSON. Other requests get a page,
/// whatever they accept.
fn negotiate_format(headers: &HeaderMap) -> Option<ObjectsFormat> {
    let accepted = AcceptedTypes::from_headers(headers);
    let offered = [(CSV, ObjectsFormat::Csv), (NDJSON, ObjectsFormat::Ndjson)];
    let mut best = (accepted.weight_of("application/json"), None);
    for (media_type, format) in offered {
        let weight = accepted.weight_of(media_type);
        if accepted.has_named(media_type) && weight > best.0 {
            best = (weight, Some(format));
        }
    }
    best.1
}

/// Checks that there is no parameter of CSV.
fn check_no_csv_parameters(query: &ObjectsQuery) -> Result<(), Problem> {
    let given = [
        ("fields", query.fields.is_some()),
        ("delimiter", query.delimiter.is_some()),
        ("arrayDelimiter", query.array_delimiter.is_some()),
        ("arrayEscape", query.array_escape.is_some()),
        ("decimalComma", query.decimal_comma.is_some()),
        ("spreadsheet", query.spreadsheet.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(Problem::malformed(format!(
            "the query parameter {name} is for CSV; send it with format=csv or Accept: text/csv"
        ))),
        None => Ok(()),
    }
}

/// Streams all selected objects. An error after the first bytes ends the connection.
async fn download_objects(
    call: &Call<'_>,
    query: &ObjectsQuery,
    business_object: Arc<Compiled>,
    format: ObjectsFormat,
) -> ReplyResult {
    let gateway = call.gateway()?;
    let (media_type, extension, form) = match format {
        ObjectsFormat::Csv => (CSV, "csv", DownloadForm::Csv(read_csv_options(query)?)),
        ObjectsFormat::Ndjson => (NDJSON, "ndjson", DownloadForm::Ndjson),
        ObjectsFormat::Json => ("application/json", "json", DownloadForm::Json),
    };
    if format != ObjectsFormat::Csv {
        check_no_csv_parameters(query)?;
    }
    let selected = read_search(query, &business_object.mapping.root)?;
    let name = &business_object.object.definition.name;
    // A quoted file name may not have any character.
    let name = name.replace(|c: char| !c.is_ascii_graphic() || matches!(c, '"' | '\\' | '/'), "_");
    let download = Download::new(&gateway, call.caller(), business_object, selected, form)?;
    let reply = if *call.req.method() == Method::HEAD {
        Reply::stream(media_type, ResBody::None)
    } else {
        let permit = objects::acquire_download_permit(&gateway, call.caller()).await?;
        stream_answer(call.req, WriteLimit::Rate, move |writer| {
            let _permit = permit;
            writer.set_media_type(media_type);
            download.write_to(&gateway, writer)?;
            Ok(())
        })
        .await?
    };
    let disposition = format!("attachment; filename=\"{name}.{extension}\"");
    Ok(reply.with_header(VARY, "Accept").with_header(CONTENT_DISPOSITION, &disposition))
}

fn read_csv_options(query: &ObjectsQuery) -> Result<CsvOptions, Problem> {
    let array_delimiter = query.array_delimiter.as_deref().unwrap_or(ARRAY_DELIMITER);
    let decimal_comma = query.decimal_comma.unwrap_or_default();
    let format = CsvFormat::new(query.delimiter.as_deref(), Some(array_delimiter), decimal_comma)?;
    let has_escape = query.array_escape.unwrap_or_default();
    Ok(CsvOptions {
        fields: query.fields.clone(),
        format: if has_escape { format.with_array_escape()? } else { format },
        has_decimal_points: query.decimal_comma == Some(false),
        is_for_spreadsheets: query.spreadsheet.unwrap_or_default(),
    })
}

penstock_http::parameters! {
    /// What a summary shows.
    struct SummaryQuery {
        "group" => groups: Vec<String>, "The field by which objects are grouped, at most two; for dates and times with a unit: `measured.day`, also `minute`, `hour`, `week`, `month` and `year`.";
        "measure" => measures: Option<String>, "The measures, separated by commas: `count`, and `min`, `max`, `avg` or `sum` of a field, such as `max(flow)`; `count` when absent, and always.";
        "timezone" => timezone: Option<String>, "The IANA time zone of minutes to years; that of the Business Object when absent, otherwise UTC.";
        ..filter: FilterQuery
    }
}

async fn summarize_objects(call: Call<'_>, query: SummaryQuery) -> ReplyResult {
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    let SummaryQuery { groups, measures, timezone, filter } = query;
    let request = SummaryRequest { groups, measures, timezone };
    let filter = filter.build(&business_object.mapping.root)?;
    let by = call.caller();
    let summary =
        objects::summarize_objects(&gateway, by, business_object, filter, request).await?;
    Reply::json(&summary)
}

async fn get_object(call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let business_object = find_business_object(&gateway, call.path("id"))?;
    object_reply(&gateway, call.caller(), &business_object, call.path("uri")).await
}

async fn object_reply(
    gateway: &Gateway,
    by: &Caller,
    business_object: &Arc<Compiled>,
    uri: &str,
) -> ReplyResult {
    let json = objects::view_object(gateway, by, business_object, uri).await?;
    let etag = compute_etag(&json);
    Ok(Reply::bytes("application/json", json).with_header(ETAG, &etag))
}
