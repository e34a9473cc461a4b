//! The entry of each kind. One that begins as another differs from it only in what it lists.
use super::{Form, Kind, Scalar};
use crate::mapping::FormName;
use oxrdf::vocab::{rdf, xsd};
use oxsdatatypes::{Date, DateTime};
use penstock_rdf::compare::ValueOrder;
use penstock_rdf::number::is_numeric;
use penstock_store::parse_usual_moment;
use std::borrow::Cow;

pub(crate) const STRING: Kind = Kind {
    name: "string",
    keys: &["datatype", "language", "values"],
    accept: &[FormName::Scalar],
    inherits_absent: true,
    form: Form::Text,
    json_schema: (&["string"], None),
    element_error: None,
    datatypes: &[xsd::STRING],
    claimed_datatypes: &[],
    check_text: |_| Ok(xsd::STRING),
    rate_datatype: |_| 1,
    order: ValueOrder::Text,
    key_text: Some(keep_text),
    names_members: true,
    graphql: Scalar {
        name: "String",
        about: None,
        filter: "StringFilter",
        tests: &["eq", "in", "contains", "containsAnyCase", "startsWith", "exists"],
    },
    example: r#""text""#,
    hint: "",
    text_error: None,
};

/// A string whose field names a datatype or a language.
pub(crate) const DETAILED_STRING: Kind = Kind { datatypes: &[], rate_datatype: |_| 0, ..STRING };

pub(crate) const NUMBER: Kind = Kind {
    name: "number",
    keys: &[],
    accept: &[FormName::Text, FormName::Decimal],
    inherits_absent: true,
    form: Form::Number,
    json_schema: (&["number"], None),
    element_error: None,
    datatypes: &[xsd::DECIMAL, xsd::DOUBLE],
    claimed_datatypes: &[xsd::INTEGER],
    check_text: |digits| Ok(if digits.contains(['e', 'E']) { xsd::DOUBLE } else { xsd::DECIMAL }),
    rate_datatype: |datatype| if is_numeric(datatype) { 2 } else { 0 },
    order: ValueOrder::Number,
    key_text: None,
    names_members: false,
    graphql: Scalar {
        name: "Number",
        about: Some((
            "A number of any size and precision, as a JSON number with the digits that were ingested. A stored value that is not a number (INF, NaN) is written as a string, as in the JSON view. As input, a string of digits is allowed too.",
            "https://www.w3.org/TR/xmlschema11-2/#decimal",
        )),
        filter: "NumberFilter",
        tests: &["eq", "in", "before", "after", "atLeast", "atMost", "exists"],
    },
    example: "12.5",
    hint: ", such as 12.5",
    text_error: Some("not a number; write digits with a point, such as 12.5"),
};

pub(crate) const INTEGER: Kind = Kind {
    name: "integer",
    keys: &["values"],
    accept: &[FormName::Text, FormName::Decimal, FormName::WholeNumber],
    json_schema: (&["integer"], None),
    datatypes: &[xsd::INTEGER],
    claimed_datatypes: &[],
    check_text: |digits| {
        let is_integer = !digits.contains(['.', 'e', 'E']);
        is_integer
            .then_some(xsd::INTEGER)
            .ok_or("is not an integer: it has a fraction or an exponent")
    },
    rate_datatype: |_| 0,
    key_text: Some(normalize_integer),
    names_members: true,
    graphql: Scalar {
        name: "Integer",
        about: Some((
            "A whole number of any size, as a JSON number with all its digits. A stored value that is not a whole number is written as in the JSON view. As input, a string of digits is allowed too.",
            "https://www.w3.org/TR/xmlschema11-2/#integer",
        )),
        filter: "IntegerFilter",
        ..NUMBER.graphql
    },
    example: "1",
    hint: "",
    text_error: Some("not a whole number"),
    ..NUMBER
};

pub(crate) const BOOLEAN: Kind = Kind {
    name: "boolean",
    accept: &[FormName::Booleans],
    form: Form::Boolean,
    json_schema: (&["boolean"], None),
    datatypes: &[xsd::BOOLEAN],
    check_text: |_| Ok(xsd::BOOLEAN),
    key_text: None,
    graphql: Scalar {
        name: "Boolean",
        about: None,
        filter: "BooleanFilter",
        tests: &["eq", "exists"],
    },
    example: "true",
    ..TOKEN
};

/// What dates, times and IRIs have in common.
const TOKEN: Kind =
    Kind { keys: &[], accept: &[], form: Form::Token, names_members: false, ..DETAILED_STRING };

/// The forms of dates and times.
const TIMES: &[FormName] = &[FormName::Iso, FormName::Unix, FormName::OData, FormName::Pattern];

pub(crate) const DATE: Kind = Kind {
    name: "date",
    accept: TIMES,
    json_schema: (&["string"], Some("date")),
    datatypes: &[xsd::DATE],
    check_text: |text| {
        let is_date = parse_usual_moment(text, xsd::DATE).is_some() || text.parse::<Date>().is_ok();
        is_date.then_some(xsd::DATE).ok_or("is not a date (xsd:date), such as \"2026-03-01\"")
    },
    order: ValueOrder::Date,
    graphql: Scalar {
        name: "Date",
        about: Some((
            "A date, as a string in the ingested form: `2026-03-01`, with or without a time zone.",
            "https://www.w3.org/TR/xmlschema11-2/#date",
        )),
        filter: "DateFilter",
        ..NUMBER.graphql
    },
    example: r#""2026-03-01""#,
    hint: ", such as 2026-03-01",
    ..TOKEN
};

