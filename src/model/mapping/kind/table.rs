//! The entry of each kind. One that begins as another differs from it only in what it lists.
use super::{Form, Kind, Scalar};
use oxrdf::vocab::xsd;
use oxsdatatypes::{Date, DateTime};
use penstock_rdf::compare::ValueOrder;
use penstock_rdf::number::is_numeric;
use std::borrow::Cow;

pub(super) const STRING: Kind = Kind {
    name: "string",
    keys: &["datatype", "language"],
    form: Form::Text,
    json_schema: ("string", None),
    datatypes: &[xsd::STRING],
    claimed_datatypes: &[],
    check_text: |_| Ok(xsd::STRING),
    rate_datatype: |_| 1,
    order: ValueOrder::Text,
    key_text: Some(keep_text),
    graphql: Scalar {
        name: "String",
        about: None,
        filter: "StringFilter",
        tests: &["eq", "in", "contains", "containsAnyCase", "exists"],
    },
    example: r#""text""#,
    hint: "",
    text_error: None,
};

/// A string whose field names a datatype or a language.
pub(super) const DETAILED_STRING: Kind = Kind { datatypes: &[], rate_datatype: |_| 0, ..STRING };

pub(super) const NUMBER: Kind = Kind {
    name: "number",
    keys: &[],
    form: Form::Number,
    json_schema: ("number", None),
    datatypes: &[xsd::DECIMAL, xsd::DOUBLE],
    claimed_datatypes: &[xsd::INTEGER],
    check_text: |digits| Ok(if digits.contains(['e', 'E']) { xsd::DOUBLE } else { xsd::DECIMAL }),
    rate_datatype: |datatype| if is_numeric(datatype) { 2 } else { 0 },
    order: ValueOrder::Number,
    key_text: None,
    graphql: Scalar {
        name: "Number",
        about: Some((
            "A number of any size and precision, as a JSON number with the digits that were ingested. A stored value that is not a number (INF, NaN) is written as a string, as in the JSON view. As input, a string of digits is allowed too.",
            "https://www.w3.org/TR/xmlschema11-2/#decimal",
        )),
        filter: "NumberFilter",
        tests: &["eq", "in", "before", "after", "exists"],
    },
    example: "12.5",
    hint: ", such as 12.5",
    text_error: Some("not a number; write digits with a point, such as 12.5"),
};

pub(super) const INTEGER: Kind = Kind {
    name: "integer",
    json_schema: ("integer", None),
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

pub(super) const BOOLEAN: Kind = Kind {
    name: "boolean",
    form: Form::Boolean,
    json_schema: ("boolean", None),
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
const TOKEN: Kind = Kind { keys: &[], form: Form::Token, ..DETAILED_STRING };

pub(super) const DATE: Kind = Kind {
    name: "date",
    json_schema: ("string", Some("date")),
    datatypes: &[xsd::DATE],
    check_text: |text| {
        let date = text.parse::<Date>().map(|_| xsd::DATE);
        date.map_err(|_| "is not a date (xsd:date), such as \"2026-03-01\"")
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

pub(super) const DATE_TIME: Kind = Kind {
    name: "dateTime",
    json_schema: ("string", Some("date-time")),
    datatypes: &[xsd::DATE_TIME],
    check_text: |text| {
        let time = text.parse::<DateTime>().map(|_| xsd::DATE_TIME);
        time.map_err(|_| "is not a date and time (xsd:dateTime), such as \"2026-03-01T12:00:00Z\"")
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

pub(super) const RESOURCE: Kind = Kind {
    name: "resource",
    json_schema: ("string", Some("iri")),
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

pub(super) const OBJECT: Kind =
    Kind { name: "object", json_schema: ("object", None), key_text: None, hint: "", ..RESOURCE };

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