pub(crate) const DATE_TIME: Kind = Kind {
    name: "dateTime",
    accept: TIMES,
    json_schema: (&["string"], Some("date-time")),
    datatypes: &[xsd::DATE_TIME],
    check_text: |text| {
        let is_time =
            parse_usual_moment(text, xsd::DATE_TIME).is_some() || text.parse::<DateTime>().is_ok();
        is_time
            .then_some(xsd::DATE_TIME)
            .ok_or("is not a date and time (xsd:dateTime), such as \"2026-03-01T12:00:00Z\"")
    },
    order: ValueOrder::DateTime,
    graphql: Scalar {
        name: "DateTime",
        about: Some((
            "A date and time, as a string in the ingested form: `2026-03-01T12:00:00.5Z`.",
            "https://www.w3.org/TR/xmlschema11-2/#dateTime",
        )),
        filter: "DateTimeFilter",
        ..NUMBER.graphql
    },
    example: r#""2026-03-01T12:00:00Z""#,
    hint: ", such as 2026-03-01T12:00:00Z",
    ..TOKEN
};

pub(crate) const RESOURCE: Kind = Kind {
    name: "resource",
    keys: &["base", "values"],
    json_schema: (&["string"], Some("iri")),
    graphql: Scalar {
        name: "IRI",
        about: Some(("An IRI (RFC 3987), as a string.", "https://www.rfc-editor.org/rfc/rfc3987")),
        filter: "IRIFilter",
        ..STRING.graphql
    },
    example: r#""https://example.com/1""#,
    hint: ": an IRI",
    ..TOKEN
};

pub(crate) const OBJECT: Kind = Kind {
    name: "object",
    keys: &[],
    json_schema: (&["object"], None),
    key_text: None,
    hint: "",
    ..RESOURCE
};

/// A value that is kept by its type in JSON.
pub(crate) const SCALAR: Kind = Kind {
    name: "scalar",
    form: Form::Scalar,
    json_schema: (&["string", "number", "boolean"], None),
    datatypes: &[xsd::STRING, xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::BOOLEAN],
    check_text: |digits| (INTEGER.check_text)(digits).or_else(|_| (NUMBER.check_text)(digits)),
    rate_datatype: NUMBER.rate_datatype,
    order: ValueOrder::Scalar,
    key_text: None,
    graphql: JSON_SCALAR,
    example: "12.5",
    hint: "; a text that is a number, true or false needs quotes",
    ..TOKEN
};

/// Any JSON value, as one value.
pub(crate) const JSON: Kind = Kind {
    name: "json",
    form: Form::Json,
    json_schema: (&["object", "array", "string", "number", "boolean"], None),
    element_error: Some(
        "a value of type `json` can be an array itself; write `type: json` in place of the array",
    ),
    inherits_absent: false,
    datatypes: &[rdf::JSON],
    check_text: |_| Ok(rdf::JSON),
    key_text: None,
    graphql: Scalar { filter: "", tests: &[], ..JSON_SCALAR },
    example: r#"{"level":1}"#,
    hint: "; a text that is not JSON is a string",
    ..TOKEN
};

/// The texts of a language map, each with its language.
pub(crate) const LANGUAGE_MAP: Kind = Kind {
    name: "languageMap",
    keys: &["languages", "elements"],
    accept: &[],
    json_schema: (&["object"], None),
    element_error: Some(
        "a `languageMap` cannot be an element; for several texts in a language, write `elements: array` in the \
         `languageMap`",
    ),
    datatypes: &[rdf::LANG_STRING],
    check_text: |_| Ok(rdf::LANG_STRING),
    key_text: None,
    names_members: false,
    graphql: Scalar {
        filter: "PenstockLanguageTextFilter",
        tests: &["language", "eq", "in", "contains", "containsAnyCase", "startsWith", "exists"],
        ..STRING.graphql
    },
    example: r#"{"en":"text"}"#,
    hint: "",
    ..DETAILED_STRING
};

/// The type of values of any type in GraphQL.
const JSON_SCALAR: Scalar = Scalar {
    name: "PenstockJSON",
    about: Some((
        "Any JSON value, with the digits of its numbers and the order of its members.",
        "https://www.rfc-editor.org/rfc/rfc8259",
    )),
    filter: "PenstockJSONFilter",
    tests: &[
        "eq",
        "in",
        "contains",
        "containsAnyCase",
        "before",
        "after",
        "atLeast",
        "atMost",
        "exists",
    ],
};

/// The type in GraphQL of codes that are strings.
pub(crate) static TEXT_SCALAR: &Scalar = &STRING.graphql;
/// The type in GraphQL of other codes, which is that of the type `scalar`.
pub static CODE_SCALAR: &Scalar = &JSON_SCALAR;

fn keep_text(text: &str) -> Cow<'_, str> {
    text.into()
}

/// Returns the canonical form of an `xsd:integer`: without `+` and without zeros at the beginning.
fn normalize_integer(text: &str) -> Cow<'_, str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match digits.trim_start_matches('0') {
        "" if digits.is_empty() => text.into(),
        "" => "0".into(),
        significant if !text.starts_with('-') => significant.into(),
        significant if significant == digits => text.into(),
        significant => format!("-{significant}").into(),
    }
}
